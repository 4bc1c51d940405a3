//! Kafka's compression codecs: inflating under a budget, inflating as a stream, and compressing.
//!
//! | codec | what stands in a batch | where |
//! |---|---|---|
//! | gzip | RFC 1952 members | `gzip` |
//! | snappy | snappy-java's framing of 32 KiB chunks, or one raw block | `snappy` |
//! | lz4 | one LZ4 frame of independent blocks | `lz4` |
//! | zstd | Zstandard frames | `zstd` |
//!
//! Invariants:
//!
//! 1. [`Decoder::inflate`] never holds more inflated bytes than the budget it is given: sizes that
//!    a stream declares are checked against the budget, and against what so many compressed bytes
//!    can make, before anything is allocated for them.
//! 2. An [`InflateStream`] holds a bounded window whatever the ratio: 32 KiB for gzip, one block of
//!    at most 4 MiB for lz4, a window of at most 2^27 bytes for zstd, one chunk for snappy.
//! 3. Both give the same bytes, or both refuse.
//! 4. Nothing is started, shared or global. A decoder belongs to one reader.
//!
//! What may follow the end of a compressed stream is what Kafka's Java client (4.3.0) lets pass,
//! because a broker stores such batches and the client reads their records:
//!
//! | codec | bytes after the end |
//! |---|---|
//! | gzip | a further member when a whole gzip header and a body can follow (more than 18 bytes); anything else is ignored |
//! | snappy, framed | up to three bytes are ignored; more are the next chunk |
//! | snappy, raw | refused |
//! | lz4 | ignored, whatever they are: frames are not concatenated |
//! | zstd | further frames; anything else is refused (the Java client lets the torn start of a frame pass) |
//!
//! The checksum of the batch covers these bytes too, so that ignoring them hides no damage of a
//! disk.
//!
//! Refused here although the client takes them, and written by nobody: an empty input for zstd, a
//! snappy-java header of a version below 1 at the start, a further one with half a magic, and the
//! torn start of a zstd frame. The other way round there is one, which nobody writes either: an lz4
//! block that inflates to nothing is passed over, where the client takes it for the end.

mod decoder;
mod encoder;
mod error;
mod gzip;
mod lz4;
mod output;
mod snappy;
mod stream;
mod zstd;

#[cfg(test)]
mod tests;

pub use decoder::{Decoder, Dialect};
pub use encoder::Encoder;
pub use error::InflateError;
pub use stream::{InflateStream, Paused};
