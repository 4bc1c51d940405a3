//! The records of an open version 2 batch, taken piece by piece.
//!
//! A plain payload is read where it lies in the window. A compressed one is inflated whole when it
//! is small, and streamed through a buffer when it is not, so that memory does not depend on how
//! well it compressed.

use kafkaseg_core::CorruptKind;
use kafkaseg_core::codec::{Decoder, InflateError};
use kafkaseg_core::limits::INFLATE_WINDOW_BYTES;
use kafkaseg_core::record::{BatchHeader, Codec, LegacyView, Records};

use crate::columns::Columns;
use crate::reader::{Wanted, empty_records};

/// How far a call got.
pub(crate) enum Pumped {
    /// The Arrow batch is full; more records may follow.
    Full,
    /// The Kafka batch has no more records.
    Done,
}

enum Source {
    Plain,
    Inflated,
}

/// The open batch.
#[derive(Default)]
pub(crate) struct V2Payload {
    decoder: Decoder,
    inflated: Vec<u8>,
    open: Option<Open>,
}

struct Open {
    source: Source,
    /// Bytes of the payload already taken.
    cursor: usize,
    records: Records<'static>,
    wanted: Option<Wanted>,
}
