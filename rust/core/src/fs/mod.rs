//! The one door to the operating system.
//!
//! Everything in the engine that touches a disk goes through these traits, so that a test can put
//! another disk underneath, fail any call, and prove that a reader never writes.

mod mmap;
mod real;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
mod write;

pub use mmap::RealMap;
pub use real::{RealDir, RealFile, RealFs, RealLock};
#[cfg(any(test, feature = "sim"))]
pub use sim::SimFs;
pub use write::{Create, Map, Sent, WriteDir, WriteFile, WriteFs, replace_file};

use std::path::Path;

use crate::error::{Error, Result};
use crate::limits::TEXT_FILE_BYTES_MAX;

/// What a directory entry is, without following links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; never followed below a scanned root.
    Link,
    /// A pipe, socket or device.
    Special,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, when it is UTF-8. Kafka writes nothing else, so other names are not listed.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// Facts that tell one file from another that has taken its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// Bytes in the file.
    pub bytes: u64,
    /// The file's serial number on its device.
    pub inode: u64,
    /// Last modification, milliseconds since 1970.
    pub modified_ms: i64,
}

/// A file system.
pub trait Fs: Clone + Send + Sync + 'static {
    /// An open directory.
    type Dir: Dir;

    /// Opens a directory that the caller named; links in this path are followed.
    fn open_dir(&self, path: &Path) -> Result<Self::Dir>;

    /// What a path is, following links.
    fn kind(&self, path: &Path) -> Result<EntryKind>;
}

/// An open directory. Names are single components and are never followed if they are links.
pub trait Dir: Sized + Send + Sync {
    /// An open file.
    type File: File;

    /// The path it was opened by, for messages.
    fn path(&self) -> &Path;

    /// The entries, in no particular order.
    fn list(&self) -> Result<Vec<Entry>>;

    /// Opens a sub-directory, refusing links.
    fn open_dir(&self, name: &str) -> Result<Self>;

    /// Opens a regular file for reading, refusing links and everything that is not a file.
    fn open(&self, name: &str) -> Result<Self::File>;

    /// Reads a small text or index file whole; `None` when it does not exist.
    fn read_small(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let file = match self.open(name) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let bytes = file.facts()?.bytes;
        if bytes > TEXT_FILE_BYTES_MAX {
            return Err(Error::TooLarge { what: "file", size: bytes, limit: TEXT_FILE_BYTES_MAX });
        }
        let mut content = vec![0; usize::try_from(bytes).unwrap_or(0)];
        let read = file.read_at(&mut content, 0)?;
        content.truncate(read);
        Ok(Some(content))
    }
}

/// An open file, read by position.
pub trait File: Send + Sync {
    /// The path it was opened by, for messages.
    fn path(&self) -> &Path;

    /// Its size and identity now.
    fn facts(&self) -> Result<FileFacts>;

    /// Fills `buffer` from `position`. Fewer bytes than asked means the file ends there.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize>;
}

impl<F: File> File for &F {
    fn path(&self) -> &Path {
        (**self).path()
    }

    fn facts(&self) -> Result<FileFacts> {
        (**self).facts()
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        (**self).read_at(buffer, position)
    }
}
