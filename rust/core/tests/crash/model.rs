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

    /// The offset after the last record. An end inside a batch that was dropped is not recorded
    /// anywhere, so that the next opening ends where the records do.
    pub fn records_end(&self) -> i64 {
        self.batches.last().map_or(self.start, |batch| batch.last + 1)
    }

    /// Whether a recovered log is a beginning of this state. Of what lies below the start any part
    /// may still be there: its segments go one by one.
    fn may_be(&self, found: &Self) -> bool {
        let (old, new): (Vec<&Batch>, Vec<&Batch>) =
            found.batches.iter().partition(|batch| batch.last < self.start);
        found.end <= self.end
            && old.iter().all(|batch| self.batches.contains(batch))
            && new == self.from(self.start.max(found.start), found.end)
            && covers(self, found)
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
    /// The last states of the history that belong to a change under way.
    under_way: usize,
}

impl Partition {
    /// A partition that is about to be made.
    pub fn coming() -> Self {
        let history = vec![State::default()];
        Self { exists: false, current: State::default(), history, under_way: 0 }
    }

    /// A change is about to be made.
    pub fn begin(&mut self, state: State) {
        self.history.push(state);
        self.under_way += 1;
    }

    /// The change was made.
    pub fn done(&mut self, state: State) {
        self.current = state;
        self.under_way = 0;
    }

    /// Everything is on the device.
    pub fn synced(&mut self) {
        self.history = vec![self.current.clone()];
        self.under_way = 0;
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
        history.extend_from_slice(&self.history[self.history.len() - self.under_way..]);
        Self { history, ..self.clone() }
    }

    /// Whether a recovered log is one that a crash may leave.
    pub fn check(&self, found: &State) -> Result<(), String> {
        let needed = self.history.iter().map(State::records_end).min().unwrap_or(0);
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
        if self.history.iter().rev().any(|state| state.may_be(found)) {
            return Ok(());
        }
        let ends: Vec<_> = self.history.iter().map(|state| (state.start, state.end)).collect();
        let latest = self.history.last().unwrap();
        let expected = latest.from(found.start, found.end);
        let same = batches.iter().zip(&expected).take_while(|(a, b)| a == b).count();
        Err(format!(
            "no state that the log was in: found {}..{} of {ends:?}; after {same} batches found \
             {:?}, was {:?}",
            found.start,
            found.end,
            brief(&batches[same..]),
            brief(&expected[same..])
        ))
    }
}

/// Whether a log that ends before a state does so between two batches.
fn covers(state: &State, found: &State) -> bool {
    found.end == state.end
        || found.end == found.start
        || state.batches.iter().any(|batch| batch.last + 1 == found.end || batch.base == found.end)
}

fn brief(batches: &[&Batch]) -> Vec<(i64, i64, String)> {
    let text = |batch: &Batch| String::from_utf8_lossy(&batch.values[0][..8]).into_owned();
    let name = |batch: &Batch| match batch.commits {
        Some(_) => "marker".to_owned(),
        None => format!("{} {}/{}", text(batch), batch.producer, batch.sequence),
    };
    batches.iter().take(4).map(|batch| (batch.base, batch.last, name(batch))).collect()
}
