//! A simulated disk in memory, for tests: it counts and records every call, fails the one it is
//! told to, runs out of space, and after a power cut yields the states a real disk may leave.
//!
//! What is durable and what is not:
//!
//! | change | seen at once | durable after |
//! |---|---|---|
//! | write, set_len, allocate, store through a map | yes | a sync of the file or a flush of its map |
//! | create, rename, unlink, make and remove directory | yes | a sync of the directory that holds the name |
//!
//! A file sync does not make the file's name durable. Until a change is durable a crash may keep
//! or lose it, in any order and in pieces of 512 or 4,096 bytes; see [`CrashClass`].
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "compiled for tests only; a wrong call is a broken test"
)]

mod call;
mod crash;
mod disk;
#[cfg(test)]
mod tests;

pub use call::{Call, Fault, Op, is_power_off};
pub use crash::CrashClass;

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use self::disk::{DirNode, Disk, Ino, Move, Node, ROOT};
use super::write::check_name;
use super::{
    Create, Dir, Entry, EntryKind, File, FileFacts, Fs, Map, Sent, WriteDir, WriteFile, WriteFs,
};
use crate::error::{Error, Result};

/// A simulated disk. Clones share it.
#[derive(Debug, Clone)]
pub struct SimFs {
    disk: Shared,
}

/// An open directory of a simulated disk.
#[derive(Debug)]
pub struct SimDir {
    disk: Shared,
    ino: Ino,
    path: PathBuf,
}

/// An open file of a simulated disk.
#[derive(Debug)]
pub struct SimFile {
    disk: Shared,
    ino: Ino,
    path: PathBuf,
    writable: bool,
}

/// A map of a simulated file.
#[derive(Debug)]
pub struct SimMap {
    // Keeps the node's space in use, as a map does after its file was closed.
    file: SimFile,
    cells: usize,
}

/// A held lock of a simulated file.
#[derive(Debug)]
pub struct SimLock {
    disk: Shared,
    ino: Ino,
}

#[derive(Debug, Clone)]
struct Shared(Arc<Mutex<Disk>>);

impl Shared {
    fn get(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for SimFs {
    fn default() -> Self {
        Self::new()
    }
}

impl SimFs {
    /// An empty disk without end.
    pub fn new() -> Self {
        Self::over(Disk::new())
    }

    fn over(disk: Disk) -> Self {
        Self { disk: Shared(Arc::new(Mutex::new(disk))) }
    }

    /// Every call made on this disk so far; a disk made by a crash starts again at 1.
    pub fn ops(&self) -> Vec<Op> {
        self.disk.get().ops.clone()
    }

    /// How many calls were made so far.
    pub fn calls(&self) -> u64 {
        self.disk.get().calls()
    }

    /// Fails the call of that number.
    pub fn fail_at(&self, number: u64, fault: Fault) {
        self.disk.get().faults.insert(number, fault);
    }

    /// How many calls failed by [`SimFs::fail_at`].
    pub fn faults_hit(&self) -> u64 {
        self.disk.get().faults_hit
    }

    /// Takes away faults that were not met yet.
    pub fn heal(&self) {
        self.disk.get().faults.clear();
    }

    /// Bounds the disk; `None` is without end. Bytes already written stay.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.disk.get().capacity = bytes;
    }

    /// Bytes that files take, in whole blocks.
    pub fn used_bytes(&self) -> u64 {
        u64::try_from(self.disk.get().used()).unwrap()
    }

    /// Cuts the power before the call of that number: it and all later ones fail and change
    /// nothing. The states that this may leave are [`SimFs::crash_states`].
    pub fn crash_before(&self, number: u64) {
        self.disk.get().power_off_at = Some(number);
    }

    /// Whether a call has met the power cut.
    pub fn is_off(&self) -> bool {
        self.disk.get().is_off()
    }

    /// How often a map was touched where a real one would have killed the process.
    pub fn bus_errors(&self) -> u64 {
        self.disk.get().bus_errors
    }

    /// What made this disk, when it came out of a crash.
    pub fn class(&self) -> Option<CrashClass> {
        self.disk.get().class
    }

    /// The disk as the next process finds it after this one died: every page is there, synced or
    /// not, and no lock.
    pub fn process_crash(&self) -> Self {
        Self::over(self.disk.get().restarted())
    }

    /// Disks as a power cut now may leave them, all different, at most `max` of them. The same
    /// seed gives the same disks.
    pub fn crash_states(&self, seed: u64, max: usize) -> impl Iterator<Item = Self> + use<> {
        crash::states(&self.disk.get(), seed, max).into_iter().map(Self::over)
    }

    /// One disk of a class, as a power cut now may leave it.
    pub fn crash_state(&self, class: CrashClass, seed: u64) -> Self {
        Self::over(crash::state(&self.disk.get(), class, seed))
    }

    /// Everything on the disk as a process sees it: files with their bytes, directories with none.
    pub fn tree(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        self.disk.get().tree()
    }

    fn walk(disk: &mut Disk, path: &Path) -> Result<Ino, Errno> {
        let mut at = ROOT;
        for component in path.components() {
            let Component::Normal(name) = component else { continue };
            let name = name.to_str().ok_or(Errno::INVAL)?;
            let Some(Node::Dir(dir)) = disk.nodes.get(&at) else { return Err(Errno::NOTDIR) };
            at = *dir.current.get(name).ok_or(Errno::NOENT)?;
        }
        Ok(at)
    }
}

impl Fs for SimFs {
    type Dir = SimDir;

    fn open_dir(&self, path: &Path) -> Result<SimDir> {
        let mut disk = self.disk.get();
        disk.begin(Call::OpenDir, path, 0)?;
        let fail = |errno| Disk::fail(Call::OpenDir, path, errno);
        let ino = Self::walk(&mut disk, path).map_err(fail)?;
        let Some(Node::Dir(_)) = disk.nodes.get(&ino) else { return Err(fail(Errno::NOTDIR)) };
        Ok(SimDir { disk: self.disk.clone(), ino, path: path.to_owned() })
    }

    fn kind(&self, path: &Path) -> Result<EntryKind> {
        let mut disk = self.disk.get();
        disk.begin(Call::OpenDir, path, 0)?;
        let ino =
            Self::walk(&mut disk, path).map_err(|errno| Disk::fail(Call::OpenDir, path, errno))?;
        Ok(kind_of(&disk, ino))
    }
}

impl WriteFs for SimFs {
    fn make_dirs(&self, path: &Path) -> Result<()> {
        let mut done = PathBuf::from("/");
        for component in path.components() {
            let Component::Normal(name) = component else { continue };
            let parent = self.open_dir(&done)?;
            let name = name.to_str().unwrap();
            if parent.make_dir(name)? {
                parent.sync()?;
            }
            done.push(name);
        }
        Ok(())
    }
}

fn kind_of(disk: &Disk, ino: Ino) -> EntryKind {
    match disk.nodes.get(&ino) {
        Some(Node::Dir(_)) => EntryKind::Directory,
        _ => EntryKind::File,
    }
}

impl SimDir {
    fn opened(&self, disk: &mut Disk, ino: Ino, path: PathBuf, writable: bool) -> SimFile {
        disk.file(ino).handles += 1;
        SimFile { disk: self.disk.clone(), ino, path, writable }
    }
}

impl Dir for SimDir {
    type File = SimFile;

    fn path(&self) -> &Path {
        &self.path
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let mut disk = self.disk.get();
        disk.begin(Call::List, &self.path, 0)?;
        let names = disk.dir(self.ino).current.clone();
        let entry = |(name, ino)| Entry { name, kind: kind_of(&disk, ino) };
        Ok(names.into_iter().map(entry).collect())
    }

    fn open_dir(&self, name: &str) -> Result<Self> {
        let path = self.path.join(name);
        let mut disk = self.disk.get();
        disk.begin(Call::OpenDir, &path, 0)?;
        let fail = |errno| Disk::fail(Call::OpenDir, &path, errno);
        let found = disk.dir(self.ino).current.get(name).copied();
        let ino = found.ok_or_else(|| fail(Errno::NOENT))?;
        let Some(Node::Dir(_)) = disk.nodes.get(&ino) else { return Err(fail(Errno::NOTDIR)) };
        Ok(Self { disk: self.disk.clone(), ino, path })
    }

    fn open(&self, name: &str) -> Result<SimFile> {
        let path = self.path.join(name);
        let mut disk = self.disk.get();
        disk.begin(Call::Open, &path, 0)?;
        let found = disk.dir(self.ino).current.get(name).copied();
        let ino = found.ok_or_else(|| Disk::fail(Call::Open, &path, Errno::NOENT))?;
        if kind_of(&disk, ino) != EntryKind::File {
            return Err(Error::Invalid(format!("{} is not a regular file", path.display())));
        }
        Ok(self.opened(&mut disk, ino, path, false))
    }
}

impl WriteDir for SimDir {
    type Lock = SimLock;

    fn open_write(&self, name: &str, how: Create) -> Result<SimFile> {
        check_name(&self.path, name)?;
        let path = self.path.join(name);
        let mut disk = self.disk.get();
        let found = disk.dir(self.ino).current.get(name).copied();
        let call = if found.is_none() && how != Create::No { Call::Create } else { Call::Open };
        disk.begin(call, &path, 0)?;
        let ino = match (found, how) {
            (None, Create::No) => return Err(Disk::fail(call, &path, Errno::NOENT)),
            (Some(_), Create::New) => return Err(Disk::fail(call, &path, Errno::EXIST)),
            (None, _) => {
                let node = disk.new_file();
                disk.add(self.ino, name, node)
            }
            (Some(ino), _) => ino,
        };
        if kind_of(&disk, ino) != EntryKind::File {
            return Err(Error::Invalid(format!("{} is not a regular file", path.display())));
        }
        Ok(self.opened(&mut disk, ino, path, true))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(&self.path, from)?;
        check_name(&self.path, to)?;
        let path = self.path.join(from);
        let mut disk = self.disk.get();
        disk.begin(Call::Rename, &path, 0)?;
        let fail = |errno| Disk::fail(Call::Rename, &path, errno);
        let names = &disk.dir(self.ino).current;
        let (moved, replaced) = (names.get(from).copied(), names.get(to).copied());
        let ino = moved.ok_or_else(|| fail(Errno::NOENT))?;
        if let Some(old) = replaced.filter(|old| *old != ino) {
            match (&disk.nodes[&ino], &disk.nodes[&old]) {
                (Node::File(_), Node::File(_)) => disk.file(old).linked = false,
                (Node::Dir(_), Node::Dir(dir)) if dir.current.is_empty() => {}
                (Node::Dir(_), Node::Dir(_)) => return Err(fail(Errno::NOTEMPTY)),
                (Node::Dir(_), Node::File(_)) => return Err(fail(Errno::NOTDIR)),
                (Node::File(_), Node::Dir(_)) => return Err(fail(Errno::ISDIR)),
            }
        }
        disk.dir(self.ino).change(Move::Rename { to: to.to_owned(), ino });
        Ok(())
    }

    fn unlink(&self, name: &str) -> Result<bool> {
        check_name(&self.path, name)?;
        let path = self.path.join(name);
        let mut disk = self.disk.get();
        disk.begin(Call::Unlink, &path, 0)?;
        let Some(ino) = disk.dir(self.ino).current.get(name).copied() else { return Ok(false) };
        if kind_of(&disk, ino) != EntryKind::File {
            return Err(Disk::fail(Call::Unlink, &path, Errno::ISDIR));
        }
        disk.file(ino).linked = false;
        disk.dir(self.ino).change(Move::Remove { name: name.to_owned(), ino });
        Ok(true)
    }

    fn make_dir(&self, name: &str) -> Result<bool> {
        check_name(&self.path, name)?;
        let path = self.path.join(name);
        let mut disk = self.disk.get();
        disk.begin(Call::MakeDir, &path, 0)?;
        match disk.dir(self.ino).current.get(name).copied() {
            None => {
                disk.add(self.ino, name, Node::Dir(DirNode::default()));
                Ok(true)
            }
            Some(ino) if kind_of(&disk, ino) == EntryKind::Directory => Ok(false),
            Some(_) => Err(Disk::fail(Call::MakeDir, &path, Errno::EXIST)),
        }
    }

    fn remove_dir(&self, name: &str) -> Result<()> {
        check_name(&self.path, name)?;
        let path = self.path.join(name);
        let mut disk = self.disk.get();
        disk.begin(Call::RemoveDir, &path, 0)?;
        let fail = |errno| Disk::fail(Call::RemoveDir, &path, errno);
        let found = disk.dir(self.ino).current.get(name).copied();
        let ino = found.ok_or_else(|| fail(Errno::NOENT))?;
        match &disk.nodes[&ino] {
            Node::File(_) => return Err(fail(Errno::NOTDIR)),
            Node::Dir(dir) if !dir.current.is_empty() => return Err(fail(Errno::NOTEMPTY)),
            Node::Dir(_) => {}
        }
        disk.dir(self.ino).change(Move::Remove { name: name.to_owned(), ino });
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let mut disk = self.disk.get();
        let fault = disk.begin(Call::SyncDir, &self.path, 0)?;
        disk.sync_dir(self.ino, fault.is_some());
        fault.map_or(Ok(()), |_| Err(Disk::fail(Call::SyncDir, &self.path, Errno::IO)))
    }

    fn lock(&self, name: &str) -> Result<SimLock> {
        check_name(&self.path, name)?;
        let mut disk = self.disk.get();
        disk.begin(Call::Lock, &self.path.join(name), 0)?;
        let ino = match disk.dir(self.ino).current.get(name).copied() {
            Some(ino) => ino,
            None => {
                let node = disk.new_file();
                disk.add(self.ino, name, node)
            }
        };
        if !disk.locks.insert(ino) {
            return Err(Error::Locked { path: self.path.clone() });
        }
        Ok(SimLock { disk: self.disk.clone(), ino })
    }

    fn free_bytes(&self) -> Result<u64> {
        let mut disk = self.disk.get();
        disk.begin(Call::FreeBytes, &self.path, 0)?;
        Ok(disk.free().map_or(1 << 50, |free| u64::try_from(free).unwrap()))
    }
}

impl SimFile {
    fn begin(&self, call: Call, bytes: u64) -> Result<(MutexGuard<'_, Disk>, Option<Fault>)> {
        let mut disk = self.disk.get();
        let fault = disk.begin(call, &self.path, usize::try_from(bytes).unwrap())?;
        if call.is_write() && !self.writable {
            return Err(Disk::fail(call, &self.path, Errno::BADF));
        }
        Ok((disk, fault))
    }

    fn full(&self) -> Error {
        Error::NoSpace { path: self.path.clone() }
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.disk.get().file(self.ino).handles -= 1;
    }
}

impl File for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn facts(&self) -> Result<FileFacts> {
        let (mut disk, _) = self.begin(Call::Facts, 0)?;
        let file = disk.file(self.ino);
        let bytes = u64::try_from(file.current.len()).unwrap();
        Ok(FileFacts { bytes, inode: self.ino, modified_ms: file.modified_ms })
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        let (mut disk, _) = self.begin(Call::Read, u64::try_from(buffer.len()).unwrap())?;
        let content = &disk.file(self.ino).current;
        let start = usize::try_from(position).map_or(content.len(), |at| at.min(content.len()));
        let read = buffer.len().min(content.len() - start);
        buffer[..read].copy_from_slice(&content[start..start + read]);
        Ok(read)
    }
}

impl WriteFile for SimFile {
    type Map = SimMap;

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<()> {
        let (mut disk, fault) = self.begin(Call::Write, u64::try_from(bytes.len()).unwrap())?;
        let at = usize::try_from(position).unwrap();
        if fault.is_some() {
            disk.write(self.ino, &bytes[..bytes.len() / 2], at);
            return Err(Disk::fail(Call::Write, &self.path, Errno::IO));
        }
        let written = disk.write(self.ino, bytes, at);
        if written < bytes.len() { Err(self.full()) } else { Ok(()) }
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        let (mut disk, _) = self.begin(Call::SetLen, bytes)?;
        disk.set_len(self.ino, usize::try_from(bytes).unwrap());
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> Result<()> {
        let (mut disk, _) = self.begin(Call::Allocate, bytes)?;
        let done = disk.allocate(self.ino, usize::try_from(bytes).unwrap());
        if done { Ok(()) } else { Err(self.full()) }
    }

    fn sync(&self) -> Result<()> {
        let (mut disk, fault) = self.begin(Call::Sync, 0)?;
        disk.sync_file(self.ino, fault.is_some());
        fault.map_or(Ok(()), |_| Err(Disk::fail(Call::Sync, &self.path, Errno::IO)))
    }

    fn set_modified(&self, ms: i64) -> Result<()> {
        let (mut disk, _) = self.begin(Call::SetModified, 0)?;
        disk.file(self.ino).modified_ms = ms;
        Ok(())
    }

    fn map(&self, bytes: u64) -> Result<SimMap> {
        let (mut disk, _) = self.begin(Call::Map, bytes)?;
        if !self.writable {
            return Err(Disk::fail(Call::Map, &self.path, Errno::ACCESS));
        }
        disk.file(self.ino).handles += 1;
        let path = self.path.clone();
        let file = SimFile { disk: self.disk.clone(), ino: self.ino, path, writable: true };
        Ok(SimMap { file, cells: usize::try_from(bytes / 4).unwrap() })
    }

    fn send_to(&self, _socket: BorrowedFd<'_>, _position: u64, _bytes: usize) -> Result<Sent> {
        Ok(Sent::Unsupported)
    }
}

impl Map for SimMap {
    fn cells(&self) -> usize {
        self.cells
    }

    fn load(&self, cell: usize) -> u32 {
        if cell >= self.cells {
            return 0;
        }
        self.file.disk.get().cell(self.file.ino, cell, None)
    }

    fn store(&self, cell: usize, value: u32) {
        assert!(cell < self.cells, "cell {cell} of {}", self.cells);
        self.file.disk.get().cell(self.file.ino, cell, Some(value));
    }

    fn flush(&self) -> Result<()> {
        let (mut disk, fault) = self.file.begin(Call::Flush, 0)?;
        disk.sync_file(self.file.ino, fault.is_some());
        fault.map_or(Ok(()), |_| Err(Disk::fail(Call::Flush, &self.file.path, Errno::IO)))
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.get().locks.remove(&self.ino);
    }
}
