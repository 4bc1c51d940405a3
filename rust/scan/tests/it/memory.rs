//! A file system in memory that can fail, or change, at any call.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use kafkaseg_core::fs::{Dir, Entry, EntryKind, File, FileFacts, Fs};
use kafkaseg_core::{Error, Result};

/// The errno of a disk that cannot read.
pub(crate) const EIO: i32 = 5;

/// What happens to the disk at one call.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// The call fails with this errno.
    Fail(i32),
    /// The file loses all but its first bytes.
    Shrink(PathBuf, usize),
    /// The file grows.
    Append(PathBuf, Vec<u8>),
    /// The name goes; whoever has the file open keeps it.
    Remove(PathBuf),
    /// The file, or directory, gets another name.
    Rename(PathBuf, PathBuf),
    /// Another file takes the name.
    Replace(PathBuf, Vec<u8>),
}

struct Node {
    inode: u64,
    bytes: RwLock<Arc<Vec<u8>>>,
}

#[derive(Default)]
struct Tree {
    files: BTreeMap<PathBuf, Arc<Node>>,
    directories: BTreeSet<PathBuf>,
}

#[derive(Default)]
struct Disk {
    tree: RwLock<Tree>,
    calls: AtomicU64,
    bytes_read: AtomicU64,
    inodes: AtomicU64,
    event: Mutex<Option<(u64, Event)>>,
}

/// The file system; clones share it.
#[derive(Clone, Default)]
pub(crate) struct MemoryFs {
    disk: Arc<Disk>,
}

/// An open directory.
pub(crate) struct MemoryDir {
    disk: Arc<Disk>,
    path: PathBuf,
}

/// An open file.
pub(crate) struct MemoryFile {
    disk: Arc<Disk>,
    path: PathBuf,
    node: Arc<Node>,
}

impl MemoryFs {
    /// Writes a whole file, making the directories above it.
    pub(crate) fn write(&self, path: impl AsRef<Path>, bytes: Vec<u8>) {
        self.disk.write(path.as_ref(), bytes);
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        let tree = self.disk.tree.read().unwrap();
        tree.files[path.as_ref()].bytes.read().unwrap().as_ref().clone()
    }

    pub(crate) fn remove(&self, path: impl AsRef<Path>) {
        self.disk.tree.write().unwrap().files.remove(path.as_ref()).unwrap();
    }

    /// Every file's path.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.disk.tree.read().unwrap().files.keys().cloned().collect()
    }

    /// Another file system with the same content, one file changed.
    pub(crate) fn with(&self, path: impl AsRef<Path>, bytes: Vec<u8>) -> Self {
        let other = self.copy();
        other.write(path, bytes);
        other
    }

    /// Another file system with the same content.
    pub(crate) fn copy(&self) -> Self {
        let other = Self::default();
        {
            let tree = self.disk.tree.read().unwrap();
            let mut to = other.disk.tree.write().unwrap();
            let own = |node: &Arc<Node>| {
                let bytes = Arc::clone(&node.bytes.read().unwrap());
                Arc::new(Node { inode: node.inode, bytes: RwLock::new(bytes) })
            };
            to.files = tree.files.iter().map(|(path, node)| (path.clone(), own(node))).collect();
            to.directories.clone_from(&tree.directories);
            let inodes = self.disk.inodes.load(Ordering::Relaxed);
            other.disk.inodes.store(inodes, Ordering::Relaxed);
        }
        other
    }

    /// Lets something happen at the n-th call from now, counted from 1.
    pub(crate) fn at_call(&self, number: u64, event: Event) {
        self.disk.calls.store(0, Ordering::Relaxed);
        *self.disk.event.lock().unwrap() = Some((number, event));
    }

    /// Calls since the beginning or the last [`Self::at_call`].
    pub(crate) fn calls(&self) -> u64 {
        self.disk.calls.load(Ordering::Relaxed)
    }

    /// Bytes read from all files.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.disk.bytes_read.load(Ordering::Relaxed)
    }
}

impl Disk {
    fn write(&self, path: &Path, bytes: Vec<u8>) {
        let mut tree = self.tree.write().unwrap();
        for above in path.ancestors().skip(1) {
            tree.directories.insert(above.to_owned());
        }
        let inode = self.inodes.fetch_add(1, Ordering::Relaxed) + 1;
        let node = Arc::new(Node { inode, bytes: RwLock::new(Arc::new(bytes)) });
        tree.files.insert(path.to_owned(), node);
    }

    fn happen(&self, event: Event) {
        let change = |path: &Path, edit: &dyn Fn(&mut Vec<u8>)| {
            let tree = self.tree.read().unwrap();
            let mut held = tree.files[path].bytes.write().unwrap();
            let mut bytes = held.as_ref().clone();
            edit(&mut bytes);
            *held = Arc::new(bytes);
        };
        match event {
            Event::Fail(_) => {}
            Event::Shrink(path, bytes) => change(&path, &|content| content.truncate(bytes)),
            Event::Append(path, more) => change(&path, &|content| content.extend(&more)),
            Event::Replace(path, bytes) => self.write(&path, bytes),
            Event::Remove(path) => {
                let mut tree = self.tree.write().unwrap();
                tree.files.retain(|name, _| !name.starts_with(&path));
                tree.directories.retain(|name| !name.starts_with(&path));
            }
            Event::Rename(from, to) => {
                let mut tree = self.tree.write().unwrap();
                let moved = |name: &Path| match name.strip_prefix(&from) {
                    Ok(rest) if rest.as_os_str().is_empty() => to.clone(),
                    Ok(rest) => to.join(rest),
                    Err(_) => name.to_owned(),
                };
                let files = std::mem::take(&mut tree.files);
                tree.files = files.into_iter().map(|(name, node)| (moved(&name), node)).collect();
                let directories = std::mem::take(&mut tree.directories);
                tree.directories = directories.iter().map(|name| moved(name)).collect();
            }
        }
    }

    /// Counts a call, and fails it if it is the one.
    fn call(&self, op: &'static str, path: &Path) -> Result<()> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let due = {
            let event = self.event.lock().unwrap();
            event.as_ref().filter(|(at, _)| *at == number).map(|(_, event)| event.clone())
        };
        match due {
            Some(Event::Fail(errno)) => {
                Err(Error::io(op, path, io::Error::from_raw_os_error(errno)))
            }
            Some(event) => {
                self.happen(event);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn not_found(op: &'static str, path: &Path) -> Error {
    Error::io(op, path, io::Error::from(io::ErrorKind::NotFound))
}

/// `a/../b` and `./b` are `b`: there are no links here.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

impl Fs for MemoryFs {
    type Dir = MemoryDir;

    fn open_dir(&self, path: &Path) -> Result<MemoryDir> {
        self.disk.call("open directory", path)?;
        open_dir(&self.disk, path)
    }

    fn kind(&self, path: &Path) -> Result<EntryKind> {
        self.disk.call("look up", path)?;
        let tree = self.disk.tree.read().unwrap();
        let path = plain(path);
        if tree.files.contains_key(&path) {
            Ok(EntryKind::File)
        } else if tree.directories.contains(&path) {
            Ok(EntryKind::Directory)
        } else {
            Err(not_found("look up", &path))
        }
    }
}

fn open_dir(disk: &Arc<Disk>, path: &Path) -> Result<MemoryDir> {
    if !disk.tree.read().unwrap().directories.contains(&plain(path)) {
        return Err(not_found("open directory", path));
    }
    Ok(MemoryDir { disk: Arc::clone(disk), path: path.to_owned() })
}

impl Dir for MemoryDir {
    type File = MemoryFile;

    fn path(&self) -> &Path {
        &self.path
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.disk.call("list", &self.path)?;
        let tree = self.disk.tree.read().unwrap();
        let here = plain(&self.path);
        let named = |path: &PathBuf, kind| {
            let name = path.file_name().filter(|_| path.parent() == Some(&here))?;
            Some(Entry { name: name.to_str().unwrap().to_owned(), kind })
        };
        let files = tree.files.keys().filter_map(|path| named(path, EntryKind::File));
        let directories =
            tree.directories.iter().filter_map(|path| named(path, EntryKind::Directory));
        Ok(files.chain(directories).collect())
    }

    fn open_dir(&self, name: &str) -> Result<Self> {
        let path = self.path.join(name);
        self.disk.call("open directory", &path)?;
        open_dir(&self.disk, &path)
    }

    fn open(&self, name: &str) -> Result<MemoryFile> {
        let path = self.path.join(name);
        self.disk.call("open", &path)?;
        let tree = self.disk.tree.read().unwrap();
        let node = tree.files.get(&plain(&path)).ok_or_else(|| not_found("open", &path))?;
        Ok(MemoryFile { disk: Arc::clone(&self.disk), path, node: Arc::clone(node) })
    }
}

impl File for MemoryFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn facts(&self) -> Result<FileFacts> {
        self.disk.call("look up", &self.path)?;
        let bytes = u64::try_from(self.node.bytes.read().unwrap().len()).unwrap();
        Ok(FileFacts { bytes, inode: self.node.inode, modified_ms: 0 })
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        self.disk.call("read", &self.path)?;
        let bytes = self.node.bytes.read().unwrap();
        let from = usize::try_from(position).unwrap().min(bytes.len());
        let rest = &bytes[from..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.disk.bytes_read.fetch_add(u64::try_from(read).unwrap(), Ordering::Relaxed);
        Ok(read)
    }
}
