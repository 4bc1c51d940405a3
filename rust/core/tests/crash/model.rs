//! What a log must hold: the states that it went through since it was last synced as a whole.
//!
//! The first state of a history is durable. Every later one is a change that was begun; whether it
//! was finished or not, a crash may leave it, or any beginning of it.

use std::collections::BTreeMap;

/// One batch, without what a log changes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub base: i64,
    pub last: i64,
    pub producer: i64,
    pub sequence: i32,
    pub transactional: bool,
    /// Whether a marker commits; `None` for data.
    pub commits: Option<bool>,
    pub values: Vec<Vec<u8>>,
}

/// The content of a log. Batches below the start stay: their removal need not be durable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    pub start: i64,
    pub end: i64,
    pub batches: Vec<Batch>,
}

impl State {
    pub fn push(&mut self, batch: Batch) {
        self.end = batch.last + 1;
        self.batches.push(batch);
    }

    pub fn truncate(&mut self, offset: i64) {
        self.batches.retain(|batch| batch.last < offset);
        self.end = self.end.min(offset);
        self.start = self.start.min(offset);
    }

    /// The batches that a reader from an offset on gets.
    pub fn from(&self, offset: i64, end: i64) -> Vec<&Batch> {
        self.batches.iter().filter(|batch| batch.last >= offset && batch.last < end).collect()
    }

    /// The next sequence number of a producer.
    pub fn sequence(&self, producer: i64) -> i32 {
        let data = |batch: &&Batch| batch.producer == producer && batch.commits.is_none();
        let last = self.batches.iter().rev().find(data);
        last.map_or(0, |batch| batch.sequence + i32::try_from(batch.values.len()).unwrap())
    }

    /// First offsets of the open transactions, by producer.
    pub fn open(&self) -> BTreeMap<i64, i64> {
        let mut open = BTreeMap::new();
        for batch in &self.batches {
            if batch.commits.is_some() {
                open.remove(&batch.producer);
            } else if batch.transactional {
                open.entry(batch.producer).or_insert(batch.base);
            }
        }
        open
    }
}

/// What is known of one partition.
#[derive(Debug, Clone)]
pub struct Partition {
    pub exists: bool,
    pub current: State,
    history: Vec<State>,
}

impl Partition {
    /// A partition that is about to be made.
    pub fn coming() -> Self {
        Self { exists: false, current: State::default(), history: vec![State::default()] }
    }

    /// A change is about to be made.
    pub fn begin(&mut self, state: State) {
        self.history.push(state);
    }

    /// The change was made.
    pub fn done(&mut self, state: State) {
        self.current = state;
    }

    /// Everything is on the device.
    pub fn synced(&mut self) {
        self.history = vec![self.current.clone()];
    }

    /// What an opening found is what the log holds from now on; older states stay possible.
    pub fn adopt(&mut self, found: State) {
        let mut state = found.clone();
        // Batches below the start stay in the model.
        let below = |batch: &&Batch| batch.last < found.start;
        state.batches = self.current.batches.iter().filter(below).cloned().collect();
        state.batches.extend(found.batches);
        self.begin(state.clone());
        self.done(state);
    }

    /// What a dead process must leave: all that was acknowledged, and the change under way.
    pub fn after_process_crash(&self) -> Self {
        let mut history = vec![self.current.clone()];
        history.extend(self.history.last().cloned());
        Self { history, ..self.clone() }
    }

    /// Whether a recovered log is one that a crash may leave.
    pub fn check(&self, found: &State) -> Result<(), String> {
        let needed = self.history.iter().map(|state| state.end).min().unwrap_or(0);
        let highest = self.history.iter().map(|state| state.start).max().unwrap_or(0);
        if found.end < needed {
            return Err(format!("lost: the log ends at {} and not at {needed}", found.end));
        }
        if found.start > highest {
            return Err(format!("lost: the log starts at {} and not at {highest}", found.start));
        }
        if found.start > found.end {
            return Err(format!("the log starts at {} and ends at {}", found.start, found.end));
        }
        let batches: Vec<&Batch> = found.batches.iter().collect();
        let is_from = |state: &&State| {
            let bounded = found.end <= state.end && found.end >= found.start;
            bounded && state.from(found.start, found.end) == batches && covers(state, found)
        };
        if self.history.iter().rev().any(|state| is_from(&state)) {
            return Ok(());
        }
        let ends: Vec<_> = self.history.iter().map(|state| (state.start, state.end)).collect();
        let latest = self.history.last().unwrap();
        Err(format!(
            "no state that the log was in: {}..{} of {ends:?}; found {:?}, was {:?}",
            found.start,
            found.end,
            brief(&found.batches),
            brief(&latest.batches)
        ))
    }
}

/// Whether a log that ends before a state does so between two batches.
fn covers(state: &State, found: &State) -> bool {
    found.end == state.end
        || found.end == found.start
        || state.batches.iter().any(|batch| batch.last + 1 == found.end || batch.base == found.end)
}

fn brief(batches: &[Batch]) -> Vec<(i64, i64, String)> {
    let text = |batch: &Batch| String::from_utf8_lossy(&batch.values[0][..8]).into_owned();
    let name =
        |batch: &Batch| if batch.commits.is_some() { "marker".to_owned() } else { text(batch) };
    let skipped = batches.len().saturating_sub(8);
    batches[skipped..].iter().map(|batch| (batch.base, batch.last, name(batch))).collect()
}
