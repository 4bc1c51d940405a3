//! Reading with several threads, in order.
//!
//! The plan is cut into small pieces. Each thread takes the next piece and sends its batches down a
//! short channel of its own; the consumer empties the channels in the order of the pieces. A thread
//! that is ahead waits when its channel is full, so memory stays within a few batches per thread.
//! The threads live as long as the reader does and no longer.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use arrow_array::RecordBatch;
use kafkaseg_core::fs::Fs;
use kafkaseg_core::{Error, Result};

use crate::cut::Cutter;
use crate::plan::{Chunk, Plan};
use crate::pulse::Pulse;
use crate::reader::Reader;
use crate::report::Report;

/// Batches a thread may have ready before the consumer asks.
const READY_BATCHES: usize = 1;

/// How long the consumer waits before it gives the caller a chance to stop.
const PATIENCE: Duration = Duration::from_millis(50);

enum Event {
    Batch(RecordBatch),
    /// The piece is read: its report, and whether its partition ends with it.
    Done(Report, bool),
    Failed(Error),
}

struct Piece {
    partition: usize,
    events: Receiver<Event>,
}

struct State {
    chunks: Vec<Chunk>,
    cutter: Cutter,
    piece_bytes: u64,
    claimed: VecDeque<Piece>,
    failure: Option<Error>,
}

struct Shared<S> {
    fs: S,
    plan: Arc<Plan>,
    state: Mutex<State>,
    changed: Condvar,
    cancelled: AtomicBool,
    window: usize,
}

/// Reads a plan with several threads.
pub struct ParallelReader<S: Fs> {
    shared: Arc<Shared<S>>,
    threads: Vec<JoinHandle<()>>,
    current: Option<Piece>,
    ended: Option<usize>,
    report: Report,
}

impl<S: Fs> ParallelReader<S> {
    /// Starts the threads.
    pub fn start(fs: S, mut plan: Plan, pulse: &mut Pulse<'_>) -> Result<Self> {
        plan.resolve_committed(&fs, pulse)?;
        let threads = plan.options.threads.max(1);
        let piece_bytes = u64::try_from(plan.options.batch_bytes / 2).unwrap_or(0).max(256 << 10);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                chunks: plan.chunks.iter().rev().copied().collect(),
                cutter: Cutter::default(),
                piece_bytes,
                claimed: VecDeque::new(),
                failure: None,
            }),
            fs,
            plan: Arc::new(plan),
            changed: Condvar::new(),
            cancelled: AtomicBool::new(false),
            window: threads + 1,
        });
        let mut reader = Self {
            shared,
            threads: Vec::with_capacity(threads),
            current: None,
            ended: None,
            report: Report::default(),
        };
        for number in 0..threads {
            let shared = Arc::clone(&reader.shared);
            let thread = std::thread::Builder::new()
                .name(format!("kafkaseg-scan-{number}"))
                .spawn(move || shared.work())
                .map_err(|source| Error::Io {
                    op: "start thread for",
                    path: "scan".into(),
                    source,
                })?;
            reader.threads.push(thread);
        }
        Ok(reader)
    }

    /// What was met so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The next batch; `None` at the end.
    pub fn next_batch(&mut self, pulse: &mut Pulse<'_>) -> Result<Option<RecordBatch>> {
        // Not only while it waits: batches may be ready whenever they are asked for.
        pulse()?;
        loop {
            let Some(piece) = &self.current else {
                match self.next_piece(pulse)? {
                    Some(piece) => self.current = Some(piece),
                    None => return Ok(None),
                }
                continue;
            };
            let is_past_end = self.ended == Some(piece.partition);
            match piece.events.recv_timeout(PATIENCE) {
                Ok(Event::Batch(_)) if is_past_end => {}
                Ok(Event::Batch(batch)) => return Ok(Some(batch)),
                Ok(Event::Done(report, ends)) => {
                    if !is_past_end {
                        self.report.absorb(report);
                        if ends {
                            self.ended = Some(piece.partition);
                        }
                    }
                    self.current = None;
                }
                Ok(Event::Failed(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => pulse()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Invalid("a reading thread ended unexpectedly".into()));
                }
            }
        }
    }

    fn next_piece(&self, pulse: &mut Pulse<'_>) -> Result<Option<Piece>> {
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(piece) = state.claimed.pop_front() {
                self.shared.changed.notify_all();
                return Ok(Some(piece));
            }
            if let Some(error) = state.failure.take() {
                return Err(error);
            }
            if state.chunks.is_empty() {
                return Ok(None);
            }
            state = match self.shared.changed.wait_timeout(state, PATIENCE) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
            pulse()?;
        }
    }
}

impl<S: Fs> Drop for ParallelReader<S> {
    fn drop(&mut self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
        self.current = None;
        lock(&self.shared.state).claimed.clear();
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to clean up.
            drop(thread.join());
        }
    }
}

impl<S: Fs> Shared<S> {
    fn work(&self) {
        let mut reader = Reader::new(self.fs.clone(), Arc::clone(&self.plan));
        while let Some((chunk, events)) = self.claim() {
            let outcome = self.read_piece(&mut reader, chunk, &events);
            // The consumer is gone when a send fails; so is the reason to go on.
            let sent = match outcome {
                Ok(()) => {
                    let ends = reader.ended().is_some();
                    events.send(Event::Done(reader.take_report(), ends))
                }
                Err(error) => events.send(Event::Failed(error)),
            };
            if sent.is_err() {
                return;
            }
        }
    }

    fn read_piece(
        &self,
        reader: &mut Reader<S>,
        chunk: Chunk,
        events: &SyncSender<Event>,
    ) -> Result<()> {
        let mut pulse = || {
            if self.cancelled.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
        };
        reader.restart(chunk)?;
        while let Some(batch) = reader.next_batch(&mut pulse)? {
            if events.send(Event::Batch(batch)).is_err() {
                return Err(Error::Interrupted);
            }
        }
        Ok(())
    }

    /// Takes the next piece; waits while enough pieces are under way.
    fn claim(&self) -> Option<(Chunk, SyncSender<Event>)> {
        let mut state = lock(&self.state);
        loop {
            if self.cancelled.load(Ordering::Relaxed) || state.chunks.is_empty() {
                return None;
            }
            if state.claimed.len() < self.window {
                break;
            }
            state = match self.changed.wait(state) {
                Ok(state) => state,
                Err(poisoned) => poisoned.into_inner(),
            };
        }
        let piece = match state.next_piece(&self.fs, &self.plan) {
            Ok(piece) => piece?,
            Err(error) => {
                state.failure = Some(error);
                state.chunks.clear();
                self.changed.notify_all();
                return None;
            }
        };
        let (sender, events) = sync_channel(READY_BATCHES);
        state.claimed.push_back(Piece { partition: piece.partition, events });
        self.changed.notify_all();
        Some((piece, sender))
    }
}

impl State {
    fn next_piece<S: Fs>(&mut self, fs: &S, plan: &Plan) -> Result<Option<Chunk>> {
        let Some(chunk) = self.chunks.pop() else { return Ok(None) };
        if chunk.bytes() <= self.piece_bytes.saturating_mul(3) / 2 {
            return Ok(Some(chunk));
        }
        let target = chunk.start.saturating_add(self.piece_bytes);
        match self.cutter.cut(fs, plan, chunk, target)? {
            Some((head, tail)) => {
                self.chunks.push(tail);
                Ok(Some(head))
            }
            None => Ok(Some(chunk)),
        }
    }
}

/// A thread that panicked holds no half-made state here: every change is one push or pop.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    match state.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}
