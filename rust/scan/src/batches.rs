//! One row for every batch, from the headers alone.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringArray, UInt32Array,
};
use kafkaseg_core::fs::{File, Fs};
use kafkaseg_core::record::{BatchHeader, Codec};
use kafkaseg_core::segment::{Depth, EntryHead, Step, Walker, Window};
use kafkaseg_core::{Error, Result};

use crate::plan::{Chunk, Plan};
use crate::pulse::{ENTRIES_BETWEEN, Pulse};
use crate::report::{Place, Report};

/// The header facts of one batch.
struct Row {
    partition: usize,
    segment: i64,
    position: u64,
    head: EntryHead,
}

/// All batches of a plan's partitions. Damage is passed over and reported.
pub fn batches<S: Fs>(fs: &S, plan: &Plan, pulse: &mut Pulse<'_>) -> Result<(RecordBatch, Report)> {
    let mut rows = Vec::new();
    let mut report = Report::default();
    for chunk in &plan.chunks {
        walk(fs, plan, chunk, &mut rows, &mut report, pulse)?;
    }
    report.batches = u64::try_from(rows.len()).unwrap_or(0);
    Ok((table(plan, &rows)?, report))
}

fn walk<S: Fs>(
    fs: &S,
    plan: &Plan,
    chunk: &Chunk,
    rows: &mut Vec<Row>,
    report: &mut Report,
    pulse: &mut Pulse<'_>,
) -> Result<()> {
    let Some(partition) = plan.partitions.get(chunk.partition) else { return Ok(()) };
    let partition = &partition.snapshot;
    let Some(segment) = partition.segments.get(chunk.segment) else { return Ok(()) };
    let file = partition.open_segment(fs, segment)?;
    let path = file.path().to_owned();
    let (depth, read_bytes) =
        if plan.options.verify { (Depth::Checked, 256 << 10) } else { (Depth::Heads, 8 << 10) };
    let window = Window::new(file, chunk.start, chunk.end, read_bytes);
    let mut walker = Walker::new(window, partition.span_of(chunk), depth);
    for entries in 0_u32.. {
        if entries.is_multiple_of(ENTRIES_BETWEEN) {
            pulse()?;
        }
        match walker.step_with(pulse)? {
            Step::Entry(head) => rows.push(Row {
                partition: chunk.partition,
                segment: segment.base_offset,
                position: walker.position(),
                head,
            }),
            Step::Damage { position, bytes, kind } => {
                report.add_damage(Place { file: path.clone(), position, bytes, kind });
            }
            Step::Torn { position, bytes, kind } => {
                report.add_tail(Place { file: path.clone(), position, bytes, kind });
                break;
            }
            Step::End => break,
        }
    }
    report.bytes += chunk.bytes();
    Ok(())
}

fn table(plan: &Plan, rows: &[Row]) -> Result<RecordBatch> {
    let mut columns = place_columns(plan, rows);
    columns.extend(content_columns(rows));
    columns.extend(producer_columns(rows));
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(|error| Error::Invalid(format!("arrow: {error}")))
}

/// Where each batch stands.
fn place_columns(plan: &Plan, rows: &[Row]) -> Vec<Named> {
    let snapshot = |row: &Row| plan.partitions.get(row.partition).map(|plan| &plan.snapshot);
    vec![
        ("topic", column::<StringArray, _>(rows, |row| Some(&*snapshot(row)?.topic))),
        ("partition", column::<Int32Array, _>(rows, |row| Some(snapshot(row)?.partition))),
        ("segment", column::<Int64Array, _>(rows, |row| Some(row.segment))),
        ("position", column::<Int64Array, _>(rows, |row| i64::try_from(row.position).ok())),
        ("bytes", column::<Int32Array, _>(rows, |row| i32::try_from(row.head.total_bytes()).ok())),
    ]
}

/// What each batch holds; a compressed old-format set tells neither its first offset nor how many
/// records it has.
fn content_columns(rows: &[Row]) -> Vec<Named> {
    let codec = |row: &Row| row.head.attributes().codec().ok().map(Codec::name);
    let records = |row: &Row| match &row.head {
        EntryHead::Batch(header) => Some(header.records_count),
        EntryHead::Message(_) => row.head.base_offset().map(|_| 1),
    };
    vec![
        ("magic", column::<Int8Array, _>(rows, |row| Some(row.head.magic()))),
        ("codec", column::<StringArray, _>(rows, codec)),
        ("base_offset", column::<Int64Array, _>(rows, |row| row.head.base_offset())),
        ("last_offset", column::<Int64Array, _>(rows, |row| Some(row.head.last_offset()))),
        ("records", column::<Int32Array, _>(rows, records)),
        ("leader_epoch", column::<Int32Array, _>(rows, |row| row.head.leader_epoch())),
        (
            "timestampType",
            column::<Int32Array, _>(rows, |row| Some(row.head.timestamp_type().id())),
        ),
        ("base_timestamp", column::<Int64Array, _>(rows, |row| Some(batch(row)?.base_timestamp))),
        ("max_timestamp", column::<Int64Array, _>(rows, |row| Some(row.head.max_timestamp()))),
    ]
}

/// Facts that only version 2 batches have; null for older ones.
fn producer_columns(rows: &[Row]) -> Vec<Named> {
    let flags = |row: &Row| Some(batch(row)?.attributes);
    vec![
        ("producer_id", column::<Int64Array, _>(rows, |row| Some(batch(row)?.producer_id))),
        ("producer_epoch", column::<Int16Array, _>(rows, |row| Some(batch(row)?.producer_epoch))),
        ("base_sequence", column::<Int32Array, _>(rows, |row| Some(batch(row)?.base_sequence))),
        (
            "is_transactional",
            column::<BooleanArray, _>(rows, |row| Some(flags(row)?.is_transactional())),
        ),
        ("is_control", column::<BooleanArray, _>(rows, |row| Some(flags(row)?.is_control()))),
        ("delete_horizon", column::<Int64Array, _>(rows, |row| batch(row)?.delete_horizon())),
        ("crc", column::<UInt32Array, _>(rows, |row| Some(batch(row)?.crc))),
    ]
}

type Named = (&'static str, ArrayRef);

fn batch(row: &Row) -> Option<&BatchHeader> {
    match &row.head {
        EntryHead::Batch(header) => Some(header),
        EntryHead::Message(_) => None,
    }
}

fn column<'a, A, T>(rows: &'a [Row], get: impl Fn(&'a Row) -> Option<T>) -> ArrayRef
where
    A: Array + FromIterator<Option<T>> + 'static,
{
    Arc::new(rows.iter().map(get).collect::<A>())
}
