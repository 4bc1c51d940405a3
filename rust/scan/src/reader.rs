//! Reading a plan, batch by batch, into Arrow.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use kafkaseg_core::fs::{File, Fs};
use kafkaseg_core::limits::BATCH_HEADER_BYTES;
use kafkaseg_core::record::{BatchHeader, Codec, LegacyRecords, LegacyView};
use kafkaseg_core::segment::{Depth, EntryHead, Step, Walker, Window};
use kafkaseg_core::{CorruptKind, Error, Result};

use crate::columns::{BatchFacts, Columns};
use crate::committed::Committed;
use crate::options::{Isolation, OnCorrupt, OnMissing};
use crate::payload::{Pumped, V2Payload, check_record_bytes, inflate_legacy};
use crate::plan::{Chunk, Plan};
use crate::pulse::{BYTES_BETWEEN, ENTRIES_BETWEEN, Pulse};
use crate::report::{Place, Report};
use crate::snapshot::FileOf;

/// Bytes read from a file at a time: what is read stays in the second-level cache until its
/// columns are built.
pub(crate) const READ_BYTES: usize = 256 << 10;

/// The same when only heads are looked at.
pub(crate) const HEAD_READ_BYTES: usize = 8 << 10;

/// Which records of a chunk are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    start: i64,
    end: i64,
    start_timestamp: i64,
    last_timestamp: i64,
    by_time: bool,
}

impl Wanted {
    /// Whether all records of a batch are wanted, so that none needs a look.
    fn takes_all(&self, head: &EntryHead) -> bool {
        !self.by_time
            && head.base_offset().is_some_and(|base| base >= self.start)
            && head.last_offset() < self.end
    }

    #[inline]
    pub(crate) fn takes(&self, offset: i64, timestamp: i64) -> bool {
        offset >= self.start
            && offset < self.end
            && timestamp >= self.start_timestamp
            && timestamp <= self.last_timestamp
    }
}

/// The chunk being read.
struct Current<S: Fs> {
    chunk: Chunk,
    walker: Walker<FileOf<S>>,
    wanted: Wanted,
    committed: Option<Arc<Committed>>,
    topic: Arc<str>,
    number: i32,
    segment_base: i64,
}

/// Reads the chunks of a plan in order.
pub struct Reader<S: Fs> {
    fs: S,
    plan: Arc<Plan>,
    depth: Depth,
    next_chunk: usize,
    end_chunk: usize,
    current: Option<Current<S>>,
    spare: Option<Window<FileOf<S>>>,
    columns: Columns,
    payload: V2Payload,
    facts: Option<BatchFacts>,
    /// Rows of the open batch that are counted and not looked at.
    rows_left: usize,
    committed: HashMap<usize, Arc<Committed>>,
    /// Partition that ended before its chunks did.
    ended: Option<usize>,
    report: Report,
    entries: u32,
    /// Bytes taken since the last pulse.
    unwatched: usize,
    has_failed: bool,
}

impl<S: Fs> Reader<S> {
    /// A reader over the whole plan.
    pub fn new(fs: S, plan: Arc<Plan>) -> Self {
        let columns = Columns::new(&plan.options.columns, plan.options.batch_bytes);
        let end_chunk = plan.chunks.len();
        Self {
            fs,
            depth: if plan.options.verify { Depth::Checked } else { Depth::Bodies },
            next_chunk: 0,
            end_chunk,
            current: None,
            spare: None,
            columns,
            payload: V2Payload::default(),
            facts: None,
            rows_left: 0,
            committed: HashMap::new(),
            ended: None,
            report: Report::default(),
            entries: 0,
            unwatched: 0,
            has_failed: false,
            plan,
        }
    }

    /// Number of records the plan gives, from the batch headers wherever they tell it.
    pub fn count(fs: S, plan: Arc<Plan>, pulse: &mut Pulse<'_>) -> Result<(u64, Report)> {
        let mut reader = Self::new(fs, plan);
        reader.columns = Columns::new(&[], usize::MAX);
        // A scan that passes damage counts what it would give, which takes the checksums.
        if reader.plan.options.on_corrupt == OnCorrupt::Error || !reader.plan.options.verify {
            reader.depth = Depth::Heads;
        }
        while reader.next_batch(pulse)?.is_some() {}
        Ok((reader.report.records, reader.report))
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        self.columns.schema()
    }

    /// What was met so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Takes the report, leaving an empty one.
    pub(crate) fn take_report(&mut self) -> Report {
        std::mem::take(&mut self.report)
    }

    /// The partition that damage ended, if any.
    pub(crate) fn ended(&self) -> Option<usize> {
        self.ended
    }

    /// Starts over with one chunk that is not in the plan's list.
    pub(crate) fn restart(&mut self, chunk: Chunk) -> Result<()> {
        self.next_chunk = self.end_chunk;
        self.ended = None;
        self.has_failed = false;
        self.close_chunk();
        self.open_chunk(chunk, &mut || Ok(()))
    }

    /// The next batch; `None` at the end. After an error there is no next: what follows the failure
    /// would pass for everything.
    pub fn next_batch(&mut self, pulse: &mut Pulse<'_>) -> Result<Option<RecordBatch>> {
        if self.has_failed {
            return Err(Error::Invalid("the scan has failed before; start it anew".into()));
        }
        let next = self.advance(pulse);
        self.has_failed = next.is_err();
        next
    }

    fn advance(&mut self, pulse: &mut Pulse<'_>) -> Result<Option<RecordBatch>> {
        loop {
            if self.columns.is_full() {
                return self.finish().map(Some);
            }
            if self.facts.is_some() {
                self.pump(pulse)?;
                continue;
            }
            if self.current.is_some() {
                self.step(pulse)?;
                continue;
            }
            let chunks = self.plan.chunks.get(..self.end_chunk).unwrap_or_default();
            let Some(chunk) = chunks.get(self.next_chunk).copied() else {
                return if self.columns.is_empty() { Ok(None) } else { self.finish().map(Some) };
            };
            self.next_chunk += 1;
            if self.ended != Some(chunk.partition) {
                self.open_chunk(chunk, pulse)?;
            }
        }
    }

    fn finish(&mut self) -> Result<RecordBatch> {
        if let Some(facts) = &self.facts {
            self.columns.end_batch(facts);
        }
        let batch = self.columns.finish()?;
        self.report.records += u64::try_from(batch.num_rows()).unwrap_or(0);
        Ok(batch)
    }

    fn open_chunk(&mut self, chunk: Chunk, pulse: &mut Pulse<'_>) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        let Some(partition) = plan.partitions.get(chunk.partition) else { return Ok(()) };
        let snapshot = &partition.snapshot;
        let Some(segment) = snapshot.segments.get(chunk.segment) else { return Ok(()) };
        let committed = self.committed_view(chunk.partition, pulse)?;
        let file = match snapshot.open_segment(&self.fs, segment) {
            Ok(file) => file,
            Err(Error::Changed { path, .. }) if plan.options.on_missing == OnMissing::Skip => {
                self.report.missing.push(path);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let window = match self.spare.take() {
            Some(window) => window.reopen(file, chunk.start, chunk.end),
            None if self.depth == Depth::Heads => {
                Window::new(file, chunk.start, chunk.end, HEAD_READ_BYTES)
            }
            None => Window::new(file, chunk.start, chunk.end, READ_BYTES),
        };
        self.columns.enter(&snapshot.topic);
        let options = &plan.options;
        let stable = committed.as_ref().map_or(i64::MAX, |view| view.last_stable);
        self.current = Some(Current {
            chunk,
            walker: Walker::new(window, snapshot.span_of(&chunk), self.depth),
            wanted: Wanted {
                start: partition.start,
                end: partition.end.min(stable),
                start_timestamp: options.start_timestamp.unwrap_or(i64::MIN),
                last_timestamp: options.end_timestamp.map_or(i64::MAX, |end| end.saturating_sub(1)),
                by_time: options.start_timestamp.is_some() || options.end_timestamp.is_some(),
            },
            committed,
            topic: Arc::clone(&snapshot.topic),
            number: snapshot.partition,
            segment_base: segment.base_offset,
        });
        Ok(())
    }

    fn committed_view(
        &mut self,
        partition: usize,
        pulse: &mut Pulse<'_>,
    ) -> Result<Option<Arc<Committed>>> {
        if self.plan.options.isolation == Isolation::ReadUncommitted {
            return Ok(None);
        }
        if let Some(view) = self.committed.get(&partition) {
            return Ok(Some(Arc::clone(view)));
        }
        let Some(planned) = self.plan.partitions.get(partition) else { return Ok(None) };
        let view = match &planned.committed {
            Some(view) => view.clone(),
            None => Committed::of(&self.fs, &planned.snapshot, &self.plan.options, pulse)?,
        };
        let view = Arc::new(view);
        self.committed.insert(partition, Arc::clone(&view));
        Ok(Some(view))
    }

    /// Takes the next entry of the current chunk.
    fn step(&mut self, pulse: &mut Pulse<'_>) -> Result<()> {
        self.entries = self.entries.wrapping_add(1);
        if self.entries.is_multiple_of(ENTRIES_BETWEEN) || self.unwatched >= BYTES_BETWEEN {
            self.unwatched = 0;
            pulse()?;
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        match current.walker.step_with(pulse)? {
            Step::Entry(head) => self.take_entry(&head),
            Step::Damage { position, bytes, kind } => self.on_damage(position, bytes, kind),
            Step::Torn { position, bytes, kind } => {
                let file = current.walker.file().path().to_owned();
                self.report.add_tail(Place { file, position, bytes, kind });
                self.end_chunk_reached();
                Ok(())
            }
            Step::End => {
                self.end_chunk_reached();
                Ok(())
            }
        }
    }

    fn end_chunk_reached(&mut self) {
        if let Some(current) = &self.current {
            self.report.bytes += current.chunk.bytes();
        }
        self.close_chunk();
    }

    fn close_chunk(&mut self) {
        if let Some(current) = self.current.take() {
            self.spare = Some(current.walker.into_window());
        }
    }

    fn take_entry(&mut self, head: &EntryHead) -> Result<()> {
        let Some(current) = &self.current else { return Ok(()) };
        self.report.batches += 1;
        self.unwatched += head.total_bytes();
        let wanted = &current.wanted;
        if head.base_offset().is_some_and(|base| base >= wanted.end) {
            self.ended = Some(current.chunk.partition);
            self.end_chunk_reached();
            return Ok(());
        }
        let too_early = head.last_offset() < wanted.start
            || (wanted.by_time && head.max_timestamp() < wanted.start_timestamp);
        let attributes = head.attributes();
        let is_hidden = match head {
            EntryHead::Batch(header) => {
                (attributes.is_control() && !self.plan.options.control)
                    || (attributes.is_transactional()
                        && !attributes.is_control()
                        && current.committed.as_ref().is_some_and(|view| {
                            view.is_aborted(header.producer_id, header.base_offset)
                        }))
            }
            EntryHead::Message(_) => false,
        };
        let is_held =
            current.committed.as_ref().is_some_and(|view| view.is_held(head.last_offset()));
        if too_early || is_hidden || is_held {
            return Ok(());
        }
        let takes_all = wanted.takes_all(head);
        match self.open_entry(head, takes_all)? {
            Ok(()) => Ok(()),
            Err(kind) => self.reject(kind),
        }
    }

    fn open_entry(&mut self, head: &EntryHead, takes_all: bool) -> Result<Result<(), CorruptKind>> {
        let Some(current) = &mut self.current else { return Ok(Ok(())) };
        let counted = match head {
            EntryHead::Batch(header) => header.records_count,
            EntryHead::Message(_) => 1,
        };
        let needs_body = !takes_all || self.columns.needs_records();
        if needs_body {
            current.walker.load()?;
        }
        Ok(match head {
            EntryHead::Batch(header) if needs_body => self.open_batch(header, takes_all),
            EntryHead::Message(_) if needs_body => self.take_legacy(head),
            _ => {
                self.rows_left = usize::try_from(counted).unwrap_or(0);
                self.facts = self.facts_of(head);
                Ok(())
            }
        })
    }

    fn facts_of(&self, head: &EntryHead) -> Option<BatchFacts> {
        let current = self.current.as_ref()?;
        let attributes = head.attributes();
        let mut facts = BatchFacts {
            topic: Arc::clone(&current.topic),
            partition: current.number,
            timestamp_type: head.timestamp_type(),
            leader_epoch: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            base_offset: head.base_offset().unwrap_or_else(|| head.last_offset()),
            position: i64::try_from(current.walker.position()).unwrap_or(i64::MAX),
            segment: current.segment_base,
            codec: attributes.codec().unwrap_or(Codec::None),
            magic: head.magic(),
            is_transactional: false,
            is_control: false,
        };
        if let EntryHead::Batch(header) = head {
            facts.leader_epoch = header.leader_epoch;
            facts.producer_id = header.producer_id;
            facts.producer_epoch = header.producer_epoch;
            facts.base_sequence = header.base_sequence;
            facts.is_transactional = attributes.is_transactional();
            facts.is_control = attributes.is_control();
        }
        Some(facts)
    }

    /// Opens a version 2 batch; [`Self::pump`] takes its records.
    fn open_batch(&mut self, header: &BatchHeader, takes_all: bool) -> Result<(), CorruptKind> {
        let facts = self.facts_of(&EntryHead::Batch(*header));
        let Some(current) = &self.current else { return Ok(()) };
        let stored = current.walker.bytes().get(BATCH_HEADER_BYTES..).unwrap_or_default();
        let wanted = (!takes_all).then_some(current.wanted);
        self.payload.open(header, stored, wanted)?;
        self.facts = facts;
        Ok(())
    }

    /// Takes records of the open batch until it or the Arrow batch is done.
    fn pump(&mut self, pulse: &mut Pulse<'_>) -> Result<()> {
        let (Some(current), Some(facts)) = (&self.current, &self.facts) else {
            self.facts = None;
            return Ok(());
        };
        if self.rows_left > 0 {
            // The count is only a claim of the header, so the rows are made piece by piece.
            let rows = self.rows_left.min(self.columns.rows_room());
            self.columns.push_rows(rows);
            self.columns.end_batch(facts);
            self.rows_left -= rows;
            if self.rows_left == 0 {
                self.facts = None;
            }
            return Ok(());
        }
        let stored = current.walker.bytes().get(BATCH_HEADER_BYTES..).unwrap_or_default();
        match self.payload.pump(stored, &mut self.columns, (facts.base_offset, facts.base_sequence))
        {
            Ok(Pumped::Full) => {
                self.columns.end_batch(facts);
                Ok(())
            }
            Ok(Pumped::Paused) => pulse(),
            Ok(Pumped::Done) => {
                self.columns.end_batch(facts);
                self.facts = None;
                Ok(())
            }
            Err(kind) => {
                self.facts = None;
                self.reject(kind)
            }
        }
    }

    /// Takes the records of a version 0 or 1 entry, all at once.
    fn take_legacy(&mut self, head: &EntryHead) -> Result<(), CorruptKind> {
        let Some(mut facts) = self.facts_of(head) else { return Ok(()) };
        let Some(current) = &self.current else { return Ok(()) };
        let view = LegacyView::parse(current.walker.bytes())?;
        check_record_bytes(current.walker.bytes().len())?;
        let mut records = if view.codec() == Codec::None {
            LegacyRecords::plain(&view)?
        } else {
            let inflated = inflate_legacy(&mut self.payload, &view)?;
            LegacyRecords::wrapped(&view, inflated, self.plan.options.verify)?
        };
        facts.base_offset = records.first_offset();
        while let Some(record) = records.next_record()? {
            if current.wanted.takes(record.offset, record.timestamp) {
                self.columns.push(&record, (0, -1));
            }
        }
        self.columns.end_batch(&facts);
        Ok(())
    }

    /// A batch whose checksum was right but whose content is not.
    #[cold]
    fn reject(&mut self, kind: CorruptKind) -> Result<()> {
        self.columns.rollback();
        let Some(current) = &self.current else { return Ok(()) };
        match current.walker.reject(kind) {
            Step::Damage { position, bytes, kind } => self.on_damage(position, bytes, kind),
            _ => Ok(()),
        }
    }

    #[cold]
    fn on_damage(&mut self, position: u64, bytes: u64, kind: CorruptKind) -> Result<()> {
        let Some(current) = &self.current else { return Ok(()) };
        let file = current.walker.file().path().to_owned();
        if self.plan.options.on_corrupt == OnCorrupt::Error {
            return Err(Error::Corrupt { file, position, kind });
        }
        self.report.add_damage(Place { file, position, bytes, kind });
        if self.plan.options.on_corrupt == OnCorrupt::Stop {
            self.ended = Some(current.chunk.partition);
            self.end_chunk_reached();
        }
        Ok(())
    }
}
