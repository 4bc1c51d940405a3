//! What the first bytes of an entry tell, in every version, before its body is read.

use crate::limits::{
    BATCH_HEADER_BYTES, ENTRY_SIZE_MIN, HEADER_UP_TO_MAGIC, LEGACY_V1_SIZE_MIN, LOG_OVERHEAD,
};
use crate::record::{Attributes, BatchHeader, Codec, CorruptKind, TimestampType};

/// The fixed fields of a version 0 or 1 message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHead {
    /// Its offset; of a compressed set, the offset of the last message in it.
    pub offset: i64,
    /// 0 or 1.
    pub magic: i8,
    /// Codec and timestamp type.
    pub attributes: Attributes,
    /// −1 in version 0.
    pub timestamp: i64,
    /// Bytes after the size field.
    pub size: i32,
}

/// The head of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryHead {
    /// A version 2 batch.
    Batch(BatchHeader),
    /// A version 0 or 1 message, perhaps wrapping others.
    Message(MessageHead),
}

impl EntryHead {
    /// Bytes that suffice to read any head.
    pub const BYTES: usize = BATCH_HEADER_BYTES;

    /// Reads the head at the start of `bytes`, which hold the entry up to [`Self::BYTES`] or to the
    /// end of the file; `left` bytes of file remain from the entry's start.
    #[inline]
    pub fn read(bytes: &[u8], left: u64) -> Result<Self, CorruptKind> {
        let Some(start) = bytes.first_chunk::<HEADER_UP_TO_MAGIC>() else {
            return Err(CorruptKind::TruncatedEntry);
        };
        let [_, _, _, _, _, _, _, _, s0, s1, s2, s3, _, _, _, _, magic] = *start;
        let size = i32::from_be_bytes([s0, s1, s2, s3]);
        if size < ENTRY_SIZE_MIN {
            return Err(CorruptKind::EntrySize(size));
        }
        let magic = i8::from_be_bytes([magic]);
        let head = match magic {
            2 => {
                let head = bytes.first_chunk().ok_or(CorruptKind::TruncatedEntry)?;
                let header = BatchHeader::read(head);
                if header.total_bytes() < BATCH_HEADER_BYTES {
                    return Err(CorruptKind::EntrySize(size));
                }
                header.check()?;
                Self::Batch(header)
            }
            1 if size < LEGACY_V1_SIZE_MIN => return Err(CorruptKind::EntrySize(size)),
            0 | 1 => Self::Message(message_head(bytes, start, size, magic)?),
            unknown => return Err(CorruptKind::Magic(unknown)),
        };
        match u64::try_from(head.total_bytes()) {
            Ok(total) if total <= left => Ok(head),
            _ => Err(CorruptKind::TruncatedEntry),
        }
    }

    /// Bytes of the whole entry, framing included.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        match self {
            Self::Batch(header) => header.total_bytes(),
            Self::Message(message) => {
                usize::try_from(message.size).unwrap_or(0).saturating_add(LOG_OVERHEAD)
            }
        }
    }

    /// The first offset, where it is known without inflating.
    #[inline]
    pub fn base_offset(&self) -> Option<i64> {
        match self {
            Self::Batch(header) => Some(header.base_offset),
            Self::Message(message) => {
                matches!(message.attributes.codec(), Ok(Codec::None)).then_some(message.offset)
            }
        }
    }

    /// The last offset.
    #[inline]
    pub fn last_offset(&self) -> i64 {
        match self {
            Self::Batch(header) => header.last_offset(),
            Self::Message(message) => message.offset,
        }
    }

    /// The largest timestamp, −1 where there is none.
    #[inline]
    pub fn max_timestamp(&self) -> i64 {
        match self {
            Self::Batch(header) => header.max_timestamp,
            Self::Message(message) => message.timestamp,
        }
    }

    /// The leader epoch; old formats have none.
    #[inline]
    pub fn leader_epoch(&self) -> Option<i32> {
        match self {
            Self::Batch(header) => Some(header.leader_epoch),
            Self::Message(_) => None,
        }
    }

    /// What the timestamps mean.
    pub fn timestamp_type(&self) -> TimestampType {
        match self {
            Self::Batch(header) => header.attributes.timestamp_type(),
            Self::Message(message) if message.magic == 0 => TimestampType::None,
            Self::Message(message) => message.attributes.timestamp_type(),
        }
    }

    /// The format version.
    pub fn magic(&self) -> i8 {
        match self {
            Self::Batch(_) => 2,
            Self::Message(message) => message.magic,
        }
    }

    /// The attribute bits.
    #[inline]
    pub fn attributes(&self) -> Attributes {
        match self {
            Self::Batch(header) => header.attributes,
            Self::Message(message) => message.attributes,
        }
    }
}

fn message_head(
    bytes: &[u8],
    start: &[u8; HEADER_UP_TO_MAGIC],
    size: i32,
    magic: i8,
) -> Result<MessageHead, CorruptKind> {
    let [o0, o1, o2, o3, o4, o5, o6, o7, ..] = *start;
    let offset = i64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
    let bits = *bytes.get(HEADER_UP_TO_MAGIC).ok_or(CorruptKind::TruncatedEntry)?;
    let attributes = Attributes(i16::from(bits));
    if attributes.codec()? == Codec::Zstd {
        return Err(CorruptKind::CodecBits(Codec::Zstd.id()));
    }
    if offset < 0 {
        return Err(CorruptKind::OffsetOrder { found: offset, expected: 0 });
    }
    let timestamp = if magic == 1 {
        let field = bytes.get(HEADER_UP_TO_MAGIC + 1..).and_then(|rest| rest.first_chunk::<8>());
        i64::from_be_bytes(*field.ok_or(CorruptKind::TruncatedEntry)?)
    } else {
        -1
    };
    Ok(MessageHead { offset, magic, attributes, timestamp, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_1_message_without_room_for_its_timestamp_is_refused() {
        for (size, good) in [(13, false), (14, false), (21, false), (22, true)] {
            let mut bytes = [0_u8; 61];
            bytes[11] = size;
            bytes[16] = 1;
            let head = EntryHead::read(&bytes, 61);
            assert_eq!(head.is_ok(), good, "size {size}: {head:?}");
        }
    }
}
