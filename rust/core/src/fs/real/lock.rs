//! The lock of a directory, as the JVM takes it.
//!
//! A broker locks `.lock` with `FileChannel.tryLock`, which is a POSIX record lock over the whole
//! file. Such a lock belongs to a process: a second one by the same process is granted, and
//! closing *any* descriptor of the file gives it up. So the files locked by this process are also
//! kept in a registry, which is asked before the file is opened.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// Device and inode of a locked file.
type Key = (u64, u64);

static LOCKED: Mutex<BTreeSet<Key>> = Mutex::new(BTreeSet::new());

/// A lock held on a real file; dropping it releases it.
#[derive(Debug)]
pub struct RealLock {
    handle: Option<OwnedFd>,
    key: Key,
}

impl RealLock {
    pub(super) fn take(dir: &OwnedFd, dir_path: &Path, name: &str) -> Result<Self> {
        let path = dir_path.join(name);
        let fail = |errno: Errno| Error::io("lock", &path, errno.into());
        let locked = || Error::Locked { path: dir_path.to_owned() };
        let mut held = registry();
        match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if held.contains(&key_of(&stat)) => return Err(locked()),
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(fail(errno)),
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let handle = rustix::fs::openat(dir, name, flags, mode).map_err(fail)?;
        let key = key_of(&rustix::fs::fstat(&handle).map_err(fail)?);
        if held.contains(&key) {
            // A link to a locked file took the name between the two looks. Closing this
            // descriptor would give up the lock of its owner, so it stays open for good.
            std::mem::forget(handle);
            return Err(locked());
        }
        match rustix::fs::fcntl_lock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::ACCESS) => return Err(locked()),
            Err(errno) => return Err(fail(errno)),
        }
        held.insert(key);
        Ok(Self { handle: Some(handle), key })
    }
}

impl Drop for RealLock {
    fn drop(&mut self) {
        // Closed while the registry is held: a new owner must not open the file before.
        let mut held = registry();
        self.handle = None;
        held.remove(&self.key);
    }
}

fn registry() -> MutexGuard<'static, BTreeSet<Key>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[allow(clippy::useless_conversion, reason = "the types differ between systems")]
fn key_of(stat: &Stat) -> Key {
    (u64::try_from(stat.st_dev).unwrap_or(0), u64::try_from(stat.st_ino).unwrap_or(0))
}
