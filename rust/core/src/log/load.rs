//! Opening a log: what is on disk becomes segments and state, after a crash too.
//!
//! | step | clean | after a crash |
//! |---|---|---|
//! | leftovers of interrupted work | finished or undone | the same |
//! | segments below the recovery point | taken as they are, if their indexes can be believed | the same |
//! | segments from the recovery point on | the same | read whole: torn tail cut, indexes compared and made anew |
//! | producers | newest snapshot, batches behind it replayed | the same |
//!
//! 1. Every change is computed first. What is right already is not written again, so that a second
//!    opening changes nothing and opening needs no space.
//! 2. Nothing is judged, cut or removed because of an I/O error: it ends the opening.
//! 3. A torn tail is cut, after a copy of it was kept where there is space for one. Damage that good
//!    batches follow is left alone: the log ends before it and cannot be written, until somebody
//!    chooses Kafka's way (`kafka_recovery`), which cuts the rest.
//! 4. A sector that reads as zeros above the recovery point is no damage but what a power cut leaves
//!    of writes that reached the device out of order: the log ends before it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::believe::{self, Sealed};
use super::keep::Keeper;
use super::recovery::Recovery;
use super::replay::Replay;
use super::{Damage, Log, LogOptions, Parts, Progress};
use crate::checkpoint::LeaderEpochs;
use crate::config::Fsync;
use crate::epoch::EpochCache;
use crate::error::{Error, Result};
use crate::fs::{Create, Dir, File, WriteDir, WriteFile, WriteFs, replace_file};
use crate::index::TimeEntry;
use crate::names::{FileKind, LEADER_EPOCH_CHECKPOINT};
use crate::record::CorruptKind;
use crate::segment::recover::{Ending, Rebuilt, Rule, rebuild};
use crate::segment::{Segment, Span, Surroundings, name, split};

impl<S: WriteFs> Log<S> {
    /// Opens the log in a directory whose lock the caller holds.
    pub fn load(dir: S::Dir, options: &LogOptions) -> Result<(Self, Recovery)> {
        let dir = Arc::new(dir);
        let mut recovery = Recovery { is_clean: options.is_clean, ..Recovery::default() };
        loop {
            let bases = super::leftovers::settle(&*dir, &mut recovery)?;
            let loader = Loader::<S>::new(Arc::clone(&dir), options.clone(), recovery, bases)?;
            match loader.run()? {
                Outcome::Loaded(parts, recovery) => {
                    return Ok((Self::assemble(*parts)?, recovery));
                }
                // The parts have names of their own now: everything is looked at again.
                Outcome::Overflowed(base_offset, found) => {
                    recovery = found;
                    split::split(&*dir, base_offset, &options.config)?;
                    recovery.segments_split.push(base_offset);
                }
            }
        }
    }
}

enum Outcome<S: WriteFs> {
    Loaded(Box<Parts<S>>, Recovery),
    Overflowed(i64, Recovery),
}

struct Loader<S: WriteFs> {
    dir: Arc<S::Dir>,
    options: LogOptions,
    recovery: Recovery,
    bases: Vec<i64>,
    /// Bytes of each `.log` file.
    sizes: Vec<u64>,
    /// What the leader-epoch checkpoint said.
    recorded: Vec<(i32, i64)>,
    /// The segments so far, and the offset after the last of them.
    segments: Vec<Arc<Segment<S>>>,
    end: Option<i64>,
    replay: Replay<S>,
    damage: Option<Damage>,
    /// Whether names came or went.
    names_changed: bool,
    checked: u64,
    total: u64,
}

impl<S: WriteFs> Loader<S> {
    fn new(
        dir: Arc<S::Dir>,
        options: LogOptions,
        recovery: Recovery,
        bases: BTreeSet<i64>,
    ) -> Result<Self> {
        let bases: Vec<i64> = bases.into_iter().collect();
        let mut sizes = Vec::with_capacity(bases.len());
        for base in &bases {
            sizes.push(dir.open(&name(*base, FileKind::Log))?.facts()?.bytes);
        }
        let (epochs, recorded) = read_epochs(&*dir)?;
        let replay = Replay::new(Arc::clone(&dir), epochs, &options)?;
        let total = sizes.iter().sum();
        let (damage, names_changed, checked) = (None, false, 0);
        Ok(Self {
            dir,
            options,
            recovery,
            bases,
            sizes,
            recorded,
            segments: Vec::new(),
            end: None,
            replay,
            damage,
            names_changed,
            checked,
            total,
        })
    }

    fn run(mut self) -> Result<Outcome<S>> {
        let unsure = self.first_unsure();
        for index in 0..self.bases.len() {
            if index < unsure
                && let Some(sealed) = self.believe(index)?
            {
                self.add(index, sealed.size, sealed.next_offset, None)?;
                continue;
            }
            let base_offset = self.base(index);
            self.replay.reach(base_offset, &self.segments)?;
            let rebuilt = self.rebuild(index)?;
            if rebuilt.ending == Ending::Overflow {
                return Ok(Outcome::Overflowed(base_offset, self.recovery));
            }
            let goes_on = self.settle(index, &rebuilt)?;
            self.add(index, rebuilt.size, rebuilt.next_offset, Some(rebuilt.largest))?;
            if !goes_on {
                break;
            }
        }
        self.finish()
    }

    fn base(&self, index: usize) -> i64 {
        self.bases.get(index).copied().unwrap_or(0)
    }

    /// Takes a segment into the log, with its largest timestamp if it was read.
    fn add(
        &mut self,
        index: usize,
        size: u64,
        next_offset: i64,
        largest: Option<TimeEntry>,
    ) -> Result<()> {
        let (config, now) = (&self.options.config, self.options.clock.now_ms());
        let segment = Segment::open(&self.dir, self.base(index), size, config, now)?;
        if let Some(largest) = largest {
            segment.know_largest(largest);
        }
        if index >= self.first_unsure() {
            segment.distrust();
        }
        self.segments.push(Arc::new(segment));
        self.end = Some(next_offset);
        Ok(())
    }

    /// The first segment whose records may not be what was written.
    fn first_unsure(&self) -> usize {
        if self.options.is_clean {
            return self.bases.len();
        }
        let point = self.options.checkpointed.recovery_point;
        self.bases.partition_point(|base| *base <= point).saturating_sub(1)
    }

    /// The segment as its files say, if they can be believed.
    fn believe(&self, index: usize) -> Result<Option<Sealed>> {
        let (Some(base), Some(size)) = (self.bases.get(index), self.sizes.get(index)) else {
            return Ok(None);
        };
        let next_base = self.bases.get(index + 1).copied();
        let interval = u64::from(self.options.config.index_interval_bytes);
        believe::sealed(&*self.dir, *base, *size, next_base, interval)
    }

    /// Reads a segment whole.
    fn rebuild(&mut self, index: usize) -> Result<Rebuilt> {
        let base_offset = self.base(index);
        let bytes = self.sizes.get(index).copied().unwrap_or(0);
        let next_base = self.bases.get(index + 1).copied();
        let file = self.dir.open(&name(base_offset, FileKind::Log))?;
        let span = Span {
            segment_base: base_offset,
            expected: self.end.unwrap_or(base_offset).max(base_offset),
            is_last: next_base.is_none(),
            is_clean: false,
            around: Surroundings {
                next_base,
                recorded_end: None,
                is_end_exact: false,
                // The checkpoint of epochs can be behind the log, or damaged. Nothing that was
                // appended is cut because of another file.
                epochs: Arc::default(),
            },
        };
        let rule = Rule {
            interval: u64::from(self.options.config.index_interval_bytes),
            index_bytes: usize::try_from(self.options.config.segment_index_bytes).unwrap_or(0),
        };
        let (mut checked, total) = (self.checked, self.total);
        let told = self.options.progress.clone();
        let mut progress = |more: u64| {
            checked = checked.saturating_add(more);
            told.as_ref()
                .map_or(Ok(()), |told| told(Progress { bytes: checked, total_bytes: total }))
        };
        let replay = &mut self.replay;
        let mut witness = |head: &_, bytes: &[u8]| replay.entry(head, bytes);
        let rebuilt = rebuild(file, bytes, span, &rule, &mut witness, &mut progress)?;
        self.checked = checked;
        self.recovery.segments_recovered.push(base_offset);
        self.recovery.bytes_checked = self.recovery.bytes_checked.saturating_add(rebuilt.size);
        Ok(rebuilt)
    }

    /// Makes the files of a segment what its entries say. Whether the log goes on behind it.
    fn settle(&mut self, index: usize, rebuilt: &Rebuilt) -> Result<bool> {
        let base_offset = self.base(index);
        let is_always = self.options.config.fsync == Fsync::Always;
        let is_durable = is_always || index < self.first_unsure();
        let may_be_lost = !self.options.is_clean
            && rebuilt.next_offset >= self.options.checkpointed.recovery_point;
        let cut = match rebuilt.ending {
            Ending::Whole | Ending::Overflow => {
                let is_last = index + 1 == self.bases.len();
                let is_short = may_be_lost && !is_last && self.has_lost_end(index, rebuilt)?;
                is_short.then_some(Removed { bytes: 0, kind: None, is_zeros: false })
            }
            Ending::Torn { bytes, kind, is_zeros } => {
                Some(Removed { bytes, kind: Some(kind), is_zeros })
            }
            Ending::Damage { bytes, kind, is_lost } => {
                let is_crash = may_be_lost && is_lost;
                if !self.options.kafka_recovery && !is_crash {
                    let file = self.dir.path().join(name(base_offset, FileKind::Log));
                    self.damage = Some(Damage { file, position: rebuilt.size, kind });
                    // A damaged log is evidence: not even its indexes are touched.
                    return Ok(false);
                }
                let rest = self.sizes.get(index).copied().unwrap_or(0).saturating_sub(rebuilt.size);
                Some(Removed { bytes: rest.max(bytes), kind: Some(kind), is_zeros: false })
            }
        };
        if let Some(removed) = &cut {
            self.cut(index, rebuilt.size, removed)?;
        }
        let mut keeper = Keeper { dir: &*self.dir, recovery: &mut self.recovery };
        keeper.write_indexes(base_offset, rebuilt, is_durable)?;
        if is_always {
            self.dir.open_write(&name(base_offset, FileKind::Log), Create::No)?.sync()?;
            keeper.sync_indexes(base_offset)?;
        }
        self.replay.snapshot(rebuilt.next_offset, is_always)?;
        Ok(cut.is_none())
    }

    /// Ends the log inside a segment. What lies behind goes first, from the end, and durably: until
    /// then the cause of the cut is there for the next opening to find.
    fn cut(&mut self, index: usize, position: u64, removed: &Removed) -> Result<()> {
        let base_offset = self.base(index);
        let mut keeper = Keeper { dir: &*self.dir, recovery: &mut self.recovery };
        let later = self.bases.get(index + 1..).unwrap_or_default();
        for base_offset in later.iter().rev() {
            keeper.set_aside(*base_offset)?;
        }
        if !later.is_empty() {
            self.dir.sync()?;
        }
        if removed.bytes > 0 {
            keeper.cut(base_offset, position, removed.bytes, removed.kind, removed.is_zeros)?;
        }
        Ok(())
    }

    /// Whether the indexes of a segment know of entries that its file has not: then a power cut took
    /// the end of the file and left the segments behind it.
    fn has_lost_end(&self, index: usize, rebuilt: &Rebuilt) -> Result<bool> {
        let next_base = self.bases.get(index + 1).copied().unwrap_or(i64::MAX);
        let lost = rebuilt.next_offset..next_base;
        if lost.is_empty() {
            return Ok(false);
        }
        let indexed = believe::last_indexed(&*self.dir, self.base(index))?;
        Ok(indexed.into_iter().flatten().any(|offset| lost.contains(&offset)))
    }

    /// Puts the log together.
    fn finish(mut self) -> Result<Outcome<S>> {
        let log_start = self.options.checkpointed.log_start;
        let mut end = self.end.unwrap_or(log_start);
        if end < log_start && self.damage.is_none() {
            self.begin_at(log_start)?;
            end = log_start;
        }
        if self.segments.is_empty() {
            let (config, now) = (&self.options.config, self.options.clock.now_ms());
            let segment = Segment::create(&self.dir, end, config, now)?;
            self.segments.push(Arc::new(segment.asleep(config, now)?));
            self.names_changed = true;
        }
        let is_always = self.options.config.fsync == Fsync::Always;
        let first = self.segments.first().map_or(end, |segment| segment.base_offset());
        let start = log_start.max(first).min(end);
        let restored = self.replay.finish(start, end, &self.segments, self.damage.is_some())?;
        // What was removed must not come back beside what is written from now on, and what was read
        // back may be in the page cache alone, unless it is synced on the way.
        let is_unsynced = is_always && !self.options.is_clean;
        if self.names_changed || restored.names_changed || is_unsynced {
            self.dir.sync()?;
        }
        let mut epochs_stale = !is_as_recorded(&restored.epochs, &self.recorded);
        let mut is_synced = (self.options.is_clean || is_always) && self.damage.is_none();
        if is_synced && epochs_stale && !self.options.is_clean {
            // Batches below the recovery point are not read again.
            is_synced = write_epochs(&*self.dir, &restored.epochs)?;
            epochs_stale = !is_synced;
        }
        let recovery_point =
            if is_synced { end } else { self.options.checkpointed.recovery_point.min(end) };
        let parts = Parts {
            dir: self.dir,
            // Nobody is told anything once the log is open.
            options: LogOptions { progress: None, ..self.options },
            segments: self.segments,
            start,
            end,
            recovery_point,
            producers: restored.producers,
            snapshots: restored.snapshots,
            epochs_stale,
            epochs: restored.epochs,
            unsynced_snapshots: restored.unsynced,
            damage: self.damage,
        };
        Ok(Outcome::Loaded(Box::new(parts), self.recovery))
    }

    /// Everything that is left lies below the first offset that may be read: the log begins anew.
    fn begin_at(&mut self, log_start: i64) -> Result<()> {
        let mut keeper = Keeper { dir: &*self.dir, recovery: &mut self.recovery };
        for segment in self.segments.drain(..) {
            keeper.set_aside(segment.base_offset())?;
        }
        self.names_changed = true;
        self.replay.restart(log_start)
    }
}

/// The leader epochs on file. A file that makes no sense counts as empty, as it does for a broker:
/// epochs are learned again from the batches that are read.
fn read_epochs<D: Dir>(dir: &D) -> Result<(EpochCache, Vec<(i32, i64)>)> {
    let bytes = dir.read_small(LEADER_EPOCH_CHECKPOINT)?.unwrap_or_default();
    let epochs = LeaderEpochs::decode(&bytes).unwrap_or_default();
    let recorded = epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect();
    Ok((EpochCache::from_file(epochs), recorded))
}

fn is_as_recorded(epochs: &EpochCache, recorded: &[(i32, i64)]) -> bool {
    let entries = epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset));
    entries.eq(recorded.iter().copied())
}

/// Writes the epochs; `false` when there is no space for them.
fn write_epochs<D: WriteDir>(dir: &D, epochs: &EpochCache) -> Result<bool> {
    match replace_file(dir, LEADER_EPOCH_CHECKPOINT, &epochs.encode()) {
        Ok(()) => Ok(true),
        Err(Error::NoSpace { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What is to be cut from a segment.
struct Removed {
    bytes: u64,
    kind: Option<CorruptKind>,
    is_zeros: bool,
}
