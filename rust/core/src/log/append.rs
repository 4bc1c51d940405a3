//! Appending: a leader gives batches their offsets, a follower keeps those they have.
//!
//! The steps and their order are Kafka's. Up to the write everything can fail and leave the log as
//! it was, but for a new leader epoch or a new segment, which do no harm. After the write only the
//! log's own books are kept; what fails there poisons the log, because bytes without books would
//! have their offsets given out again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::writer::Writer;
use super::{AppendInfo, Log, Mark};
use crate::config::{CompressionType, Fsync, LogConfig};
use crate::error::{Error, Result};
use crate::fs::WriteFs;
use crate::index::AbortedTxn;
use crate::limits::CLIENT_BATCH_BYTES_MAX;
use crate::producer::{Analysis, BatchFacts, BatchMeta, Changes, Marker};
use crate::record::{
    AnalyzeLimits, AppendFacts, BatchMut, BatchView, EntryView, Origin, Placed, Placement, Records,
    Rules, TimestampType, analyze, place_batches,
};
use crate::segment::active::{Incoming, to_u64};

/// Batches whose offsets are settled.
struct Set<'a> {
    bytes: &'a [u8],
    origin: Origin,
    /// The first offset, or the last one of the first batch where an old format does not tell it.
    first_offset: i64,
    /// Where a new segment for the set would begin.
    base_offset: i64,
    last_offset: i64,
    max_timestamp: i64,
    log_append_time: i64,
}

/// What is left to do once the lock is released.
struct Appended {
    info: AppendInfo,
    appends: u64,
    is_flush_due: bool,
}

impl<S: WriteFs> Log<S> {
    /// What the topic asks of its records.
    pub fn rules(&self) -> Rules {
        rules(&self.config())
    }

    /// Appends a set as the leader: checks it, gives it offsets and epoch, and writes it. `bytes`
    /// are what was written then. A batch that repeats one of its producer's last five is not
    /// written again.
    pub fn append_leader(
        &self,
        bytes: &mut Vec<u8>,
        origin: Origin,
        leader_epoch: i32,
    ) -> Result<AppendInfo> {
        let config = self.config();
        let facts = look_at(bytes, origin, leader_epoch, &config)?;
        let mut writer = self.writer()?;
        if facts.is_empty() {
            return Ok(nothing(&writer));
        }
        Self::check_epoch(&writer, leader_epoch)?;
        let now_ms = self.now_ms();
        let set = match origin {
            Origin::Client | Origin::Coordinator => {
                let next_offset = writer.end.offset;
                let at = Placement { origin, next_offset, leader_epoch, now_ms };
                let valid = writer.validator.validate(bytes, &facts, &rules(&config), &at)?;
                Set {
                    bytes,
                    origin,
                    first_offset: valid.header.base_offset,
                    base_offset: valid.header.base_offset,
                    last_offset: valid.header.last_offset(),
                    max_timestamp: valid.header.max_timestamp,
                    log_append_time: valid.log_append_time,
                }
            }
            Origin::RaftLeader | Origin::Replication => placed(&writer, bytes, &facts, origin)?,
        };
        let appended = self.append_set(&mut writer, &set, &config, now_ms)?;
        drop(writer);
        self.finish_append(&appended, &config)
    }

    /// Appends batches from a leader as they are. Offsets must not fall below the log's end; gaps
    /// are fine. A batch of a later epoch than `leader_epoch` and all after it are left out.
    pub fn append_follower(&self, bytes: &[u8], leader_epoch: i32) -> Result<AppendInfo> {
        let config = self.config();
        let origin = Origin::Replication;
        let facts = look_at(bytes, origin, leader_epoch, &config)?;
        let mut writer = self.writer()?;
        if facts.is_empty() {
            return Ok(nothing(&writer));
        }
        let set = placed(&writer, bytes, &facts, origin)?;
        let appended = self.append_set(&mut writer, &set, &config, self.now_ms())?;
        drop(writer);
        self.finish_append(&appended, &config)
    }

    /// Appends version 2 batches that this process has just built, without producers and within
    /// the topic's rules: they get offsets, epoch and append time, and nothing of them is checked
    /// again. There may be any number of them.
    pub fn append_built(&self, bytes: &mut [u8], leader_epoch: i32) -> Result<AppendInfo> {
        let config = self.config();
        let mut writer = self.writer()?;
        if bytes.is_empty() {
            return Ok(nothing(&writer));
        }
        Self::check_epoch(&writer, leader_epoch)?;
        let now_ms = self.now_ms();
        let stamps = config.message_timestamp_type == TimestampType::LogAppendTime;
        if stamps {
            stamp(bytes, now_ms)?;
        }
        let first_offset = writer.end.offset;
        let placed = place_built(bytes, first_offset, leader_epoch, &config)?;
        let set = Set {
            bytes,
            origin: Origin::Coordinator,
            first_offset,
            base_offset: first_offset,
            last_offset: placed.next_offset.saturating_sub(1),
            max_timestamp: placed.max_timestamp,
            log_append_time: if stamps { now_ms } else { -1 },
        };
        let appended = self.append_set(&mut writer, &set, &config, now_ms)?;
        drop(writer);
        self.finish_append(&appended, &config)
    }

    fn append_set(
        &self,
        writer: &mut Writer<S>,
        set: &Set<'_>,
        config: &Arc<LogConfig>,
        now_ms: i64,
    ) -> Result<Appended> {
        self.assign_epochs(writer, set.bytes)?;
        let bytes = to_u64(set.bytes.len());
        if bytes > u64::from(config.segment_size()) && set.origin != Origin::Replication {
            return Err(Error::Rejected {
                code: "RECORD_LIST_TOO_LARGE",
                reason: format!(
                    "{bytes} bytes do not fit a segment of {} bytes",
                    config.segment_size()
                ),
            });
        }
        let (max_timestamp, last_offset) = (set.max_timestamp, set.last_offset);
        let incoming = Incoming { bytes, max_timestamp, last_offset, now_ms };
        let has_rolled = self.maybe_roll(writer, &incoming, set.base_offset, config)?;
        let mut info = AppendInfo {
            base_offset: set.first_offset,
            last_offset,
            max_timestamp,
            log_append_time: set.log_append_time,
            log_start: writer.start,
            bytes,
            is_duplicate: false,
        };
        let changes = match examine(writer, set)? {
            Examined::New(changes) => changes,
            Examined::Duplicate(batch) => {
                info.is_duplicate = true;
                info.bytes = 0;
                info.base_offset = batch.first_offset();
                info.last_offset = batch.last_offset;
                info.max_timestamp = batch.timestamp;
                info.log_append_time = batch.timestamp;
                return Ok(Appended { info, appends: writer.flush.appends, is_flush_due: false });
            }
        };
        let active = Arc::clone(writer.active().ok_or_else(super::writer::no_segment)?);
        if let Err(failed) = active.write(set.bytes) {
            if failed.left_bytes {
                return self.poison_if(Err(failed.error));
            }
            return Err(failed.error);
        }
        let kept = self.keep_books(writer, set, changes, config);
        self.poison_if(kept)?;
        let unflushed = writer.end.offset.saturating_sub(self.recovery_point());
        let waited = now_ms.saturating_sub(writer.flush.last_ms);
        let is_late = config.fsync == Fsync::Interval
            && (unflushed >= config.flush_messages || waited >= config.flush_ms);
        let is_flush_due = is_late || (has_rolled && !self.options.background_flush);
        Ok(Appended { info, appends: writer.flush.appends, is_flush_due })
    }

    /// Notes what was written: index entries, end, producers, aborted transactions, watermarks.
    fn keep_books(
        &self,
        writer: &mut Writer<S>,
        set: &Set<'_>,
        changes: Option<Changes>,
        config: &LogConfig,
    ) -> Result<()> {
        let active = Arc::clone(writer.active().ok_or_else(super::writer::no_segment)?);
        let position = writer.end.position;
        let bytes = to_u64(set.bytes.len());
        active.grow(bytes);
        let offset = set.last_offset.saturating_add(1);
        let segment = active.base_offset();
        writer.end = Mark { offset, segment, position: position.saturating_add(bytes) };
        writer.records_end = offset;
        writer.flush.appends = writer.flush.appends.saturating_add(1);
        let mut tail = writer.ready(config)?;
        let indexed =
            active.index(&mut tail, position, set.bytes, u64::from(config.index_interval_bytes));
        writer.tail = Some(tail);
        indexed?;
        if let Some(changes) = changes {
            for outcome in writer.producers.commit(changes) {
                if outcome.txn.aborted {
                    active.txn_index.append(&AbortedTxn {
                        producer_id: outcome.txn.producer_id,
                        first_offset: outcome.txn.first_offset,
                        last_offset: outcome.txn.last_offset,
                        last_stable_offset: outcome.last_stable_offset,
                    })?;
                }
            }
        }
        writer.producers.set_map_end_offset(offset);
        if !self.options.replicated && config.fsync != Fsync::Always {
            writer.high_watermark = writer.end;
            writer.producers.on_high_watermark(offset);
        }
        writer.stable = writer.resolve_stable()?;
        self.publish(writer);
        self.counters.appends.fetch_add(1, Ordering::Relaxed);
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// What the mode of durability asks for before the append is acknowledged. The records can be
    /// read by now, so a failure poisons the log.
    fn finish_append(&self, appended: &Appended, config: &LogConfig) -> Result<AppendInfo> {
        if config.fsync == Fsync::Always {
            self.poison_if(self.wait_durable(appended.appends))?;
        } else if appended.is_flush_due {
            self.poison_if(self.flush())?;
        }
        Ok(appended.info)
    }
}

/// What the headers of a set say.
fn look_at(
    bytes: &[u8],
    origin: Origin,
    leader_epoch: i32,
    config: &LogConfig,
) -> Result<AppendFacts> {
    let max_message_bytes = usize::try_from(config.max_message_bytes).unwrap_or(usize::MAX);
    analyze(bytes, origin, AnalyzeLimits { max_message_bytes, leader_epoch })
}

/// The answer to a set without a whole batch.
fn nothing<S: WriteFs>(writer: &Writer<S>) -> AppendInfo {
    AppendInfo {
        base_offset: writer.end.offset,
        last_offset: writer.end.offset.saturating_sub(1),
        max_timestamp: -1,
        log_append_time: -1,
        log_start: writer.start,
        bytes: 0,
        is_duplicate: false,
    }
}

/// A set whose batches bring their offsets.
fn placed<'a, S: WriteFs>(
    writer: &Writer<S>,
    bytes: &'a [u8],
    facts: &AppendFacts,
    origin: Origin,
) -> Result<Set<'a>> {
    let first = facts.first_or_last_of_first();
    if first < writer.end.offset {
        return Err(Error::Rejected {
            code: "UNEXPECTED_APPEND_OFFSET",
            reason: format!(
                "offsets {first} to {} cannot follow the log's end {}",
                facts.last_offset, writer.end.offset
            ),
        });
    }
    let lowest = facts.last_offset.saturating_sub(i64::from(i32::MAX));
    Ok(Set {
        bytes: bytes.get(..facts.valid_bytes).unwrap_or_default(),
        origin,
        first_offset: first,
        base_offset: facts.first_offset.unwrap_or(lowest),
        last_offset: facts.last_offset,
        max_timestamp: facts.max_timestamp,
        log_append_time: -1,
    })
}

/// Gives batches that were just built their place.
fn place_built(
    bytes: &mut [u8],
    first_offset: i64,
    leader_epoch: i32,
    config: &LogConfig,
) -> Result<Placed> {
    let mut largest = 0;
    let placed = place_batches(bytes, first_offset, leader_epoch, |header, _| {
        largest = largest.max(header.total_bytes());
    })?;
    if to_u64(largest) > u64::from(config.max_message_bytes) {
        let limit = config.max_message_bytes;
        return Err(Error::Rejected {
            code: "MESSAGE_TOO_LARGE",
            reason: format!("a batch of {largest} bytes is over max.message.bytes, {limit}"),
        });
    }
    Ok(placed)
}

/// Stamps batches with the time of their append.
fn stamp(bytes: &mut [u8], now_ms: i64) -> Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut batch = BatchMut::parse(rest)
            .map_err(|kind| Error::Invalid(format!("a batch that was built is bad: {kind}")))?;
        batch.set_max_timestamp(TimestampType::LogAppendTime, now_ms)?;
        let total = batch.header().total_bytes();
        rest = rest.get_mut(total..).unwrap_or_default();
    }
    Ok(())
}

enum Examined {
    /// What the producers of the set change, if it has any.
    New(Option<Changes>),
    Duplicate(BatchMeta),
}

/// Holds the set against the state of its producers.
fn examine<S: WriteFs>(writer: &Writer<S>, set: &Set<'_>) -> Result<Examined> {
    let mut changes: Option<Changes> = None;
    for batch in batches(set.bytes) {
        if batch.header().producer_id < 0 {
            continue;
        }
        let facts = facts_of(&batch)?;
        let changes = changes.get_or_insert_with(|| writer.producers.begin(set.origin));
        if let Analysis::Duplicate(batch) = writer.producers.add(changes, &facts)? {
            return Ok(Examined::Duplicate(batch));
        }
    }
    Ok(Examined::New(changes))
}

/// What producer state needs to know of a batch, the marker of a control batch included.
pub(super) fn facts_of(batch: &BatchView<'_>) -> Result<BatchFacts> {
    let header = batch.header();
    let mut marker = None;
    if header.attributes.is_control() {
        let bad = |kind| Error::Rejected {
            code: "CORRUPT_MESSAGE",
            reason: format!("a control batch at offset {}: {kind}", header.base_offset),
        };
        if let Some(record) = Records::new(header, batch.payload()).next() {
            marker = Marker::of(&record.map_err(bad)?).map_err(bad)?;
        }
    }
    Ok(BatchFacts::of(header, marker))
}

/// The version 2 batches of a set that was checked.
pub(super) fn batches(bytes: &[u8]) -> impl Iterator<Item = BatchView<'_>> {
    entries(bytes).filter_map(|entry| match entry {
        EntryView::Batch(batch) => Some(batch),
        EntryView::Legacy(_) => None,
    })
}

/// The entries of a set that was checked.
pub(super) fn entries(bytes: &[u8]) -> impl Iterator<Item = EntryView<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let entry = EntryView::parse(rest).ok()?;
        rest = rest.get(entry.total_bytes()..)?;
        Some(entry)
    })
}

/// The topic's rules for records.
fn rules(config: &LogConfig) -> Rules {
    let (compression, compression_level) = match config.compression_type {
        CompressionType::Producer => (None, None),
        CompressionType::Codec(codec) => (Some(codec), config.compression_level(codec)),
    };
    Rules {
        timestamp_type: config.message_timestamp_type,
        timestamp_before_max_ms: config.message_timestamp_before_max_ms,
        timestamp_after_max_ms: config.message_timestamp_after_max_ms,
        compacted: config.cleanup_policy.compact,
        compression,
        compression_level,
        max_message_bytes: usize::try_from(config.max_message_bytes).unwrap_or(usize::MAX),
        inflated_bytes_max: CLIENT_BATCH_BYTES_MAX,
    }
}
