//! The state of the disk: what the page cache shows, what is durable, and what lies between.
//!
//! Nodes are numbered and never removed, so that an entry which a crash brings back still finds
//! its file. Each file and each directory keeps its durable state and the changes made since:
//! a sync applies these to the durable state, a crash applies some of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::call::{Call, Fault, Op, PowerOff};
use super::crash::CrashClass;
use crate::error::{Error, Result};

pub(super) type Ino = u64;

pub(super) const ROOT: Ino = 1;
pub(super) const BLOCK: usize = 4096;
const START_MS: i64 = 1_700_000_000_000;

/// A change of a file that is not durable yet.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Size(usize),
}

impl Change {
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => {
                let end = at + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*at..end].copy_from_slice(bytes);
            }
            Self::Size(size) => content.resize(*size, 0),
        }
    }

    /// What the change does to the size alone; new room reads as zeros.
    pub(super) fn apply_size(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } if content.len() < at + bytes.len() => {
                content.resize(at + bytes.len(), 0);
            }
            Self::Write { .. } => {}
            Self::Size(size) => content.resize(*size, 0),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct FileNode {
    pub(super) durable: Vec<u8>,
    pub(super) current: Vec<u8>,
    pub(super) pending: Vec<Change>,
    /// Blocks that take space; the others are holes.
    blocks: BTreeSet<usize>,
    pub(super) modified_ms: i64,
    /// Whether a name or a handle still holds it, so that it takes space.
    pub(super) linked: bool,
    pub(super) handles: u32,
}

impl FileNode {
    pub(super) fn settled(content: Vec<u8>, modified_ms: i64) -> Self {
        let blocks = (0..content.len().div_ceil(BLOCK)).collect();
        Self {
            durable: content.clone(),
            current: content,
            blocks,
            modified_ms,
            linked: true,
            ..Self::default()
        }
    }

    fn change(&mut self, change: Change, now_ms: i64) {
        change.apply(&mut self.current);
        self.modified_ms = now_ms;
        self.pending.push(change);
    }
}

/// A change of a directory's names that is not durable yet.
#[derive(Debug, Clone)]
pub(super) enum Move {
    Add { name: String, ino: Ino },
    Remove { name: String, ino: Ino },
    Rename { to: String, ino: Ino },
}

impl Move {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, Ino>) {
        match self {
            Self::Add { name, ino } | Self::Rename { to: name, ino } => {
                // Never two names for one node, whichever of its moves were lost.
                names.retain(|_, other| other != ino);
                names.insert(name.clone(), *ino);
            }
            Self::Remove { name, ino } => {
                if names.get(name) == Some(ino) {
                    names.remove(name);
                }
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct DirNode {
    pub(super) durable: BTreeMap<String, Ino>,
    pub(super) current: BTreeMap<String, Ino>,
    pub(super) pending: Vec<Move>,
}

impl DirNode {
    pub(super) fn change(&mut self, change: Move) {
        change.apply(&mut self.current);
        self.pending.push(change);
    }
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    File(FileNode),
    Dir(DirNode),
}

#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) nodes: BTreeMap<Ino, Node>,
    pub(super) next: Ino,
    pub(super) ops: Vec<Op>,
    pub(super) faults: BTreeMap<u64, Fault>,
    pub(super) faults_hit: u64,
    pub(super) power_off_at: Option<u64>,
    pub(super) capacity: Option<u64>,
    pub(super) locks: BTreeSet<Ino>,
    pub(super) bus_errors: u64,
    pub(super) now_ms: i64,
    pub(super) class: Option<CrashClass>,
}

impl Disk {
    pub(super) fn new() -> Self {
        Self {
            nodes: BTreeMap::from([(ROOT, Node::Dir(DirNode::default()))]),
            next: ROOT + 1,
            ops: Vec::new(),
            faults: BTreeMap::new(),
            faults_hit: 0,
            power_off_at: None,
            capacity: None,
            locks: BTreeSet::new(),
            bus_errors: 0,
            now_ms: START_MS,
            class: None,
        }
    }

    /// A copy as a restarted process finds it: the same pages, no locks, nothing open, all well.
    pub(super) fn restarted(&self) -> Self {
        let mut disk = Self { nodes: self.nodes.clone(), next: self.next, ..Self::new() };
        disk.now_ms = self.now_ms;
        for node in disk.nodes.values_mut() {
            if let Node::File(file) = node {
                file.handles = 0;
            }
        }
        disk
    }

    pub(super) fn calls(&self) -> u64 {
        u64::try_from(self.ops.len()).unwrap()
    }

    pub(super) fn is_off(&self) -> bool {
        self.power_off_at.is_some_and(|at| self.calls() >= at)
    }

    /// Counts a call. The fault is for the caller to act on when it has more to do than to fail.
    pub(super) fn begin(&mut self, call: Call, path: &Path, bytes: usize) -> Result<Option<Fault>> {
        let number = self.calls() + 1;
        let op = Op {
            number,
            call,
            path: path.to_string_lossy().into_owned(),
            bytes: u64::try_from(bytes).unwrap(),
        };
        self.ops.push(op);
        self.now_ms += 1;
        if self.is_off() {
            return Err(Error::io(call.name(), path, io::Error::other(PowerOff)));
        }
        let Some(fault) = self.faults.get(&number).copied() else { return Ok(None) };
        let Some(error) = fault.error(call) else { return Ok(None) };
        self.faults_hit += 1;
        match fault {
            Fault::ShortWrite if call == Call::Write => Ok(Some(fault)),
            Fault::SyncLost if call.is_sync() => Ok(Some(fault)),
            _ => Err(Error::io(call.name(), path, error)),
        }
    }

    pub(super) fn dir(&mut self, ino: Ino) -> &mut DirNode {
        match self.nodes.get_mut(&ino) {
            Some(Node::Dir(dir)) => dir,
            _ => panic!("node {ino} is no directory"),
        }
    }

    pub(super) fn file(&mut self, ino: Ino) -> &mut FileNode {
        match self.nodes.get_mut(&ino) {
            Some(Node::File(file)) => file,
            _ => panic!("node {ino} is no file"),
        }
    }

    pub(super) fn add(&mut self, parent: Ino, name: &str, node: Node) -> Ino {
        let ino = self.next;
        self.next += 1;
        self.nodes.insert(ino, node);
        self.dir(parent).change(Move::Add { name: name.to_owned(), ino });
        ino
    }

    pub(super) fn new_file(&mut self) -> Node {
        Node::File(FileNode { modified_ms: self.now_ms, linked: true, ..FileNode::default() })
    }

    pub(super) fn used(&self) -> usize {
        let blocks = |node: &Node| match node {
            Node::File(file) if file.linked || file.handles > 0 => file.blocks.len(),
            _ => 0,
        };
        self.nodes.values().map(blocks).sum::<usize>() * BLOCK
    }

    pub(super) fn free(&self) -> Option<usize> {
        let capacity = usize::try_from(self.capacity?).unwrap();
        Some(capacity.saturating_sub(self.used()))
    }

    /// Gives the blocks of a range space, as many as there is; returns where it ran out.
    fn reserve(&mut self, ino: Ino, from: usize, to: usize) -> usize {
        let mut free = self.free().map(|free| free / BLOCK);
        let file = self.file(ino);
        for block in from / BLOCK..to.div_ceil(BLOCK) {
            if file.blocks.contains(&block) {
                continue;
            }
            match &mut free {
                Some(0) => return (block * BLOCK).max(from),
                Some(left) => *left -= 1,
                None => {}
            }
            file.blocks.insert(block);
        }
        to
    }

    /// Writes what there is space for; returns how many bytes that was.
    pub(super) fn write(&mut self, ino: Ino, bytes: &[u8], at: usize) -> usize {
        let end = self.reserve(ino, at, at + bytes.len());
        let written = &bytes[..end - at];
        if !written.is_empty() {
            let now_ms = self.now_ms;
            self.file(ino).change(Change::Write { at, bytes: written.to_vec() }, now_ms);
        }
        written.len()
    }

    pub(super) fn set_len(&mut self, ino: Ino, size: usize) {
        let now_ms = self.now_ms;
        let file = self.file(ino);
        file.blocks.split_off(&size.div_ceil(BLOCK));
        file.change(Change::Size(size), now_ms);
    }

    /// All of it or nothing.
    pub(super) fn allocate(&mut self, ino: Ino, size: usize) -> bool {
        let before = self.file(ino).blocks.clone();
        if self.reserve(ino, 0, size) < size {
            self.file(ino).blocks = before;
            return false;
        }
        if self.file(ino).current.len() < size {
            let now_ms = self.now_ms;
            self.file(ino).change(Change::Size(size), now_ms);
        }
        true
    }

    pub(super) fn sync_file(&mut self, ino: Ino, lost: bool) {
        let file = self.file(ino);
        for change in std::mem::take(&mut file.pending) {
            if !lost {
                change.apply(&mut file.durable);
            }
        }
    }

    pub(super) fn sync_dir(&mut self, ino: Ino, lost: bool) {
        let dir = self.dir(ino);
        for change in std::mem::take(&mut dir.pending) {
            if !lost {
                change.apply(&mut dir.durable);
            }
        }
    }

    /// A load or store through a map. Past the last page of the file it is a SIGBUS, and so is a
    /// store into a hole when the disk is full; past the end in the last page it is lost.
    pub(super) fn cell(&mut self, ino: Ino, cell: usize, store: Option<u32>) -> u32 {
        let at = cell * 4;
        let size = self.file(ino).current.len();
        if at >= size.next_multiple_of(BLOCK) {
            self.bus_errors += 1;
            return 0;
        }
        if at + 4 > size {
            return 0;
        }
        if let Some(value) = store {
            if !self.is_off() && self.write(ino, &value.to_be_bytes(), at) < 4 {
                self.bus_errors += 1;
            }
            return value;
        }
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.file(ino).current[at..at + 4]);
        u32::from_be_bytes(bytes)
    }

    pub(super) fn fail(call: Call, path: &Path, errno: Errno) -> Error {
        Error::io(call.name(), path, errno.into())
    }
}
