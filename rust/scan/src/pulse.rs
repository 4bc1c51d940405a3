//! A regular chance to stop.

use kafkaseg_core::Result;

/// Called often during long work; an error ends the work with it.
pub type Pulse<'a> = dyn FnMut() -> Result<()> + 'a;

/// Entries of a log between two calls, so that tiny batches do not pay for it each time.
pub(crate) const ENTRIES_BETWEEN: u32 = 64;

/// Bytes of a log between two calls, so that large batches do not wait for many of them.
pub(crate) const BYTES_BETWEEN: usize = 1 << 20;
