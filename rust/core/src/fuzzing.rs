//! What the fuzz targets run: each takes any bytes, and whatever it can read must keep its promises.
//!
//! The targets under `rust/fuzz` and the smoke test of this crate call these; nothing else does.
//! A promise broken is a panic, which is what a fuzzer looks for.

use std::path::Path;

use crate::codec::{Decoder, Dialect, Encoder, InflateError};
use crate::error::Result;
use crate::fs::{File, FileFacts};
use crate::limits::BATCH_HEADER_BYTES;
use crate::record::{
    BatchBuilder, BatchHeader, BatchMut, BatchSpec, BatchView, Codec, ControlRecord, EntryView,
    LegacyRecords, LegacyView, RecordView, Records, TimestampType, entry_total_bytes,
};
use crate::segment::{Depth, Span, Step, Surroundings, Walker, Window};

/// What a target lets compressed bytes inflate to.
const INFLATE_BYTES: usize = 1 << 20;

/// One entry of any version, its header, its records if they are not compressed, and patches of it.
pub fn batch(data: &[u8]) {
    let Ok(entry) = EntryView::parse(data) else {
        return;
    };
    assert!(entry.total_bytes() <= data.len());
    if let Some(head) = data.first_chunk() {
        assert_eq!(entry_total_bytes(head), Ok(entry.total_bytes()));
    }
    let _ = (entry.check(), entry.check_crc(), entry.codec(), entry.timestamp_type());
    match entry {
        EntryView::Batch(batch) => {
            assert_eq!(batch.bytes().first_chunk(), Some(&batch.header().write()));
            if batch.codec() == Ok(Codec::None) {
                walk_records(batch.header(), batch.payload());
            }
            patched(&batch);
        }
        EntryView::Legacy(_) => legacy_set(data),
    }
}

/// 61 bytes of header and a payload that is not compressed. If every record reads and a batch can
/// be made of them, that batch gives the same records.
pub fn records(data: &[u8]) {
    let Some((head, payload)) = data.split_first_chunk::<BATCH_HEADER_BYTES>() else {
        return;
    };
    let header = BatchHeader::read(head);
    walk_records(&header, payload);
    rebuilt(&header, payload);
}

/// A message of version 0 or 1. The value of a wrapper is taken for the set it inflates to.
pub fn legacy_set(data: &[u8]) {
    let Ok(message) = LegacyView::parse(data) else {
        return;
    };
    let _ = message.check_crc();
    if !message.is_wrapper() {
        if let Ok(records) = LegacyRecords::plain(&message) {
            walk_legacy(records, data);
        }
        return;
    }
    let Ok(set) = message.compressed() else {
        return;
    };
    for verify in [false, true] {
        if let Ok(records) = LegacyRecords::wrapped(&message, set, verify) {
            walk_legacy(records, set);
        }
    }
}

/// A byte that chooses codec and version, and compressed bytes. What inflates stays in its budget,
/// comes out of a stream alike, and anything at all survives being compressed.
pub fn codecs(data: &[u8]) {
    let Some((choice, input)) = data.split_first() else {
        return;
    };
    let Some(codec) = Codec::from_id(1 + choice % 4) else {
        return;
    };
    let dialect = match (choice / 4) % 3 {
        0 => Dialect::V0,
        1 => Dialect::V1,
        _ => Dialect::V2,
    };
    let mut decoder = Decoder::new();
    let whole = decoder.inflate_as(dialect, codec, input, INFLATE_BYTES).map(<[u8]>::to_vec);
    let streamed = streamed(&mut decoder, dialect, codec, input);
    match (whole, streamed) {
        // In one call, gzip does not notice bytes between a member's data and its trailer.
        (Ok(whole), None) if codec == Codec::Gzip => assert!(whole.len() <= INFLATE_BYTES),
        (Ok(whole), streamed) => {
            assert!(whole.len() <= INFLATE_BYTES);
            assert!(streamed == Some(whole), "{codec:?} {dialect:?}: a stream differs");
        }
        (Err(InflateError::Corrupt(why)), streamed) => {
            assert!(streamed.is_none(), "{codec:?} {dialect:?}: only a stream passes, not {why}");
        }
        (Err(InflateError::OverBudget), _) => {}
    }
    let mut compressed = Vec::new();
    let written = Encoder::new().compress(codec, None, input, &mut compressed);
    assert!(written.is_ok());
    let again = decoder.inflate(codec, &compressed, input.len());
    assert!(again == Ok(input), "{codec:?} does not give back what it compressed");
}

/// What comes out of a stream, if it ends well within the budget.
fn streamed(
    decoder: &mut Decoder,
    dialect: Dialect,
    codec: Codec,
    input: &[u8],
) -> Option<Vec<u8>> {
    let mut stream = decoder.stream_as(dialect, codec, input).ok()?;
    let mut output = Vec::new();
    let mut piece = [0; 3000];
    loop {
        let count = stream.read(&mut piece).ok()?;
        let read = piece.get(..count).unwrap_or_default();
        if read.is_empty() {
            return Some(output);
        }
        output.extend_from_slice(read);
        if output.len() > INFLATE_BYTES {
            return None;
        }
    }
}

/// A whole `.log` file, walked from front to back and resynchronised after damage.
pub fn log_file(data: &[u8]) {
    let limit = u64::try_from(data.len()).unwrap_or(0);
    let mut decoder = Decoder::new();
    for is_clean in [false, true] {
        let span = Span {
            segment_base: 0,
            expected: 0,
            is_last: true,
            is_clean,
            around: Surroundings::default(),
        };
        let window = Window::new(Bytes(data), 0, limit, 4096);
        let mut walker = Walker::new(window, span, Depth::Checked);
        let mut end = 0;
        // Every step but the last moves on, so there are fewer than bytes.
        for _ in 0..=data.len() {
            let (position, bytes) = match walker.step() {
                Ok(Step::Entry(_)) => {
                    entry_in(walker.bytes(), &mut decoder);
                    (walker.position(), u64::try_from(walker.bytes().len()).unwrap_or(0))
                }
                Ok(Step::Damage { position, bytes, .. } | Step::Torn { position, bytes, .. }) => {
                    (position, bytes)
                }
                Ok(Step::End) | Err(_) => break,
            };
            assert_eq!(position, end, "nothing is passed over in silence");
            assert!(bytes > 0);
            end = position + bytes;
        }
        assert_eq!(end, limit, "the walk reaches the end");
    }
}

/// An entry that a walker let through is whole and right; its records, inflated, keep the same
/// promises as others.
fn entry_in(bytes: &[u8], decoder: &mut Decoder) {
    let Ok(entry) = EntryView::parse(bytes) else {
        unreachable!("a walker gives whole entries");
    };
    assert_eq!((entry.check(), entry.check_crc()), (Ok(()), Ok(())));
    batch(bytes);
    match entry {
        EntryView::Batch(batch) => {
            let codec = batch.codec().unwrap_or(Codec::None);
            if let Ok(payload) = decoder.inflate(codec, batch.payload(), INFLATE_BYTES) {
                walk_records(batch.header(), payload);
            }
        }
        EntryView::Legacy(message) => {
            let dialect = Dialect::from_magic(message.magic()).unwrap_or(Dialect::V1);
            let compressed = message.compressed().unwrap_or_default();
            let set = decoder.inflate_as(dialect, message.codec(), compressed, INFLATE_BYTES);
            if let Ok(set) = set
                && let Ok(records) = LegacyRecords::wrapped(&message, set, true)
            {
                walk_legacy(records, set);
            }
        }
    }
}

fn walk_records(header: &BatchHeader, payload: &[u8]) {
    let mut records = Records::new(header, payload);
    let mut taken = 0;
    for record in &mut records {
        let Ok(record) = record else { return };
        taken += 1;
        inside(payload, &record);
        let _ = ControlRecord::decode(&record);
    }
    assert_eq!(taken, header.records_count);
    assert!(records.rest().is_empty());
}

fn walk_legacy(records: LegacyRecords<'_>, source: &[u8]) {
    let (announced, last_offset) = (records.left(), records.last_offset());
    let mut taken = 0;
    let mut last = None;
    for record in records {
        let Ok(record) = record else { return };
        taken += 1;
        last = Some(record.offset);
        assert!(record.headers.is_empty());
        inside(source, &record);
    }
    assert_eq!(taken, announced);
    assert_eq!(last, Some(last_offset));
}

/// Everything a record shows is part of the bytes it was read from.
fn inside(source: &[u8], record: &RecordView<'_>) {
    let within = |field: Option<&[u8]>| {
        let (Some(field), range) = (field, source.as_ptr_range()) else {
            return;
        };
        let field = field.as_ptr_range();
        assert!(range.start <= field.start && field.end <= range.end);
    };
    within(record.key);
    within(record.value);
    let mut headers = 0;
    for header in record.headers.iter() {
        headers += 1;
        within(Some(header.key));
        within(header.value);
    }
    assert_eq!(headers, record.headers.len());
}

fn patched(batch: &BatchView<'_>) {
    let mut bytes = batch.bytes().to_vec();
    let Ok(mut copy) = BatchMut::parse(&mut bytes) else {
        return;
    };
    let moved = copy.set_base_offset(7).is_ok();
    copy.set_leader_epoch(3);
    let stamped = copy.set_max_timestamp(TimestampType::LogAppendTime, 11).is_ok();
    let header = *copy.header();
    let was_right = batch.check_crc().is_ok();
    assert!(BatchView::parse(&bytes).is_ok_and(|copy| {
        *copy.header() == header && (!was_right || copy.check_crc().is_ok())
    }));
    assert!(!moved || header.base_offset == 7);
    assert!(stamped && header.max_timestamp == 11 && header.leader_epoch == 3);
    assert!(bytes.get(BATCH_HEADER_BYTES..) == Some(batch.payload()), "a payload changed");
}

fn rebuilt(header: &BatchHeader, payload: &[u8]) {
    let Some(output) = rebuild(header, payload) else {
        return;
    };
    let Ok(copy) = BatchView::parse(&output) else {
        unreachable!("a finished batch reads");
    };
    assert_eq!(copy.check_crc(), Ok(()));
    assert_eq!(copy.header().check(), Ok(()));
    let again = rebuild(copy.header(), copy.payload());
    assert!(again.as_ref() == Some(&output), "one form, whoever writes it");
    let before = Records::new(header, payload);
    let after = Records::new(copy.header(), copy.payload());
    assert!(before.map(fields).eq(after.map(fields)));
}

fn rebuild(header: &BatchHeader, payload: &[u8]) -> Option<Vec<u8>> {
    let mut builder = BatchBuilder::new(BatchSpec::of(header)).ok()?;
    let own_times = BatchHeader {
        attributes: header.attributes.with_timestamp_type(TimestampType::CreateTime),
        ..*header
    };
    for record in Records::new(&own_times, payload) {
        builder.push_view(&record.ok()?).ok()?;
    }
    let mut output = Vec::new();
    builder.finish(&mut output).ok()?;
    Some(output)
}

type Fields<'a> = (i64, i64, Option<&'a [u8]>, Option<&'a [u8]>, Vec<(&'a [u8], Option<&'a [u8]>)>);

fn fields(record: std::result::Result<RecordView<'_>, crate::CorruptKind>) -> Option<Fields<'_>> {
    let record = record.ok()?;
    let headers = record.headers.iter().map(|header| (header.key, header.value)).collect();
    Some((record.offset, record.timestamp, record.key, record.value, headers))
}

/// A file that is only memory.
struct Bytes<'a>(&'a [u8]);

impl File for Bytes<'_> {
    fn path(&self) -> &Path {
        Path::new("memory")
    }

    fn facts(&self) -> Result<FileFacts> {
        let bytes = u64::try_from(self.0.len()).unwrap_or(u64::MAX);
        Ok(FileFacts { bytes, inode: 0, modified_ms: 0 })
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        let rest = usize::try_from(position).ok().and_then(|position| self.0.get(position..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }
}
