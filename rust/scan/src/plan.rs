//! Which bytes of which files a scan reads.

use std::path::PathBuf;

use kafkaseg_core::fs::{Dir, Fs};
use kafkaseg_core::index::{TimeEntry, TimeIndexView};
use kafkaseg_core::names::{FileKind, SegmentFile};
use kafkaseg_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::committed::Committed;
use crate::cut::{Cutter, entry_at};
use crate::discover::{Discovery, Found, is_default_topic};
use crate::options::{Isolation, OnCorrupt, OnMissing, ScanOptions, Selection};
use crate::pulse::Pulse;
use crate::snapshot::{Partition, Segment};

/// A partition and the offsets wanted of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PartitionPlan {
    /// The files.
    pub snapshot: Partition,
    /// First offset, inclusive.
    pub start: i64,
    /// Last offset, exclusive.
    pub end: i64,
    /// The committed view, once worked out.
    pub committed: Option<Committed>,
}

/// Consecutive bytes of one segment, from one batch start to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Index of the partition in the plan.
    pub partition: usize,
    /// Index of the segment in the partition.
    pub segment: usize,
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
    /// The smallest offset that may stand at the start.
    pub expected: i64,
    /// Offsets of the chunk lie below it, where it ends inside the segment.
    pub below: Option<i64>,
}

impl Chunk {
    /// A whole segment.
    pub(crate) fn of(partition: usize, number: usize, segment: &Segment) -> Self {
        Self {
            partition,
            segment: number,
            start: 0,
            end: segment.bytes,
            expected: segment.base_offset,
            below: None,
        }
    }

    /// Bytes of the chunk.
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// A scan, resolved to files and positions. It can be sent to another process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// How to read.
    pub options: ScanOptions,
    /// What is read.
    pub partitions: Vec<PartitionPlan>,
    /// In the order they are read.
    pub chunks: Vec<Chunk>,
    /// Directories that are no live partitions, with the reason.
    pub passed: Vec<(PathBuf, String)>,
}

impl Plan {
    /// Takes the snapshot of the selected partitions and decides what to read.
    pub fn make<S: Fs>(
        fs: &S,
        discovery: &Discovery,
        selection: &Selection,
        options: ScanOptions,
        pulse: &mut Pulse<'_>,
    ) -> Result<Self> {
        check_names(discovery, selection)?;
        let passed =
            discovery.passed.iter().map(|(path, why)| (path.clone(), (*why).to_owned())).collect();
        let mut plan = Self { options, partitions: Vec::new(), chunks: Vec::new(), passed };
        for found in &discovery.found {
            pulse()?;
            if !is_selected(selection, &found.topic, found.partition) {
                continue;
            }
            match plan.add_partition(fs, found, selection) {
                Ok(()) => {}
                Err(error) if error.is_not_found() => plan.pass_deleted(found.path())?,
                Err(error) => return Err(error),
            }
        }
        Ok(plan)
    }

    fn add_partition<S: Fs>(&mut self, fs: &S, found: &Found, selection: &Selection) -> Result<()> {
        let snapshot = Partition::take(fs, found)?;
        let bound = selection.start.of(&found.topic, found.partition);
        let start = bound.unwrap_or(snapshot.log_start).max(snapshot.log_start);
        let end = selection.end.of(&found.topic, found.partition).unwrap_or(i64::MAX);
        let partition = PartitionPlan { snapshot, start, end, committed: None };
        let chunks = self.chunks_of(fs, &partition)?;
        self.partitions.push(partition);
        self.chunks.extend(chunks);
        Ok(())
    }

    /// A partition that was there at the first look and is gone at the second.
    fn pass_deleted(&mut self, path: PathBuf) -> Result<()> {
        let what = "was deleted";
        if self.options.on_missing == OnMissing::Error {
            return Err(Error::Changed { path, what });
        }
        self.passed.push((path, what.to_owned()));
        Ok(())
    }

    /// The plan as bytes, for another process of the same release.
    pub fn encode(&self) -> Result<Vec<u8>> {
        postcard::to_allocvec(self).map_err(|error| Error::Invalid(format!("plan: {error}")))
    }

    /// A plan from its bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        postcard::from_bytes(bytes).map_err(|error| Error::Invalid(format!("plan: {error}")))
    }

    /// Bytes of segment files that the plan covers.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(Chunk::bytes).sum()
    }

    /// Works out the committed view of every partition, where the scan wants it.
    pub fn resolve_committed<S: Fs>(&mut self, fs: &S, pulse: &mut Pulse<'_>) -> Result<()> {
        if self.options.isolation == Isolation::ReadUncommitted {
            return Ok(());
        }
        for partition in &mut self.partitions {
            if partition.committed.is_none() {
                let view = Committed::of(fs, &partition.snapshot, &self.options, pulse)?;
                partition.committed = Some(view);
            }
        }
        Ok(())
    }

    /// Divides the plan into at most `parts` plans of about the same number of bytes, which
    /// together read exactly what this one does.
    pub fn splits<S: Fs>(&self, fs: &S, parts: usize, pulse: &mut Pulse<'_>) -> Result<Vec<Self>> {
        let mut whole = self.clone();
        whole.resolve_committed(fs, pulse)?;
        let mut left = whole.bytes();
        let mut cutter = Cutter::default();
        let mut queue: Vec<Chunk> = whole.chunks.iter().rev().copied().collect();
        let mut splits = Vec::new();
        for part in (1..=parts.max(1)).rev() {
            pulse()?;
            let share = left.div_ceil(u64::try_from(part).unwrap_or(1)).max(1);
            let chunks = whole.take_share(fs, &mut queue, share, part == 1, &mut cutter)?;
            left = left.saturating_sub(chunks.iter().map(Chunk::bytes).sum());
            if !chunks.is_empty() {
                splits.push(whole.with_chunks(chunks));
            }
        }
        Ok(splits)
    }

    fn take_share<S: Fs>(
        &self,
        fs: &S,
        queue: &mut Vec<Chunk>,
        share: u64,
        is_last: bool,
        cutter: &mut Cutter,
    ) -> Result<Vec<Chunk>> {
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut taken = 0;
        while let Some(chunk) = queue.pop() {
            let room = share.saturating_sub(taken);
            let fits = is_last || chunk.bytes() <= room;
            // A scan that stops at damage must see a partition from its start to its end.
            let whole_partitions = self.options.on_corrupt == OnCorrupt::Stop;
            if whole_partitions {
                let new = chunks.last().is_none_or(|last| last.partition != chunk.partition);
                if new && !fits && !chunks.is_empty() {
                    queue.push(chunk);
                    break;
                }
            } else if !fits {
                let target = chunk.start.saturating_add(room);
                if let Some((head, tail)) = cutter.cut(fs, self, chunk, target)? {
                    chunks.push(head);
                    queue.push(tail);
                } else if chunks.is_empty() || room > chunk.bytes() / 2 {
                    chunks.push(chunk);
                } else {
                    queue.push(chunk);
                }
                break;
            }
            taken += chunk.bytes();
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    /// The same plan with other chunks, and only the partitions they need.
    fn with_chunks(&self, mut chunks: Vec<Chunk>) -> Self {
        let mut kept = Vec::new();
        for chunk in &mut chunks {
            if kept.last() != Some(&chunk.partition) {
                kept.push(chunk.partition);
            }
            chunk.partition = kept.len() - 1;
        }
        let partitions =
            kept.iter().filter_map(|index| self.partitions.get(*index)).cloned().collect();
        Self { options: self.options.clone(), partitions, chunks, passed: Vec::new() }
    }

    /// The chunks of the partition to be added next.
    fn chunks_of<S: Fs>(&self, fs: &S, plan: &PartitionPlan) -> Result<Vec<Chunk>> {
        let index = self.partitions.len();
        let mut chunks = Vec::new();
        for (number, segment) in plan.snapshot.segments.iter().enumerate() {
            let next = plan.snapshot.segments.get(number + 1).map(|next| next.base_offset);
            let is_below = next.is_some_and(|next| next <= plan.start);
            // Of an empty last segment the reader finds out whether it should be empty.
            let is_empty = segment.bytes == 0 && next.is_some();
            if is_below || segment.base_offset >= plan.end || is_empty {
                continue;
            }
            let mut chunk = Chunk::of(index, number, segment);
            let mut from = plan.start;
            if let Some(timestamp) = self.options.start_timestamp {
                match time_prune(fs, &plan.snapshot, number, timestamp)? {
                    TimePrune::Skip => continue,
                    TimePrune::From(offset) => from = from.max(offset),
                }
            }
            if from > segment.base_offset {
                Cutter::seek(fs, &plan.snapshot, &mut chunk, from)?;
            }
            chunks.push(chunk);
        }
        Ok(chunks)
    }
}

enum TimePrune {
    /// No record of the segment is late enough.
    Skip,
    /// None before this offset is.
    From(i64),
}

/// What the time index says about records at or after a timestamp. Only the index of a sealed
/// segment is asked, since that of the active one lags behind and ends in zeros.
fn time_prune<S: Fs>(
    fs: &S,
    partition: &Partition,
    number: usize,
    timestamp: i64,
) -> Result<TimePrune> {
    let all = TimePrune::From(i64::MIN);
    let (Some(segment), Some(next)) =
        (partition.segments.get(number), partition.segments.get(number + 1))
    else {
        return Ok(all);
    };
    let name = SegmentFile::live(segment.base_offset, FileKind::TimeIndex).to_string();
    let directory = partition.open_dir(fs)?;
    let Some(bytes) = directory.read_small(&name)? else { return Ok(all) };
    let view = TimeIndexView::new(segment.base_offset, &bytes);
    let Some(last) = view.len().checked_sub(1).and_then(|last| view.entry(last)) else {
        return Ok(all);
    };
    let trusted = view.sanity().is_ok()
        && view.torn_bytes() == 0
        && view.valid_entries() == view.len()
        && last.offset < next.base_offset
        && last.timestamp > 0;
    if !trusted {
        return Ok(all);
    }
    // The file has no checksum, so the entry that decides is held against the batch it speaks of.
    let holds = |entry: TimeEntry| -> Result<bool> {
        let found = entry_at(fs, partition, entry.offset)?;
        Ok(found.is_some_and(|(head, _)| head.max_timestamp() == entry.timestamp))
    };
    if last.timestamp < timestamp {
        return Ok(if holds(last)? { TimePrune::Skip } else { all });
    }
    match view.lookup(timestamp.saturating_sub(1)) {
        Some(entry) if holds(entry)? => Ok(TimePrune::From(entry.offset.saturating_add(1))),
        _ => Ok(all),
    }
}

fn is_selected(selection: &Selection, topic: &str, partition: i32) -> bool {
    let topic_is = match &selection.topics {
        Some(topics) => topics.iter().any(|wanted| wanted == topic),
        None => is_default_topic(topic),
    };
    topic_is && selection.partitions.as_ref().is_none_or(|wanted| wanted.contains(&partition))
}

/// A name that is not there is a mistake, not an empty result.
fn check_names(discovery: &Discovery, selection: &Selection) -> Result<()> {
    for topic in selection.topics.iter().flatten() {
        if !discovery.found.iter().any(|found| *found.topic == **topic) {
            let known = discovery.topics();
            let known: Vec<&str> = known.iter().take(20).map(AsRef::as_ref).collect();
            return Err(Error::Invalid(format!(
                "no topic {topic:?} here; found {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )));
        }
    }
    for partition in selection.partitions.iter().flatten() {
        let found = discovery.found.iter().filter(|found| found.partition == *partition);
        if !found.into_iter().any(|found| is_selected(selection, &found.topic, found.partition)) {
            return Err(Error::Invalid(format!("no selected topic has a partition {partition}")));
        }
    }
    Ok(())
}
