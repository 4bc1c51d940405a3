//! The real file system: opened and read here, with `pread` only; written in `real/write.rs`.
//!
//! Files of a directory that we do not own are never mapped: a file cut short under a map kills
//! the process, a short `pread` is a value.

mod lock;
#[cfg(test)]
mod tests;
mod write;

pub use lock::RealLock;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};

use super::{Dir, Entry, EntryKind, File, FileFacts, Fs};
use crate::error::{Error, Result};

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

/// An open directory of the real file system.
#[derive(Debug)]
pub struct RealDir {
    /// `None` while it rests.
    handle: RwLock<Option<Arc<OwnedFd>>>,
    path: PathBuf,
    /// Where a directory that rests is found again: above, by name, as this very one.
    home: Option<Home>,
}

#[derive(Debug)]
struct Home {
    above: Arc<OwnedFd>,
    name: String,
    device: u64,
    inode: u64,
}

/// An open file of the real file system.
#[derive(Debug)]
pub struct RealFile {
    handle: OwnedFd,
    path: PathBuf,
}

impl Fs for RealFs {
    type Dir = RealDir;

    fn open_dir(&self, path: &Path) -> Result<RealDir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| Error::io("open directory", path, errno.into()))?;
        let handle = RwLock::new(Some(Arc::new(handle)));
        Ok(RealDir { handle, path: path.to_owned(), home: None })
    }

    fn kind(&self, path: &Path) -> Result<EntryKind> {
        let stat = rustix::fs::statat(CWD, path, AtFlags::empty())
            .map_err(|errno| Error::io("look up", path, errno.into()))?;
        Ok(kind_of(FileType::from_raw_mode(stat.st_mode)))
    }
}

impl Dir for RealDir {
    type File = RealFile;

    fn path(&self) -> &Path {
        &self.path
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let fail = |errno: rustix::io::Errno| Error::io("list", &self.path, errno.into());
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.handle()?).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match self.look_up(name) {
                    Ok(kind) => kind,
                    // Deleted between the listing and the look.
                    Err(error) if error.is_not_found() => continue,
                    Err(error) => return Err(error),
                },
                known => kind_of(known),
            };
            entries.push(Entry { name: name.to_owned(), kind });
        }
        Ok(entries)
    }

    fn open_dir(&self, name: &str) -> Result<Self> {
        let path = self.path.join(name);
        let above = self.handle()?;
        let (handle, device, inode) = open_below(&above, name)
            .map_err(|errno| Error::io("open directory", &path, errno.into()))?;
        let home = Some(Home { above, name: name.to_owned(), device, inode });
        Ok(Self { handle: RwLock::new(Some(Arc::new(handle))), path, home })
    }

    fn open(&self, name: &str) -> Result<RealFile> {
        let path = self.path.join(name);
        // NONBLOCK so that a pipe with nobody at its other end cannot hang the open.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(self.handle()?, name, flags, Mode::empty())
            .map_err(|errno| refuse_link(errno, &path))?;
        let stat = rustix::fs::fstat(&handle)
            .map_err(|errno| Error::io("look up", &path, errno.into()))?;
        if kind_of(FileType::from_raw_mode(stat.st_mode)) != EntryKind::File {
            return Err(Error::Invalid(format!("{} is not a regular file", path.display())));
        }
        Ok(RealFile { handle, path })
    }
}

impl RealDir {
    /// The open directory, opened again if it rests.
    fn handle(&self) -> Result<Arc<OwnedFd>> {
        if let Some(handle) = &*self.handle.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(handle));
        }
        let mut handle = self.handle.write().unwrap_or_else(PoisonError::into_inner);
        let (None, Some(home)) = (&*handle, &self.home) else {
            drop(handle);
            return self.handle();
        };
        let (opened, device, inode) = open_below(&home.above, &home.name)
            .map_err(|errno| Error::io("open directory", &self.path, errno.into()))?;
        if (device, inode) != (home.device, home.inode) {
            return Err(Error::Changed { path: self.path.clone(), what: "was replaced" });
        }
        Ok(Arc::clone(handle.insert(Arc::new(opened))))
    }

    fn look_up(&self, name: &str) -> Result<EntryKind> {
        let stat = rustix::fs::statat(self.handle()?, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| Error::io("look up", &self.path.join(name), errno.into()))?;
        Ok(kind_of(FileType::from_raw_mode(stat.st_mode)))
    }
}

/// Opens a directory, not through a link, and says which one it is.
fn open_below(above: &OwnedFd, name: &str) -> rustix::io::Result<(OwnedFd, u64, u64)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(above, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&handle)?;
    // Types and signs of these differ between systems; only their bits are compared.
    #[allow(clippy::as_conversions, clippy::cast_sign_loss, clippy::unnecessary_cast)]
    Ok((handle, stat.st_dev as u64, stat.st_ino as u64))
}

impl File for RealFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn facts(&self) -> Result<FileFacts> {
        let stat = rustix::fs::fstat(&self.handle)
            .map_err(|errno| Error::io("look up", &self.path, errno.into()))?;
        let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
        Ok(FileFacts {
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            inode: stat.st_ino,
            modified_ms: stat.st_mtime.saturating_mul(1000).saturating_add(nanos / 1_000_000),
        })
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = position.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
            match rustix::io::pread(&self.handle, rest, at) {
                Ok(0) => break,
                Ok(read) => filled = filled.saturating_add(read),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(Error::io("read", &self.path, errno.into())),
            }
        }
        Ok(filled)
    }
}

fn refuse_link(errno: rustix::io::Errno, path: &Path) -> Error {
    match errno {
        rustix::io::Errno::LOOP => Error::Invalid(format!(
            "{} is a symbolic link; links below a scanned directory are not followed: \
             name its target as a path of its own",
            path.display()
        )),
        other => Error::io("open", path, io::Error::from(other)),
    }
}

fn kind_of(file_type: FileType) -> EntryKind {
    match file_type {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Special,
    }
}
