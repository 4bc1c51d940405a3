//! What a power cut leaves.
//!
//! Every file and directory has its durable state and a list of changes that are not durable. A
//! crash decides for each how much of that list the disk had taken. Metadata of one file is
//! ordered (its sizes follow one another); its data is not: any sector of any write may be there
//! or not. Names of one directory may be taken in any selection.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash as _, Hasher as _};

use super::disk::{BLOCK, Change, DirNode, Disk, FileNode, Ino, Node, ROOT};

const SECTOR: usize = 512;
/// Random states tried for each one wanted; most points have few different states.
const TRIES: usize = 8;

/// The kind of damage that a crash has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CrashClass {
    /// Everything that was not synced is gone.
    Lost,
    /// Everything is there.
    Kept,
    /// Names and sizes are there, the data is not: zeros where a file grew.
    Zeros,
    /// Names and sizes are there, a part of what was added is garbage.
    Garbage,
    /// Data is there in pieces of 512 bytes.
    Torn512,
    /// Data is there in pieces of 4,096 bytes.
    Torn4096,
    /// Data is there, names are not: a new file has no entry.
    NamesLost,
    /// Names are there, data and sizes are not: a rename without its content.
    NamesKept,
    /// Of the names only the removals are there.
    UnlinksFirst,
    /// What is no `.log` file is ahead of the logs.
    LogsBehind,
    /// The `.log` files are ahead of everything else.
    LogsAhead,
    /// The upper directories (checkpoints) are ahead of the lower ones (partitions).
    UpperAhead,
    /// The upper directories (checkpoints) are behind the lower ones (partitions).
    UpperBehind,
    /// Each file and each name by itself, at random.
    Random,
}

impl CrashClass {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Lost,
        Self::Kept,
        Self::Zeros,
        Self::Garbage,
        Self::Torn512,
        Self::Torn4096,
        Self::NamesLost,
        Self::NamesKept,
        Self::UnlinksFirst,
        Self::LogsBehind,
        Self::LogsAhead,
        Self::UpperAhead,
        Self::UpperBehind,
        Self::Random,
    ];
}

#[derive(Clone, Copy)]
enum FileFate {
    Lost,
    Kept,
    Zeros,
    Garbage,
    Torn(usize),
    Random,
}

#[derive(Clone, Copy)]
enum DirFate {
    Lost,
    Kept,
    Removals,
    Random,
}

/// Where a node is, for the classes that tell files apart.
struct Place {
    is_log: bool,
    is_upper: bool,
}

pub(super) fn states(disk: &Disk, seed: u64, max: usize) -> Vec<Disk> {
    let mut random = Random(seed);
    let mut classes: Vec<CrashClass> = CrashClass::ALL.to_vec();
    for at in (1..classes.len()).rev() {
        classes.swap(at, random.below(at + 1));
    }
    classes.resize(classes.len().max(max * TRIES), CrashClass::Random);
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for class in classes {
        if found.len() == max {
            break;
        }
        let state = crash(disk, class, &mut random);
        if seen.insert(state.fingerprint()) {
            found.push(state);
        }
    }
    found
}

pub(super) fn state(disk: &Disk, class: CrashClass, seed: u64) -> Disk {
    crash(disk, class, &mut Random(seed))
}

fn crash(disk: &Disk, class: CrashClass, random: &mut Random) -> Disk {
    let places = places(disk);
    let mut left = Disk { next: disk.next, now_ms: disk.now_ms, ..Disk::new() };
    left.class = Some(class);
    let mut wanted = vec![ROOT];
    let mut done = BTreeSet::new();
    while let Some(ino) = wanted.pop() {
        if !done.insert(ino) {
            continue;
        }
        let (file_fate, dir_fate) = fates(class, places.get(&ino));
        let node = match &disk.nodes[&ino] {
            Node::File(file) => {
                let content = left_file(file, file_fate, random);
                Node::File(FileNode::settled(content, file.modified_ms))
            }
            Node::Dir(dir) => {
                let names = left_names(dir, dir_fate, random);
                wanted.extend(names.values());
                Node::Dir(DirNode { durable: names.clone(), current: names, pending: Vec::new() })
            }
        };
        left.nodes.insert(ino, node);
    }
    left
}

fn places(disk: &Disk) -> BTreeMap<Ino, Place> {
    let mut places = BTreeMap::new();
    for (ino, node) in &disk.nodes {
        let Node::Dir(dir) = node else { continue };
        let is_dir = |child: &Ino| matches!(disk.nodes[child], Node::Dir(_));
        let is_upper = dir.current.values().chain(dir.durable.values()).any(is_dir);
        places.insert(*ino, Place { is_log: false, is_upper });
        for (name, child) in dir.durable.iter().chain(&dir.current) {
            if !is_dir(child) {
                let is_log = name.contains(".log");
                places.insert(*child, Place { is_log, is_upper });
            }
        }
    }
    places
}

fn fates(class: CrashClass, place: Option<&Place>) -> (FileFate, DirFate) {
    let is_log = place.is_some_and(|place| place.is_log);
    let is_upper = place.is_some_and(|place| place.is_upper);
    let file = |kept| if kept { FileFate::Kept } else { FileFate::Lost };
    let both = |kept| (file(kept), if kept { DirFate::Kept } else { DirFate::Lost });
    match class {
        CrashClass::Lost => both(false),
        CrashClass::Kept => both(true),
        CrashClass::Zeros => (FileFate::Zeros, DirFate::Kept),
        CrashClass::Garbage => (FileFate::Garbage, DirFate::Kept),
        CrashClass::Torn512 => (FileFate::Torn(SECTOR), DirFate::Kept),
        CrashClass::Torn4096 => (FileFate::Torn(BLOCK), DirFate::Kept),
        CrashClass::NamesLost => (FileFate::Kept, DirFate::Lost),
        CrashClass::NamesKept => (FileFate::Lost, DirFate::Kept),
        CrashClass::UnlinksFirst => (FileFate::Kept, DirFate::Removals),
        CrashClass::LogsBehind => (file(!is_log), DirFate::Kept),
        CrashClass::LogsAhead => (file(is_log), DirFate::Kept),
        CrashClass::UpperAhead => both(is_upper),
        CrashClass::UpperBehind => both(!is_upper),
        CrashClass::Random => (FileFate::Random, DirFate::Random),
    }
}

fn left_names(dir: &DirNode, fate: DirFate, random: &mut Random) -> BTreeMap<String, Ino> {
    let mut names = dir.durable.clone();
    let prefix = random.flip().then(|| random.below(dir.pending.len() + 1));
    for (at, change) in dir.pending.iter().enumerate() {
        let keep = match fate {
            DirFate::Lost => false,
            DirFate::Kept => true,
            DirFate::Removals => matches!(change, super::disk::Move::Remove { .. }),
            DirFate::Random => prefix.map_or_else(|| random.flip(), |prefix| at < prefix),
        };
        if keep {
            change.apply(&mut names);
        }
    }
    names
}

/// The file as of the first changes, data and size.
fn image(file: &FileNode, changes: usize) -> Vec<u8> {
    let mut content = file.durable.clone();
    file.pending[..changes].iter().for_each(|change| change.apply(&mut content));
    content
}

/// The file as of the first changes, but with their sizes only.
fn hollow(file: &FileNode, changes: usize) -> Vec<u8> {
    let mut content = file.durable.clone();
    file.pending[..changes].iter().for_each(|change| change.apply_size(&mut content));
    content
}

fn left_file(file: &FileNode, fate: FileFate, random: &mut Random) -> Vec<u8> {
    let all = file.pending.len();
    if all == 0 {
        return file.durable.clone();
    }
    match fate {
        FileFate::Lost => file.durable.clone(),
        FileFate::Kept => image(file, all),
        FileFate::Zeros => hollow(file, all),
        FileFate::Garbage => {
            let mut content = image(file, all);
            let old = file.durable.len();
            if let Some(added) = content.get_mut(old..).filter(|added| !added.is_empty()) {
                let from = random.below(added.len());
                added[from..].iter_mut().for_each(|byte| *byte = random.byte());
            }
            content
        }
        FileFate::Torn(unit) if random.flip() => cut(file, unit, random),
        FileFate::Torn(unit) => pieces(file, all, unit, random),
        FileFate::Random => match random.below(8) {
            0 => file.durable.clone(),
            1 => image(file, all),
            2 => image(file, random.below(all + 1)),
            3 => cut(file, SECTOR, random),
            4 => left_file(file, FileFate::Garbage, random),
            _ => {
                let unit = if random.flip() { SECTOR } else { BLOCK };
                pieces(file, random.below(all + 1), unit, random)
            }
        },
    }
}

/// The changes up to a sector, and no longer than that where the file grew.
fn cut(file: &FileNode, unit: usize, random: &mut Random) -> Vec<u8> {
    let mut content = hollow(file, file.pending.len());
    let full = image(file, file.pending.len());
    let dirty = dirty(&content, &full, unit);
    let Some(first) = dirty.first() else { return full };
    let last = full.len().div_ceil(unit).max(first + 1);
    let end = (first + random.below(last - first)) * unit;
    let end = end.min(full.len());
    content[..end].copy_from_slice(&full[..end]);
    content.truncate(end.max(file.durable.len()));
    content
}

/// The size as of the first changes; every dirty sector as it was before, then, or last.
fn pieces(file: &FileNode, changes: usize, unit: usize, random: &mut Random) -> Vec<u8> {
    let mut content = hollow(file, changes);
    let then = image(file, changes);
    let last = image(file, file.pending.len());
    let later = reachable(&file.pending[changes..]);
    for at in (0..content.len()).step_by(unit) {
        let end = (at + unit).min(content.len());
        match random.below(3) {
            0 => {}
            1 => content[at..end].copy_from_slice(&then[at..end]),
            _ if later.as_ref().is_none_or(|blocks| blocks.contains(&(at / BLOCK))) => {
                let end = end.min(last.len());
                if at < end {
                    content[at..end].copy_from_slice(&last[at..end]);
                }
            }
            _ => content[at..end].copy_from_slice(&then[at..end]),
        }
    }
    content
}

/// Blocks whose later content may be on the disk while these changes of the size are not: all
/// (`None`), unless the file is cut; then its blocks are given back and new ones are taken, and
/// only the block that the cut goes through is written in place.
fn reachable(changes: &[Change]) -> Option<BTreeSet<usize>> {
    let cut = |change: &Change| match change {
        Change::Size(size) => Some(*size),
        Change::Write { .. } => None,
    };
    let sizes: Vec<usize> = changes.iter().filter_map(cut).collect();
    if sizes.is_empty() {
        return None;
    }
    Some(sizes.into_iter().filter(|size| size % BLOCK != 0).map(|size| size / BLOCK).collect())
}

fn dirty(before: &[u8], after: &[u8], unit: usize) -> Vec<usize> {
    let differs = |sector: &usize| {
        let range = sector * unit..(sector * unit + unit).min(after.len());
        before.get(range.clone()) != after.get(range)
    };
    (0..after.len().div_ceil(unit)).filter(differs).collect()
}

impl Disk {
    pub(super) fn tree(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        let mut tree = BTreeMap::new();
        let mut wanted = vec![(String::new(), ROOT)];
        while let Some((path, ino)) = wanted.pop() {
            match &self.nodes[&ino] {
                Node::File(file) => {
                    tree.insert(path, Some(file.current.clone()));
                }
                Node::Dir(dir) => {
                    let child = |(name, ino): (&String, &Ino)| (format!("{path}/{name}"), *ino);
                    wanted.extend(dir.current.iter().map(child));
                    tree.insert(path, None);
                }
            }
        }
        tree
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.tree().hash(&mut hasher);
        hasher.finish()
    }
}

/// A small repeatable random source (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    fn flip(&mut self) -> bool {
        self.next() & 1 == 1
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}
