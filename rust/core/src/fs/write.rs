//! Writing, as sub-traits of the reading ones: what is only given a [`Dir`] cannot write, by type.
//!
//! Whoever writes holds the directory's lock. Nothing here is durable before it is synced, and the
//! two kinds of sync cover different things: [`WriteFile::sync`] the bytes and the size of one
//! file, [`WriteDir::sync`] the names in one directory. A new file needs both.

use std::os::fd::BorrowedFd;
use std::path::Path;

use super::{Dir, File, Fs};
use crate::error::{Error, Result};

/// What to do about a file that is not there, or that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// The file must exist.
    No,
    /// Make the file when it is missing; leave what is there.
    IfMissing,
    /// The file must not exist.
    New,
}

/// What one sendfile call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It sent that many bytes; 0 means that the file ends at the position.
    Bytes(usize),
    /// The socket's buffer is full; ask again when it can be written.
    WouldBlock,
    /// This pair of file and socket needs a plain copy.
    Unsupported,
}

/// A file system that can be written.
pub trait WriteFs: Fs<Dir: WriteDir> {
    /// Makes a directory and whatever is missing above it, durably.
    fn make_dirs(&self, path: &Path) -> Result<()>;
}

/// A directory that can be written. Names are single components.
pub trait WriteDir: Dir<File: WriteFile> {
    /// A held lock; dropping it releases it.
    type Lock: Send + Sync;

    /// Opens a regular file for reading and writing, refusing links.
    fn open_write(&self, name: &str, how: Create) -> Result<Self::File>;

    /// Renames a file or a sub-directory and replaces a file of the new name.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a file; `false` when there was none.
    fn unlink(&self, name: &str) -> Result<bool>;

    /// Makes a sub-directory; `false` when there was one.
    fn make_dir(&self, name: &str) -> Result<bool>;

    /// Removes an empty sub-directory.
    fn remove_dir(&self, name: &str) -> Result<()>;

    /// Makes creations, renames and removals in this directory durable.
    fn sync(&self) -> Result<()>;

    /// Locks a file of this directory against other processes, brokers included, and against
    /// other owners in this process. Nobody may open that file in another way while it is locked:
    /// closing any descriptor of it gives the lock up.
    fn lock(&self, name: &str) -> Result<Self::Lock>;

    /// Bytes that an unprivileged writer can still add to this file system.
    fn free_bytes(&self) -> Result<u64>;

    /// Lets go of what the system holds for the directory, until it is used again.
    fn rest(&self) {}

    /// Takes hold of the directory, so that it can be used also when it has got another name.
    fn wake(&self) -> Result<()> {
        Ok(())
    }
}

/// A file that can be written by position.
pub trait WriteFile: File {
    /// A shared map of the file.
    type Map: Map;

    /// Writes all the bytes, or fails with any part of them written.
    fn write_at(&self, bytes: &[u8], position: u64) -> Result<()>;

    /// Cuts the file or extends it with zeros.
    fn set_len(&self, bytes: u64) -> Result<()>;

    /// Makes sure that the file is at least that long and that writing into that length cannot
    /// run out of space, where the file system can promise it. Never cuts.
    fn allocate(&self, bytes: u64) -> Result<()>;

    /// Makes the bytes and the size durable. After a failure nothing may be assumed durable, nor
    /// does a second call that succeeds prove anything.
    fn sync(&self) -> Result<()>;

    /// Sets the time of the last modification, milliseconds since 1970.
    fn set_modified(&self, ms: i64) -> Result<()>;

    /// Maps the first bytes of the file, shared and writable. The file must be that long, and
    /// must stay so while cells near its end are touched: a file cut under its map kills the
    /// process.
    fn map(&self, bytes: u64) -> Result<Self::Map>;

    /// One sendfile call: the kernel copies at most that many bytes to the socket.
    fn send_to(&self, socket: BorrowedFd<'_>, position: u64, bytes: usize) -> Result<Sent>;
}

/// A mapped file as big-endian 32-bit cells, which is what Kafka's indexes are made of.
///
/// Loads and stores are relaxed atomics, so that readers may look beside one writer; who publishes
/// an entry orders it. A cell past the end loads as 0, and a store there is lost.
pub trait Map: Send + Sync {
    /// Whole cells in the map.
    fn cells(&self) -> usize;

    /// The value of a cell.
    fn load(&self, cell: usize) -> u32;

    /// Sets a cell.
    fn store(&self, cell: usize, value: u32);

    /// Makes the cells durable.
    fn flush(&self) -> Result<()>;
}

/// Replaces a whole file so that a crash leaves the old content or the new: writes `<name>.tmp`,
/// syncs it, renames it over the file and syncs the directory. This is how Kafka writes its
/// checkpoints, down to the name.
pub fn replace_file<D: WriteDir>(dir: &D, name: &str, bytes: &[u8]) -> Result<()> {
    let temporary = format!("{name}.tmp");
    let file = dir.open_write(&temporary, Create::IfMissing)?;
    // An earlier attempt may have left a longer one.
    file.set_len(0)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    drop(file);
    dir.rename(&temporary, name)?;
    dir.sync()
}

/// Refuses everything that is not one plain component, so that no name leaves its directory.
pub(super) fn check_name(dir: &Path, name: &str) -> Result<()> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(Error::Invalid(format!("{name:?} is no file name in {}", dir.display())));
    }
    Ok(())
}
