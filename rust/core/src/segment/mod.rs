//! Segment files read from front to back, with every check their bytes allow.
//!
//! A batch's checksum does not cover its offset, length, epoch and magic. [`Walker`] therefore
//! judges each entry against what surrounds it as well: the entries before and after, the base of
//! the next segment, the leader-epoch checkpoint and the recorded end of the log.

mod continuity;
mod head;
mod resync;
mod walk;
mod window;

pub use continuity::Surroundings;
pub use head::{EntryHead, MessageHead};
pub use walk::{Depth, Span, Step, Walker};
pub use window::Window;
