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
use crate::error::Result;
use crate::fs::{Create, Dir, File, WriteDir, WriteFile, WriteFs};
use crate::names::FileKind;
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
    recorded: Arc<Vec<(i32, i64)>>,
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
            recorded: Arc::new(recorded),
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
                self.add(index, sealed.size, sealed.next_offset)?;
                continue;
            }
            let base_offset = self.base(index);
            self.replay.reach(base_offset, &self.segments)?;
            let rebuilt = self.rebuild(index)?;
            if rebuilt.ending == Ending::Overflow {
                return Ok(Outcome::Overflowed(base_offset, self.recovery));
            }
            let goes_on = self.settle(index, &rebuilt)?;
            self.add(index, rebuilt.size, rebuilt.next_offset)?;
            if !goes_on {
                break;
            }
        }
        self.finish()
    }

    fn base(&self, index: usize) -> i64 {
        self.bases.get(index).copied().unwrap_or(0)
    }

    /// Takes a segment into the log.
    fn add(&mut self, index: usize, size: u64, next_offset: i64) -> Result<()> {
        let (config, now) = (&self.options.config, self.options.clock.now_ms());
        let segment = Segment::open(&self.dir, self.base(index), size, config, now)?;
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
                epochs: Arc::clone(&self.recorded),
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
        let (bytes, kind, is_zeros) = match rebuilt.ending {
            Ending::Whole | Ending::Overflow => {
                self.write_files(index, rebuilt)?;
                return Ok(true);
            }
            Ending::Torn { bytes, kind, is_zeros } => (bytes, kind, is_zeros),
            Ending::Damage { bytes, kind, is_hole } => {
                let above = rebuilt.next_offset >= self.options.checkpointed.recovery_point;
                let is_crash = !self.options.is_clean && above && is_hole;
                if !self.options.kafka_recovery && !is_crash {
                    let file = self.dir.path().join(name(base_offset, FileKind::Log));
                    self.damage = Some(Damage { file, position: rebuilt.size, kind });
                    // A damaged log is evidence: not even its indexes are touched.
                    return Ok(false);
                }
                let rest = self.sizes.get(index).copied().unwrap_or(0).saturating_sub(rebuilt.size);
                (rest.max(bytes), kind, false)
            }
        };
        let mut keeper = Keeper { dir: &*self.dir, recovery: &mut self.recovery };
        // The newest first and the cut last, each for sure: a crash in between leaves no hole.
        for later in self.bases.get(index + 1..).unwrap_or_default().iter().rev() {
            keeper.set_aside(*later)?;
            self.dir.sync()?;
        }
        keeper.cut(base_offset, rebuilt.size, bytes, Some(kind), is_zeros)?;
        self.write_files(index, rebuilt)?;
        Ok(false)
    }

    /// Writes what stands beside the entries of a segment.
    fn write_files(&mut self, index: usize, rebuilt: &Rebuilt) -> Result<()> {
        let base_offset = self.base(index);
        let is_always = self.options.config.fsync == Fsync::Always;
        let is_durable = is_always || index < self.first_unsure();
        let mut keeper = Keeper { dir: &*self.dir, recovery: &mut self.recovery };
        keeper.write_indexes(base_offset, rebuilt, is_durable)?;
        if is_always {
            self.dir.open_write(&name(base_offset, FileKind::Log), Create::No)?.sync()?;
        }
        self.replay.snapshot(rebuilt.next_offset)
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
            self.segments.push(Arc::new(Segment::create(&self.dir, end, config, now)?));
            self.names_changed = true;
        }
        let first = self.segments.first().map_or(end, |segment| segment.base_offset());
        let start = log_start.max(first).min(end);
        // What was read back may be in the page cache alone, unless it was synced on the way.
        let is_synced = self.options.is_clean || self.options.config.fsync == Fsync::Always;
        let recovery_point = if is_synced && self.damage.is_none() {
            end
        } else {
            self.options.checkpointed.recovery_point.min(end)
        };
        let restored = self.replay.finish(start, end, &self.segments, self.damage.is_some())?;
        // What was removed must not come back beside what is written from now on.
        if self.names_changed || restored.names_changed {
            self.dir.sync()?;
        }
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
            epochs_stale: !is_as_recorded(&restored.epochs, &self.recorded),
            epochs: restored.epochs,
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
    let bytes = dir.read_small(LEADER_EPOCHS)?.unwrap_or_default();
    let epochs = LeaderEpochs::decode(&bytes).unwrap_or_default();
    let recorded = epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect();
    Ok((EpochCache::from_file(epochs), recorded))
}

fn is_as_recorded(epochs: &EpochCache, recorded: &[(i32, i64)]) -> bool {
    let entries = epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset));
    entries.eq(recorded.iter().copied())
}

/// The file of leader epochs.
const LEADER_EPOCHS: &str = "leader-epoch-checkpoint";
