//! Offsets by timestamp, as a broker answers `ListOffsets`, with its two oddities: a time is looked
//! for only in the first segment whose largest timestamp reaches it, even if no record there is left
//! to qualify; and the largest timestamp is looked for below the log start too.

use kafkaseg_core::fs::Fs;
use kafkaseg_core::record::{BatchHeader, Codec, LegacyRecords, LegacyView, RecordView, Records};
use kafkaseg_core::segment::{Depth, EntryHead, Step, Walker, Window};
use kafkaseg_core::{CorruptKind, Error, Result};

use crate::committed::Committed;
use crate::options::{Isolation, ScanOptions};
use crate::payload::{V2Payload, inflate_legacy, inflate_whole};
use crate::plan::{PartitionPlan, Plan};
use crate::pulse::{ENTRIES_BETWEEN, Pulse};
use crate::snapshot::{FileOf, Partition};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeQuery {
    /// The end of the log, or the last stable offset (−1).
    Latest,
    /// The first offset (−2; −4 asks the same of a log without tiers).
    Earliest,
    /// The first record that has the largest timestamp (−3).
    MaxTimestamp,
    /// The first record at or after a time, milliseconds.
    At(i64),
}

impl TimeQuery {
    /// The query of Kafka's number for it.
    pub fn from_number(number: i64) -> Result<Self> {
        match number {
            -1 => Ok(Self::Latest),
            -2 | -4 => Ok(Self::Earliest),
            -3 => Ok(Self::MaxTimestamp),
            time if time >= 0 => Ok(Self::At(time)),
            other => Err(Error::Invalid(format!(
                "timestamp {other} has no meaning: give milliseconds, or −1 latest, −2 earliest, \
                 −3 largest timestamp, −4 earliest local"
            ))),
        }
    }
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeAnswer {
    /// The offset.
    pub offset: i64,
    /// The record's timestamp, −1 where the answer is not a record.
    pub timestamp: i64,
    /// The leader epoch, where it is known.
    pub leader_epoch: Option<i32>,
}

/// The answer for one partition of a plan; `None` when no record qualifies.
pub fn offset_for_time<S: Fs>(
    fs: &S,
    plan: &Plan,
    partition: &PartitionPlan,
    query: TimeQuery,
    pulse: &mut Pulse<'_>,
) -> Result<Option<TimeAnswer>> {
    let snapshot = &partition.snapshot;
    let bound = upper_bound(fs, snapshot, &plan.options, pulse)?;
    if query == TimeQuery::Earliest {
        let offset = snapshot.log_start;
        let first = snapshot.epochs.first().filter(|(_, start)| *start <= offset);
        return Ok(Some(TimeAnswer { offset, timestamp: -1, leader_epoch: first.map(|e| e.0) }));
    }
    let mut search = Search::new(query, snapshot.log_start);
    let mut end = snapshot.segments.first().map_or(0, |segment| segment.base_offset);
    for index in 0..snapshot.segments.len() {
        end = search.walk(fs, snapshot, index, pulse)?;
        if search.is_over {
            break;
        }
    }
    if query == TimeQuery::Latest {
        let offset = bound.unwrap_or(end).min(end);
        let epoch = snapshot.epochs.last().map(|(epoch, _)| *epoch);
        return Ok(Some(TimeAnswer { offset, timestamp: -1, leader_epoch: epoch }));
    }
    Ok(search.best.filter(|answer| bound.is_none_or(|bound| answer.offset < bound)))
}

fn upper_bound<S: Fs>(
    fs: &S,
    snapshot: &Partition,
    options: &ScanOptions,
    pulse: &mut Pulse<'_>,
) -> Result<Option<i64>> {
    if options.isolation == Isolation::ReadUncommitted {
        return Ok(None);
    }
    Ok(Some(Committed::of(fs, snapshot, options, pulse)?.last_stable))
}

struct Search {
    query: TimeQuery,
    start: i64,
    best: Option<TimeAnswer>,
    /// No later segment is to be searched.
    is_over: bool,
    payload: V2Payload,
}

impl Search {
    fn new(query: TimeQuery, start: i64) -> Self {
        let start = if query == TimeQuery::MaxTimestamp { i64::MIN } else { start };
        Self { query, start, best: None, is_over: false, payload: V2Payload::default() }
    }

    /// Walks a segment; returns the offset after its last record.
    fn walk<S: Fs>(
        &mut self,
        fs: &S,
        snapshot: &Partition,
        index: usize,
        pulse: &mut Pulse<'_>,
    ) -> Result<i64> {
        let Some(segment) = snapshot.segments.get(index) else { return Ok(0) };
        let file = snapshot.open_segment(fs, segment)?;
        let window = Window::new(file, 0, segment.bytes, 8 << 10);
        let mut walker = Walker::new(window, snapshot.span(index), Depth::Heads);
        let mut largest = -1;
        for entries in 0_u32.. {
            if entries.is_multiple_of(ENTRIES_BETWEEN) {
                pulse()?;
            }
            match walker.step_with(pulse)? {
                Step::Entry(head) => {
                    largest = largest.max(head.max_timestamp());
                    if self.is_candidate(&head) {
                        self.look_into::<S>(&head, &mut walker)?;
                    }
                }
                Step::Damage { .. } => {}
                Step::Torn { .. } | Step::End => break,
            }
        }
        if let TimeQuery::At(time) = self.query {
            // A segment without timestamps counts by the age of its file.
            let largest = if largest < 0 { segment.modified_ms } else { largest };
            self.is_over = largest >= time;
        }
        Ok(walker.expected())
    }

    fn is_candidate(&self, head: &EntryHead) -> bool {
        if head.last_offset() < self.start || head.magic() == 0 {
            return false;
        }
        match self.query {
            TimeQuery::At(time) => self.best.is_none() && head.max_timestamp() >= time,
            TimeQuery::MaxTimestamp => {
                self.best.is_none_or(|best| head.max_timestamp() > best.timestamp)
                    && head.max_timestamp() >= 0
            }
            TimeQuery::Latest | TimeQuery::Earliest => false,
        }
    }

    /// Finds the record in a batch whose largest timestamp qualifies.
    fn look_into<S: Fs>(&mut self, head: &EntryHead, walker: &mut Walker<FileOf<S>>) -> Result<()> {
        let target = match self.query {
            TimeQuery::At(time) => time,
            _ => head.max_timestamp(),
        };
        let start = self.start;
        let matches =
            |record: &RecordView<'_>| record.timestamp >= target && record.offset >= start;
        let position = walker.position();
        let bytes = walker.load()?;
        let found = match head {
            EntryHead::Batch(header) => find_in_batch(&mut self.payload, header, bytes, matches),
            EntryHead::Message(_) => find_in_message(&mut self.payload, bytes, matches),
        };
        match found {
            Ok(Some((offset, timestamp))) => {
                self.best =
                    Some(TimeAnswer { offset, timestamp, leader_epoch: head.leader_epoch() });
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(kind) => {
                Err(Error::corrupt(kafkaseg_core::fs::File::path(walker.file()), position, kind))
            }
        }
    }
}

fn find_in_batch(
    payload: &mut V2Payload,
    header: &BatchHeader,
    bytes: &[u8],
    matches: impl Fn(&RecordView<'_>) -> bool,
) -> Result<Option<(i64, i64)>, CorruptKind> {
    let inflated = inflate_whole(payload, header, bytes)?;
    for record in Records::new(header, inflated) {
        let record = record?;
        if matches(&record) {
            return Ok(Some((record.offset, record.timestamp)));
        }
    }
    Ok(None)
}

fn find_in_message(
    payload: &mut V2Payload,
    bytes: &[u8],
    matches: impl Fn(&RecordView<'_>) -> bool,
) -> Result<Option<(i64, i64)>, CorruptKind> {
    let view = LegacyView::parse(bytes)?;
    let mut records = if view.codec() == Codec::None {
        LegacyRecords::plain(&view)?
    } else {
        LegacyRecords::wrapped(&view, inflate_legacy(payload, &view)?, true)?
    };
    while let Some(record) = records.next_record()? {
        if matches(&record) {
            return Ok(Some((record.offset, record.timestamp)));
        }
    }
    Ok(None)
}
