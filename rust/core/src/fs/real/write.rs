//! Writing on the real file system.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::PoisonError;

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT,
};
use rustix::io::Errno;

use super::lock::RealLock;
use super::{RealDir, RealFile, RealFs, kind_of, refuse_link};
use crate::error::{Error, Result};
use crate::fs::mmap::RealMap;
use crate::fs::write::check_name;
use crate::fs::{Create, EntryKind, Fs as _, Sent, WriteDir, WriteFile, WriteFs};

/// Everybody may, less what the process's umask takes away: what the JVM asks for.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const DIR_MODE: Mode = Mode::from_raw_mode(0o777);

impl WriteFs for RealFs {
    fn make_dirs(&self, path: &Path) -> Result<()> {
        let fail = |errno: Errno| Error::io("make directory", path, errno.into());
        let made = match rustix::fs::mkdirat(CWD, path, DIR_MODE) {
            Err(Errno::NOENT) => {
                let parent = path.parent().ok_or_else(|| fail(Errno::NOENT))?;
                self.make_dirs(parent)?;
                rustix::fs::mkdirat(CWD, path, DIR_MODE)
            }
            first => first,
        };
        match made {
            Ok(()) => {
                let above = path.parent().filter(|above| !above.as_os_str().is_empty());
                let above = above.unwrap_or_else(|| Path::new("."));
                let synced = self.open_dir(above).and_then(|above| above.sync());
                // Whoever tries again must find it missing, or would take it for durable.
                synced.inspect_err(|_| {
                    let _ = rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR);
                })
            }
            Err(Errno::EXIST) if self.kind(path)? == EntryKind::Directory => Ok(()),
            Err(errno) => Err(fail(errno)),
        }
    }
}

impl WriteDir for RealDir {
    type Lock = RealLock;

    fn open_write(&self, name: &str, how: Create) -> Result<RealFile> {
        check_name(&self.path, name)?;
        let path = self.path.join(name);
        let create = match how {
            Create::No => OFlags::empty(),
            Create::IfMissing => OFlags::CREATE,
            Create::New => OFlags::CREATE | OFlags::EXCL,
        };
        // NONBLOCK so that a pipe with nobody at its other end cannot hang the open.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | create;
        let handle = rustix::fs::openat(self.handle()?, name, flags, FILE_MODE)
            .map_err(|errno| refuse_link(errno, &path))?;
        let stat = rustix::fs::fstat(&handle)
            .map_err(|errno| Error::io("look up", &path, errno.into()))?;
        if kind_of(FileType::from_raw_mode(stat.st_mode)) != EntryKind::File {
            return Err(Error::Invalid(format!("{} is not a regular file", path.display())));
        }
        Ok(RealFile { handle, path })
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(&self.path, from)?;
        check_name(&self.path, to)?;
        let handle = self.handle()?;
        rustix::fs::renameat(&handle, from, &handle, to)
            .map_err(|errno| self.fail("rename", from, errno))
    }

    fn unlink(&self, name: &str) -> Result<bool> {
        check_name(&self.path, name)?;
        match rustix::fs::unlinkat(self.handle()?, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.fail("delete", name, errno)),
        }
    }

    fn make_dir(&self, name: &str) -> Result<bool> {
        check_name(&self.path, name)?;
        match rustix::fs::mkdirat(self.handle()?, name, DIR_MODE) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) if self.look_up(name)? == EntryKind::Directory => Ok(false),
            Err(errno) => Err(self.fail("make directory", name, errno)),
        }
    }

    fn remove_dir(&self, name: &str) -> Result<()> {
        check_name(&self.path, name)?;
        rustix::fs::unlinkat(self.handle()?, name, AtFlags::REMOVEDIR)
            .map_err(|errno| self.fail("remove directory", name, errno))
    }

    fn sync(&self) -> Result<()> {
        full_sync(&*self.handle()?).map_err(|errno| Error::io("sync", &self.path, errno.into()))
    }

    fn lock(&self, name: &str) -> Result<RealLock> {
        check_name(&self.path, name)?;
        RealLock::take(&*self.handle()?, &self.path, name)
    }

    fn free_bytes(&self) -> Result<u64> {
        let stat = rustix::fs::fstatvfs(self.handle()?)
            .map_err(|errno| Error::io("look up", &self.path, errno.into()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn rest(&self) {
        if self.home.is_some() {
            *self.handle.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    fn wake(&self) -> Result<()> {
        self.handle().map(|_| ())
    }
}

impl RealDir {
    fn fail(&self, op: &'static str, name: &str, errno: Errno) -> Error {
        Error::io(op, &self.path.join(name), errno.into())
    }
}

impl WriteFile for RealFile {
    type Map = RealMap;

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<()> {
        let mut rest = bytes;
        let mut at = position;
        while !rest.is_empty() {
            match rustix::io::pwrite(&self.handle, rest, at) {
                Ok(0) => return Err(self.fail("write", io::ErrorKind::WriteZero.into())),
                Ok(written) => {
                    rest = rest.get(written..).unwrap_or_default();
                    at = at.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.fail("write", errno.into())),
            }
        }
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        rustix::io::retry_on_intr(|| rustix::fs::ftruncate(&self.handle, bytes))
            .map_err(|errno| self.fail("set size of", errno.into()))
    }

    fn allocate(&self, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let allocate = || rustix::fs::fallocate(&self.handle, FallocateFlags::empty(), 0, bytes);
        let long_enough = || -> Result<bool> {
            let stat = rustix::fs::fstat(&self.handle)
                .map_err(|errno| self.fail("look up", errno.into()))?;
            Ok(u64::try_from(stat.st_size).unwrap_or(0) >= bytes)
        };
        match rustix::io::retry_on_intr(allocate) {
            // Not every system lengthens the file with its allocation.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                if long_enough()? {
                    Ok(())
                } else {
                    self.set_len(bytes)
                }
            }
            Err(errno) => Err(self.fail("allocate", errno.into())),
        }
    }

    fn sync(&self) -> Result<()> {
        data_sync(&self.handle).map_err(|errno| self.fail("sync", errno.into()))
    }

    fn set_modified(&self, ms: i64) -> Result<()> {
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let nanos = ms.rem_euclid(1000).saturating_mul(1_000_000);
        let last_modification = Timespec { tv_sec: ms.div_euclid(1000), tv_nsec: nanos };
        rustix::fs::futimens(&self.handle, &Timestamps { last_access, last_modification })
            .map_err(|errno| self.fail("set time of", errno.into()))
    }

    fn map(&self, bytes: u64) -> Result<RealMap> {
        RealMap::new(&self.handle, bytes, &self.path)
    }

    fn send_to(&self, socket: BorrowedFd<'_>, position: u64, bytes: usize) -> Result<Sent> {
        match send_file(socket, self.handle.as_fd(), position, bytes) {
            Ok(sent) => Ok(Sent::Bytes(sent)),
            Err(Errno::AGAIN) => Ok(Sent::WouldBlock),
            Err(Errno::INVAL | Errno::NOSYS) => Ok(Sent::Unsupported),
            Err(errno) => Err(self.fail("send", errno.into())),
        }
    }
}

impl RealFile {
    fn fail(&self, op: &'static str, source: io::Error) -> Error {
        Error::io(op, &self.path, source)
    }
}

#[cfg(target_os = "linux")]
fn send_file(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    position: u64,
    bytes: usize,
) -> rustix::io::Result<usize> {
    rustix::io::retry_on_intr(|| {
        let mut position = position;
        rustix::fs::sendfile(socket, file, Some(&mut position), bytes)
    })
}

#[cfg(not(target_os = "linux"))]
fn send_file(
    _socket: BorrowedFd<'_>,
    _file: BorrowedFd<'_>,
    _position: u64,
    _bytes: usize,
) -> rustix::io::Result<usize> {
    Err(Errno::NOSYS)
}

/// Data and size. An interrupted call is not repeated: a second sync proves nothing about the first.
#[cfg(not(target_vendor = "apple"))]
fn data_sync(handle: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::fdatasync(handle)
}

#[cfg(target_vendor = "apple")]
fn data_sync(handle: &OwnedFd) -> rustix::io::Result<()> {
    full_sync(handle)
}

#[cfg(not(target_vendor = "apple"))]
fn full_sync(handle: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::fsync(handle)
}

/// On this system a plain fsync leaves the data in the drive's cache.
#[cfg(target_vendor = "apple")]
fn full_sync(handle: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::fcntl_fullfsync(handle).or_else(|_| rustix::fs::fsync(handle))
}
