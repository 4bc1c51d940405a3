//! Making version 2 batches.
//!
//! The layout is that of [`BatchHeader`]; what a writer decides:
//!
//! 1. The base timestamp is the first record's, or the delete horizon; a record stores its distance
//!    from it. No timestamp is negative but −1, which means none.
//! 2. The max timestamp is the largest of the records, or the append time for `LogAppendTime`; the
//!    records keep their own times underneath.
//! 3. Offsets increase strictly. They may leave holes, and the last offset may lie above the last
//!    record: that is how compaction keeps the range of a batch whose records it removed.
//! 4. A batch without records is a bare header without codec, base timestamp and horizon. It keeps
//!    offsets, producer and max timestamp, which is what it is there for.
//! 5. Variable-length integers take the shortest form, unknown attribute bits are 0.

use super::batch_spec::{BatchSpec, check_timestamp, invalid};
use super::encode::StoredRecord;
use super::{Attributes, BatchHeader, Codec, Header, RecordView, TimestampType, crc32c};
use crate::codec::Encoder;
use crate::error::{Error, Result};
use crate::limits::{BATCH_HEADER_BYTES, CRC_COVERS_FROM, LOG_OVERHEAD};

/// Bytes after the header that a batch can hold: its length field is an i32 and counts the header
/// but for the framing.
pub(super) const PAYLOAD_BYTES_MAX: usize = 2_147_483_647 - (BATCH_HEADER_BYTES - LOG_OVERHEAD);

/// Collects records and makes a batch of them.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    spec: BatchSpec,
    records: Vec<u8>,
    records_count: i32,
    /// The smallest offset the next record may have.
    next_offset: i64,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// An empty builder.
    pub fn new(spec: BatchSpec) -> Result<Self> {
        spec.check()?;
        Ok(Self {
            spec,
            records: Vec::new(),
            records_count: 0,
            next_offset: spec.base_offset,
            base_timestamp: -1,
            max_timestamp: -1,
        })
    }

    /// Forgets the records and begins another batch in the same memory.
    pub fn restart(&mut self, spec: BatchSpec) -> Result<()> {
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        *self = Self { records, ..Self::new(spec)? };
        Ok(())
    }

    /// Records pushed so far.
    pub fn records_count(&self) -> i32 {
        self.records_count
    }

    /// Bytes of the batch if it were finished now without compression.
    pub fn encoded_bytes(&self) -> usize {
        BATCH_HEADER_BYTES + self.records.len()
    }

    /// Adds a record at the next offset and gives that offset.
    pub fn push<'h, H>(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
    ) -> Result<i64>
    where
        H: IntoIterator<Item = Header<'h>>,
        H::IntoIter: Clone,
    {
        let offset = self.next_offset;
        self.push_at(offset, timestamp, key, value, headers)?;
        Ok(offset)
    }

    /// Adds a record that was read from another batch, at its own offset.
    pub fn push_view(&mut self, record: &RecordView<'_>) -> Result<()> {
        self.push_at(
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            record.headers.iter(),
        )
    }

    /// Adds a record at an offset. On an error the builder is as it was.
    pub fn push_at<'h, H>(
        &mut self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
    ) -> Result<()>
    where
        H: IntoIterator<Item = Header<'h>>,
        H::IntoIter: Clone,
    {
        check_timestamp(timestamp)?;
        if offset < self.next_offset {
            return Err(invalid(format!(
                "offset {offset} does not follow: {} or more must stand here",
                self.next_offset
            )));
        }
        let base_timestamp = match (self.records_count, self.spec.delete_horizon) {
            (0, None) => timestamp,
            (0, Some(horizon)) => horizon,
            _ => self.base_timestamp,
        };
        let next_offset = offset.checked_add(1).ok_or_else(|| overflow("offset", offset))?;
        let records_count = self
            .records_count
            .checked_add(1)
            .ok_or_else(|| overflow("record count", i64::from(self.records_count)))?;
        let record = StoredRecord {
            timestamp_delta: timestamp
                .checked_sub(base_timestamp)
                .ok_or_else(|| overflow("timestamp", timestamp))?,
            offset_delta: self.offset_delta(offset)?,
            key,
            value,
            headers: headers.into_iter(),
        };
        let room = PAYLOAD_BYTES_MAX.saturating_sub(self.records.len());
        record.write(&mut self.records, room)?;
        self.base_timestamp = base_timestamp;
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.records_count = records_count;
        self.next_offset = next_offset;
        Ok(())
    }

    fn offset_delta(&self, offset: i64) -> Result<i32> {
        offset
            .checked_sub(self.spec.base_offset)
            .and_then(|delta| i32::try_from(delta).ok())
            .ok_or_else(|| overflow("offset", offset))
    }

    /// Appends the batch, not compressed, to `output` and gives its header.
    pub fn finish(&self, output: &mut Vec<u8>) -> Result<BatchHeader> {
        self.finish_with(Codec::None, output, |records, output| {
            output.extend_from_slice(records);
            Ok(())
        })
    }

    /// Appends the batch, compressed, to `output` and gives its header. `None` is the codec's
    /// default level.
    pub fn finish_compressed(
        &self,
        codec: Codec,
        level: Option<i32>,
        encoder: &mut Encoder,
        output: &mut Vec<u8>,
    ) -> Result<BatchHeader> {
        Encoder::check_level(codec, level)?;
        self.finish_with(codec, output, |records, output| {
            encoder.compress(codec, level, records, output)
        })
    }

    /// Appends the batch to `output` with the records as `compress` appends them.
    fn finish_with(
        &self,
        codec: Codec,
        output: &mut Vec<u8>,
        compress: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<BatchHeader> {
        let mut header = self.header(codec)?;
        let start = output.len();
        output.extend_from_slice(&header.write());
        let written =
            if self.records_count == 0 { Ok(()) } else { compress(&self.records, output) };
        let sealed = written.and_then(|()| {
            let batch = output.get_mut(start..).unwrap_or_default();
            header.batch_length = batch_length(batch.len())?;
            seal(&mut header, batch);
            Ok(header)
        });
        if sealed.is_err() {
            output.truncate(start);
        }
        sealed
    }

    /// The header, but for length and checksum.
    fn header(&self, codec: Codec) -> Result<BatchHeader> {
        let spec = &self.spec;
        let is_empty = self.records_count == 0;
        let (codec, horizon) =
            if is_empty { (Codec::None, None) } else { (codec, spec.delete_horizon) };
        let timestamp_type = match spec.append_time {
            Some(_) => TimestampType::LogAppendTime,
            None => TimestampType::CreateTime,
        };
        let records_max = if is_empty { spec.empty_max_timestamp } else { self.max_timestamp };
        Ok(BatchHeader {
            base_offset: spec.base_offset,
            batch_length: 0,
            leader_epoch: spec.leader_epoch,
            crc: 0,
            attributes: Attributes::new(codec, timestamp_type)
                .with_transactional(spec.transactional)
                .with_control(spec.control)
                .with_delete_horizon(horizon.is_some()),
            last_offset_delta: self.last_offset_delta()?,
            base_timestamp: self.base_timestamp,
            max_timestamp: spec.append_time.unwrap_or(records_max),
            producer_id: spec.producer_id,
            producer_epoch: spec.producer_epoch,
            base_sequence: spec.base_sequence,
            records_count: self.records_count,
        })
    }

    fn last_offset_delta(&self) -> Result<i32> {
        let last_record = self.next_offset - 1;
        let last_offset = match self.spec.last_offset {
            Some(last) if last < last_record || last < self.spec.base_offset => {
                return Err(invalid(format!(
                    "last offset {last} lies below {}",
                    last_record.max(self.spec.base_offset)
                )));
            }
            Some(last) => last,
            None => last_record.max(self.spec.base_offset),
        };
        self.offset_delta(last_offset)
    }
}

/// Puts length and checksum into a batch that is otherwise finished. Both stand before the part
/// that is summed, so the checksum can be taken first.
pub(super) fn seal(header: &mut BatchHeader, batch: &mut [u8]) {
    header.crc = crc32c(batch.get(CRC_COVERS_FROM..).unwrap_or_default());
    if let Some(head) = batch.first_chunk_mut() {
        *head = header.write();
    }
}

pub(super) fn batch_length(total: usize) -> Result<i32> {
    total.checked_sub(LOG_OVERHEAD).and_then(|length| i32::try_from(length).ok()).ok_or_else(|| {
        Error::TooLarge {
            what: "batch",
            size: u64::try_from(total).unwrap_or(u64::MAX),
            limit: u64::from(i32::MAX.unsigned_abs()),
        }
    })
}

fn overflow(what: &str, value: i64) -> Error {
    Error::Invalid(format!("{what} {value} is too far from the start of its batch"))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, T0};
    use super::super::{ControlType, EndTxnMarker};
    use super::*;

    const NONE: [Header<'static>; 0] = [];

    fn three_records(spec: BatchSpec) -> BatchBuilder {
        let mut builder = BatchBuilder::new(spec).unwrap();
        builder.push(T0, Some(b"k1"), Some(b"hello"), NONE).unwrap();
        let headers =
            [Header { key: b"h1", value: Some(b"x") }, Header { key: b"h2", value: None }];
        builder.push(T0 + 5, None, Some(b""), headers).unwrap();
        builder.push(T0 + 3, Some(b"k2"), None, NONE).unwrap();
        builder
    }

    fn finished(builder: &BatchBuilder) -> Vec<u8> {
        let mut output = Vec::new();
        let header = builder.finish(&mut output).unwrap();
        assert_eq!(header, BatchHeader::read(output.first_chunk().unwrap()));
        assert_eq!(header.total_bytes(), output.len());
        output
    }

    fn transactional() -> BatchSpec {
        BatchSpec {
            leader_epoch: 7,
            producer_id: 4242,
            producer_epoch: 3,
            base_sequence: 10,
            transactional: true,
            ..BatchSpec::at(103)
        }
    }

    #[test]
    fn a_producer_s_batch_comes_out_byte_for_byte() {
        assert_eq!(finished(&three_records(BatchSpec::at(0))), samples::batch_a());
        let placed = BatchSpec { leader_epoch: 7, ..BatchSpec::at(100) };
        assert_eq!(finished(&three_records(placed)), samples::batch_b());
    }

    #[test]
    fn the_append_time_stands_in_the_header_only() {
        let spec =
            BatchSpec { leader_epoch: 7, append_time: Some(T0 + 60_000), ..BatchSpec::at(100) };
        let batch = finished(&three_records(spec));
        assert_eq!(batch[..61], samples::batch_c_header());
        assert_eq!(batch[61..], samples::batch_b()[61..]);
    }

    #[test]
    fn a_transactional_batch_comes_out_byte_for_byte() {
        let mut builder = BatchBuilder::new(transactional()).unwrap();
        builder.push(T0, Some(b"a"), Some(b"1"), NONE).unwrap();
        builder.push(T0 + 1, Some(b"b"), Some(b"2"), NONE).unwrap();
        assert_eq!(finished(&builder), samples::batch_d());
    }

    #[test]
    fn transaction_markers_come_out_byte_for_byte() {
        for (kind, expected) in
            [(ControlType::Commit, samples::batch_e()), (ControlType::Abort, samples::batch_f())]
        {
            let spec =
                BatchSpec { base_offset: 105, base_sequence: -1, control: true, ..transactional() };
            let mut builder = BatchBuilder::new(spec).unwrap();
            let value = EndTxnMarker { coordinator_epoch: 9 }.to_value();
            builder.push(T0 + 10, Some(&kind.to_key()), Some(&value), NONE).unwrap();
            assert_eq!(finished(&builder), expected);
        }
    }

    #[test]
    fn a_leader_change_comes_out_byte_for_byte() {
        let spec = BatchSpec { leader_epoch: 5, control: true, ..BatchSpec::at(0) };
        let mut builder = BatchBuilder::new(spec).unwrap();
        let key = ControlType::LeaderChange.to_key();
        builder.push(T0, Some(&key), Some(&samples::leader_change()), NONE).unwrap();
        assert_eq!(finished(&builder), samples::batch_leader_change());
    }

    #[test]
    fn a_delete_horizon_moves_the_base_timestamp_and_holes_stay() {
        let spec = BatchSpec {
            leader_epoch: 7,
            last_offset: Some(102),
            delete_horizon: Some(1_700_086_401_000),
            ..BatchSpec::at(100)
        };
        let mut builder = BatchBuilder::new(spec).unwrap();
        builder.push_at(102, T0 + 3, Some(b"k2"), None, NONE).unwrap();
        assert_eq!(finished(&builder), samples::batch_h());
    }

    #[test]
    fn a_batch_that_lost_all_records_keeps_offsets_and_producer() {
        let original = BatchHeader::read(samples::batch_d().first_chunk().unwrap());
        let builder = BatchBuilder::new(BatchSpec::of(&original)).unwrap();
        assert_eq!(finished(&builder), samples::batch_g());

        let horizon = BatchSpec { delete_horizon: Some(T0), ..BatchSpec::of(&original) };
        let builder = BatchBuilder::new(horizon).unwrap();
        assert_eq!(finished(&builder), samples::batch_g(), "no record, no horizon");
    }

    #[test]
    fn a_batch_is_appended_behind_what_is_there() {
        let builder = three_records(BatchSpec::at(0));
        let mut output = vec![1, 2, 3];
        builder.finish(&mut output).unwrap();
        assert_eq!(output[..3], [1, 2, 3]);
        assert_eq!(output[3..], samples::batch_a());
        assert_eq!(builder.encoded_bytes(), samples::batch_a().len());
    }

    #[test]
    fn a_restarted_builder_remembers_nothing() {
        let mut builder = three_records(transactional());
        builder.restart(BatchSpec::at(0)).unwrap();
        assert_eq!(builder.records_count(), 0);
        builder.push(7, None, None, NONE).unwrap();
        let mut fresh = BatchBuilder::new(BatchSpec::at(0)).unwrap();
        fresh.push(7, None, None, NONE).unwrap();
        assert_eq!(finished(&builder), finished(&fresh));
    }

    #[test]
    fn a_failed_compression_leaves_the_output_alone() {
        let mut output = vec![1, 2, 3];
        let failed =
            three_records(BatchSpec::at(0)).finish_with(Codec::Gzip, &mut output, |_, output| {
                output.push(9);
                Err(Error::Invalid("no".to_owned()))
            });
        assert!(failed.is_err());
        assert_eq!(output, [1, 2, 3]);
    }

    #[test]
    fn times_before_1970_are_refused_but_for_minus_one() {
        let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
        assert!(builder.push(-2, None, None, NONE).is_err());
        assert!(builder.push(i64::MIN, None, None, NONE).is_err());
        assert_eq!(builder.push(-1, None, None, NONE).unwrap(), 0);
        let header = builder.finish(&mut Vec::new()).unwrap();
        assert_eq!((header.base_timestamp, header.max_timestamp), (-1, -1));
        for spec in [
            BatchSpec { append_time: Some(-2), ..BatchSpec::at(0) },
            BatchSpec { delete_horizon: Some(-2), ..BatchSpec::at(0) },
        ] {
            assert!(BatchBuilder::new(spec).is_err());
        }
    }

    #[test]
    fn a_time_too_far_from_the_first_is_refused_and_changes_nothing() {
        let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
        builder.push(-1, None, None, NONE).unwrap();
        let before = builder.clone();
        assert!(builder.push(i64::MAX, None, None, NONE).is_err());
        assert_eq!(finished(&builder), finished(&before));
        assert_eq!(builder.push(i64::MAX - 1, None, None, NONE).unwrap(), 1);
    }

    #[test]
    fn offsets_must_increase_and_fit_their_batch() {
        let mut builder = BatchBuilder::new(BatchSpec::at(10)).unwrap();
        assert!(builder.push_at(9, 0, None, None, NONE).is_err());
        builder.push_at(12, 0, None, None, NONE).unwrap();
        assert!(builder.push_at(12, 0, None, None, NONE).is_err());
        let farthest = 10 + i64::from(i32::MAX);
        assert!(builder.push_at(farthest + 1, 0, None, None, NONE).is_err());
        builder.push_at(farthest, 0, None, None, NONE).unwrap();
        assert!(builder.push(0, None, None, NONE).is_err(), "no delta is left");
        assert!(BatchBuilder::new(BatchSpec::at(-1)).is_err());
        let mut last = BatchBuilder::new(BatchSpec::at(i64::MAX)).unwrap();
        assert!(last.push(0, None, None, NONE).is_err(), "nothing could follow it");
    }

    #[test]
    fn a_last_offset_below_the_records_is_refused() {
        for (last, good) in [(9, false), (11, false), (12, true), (20, true)] {
            let spec = BatchSpec { last_offset: Some(last), ..BatchSpec::at(10) };
            let mut builder = BatchBuilder::new(spec).unwrap();
            builder.push_at(12, 0, None, None, NONE).unwrap();
            assert_eq!(builder.finish(&mut Vec::new()).is_ok(), good, "last offset {last}");
        }
        let empty = BatchSpec { last_offset: Some(9), ..BatchSpec::at(10) };
        assert!(BatchBuilder::new(empty).unwrap().finish(&mut Vec::new()).is_err());
    }

    #[test]
    fn a_producer_without_epoch_or_sequence_is_refused() {
        for spec in [
            BatchSpec { producer_epoch: -1, ..transactional() },
            BatchSpec { base_sequence: -1, ..transactional() },
            BatchSpec { transactional: true, ..BatchSpec::at(0) },
        ] {
            assert!(BatchBuilder::new(spec).is_err());
        }
    }
}
