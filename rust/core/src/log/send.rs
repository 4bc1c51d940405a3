//! Sending a slice to a socket without copying it through this process.
//!
//! 1. A truncation waits for the one sendfile call that is under way and stops the next, so no byte
//!    that was dropped, or written anew, is ever sent. What a socket holds already are pages of the
//!    file; a truncation that would change them goes on in a copy of the file.
//! 2. A blocking socket is made non-blocking for the duration, so that no call waits while it holds
//!    a truncation up; waiting is done between calls.
//! 3. Where sendfile cannot serve, the bytes are copied, and the result says so.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::Fetch;
use super::view::Slot;
use crate::error::{Error, Result};
use crate::fs::{Sent, WriteFile, WriteFs};
use crate::segment::active::to_u64;

/// The most that one call sends.
const CHUNK: u64 = 4 << 20;

/// The most that is copied at once where sendfile cannot serve.
const COPY_BYTES: u64 = 256 << 10;

/// How bytes went to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendWay {
    /// The kernel took them from the file.
    Sendfile,
    /// They were read and written.
    Copy,
}

/// What a send did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendReport {
    /// Bytes sent.
    pub bytes: u64,
    /// How they were sent.
    pub way: SendWay,
    /// Whether everything was sent. If not, the socket was full: on a non-blocking one at once, on
    /// a blocking one until the time was up.
    pub is_complete: bool,
}

impl<S: WriteFs> Fetch<S> {
    /// Sends the slice from a place in it to the end. On a blocking socket it waits, at most
    /// `timeout` in all where one is given; on a non-blocking socket it returns when that is full.
    /// When the segment is truncated meanwhile it fails, and what was sent was right.
    pub fn send(
        &self,
        socket: BorrowedFd<'_>,
        from: u64,
        timeout: Option<Duration>,
    ) -> Result<SendReport> {
        let mut sending = Sending { sent: 0, way: SendWay::Sendfile, copy: Vec::new() };
        let Some(slot) = self.slot().filter(|_| from < self.bytes()) else {
            return Ok(sending.report(true));
        };
        let failed = |errno: Errno| Error::io("send", slot.segment.dir_path(), errno.into());
        let flags = fcntl_getfl(socket).map_err(failed)?;
        if flags.contains(OFlags::NONBLOCK) {
            return sending.run(self, slot, socket, from, None);
        }
        fcntl_setfl(socket, flags | OFlags::NONBLOCK).map_err(failed)?;
        let deadline = Deadline(timeout.map(|timeout| Instant::now() + timeout));
        let result = sending.run(self, slot, socket, from, Some(deadline));
        fcntl_setfl(socket, flags).map_err(failed)?;
        result
    }
}

/// When waiting ends, if it does.
#[derive(Clone, Copy)]
struct Deadline(Option<Instant>);

impl Deadline {
    /// Waits until the socket can be written; `false` when the time is up.
    fn wait(self, socket: BorrowedFd<'_>) -> Result<bool, Errno> {
        loop {
            let left = self.0.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::OUT)], left.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(errno) => return Err(errno),
            }
        }
    }
}

struct Sending {
    sent: u64,
    way: SendWay,
    copy: Vec<u8>,
}

impl Sending {
    fn report(&self, is_complete: bool) -> SendReport {
        SendReport { bytes: self.sent, way: self.way, is_complete }
    }

    fn run<S: WriteFs>(
        &mut self,
        fetch: &Fetch<S>,
        slot: &Slot<S>,
        socket: BorrowedFd<'_>,
        from: u64,
        deadline: Option<Deadline>,
    ) -> Result<SendReport> {
        let failed = |errno: Errno| Error::io("send", slot.segment.dir_path(), errno.into());
        loop {
            let at = from.saturating_add(self.sent);
            let left = fetch.bytes().saturating_sub(at);
            if left == 0 {
                return Ok(self.report(true));
            }
            let step = match self.way {
                SendWay::Sendfile => sendfile(fetch, slot, socket, at, left)?,
                SendWay::Copy => self.copy(fetch, socket, at, left)?,
            };
            match step {
                Sent::Bytes(0) => return Err(slot.segment.changed("was cut short")),
                Sent::Bytes(bytes) => {
                    self.sent = self.sent.saturating_add(u64::try_from(bytes).unwrap_or(0));
                }
                Sent::Unsupported => self.way = SendWay::Copy,
                Sent::WouldBlock => match deadline {
                    Some(deadline) if deadline.wait(socket).map_err(failed)? => {}
                    _ => return Ok(self.report(false)),
                },
            }
        }
    }

    fn copy<S: WriteFs>(
        &mut self,
        fetch: &Fetch<S>,
        socket: BorrowedFd<'_>,
        at: u64,
        left: u64,
    ) -> Result<Sent> {
        self.copy.resize(usize::try_from(left.min(COPY_BYTES)).unwrap_or(0), 0);
        fetch.read_at(&mut self.copy, at)?;
        match rustix::io::write(socket, &self.copy) {
            Ok(bytes) => Ok(Sent::Bytes(bytes)),
            Err(Errno::AGAIN) => Ok(Sent::WouldBlock),
            Err(Errno::INTR) => self.copy(fetch, socket, at, left),
            Err(errno) => {
                let path = fetch.path().unwrap_or_default();
                Err(Error::io("send", &path, errno.into()))
            }
        }
    }
}

/// One sendfile call, during which no truncation begins.
fn sendfile<S: WriteFs>(
    fetch: &Fetch<S>,
    slot: &Slot<S>,
    socket: BorrowedFd<'_>,
    at: u64,
    left: u64,
) -> Result<Sent> {
    let file = slot.segment.file()?;
    let bytes = usize::try_from(left.min(CHUNK)).unwrap_or(0);
    let _uncut = slot.segment.hold();
    if !slot.is_current() {
        return Err(slot.segment.changed("was truncated"));
    }
    let position = fetch.position().saturating_add(at);
    slot.segment.note_sent(position.saturating_add(to_u64(bytes)));
    file.send_to(socket, position, bytes)
}
