//! Writing one record of a version 2 batch, in the shortest form, as Kafka's own writers do.

use super::Header;
use super::varint::{varint_bytes, varlong_bytes, write_varint, write_varlong};
use crate::error::{Error, Result};

/// A record as its batch stores it: times and offsets as distances from the batch's own.
#[derive(Debug, Clone)]
pub(super) struct StoredRecord<'a, H> {
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    pub(super) headers: H,
}

impl<'h, H: Iterator<Item = Header<'h>> + Clone> StoredRecord<'_, H> {
    /// Appends the record. On an error nothing is appended; `room` is what the output may grow by.
    pub(super) fn write(&self, output: &mut Vec<u8>, room: usize) -> Result<()> {
        let (headers_count, headers_bytes) = self.measure_headers()?;
        let body_bytes = 1
            + varlong_bytes(self.timestamp_delta)
            + varint_bytes(self.offset_delta)
            + field_bytes(self.key)?
            + field_bytes(self.value)?
            + varint_bytes(headers_count)
            + headers_bytes;
        let length = to_length("record", body_bytes)?;
        let total = varint_bytes(length) + body_bytes;
        if total > room {
            return Err(too_large("batch", total, room));
        }
        output.reserve(total);
        write_varint(length, output);
        output.push(0);
        write_varlong(self.timestamp_delta, output);
        write_varint(self.offset_delta, output);
        write_field(self.key, output)?;
        write_field(self.value, output)?;
        write_varint(headers_count, output);
        for header in self.headers.clone() {
            write_field(Some(header.key), output)?;
            write_field(header.value, output)?;
        }
        Ok(())
    }

    fn measure_headers(&self) -> Result<(i32, usize)> {
        let mut count = 0_usize;
        let mut bytes = 0_usize;
        for header in self.headers.clone() {
            count += 1;
            bytes = bytes
                .saturating_add(field_bytes(Some(header.key))?)
                .saturating_add(field_bytes(header.value)?);
        }
        to_length("record headers", bytes)?;
        Ok((to_length("header count", count)?, bytes))
    }
}

/// Every length of the format is an i32, so five of them never overflow the sum of a record.
fn to_length(what: &'static str, bytes: usize) -> Result<i32> {
    i32::try_from(bytes).map_err(|_| too_large(what, bytes, LENGTH_MAX))
}

const LENGTH_MAX: usize = 2_147_483_647;

fn too_large(what: &'static str, size: usize, limit: usize) -> Error {
    let widen = |bytes| u64::try_from(bytes).unwrap_or(u64::MAX);
    Error::TooLarge { what, size: widen(size), limit: widen(limit) }
}

fn field_bytes(field: Option<&[u8]>) -> Result<usize> {
    match field {
        None => Ok(1),
        Some(field) => Ok(varint_bytes(to_length("record field", field.len())?) + field.len()),
    }
}

fn write_field(field: Option<&[u8]>, output: &mut Vec<u8>) -> Result<()> {
    match field {
        None => write_varint(-1, output),
        Some(field) => {
            write_varint(to_length("record field", field.len())?, output);
            output.extend_from_slice(field);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::samples::hex;
    use super::*;

    fn encode(record: StoredRecord<'_, std::slice::Iter<'_, Header<'_>>>) -> Vec<u8> {
        let record = StoredRecord {
            timestamp_delta: record.timestamp_delta,
            offset_delta: record.offset_delta,
            key: record.key,
            value: record.value,
            headers: record.headers.copied(),
        };
        let mut output = Vec::new();
        record.write(&mut output, usize::MAX).unwrap();
        output
    }

    #[test]
    fn the_published_records_come_out_byte_for_byte() {
        let first = StoredRecord {
            timestamp_delta: 0,
            offset_delta: 0,
            key: Some(b"k1"),
            value: Some(b"hello"),
            headers: [].iter(),
        };
        assert_eq!(encode(first), hex("1a 00 00 00 04 6b 31 0a 68 65 6c 6c 6f 00"));
        let headers =
            [Header { key: b"h1", value: Some(b"x") }, Header { key: b"h2", value: None }];
        let second = StoredRecord {
            timestamp_delta: 5,
            offset_delta: 1,
            key: None,
            value: Some(b""),
            headers: headers.iter(),
        };
        assert_eq!(encode(second), hex("1e 00 0a 02 01 00 04 04 68 31 02 78 04 68 32 01"));
        let tombstone = StoredRecord {
            timestamp_delta: 3,
            offset_delta: 2,
            key: Some(b"k2"),
            value: None,
            headers: [].iter(),
        };
        assert_eq!(encode(tombstone), hex("10 00 06 04 04 6b 32 01 00"));
    }

    #[test]
    fn a_record_without_room_leaves_the_output_alone() {
        let record = StoredRecord {
            timestamp_delta: 0,
            offset_delta: 0,
            key: None,
            value: Some(b"12345"),
            headers: std::iter::empty::<Header<'_>>(),
        };
        let mut output = vec![7];
        assert!(matches!(record.write(&mut output, 11), Err(Error::TooLarge { size: 12, .. })));
        assert_eq!(output, [7]);
        assert!(record.write(&mut output, 12).is_ok());
        assert_eq!(output.len(), 13);
    }
}
