//! Every bound the engine enforces, one constant each, with its reason.

/// Bytes of the offset and size fields that precede every entry of a `.log` file.
pub const LOG_OVERHEAD: usize = 12;

/// Bytes needed to tell the format of an entry: the magic byte sits at position 16 in every version.
pub const HEADER_UP_TO_MAGIC: usize = 17;

/// Bytes of a version 2 batch header, framing included. No valid version 2 batch is shorter.
pub const BATCH_HEADER_BYTES: usize = 61;

/// Where the part of a version 2 batch begins that its checksum covers.
pub const CRC_COVERS_FROM: usize = 21;

/// Smallest value of an entry's size field: a version 0 message with null key and null value.
pub const ENTRY_SIZE_MIN: i32 = 14;

/// Smallest size field of a version 1 message: version 0's plus an 8-byte timestamp.
pub const LEGACY_V1_SIZE_MIN: i32 = 22;

/// A record cannot be shorter: length, attributes, timestamp delta, offset delta, two null lengths
/// and a header count are one byte each.
pub const RECORD_BYTES_MIN: usize = 7;

/// Kafka stores positions in an i32; a larger segment cannot be indexed.
pub const SEGMENT_BYTES_MAX: u64 = 2_147_483_647;

/// Inflated bytes of one batch that are held in memory at once. A batch that inflates to more is
/// streamed through a buffer of this size, so memory does not depend on the compression ratio.
pub const INFLATE_WINDOW_BYTES: usize = 8 << 20;

/// Largest inflated set of old-format messages: those sets are read whole, because their offsets
/// count back from the last message.
pub const LEGACY_SET_BYTES_MAX: usize = 256 << 20;

/// Largest inflated batch of a snapshot of the metadata log. Controllers cut their batches at 8 MiB.
pub const METADATA_BATCH_BYTES_MAX: usize = 64 << 20;

/// Largest single record accepted while reading a directory. Kafka's own bound on a record is the
/// i32 length field; an Arrow binary column holds less than 2 GiB, hence half of that.
pub const RECORD_BYTES_MAX: usize = 1 << 30;

/// Largest zstd window accepted (2^27 bytes, the format's recommended decoder limit).
pub const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Longest legal topic name.
pub const TOPIC_NAME_MAX: usize = 249;

/// Longest file name of the usual file systems; Kafka cuts names of directories under deletion to it.
pub const FILE_NAME_MAX: usize = 255;

/// Text files of a directory (checkpoints, properties) are refused above this size: 10,000
/// partitions with the longest legal names take less than 3 MiB.
pub const TEXT_FILE_BYTES_MAX: u64 = 64 << 20;

/// Values that one message of an internal topic may hold. The smallest take a byte on disk and some
/// sixty in memory; a partition list of 1 MiB, Kafka's default for a batch, holds 300,000.
pub const MESSAGE_VALUES_MAX: usize = 4 << 20;

/// Inflated bytes of one batch from a client. Kafka bounds only the compressed size, so that a
/// small batch of zeros could fill the memory of its reader.
pub const CLIENT_BATCH_BYTES_MAX: usize = 64 << 20;

/// Inflated bytes that one compressed byte of a client's batch may turn into: what deflate reaches
/// at most on bytes that carry nothing. Zstandard goes further.
pub const CLIENT_INFLATE_RATIO_MAX: usize = 1_000;

/// Inflated size up to which the ratio is not looked at: real brokers hold batches of a few MiB of
/// equal bytes in a few hundred, and what a decoder keeps anyway harms nobody.
pub const CLIENT_INFLATE_FREE_BYTES: usize = INFLATE_WINDOW_BYTES;

/// Failing records that a refusal lists. A batch can hold millions, and their messages would take
/// more memory than the batch.
pub const RECORD_ERRORS_MAX: usize = 1_000;

/// Partitions that one request may make. Kafka refuses more, because its controller writes them as
/// one batch.
pub const PARTITIONS_PER_REQUEST_MAX: i32 = 10_000;

/// Largest producer snapshot that is read: 23 million producers. Kafka forgets a producer after a
/// day of silence.
pub const PRODUCER_SNAPSHOT_BYTES_MAX: u64 = 1 << 30;
