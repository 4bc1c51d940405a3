//! What a directory does from time to time: flush, retention, checkpoints, removals.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::LogDir;
use crate::error::{Error, Result};
use crate::fs::{EntryKind, WriteDir, WriteFs};
use crate::log::Log;

/// How often the background thread looks at what is due, at most.
const STEP_MS: i64 = 1000;

/// The thread that does the upkeep.
pub(super) struct Background {
    stop: Arc<Stop>,
    thread: JoinHandle<()>,
}

/// Tells the thread to end.
#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    wake: Condvar,
}

impl Stop {
    fn ask(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }

    /// Waits a while; whether to end.
    fn wait(&self, pause: Duration) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.wake.wait_timeout_while(asked, pause, |asked| !*asked);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// When each kind of work was last done.
struct Schedule {
    retention: i64,
    flush: i64,
    checkpoint: i64,
    expiry: i64,
}

/// What one round of upkeep did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Upkeep {
    /// Segments that retention took out of their logs.
    pub segments_deleted: u64,
    /// Partition directories that were removed.
    pub directories_removed: usize,
    /// What failed, by partition; the rest was done.
    pub failed: Vec<(super::PartitionKey, String)>,
}

impl<S: WriteFs> LogDir<S> {
    /// Starts a thread for flushes, retention, checkpoints and removals, at the intervals that the
    /// configuration names. Until then, and without it, all of them happen only on request.
    pub fn start(self: &Arc<Self>) -> Result<()> {
        self.check_open()?;
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        if background.is_some() {
            return Ok(());
        }
        let stop = Arc::new(Stop::default());
        let (told, weak) = (Arc::clone(&stop), Arc::downgrade(self));
        let run = move || {
            let mut schedule = None;
            loop {
                // Held only during a round, so that dropping the directory is not put off.
                let Some(dir) = weak.upgrade() else { return };
                let pause = dir.round(&mut schedule);
                drop(dir);
                if told.wait(pause) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("kafkaseg-upkeep".into())
            .spawn(run)
            .map_err(|error| Error::io("start a thread for", &self.path, error))?;
        *background = Some(Background { stop, thread });
        Ok(())
    }

    /// Ends the thread that [`Self::start`] began, after the work it is at.
    pub fn stop(&self) {
        let background = self.background.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Background { stop, thread }) = background {
            stop.ask();
            // The last reference may be dropped by the thread itself, which cannot wait for itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }

    /// Whether upkeep runs in the background.
    pub fn is_started(&self) -> bool {
        self.background.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Does what is due and says how long to wait.
    fn round(&self, schedule: &mut Option<Schedule>) -> Duration {
        let now = self.options.clock.now_ms();
        let config = &self.options.config;
        let schedule = schedule.get_or_insert(Schedule {
            retention: now
                .saturating_sub(config.retention_check_interval_ms)
                .saturating_add(config.initial_task_delay_ms),
            flush: now,
            checkpoint: now,
            expiry: now,
        });
        let mut work = Upkeep::default();
        if due(&mut schedule.flush, config.flush_scheduler_interval_ms.min(STEP_MS), now) {
            self.each(&mut work, |log| log.flush_pending().map(|_| ()));
        }
        if due(&mut schedule.retention, config.retention_check_interval_ms, now) {
            work.segments_deleted += self.retain(&mut work, now);
        }
        if due(&mut schedule.expiry, config.producer_id_expiration_check_interval_ms, now) {
            self.each(&mut work, |log| log.expire_producers(now));
        }
        if due(&mut schedule.checkpoint, config.recovery_point_checkpoint_interval_ms, now) {
            // A failed checkpoint is an older one: the next opening recovers more than it must.
            let _ = self.checkpoint();
        }
        let _ = self.purge(now);
        Duration::from_millis(u64::try_from(STEP_MS).unwrap_or(1000))
    }

    /// One whole round of upkeep now: retention, removals, checkpoints.
    pub fn upkeep(&self, now_ms: i64) -> Result<Upkeep> {
        self.check_open()?;
        let mut work = Upkeep::default();
        work.segments_deleted = self.retain(&mut work, now_ms);
        self.each(&mut work, |log| log.expire_producers(now_ms));
        work.directories_removed = self.purge(now_ms)?;
        self.checkpoint()?;
        Ok(work)
    }

    fn retain(&self, work: &mut Upkeep, now_ms: i64) -> u64 {
        let mut deleted = 0_u64;
        self.each(work, |log| {
            deleted += log.apply_retention(now_ms)?.segments;
            Ok(())
        });
        deleted
    }

    /// Does something with every log; one that fails does not keep the others from it.
    fn each(&self, work: &mut Upkeep, mut task: impl FnMut(&Log<S>) -> Result<()>) {
        let logs: Vec<_> =
            self.state().logs.iter().map(|(key, log)| (key.clone(), Arc::clone(log))).collect();
        for (key, log) in logs {
            if log.is_closed() {
                continue;
            }
            if let Err(error) = task(&log) {
                work.failed.push((key, error.to_string()));
            }
        }
    }

    /// Writes the checkpoint files.
    pub fn checkpoint(&self) -> Result<()> {
        let mut state = self.state();
        let logs: Vec<_> = state.logs.iter().map(|(k, log)| (k.clone(), Arc::clone(log))).collect();
        let mut points = self.root.points();
        for (key, log) in logs {
            state.note(&mut points, &key, &log);
            points.recovery_points.insert(&key.0, key.1, log.recovery_point());
        }
        self.with_home(|home| state.write_checkpoints(home, &points))
    }

    /// Flushes every log and writes the checkpoint files.
    pub fn flush(&self) -> Result<()> {
        self.check_open()?;
        let logs: Vec<_> = self.state().logs.values().cloned().collect();
        let mut outcome = Ok(());
        for log in logs {
            // A damaged log has nothing to flush.
            if log.is_closed() || log.damage().is_some() {
                continue;
            }
            match log.flush() {
                Err(_) if log.is_closed() => {}
                flushed => outcome = outcome.and(flushed),
            }
        }
        outcome.and(self.checkpoint())
    }

    /// Removes what has waited long enough for its removal.
    pub fn purge(&self, now_ms: i64) -> Result<usize> {
        let logs: Vec<_> = self.state().logs.values().cloned().collect();
        let mut outcome = Ok(());
        for log in logs {
            // A log that cannot be changed has nothing that waits.
            let can_change = || !log.is_closed() && !log.is_poisoned() && log.damage().is_none();
            if can_change()
                && let Err(error) = log.purge(now_ms)
                && can_change()
            {
                outcome = outcome.and(Err(error));
            }
        }
        let due: Vec<String> = {
            let mut state = self.state();
            let (due, later) = std::mem::take(&mut state.doomed)
                .into_iter()
                .partition::<Vec<_>, _>(|(_, due)| *due <= now_ms);
            state.doomed = later;
            due.into_iter().map(|(name, _)| name).collect()
        };
        let mut removed = 0;
        for name in due {
            match self.with_home(|home| remove_partition(home.dir(), &name)) {
                Ok(()) => removed += 1,
                Err(error) => {
                    // It is tried again with the next round.
                    self.state().doomed.push((name, now_ms));
                    outcome = outcome.and(Err(error));
                }
            }
        }
        if removed > 0 {
            self.with_home(|home| home.dir().sync())?;
        }
        outcome.map(|()| removed)
    }
}

fn due(last: &mut i64, interval: i64, now: i64) -> bool {
    let is_due = now.saturating_sub(*last) >= interval;
    if is_due {
        *last = now;
    }
    is_due
}

/// Removes a partition directory. Only plain files are looked for: brokers put nothing else there,
/// and a directory that holds anything else stays.
fn remove_partition<D: WriteDir>(root: &D, name: &str) -> Result<()> {
    let dir = match root.open_dir(name) {
        Ok(dir) => dir,
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in dir.list()? {
        if entry.kind == EntryKind::File {
            dir.unlink(&entry.name)?;
        }
    }
    drop(dir);
    root.remove_dir(name)
}
