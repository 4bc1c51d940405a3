//! The checks that bytes from a file can fail.

use std::fmt;

/// The check that failed. `Copy` and without allocation, so that decoders can answer with it on
/// the hot path; the caller adds file and position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CorruptKind {
    /// The entry runs past the end of the file.
    TruncatedEntry,
    /// The size field is below what any entry needs.
    EntrySize(i32),
    /// The magic byte is none of 0, 1, 2.
    Magic(i8),
    /// The checksum does not match the bytes.
    Crc {
        /// As written in the file.
        stored: u32,
        /// As computed from the bytes.
        computed: u32,
    },
    /// The codec bits name no codec, or one the version does not allow.
    CodecBits(u8),
    /// The compressed bytes do not inflate.
    Inflate(&'static str),
    /// The number of records is negative or more than the bytes can hold.
    RecordCount(i32),
    /// The last offset delta is negative or overflows the offset space.
    OffsetDelta(i32),
    /// A variable-length integer is longer than its type allows, or cut off.
    Varint,
    /// A record's length does not fit what is left of its batch.
    RecordLength(i64),
    /// A length or count inside a record does not fit the record.
    FieldLength(i64),
    /// Bytes are left after the last record.
    TrailingBytes,
    /// A record is larger than the reader accepts.
    RecordTooLarge(u64),
    /// Offset or timestamp arithmetic leaves the 64-bit range.
    Overflow,
    /// A wrapper message inside a wrapper message, an empty one, or one without a value.
    Wrapper(&'static str),
    /// A control record whose key or value is not what its type prescribes.
    Control(&'static str),
    /// A message in the flexible encoding that breaks its rules.
    Message(&'static str),
    /// The batch lies below the segment's base offset or the batch before it.
    OffsetOrder {
        /// The base offset found.
        found: i64,
        /// The smallest offset that could stand here.
        expected: i64,
    },
    /// The batch claims offsets that the batch after it, the next segment or the recorded end of
    /// the log contradict.
    OffsetJump {
        /// The base offset found.
        found: i64,
        /// The offset that everything around it points to.
        expected: i64,
    },
    /// The leader epoch is contradicted by the batches around it or by the epoch checkpoint.
    LeaderEpoch {
        /// The epoch found.
        found: i32,
        /// The epoch that everything around it points to.
        expected: i32,
    },
    /// Bytes at the end of a cleanly closed log that form no batch.
    Tail,
    /// A cleanly closed log ends before the offset that the close recorded.
    EarlyEnd {
        /// The offset after the last record found.
        found: i64,
        /// The offset recorded.
        expected: i64,
    },
    /// An index, snapshot or checkpoint file fails its check.
    Side(&'static str),
}

impl CorruptKind {
    /// A short stable name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::TruncatedEntry => "truncated_entry",
            Self::EntrySize(_) => "entry_size",
            Self::Magic(_) => "magic",
            Self::Crc { .. } => "crc",
            Self::CodecBits(_) => "codec",
            Self::Inflate(_) => "inflate",
            Self::RecordCount(_) => "record_count",
            Self::OffsetDelta(_) => "offset_delta",
            Self::Varint => "varint",
            Self::RecordLength(_) => "record_length",
            Self::FieldLength(_) => "field_length",
            Self::TrailingBytes => "trailing_bytes",
            Self::RecordTooLarge(_) => "record_too_large",
            Self::Overflow => "overflow",
            Self::Wrapper(_) => "wrapper",
            Self::Control(_) => "control",
            Self::Message(_) => "message",
            Self::OffsetOrder { .. } => "offset_order",
            Self::OffsetJump { .. } => "offset_jump",
            Self::LeaderEpoch { .. } => "leader_epoch",
            Self::Tail => "tail",
            Self::EarlyEnd { .. } => "early_end",
            Self::Side(_) => "side_file",
        }
    }
}

impl fmt::Display for CorruptKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TruncatedEntry => f.write_str("the entry runs past the end of the file"),
            Self::EntrySize(size) => write!(f, "entry size {size} is too small"),
            Self::Magic(magic) => write!(f, "unknown magic {magic}"),
            Self::Crc { stored, computed } => {
                write!(f, "stored CRC {stored:08x}, computed {computed:08x}")
            }
            Self::CodecBits(bits) => write!(f, "codec {bits} is not allowed here"),
            Self::Inflate(why) => write!(f, "compressed data does not inflate: {why}"),
            Self::RecordCount(count) => write!(f, "record count {count} cannot be right"),
            Self::OffsetDelta(delta) => write!(f, "last offset delta {delta} cannot be right"),
            Self::Varint => f.write_str("malformed variable-length integer"),
            Self::RecordLength(length) => write!(f, "record length {length} does not fit"),
            Self::FieldLength(length) => write!(f, "field length {length} does not fit its record"),
            Self::TrailingBytes => f.write_str("bytes are left after the last record"),
            Self::RecordTooLarge(bytes) => write!(f, "a record of {bytes} bytes is over the limit"),
            Self::Overflow => f.write_str("an offset or timestamp leaves the 64-bit range"),
            Self::Wrapper(why) => write!(f, "bad wrapper message: {why}"),
            Self::Control(why) => write!(f, "bad control record: {why}"),
            Self::Message(why) => write!(f, "bad message: {why}"),
            Self::OffsetOrder { found, expected } => {
                write!(f, "base offset {found} where {expected} or more must stand")
            }
            Self::OffsetJump { found, expected } => {
                write!(f, "base offset {found} is contradicted by what surrounds it ({expected})")
            }
            Self::LeaderEpoch { found, expected } => {
                write!(f, "leader epoch {found} is contradicted by what surrounds it ({expected})")
            }
            Self::Tail => f.write_str("bytes that form no batch end a cleanly closed log"),
            Self::EarlyEnd { found, expected } => {
                write!(f, "the log ends at offset {found}, its clean close recorded {expected}")
            }
            Self::Side(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CorruptKind {}
