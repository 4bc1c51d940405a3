//! What is asked of the disk, and how it may refuse.

use std::io;

use crate::error::Error;

/// What a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Open a directory or look a path up.
    OpenDir,
    /// List a directory.
    List,
    /// Open a file for reading, or an existing one for writing.
    Open,
    /// Look at the size and identity of a file.
    Facts,
    /// Read bytes.
    Read,
    /// Map a file.
    Map,
    /// Ask for the free space.
    FreeBytes,
    /// Make a file.
    Create,
    /// Take a lock, which makes its file.
    Lock,
    /// Write bytes.
    Write,
    /// Cut or lengthen.
    SetLen,
    /// Allocate.
    Allocate,
    /// Sync the bytes and the size of a file.
    Sync,
    /// Sync a map.
    Flush,
    /// Set the modification time.
    SetModified,
    /// Rename.
    Rename,
    /// Remove a file.
    Unlink,
    /// Make a directory.
    MakeDir,
    /// Remove a directory.
    RemoveDir,
    /// Sync the names of a directory.
    SyncDir,
}

impl Call {
    /// Whether the call can change what a crash leaves.
    pub fn is_write(self) -> bool {
        !matches!(
            self,
            Self::OpenDir
                | Self::List
                | Self::Open
                | Self::Facts
                | Self::Read
                | Self::Map
                | Self::FreeBytes
        )
    }

    /// Whether the call makes something durable.
    pub fn is_sync(self) -> bool {
        matches!(self, Self::Sync | Self::Flush | Self::SyncDir)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenDir => "open directory",
            Self::List => "list",
            Self::Open => "open",
            Self::Facts => "look up",
            Self::Read => "read",
            Self::Map => "map",
            Self::FreeBytes => "free space of",
            Self::Create => "create",
            Self::Lock => "lock",
            Self::Write => "write",
            Self::SetLen => "set size of",
            Self::Allocate => "allocate",
            Self::Sync | Self::SyncDir => "sync",
            Self::Flush => "sync map of",
            Self::SetModified => "set time of",
            Self::Rename => "rename",
            Self::Unlink => "delete",
            Self::MakeDir => "make directory",
            Self::RemoveDir => "remove directory",
        }
    }
}

/// One call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// Its number; the first call of a disk is 1.
    pub number: u64,
    /// What it asked for.
    pub call: Call,
    /// The path it was made on.
    pub path: String,
    /// Bytes written or read, or the size asked for.
    pub bytes: u64,
}

/// How one call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// EIO before anything happened.
    Io,
    /// ENOSPC before anything happened; a call that needs no space fails with EIO.
    NoSpace,
    /// EROFS; a call that only reads is spared.
    ReadOnly,
    /// Half of the bytes are written, then EIO. Calls that write no bytes fail with EIO.
    ShortWrite,
    /// The sync fails and the dirty pages count as clean from then on: a later sync succeeds
    /// without them. Calls that are no sync fail with EIO.
    SyncLost,
}

impl Fault {
    pub(super) fn error(self, call: Call) -> Option<io::Error> {
        let needs_space = matches!(
            call,
            Call::Create
                | Call::Lock
                | Call::Write
                | Call::SetLen
                | Call::Allocate
                | Call::Sync
                | Call::Flush
                | Call::Rename
                | Call::MakeDir
                | Call::SyncDir
        );
        let errno = match self {
            Self::ReadOnly if !call.is_write() => return None,
            Self::ReadOnly => rustix::io::Errno::ROFS,
            Self::NoSpace if needs_space => rustix::io::Errno::NOSPC,
            Self::Io | Self::NoSpace | Self::ShortWrite | Self::SyncLost => rustix::io::Errno::IO,
        };
        Some(errno.into())
    }
}

/// The error of every call after the power went off.
#[derive(Debug, thiserror::Error)]
#[error("the power is off")]
pub(super) struct PowerOff;

/// Whether a call failed because the simulated power was off.
pub fn is_power_off(error: &Error) -> bool {
    let Error::Io { source, .. } = error else { return false };
    source.get_ref().is_some_and(|source| source.is::<PowerOff>())
}
