//! A script over everything a log directory does, and the model beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafkaseg_core::clock::{Clock as _, ManualClock};
use kafkaseg_core::codec::Encoder;
use kafkaseg_core::fs::SimFs;
use kafkaseg_core::log::Log;
use kafkaseg_core::record::{BatchBuilder, BatchSpec, Codec, ControlType, EndTxnMarker, Origin};
use kafkaseg_core::uuid::Uuid;
use kafkaseg_core::{Error, Result};

use crate::model::{Batch, Partition, State};
use crate::random::Random;
use crate::subject::{self, DELETE_DELAY_MS, Dir, START_MS};

#[derive(Debug, Clone)]
pub enum Step {
    Open,
    Create(&'static str),
    Plain {
        topic: &'static str,
        records: usize,
        codec: Codec,
    },
    /// Several batches at once.
    Built {
        topic: &'static str,
        batches: usize,
    },
    Follow {
        topic: &'static str,
        records: usize,
    },
    Idempotent {
        topic: &'static str,
        producer: i64,
        transactional: bool,
    },
    End {
        topic: &'static str,
        producer: i64,
        commits: bool,
    },
    Roll(&'static str),
    Flush(&'static str),
    /// How far back, in offsets.
    Truncate(&'static str, i64),
    /// How far behind the end.
    Restart(&'static str, i64),
    DeleteRecords(&'static str, i64),
    Retain(&'static str),
    Checkpoint,
    FlushAll,
    Upkeep,
    NewEpoch,
    DeleteTopic,
    /// A clean stop and start.
    Restarted,
}

const TOPICS: [&str; 2] = ["page", "sync"];
/// A topic that comes and goes.
const BRIEF: &str = "brief";

/// The script of a seed: a fixed beginning, random middle, every step in every round.
pub fn script(seed: u64, rounds: usize) -> Vec<Step> {
    let mut random = Random::new(seed);
    let mut steps = vec![Step::Open, Step::Create("page"), Step::Create("sync")];
    for round in 0..rounds {
        let mut middle = Vec::new();
        for topic in TOPICS {
            for codec in [Codec::None, Codec::None, Codec::Lz4, Codec::Zstd, Codec::Gzip] {
                middle.push(Step::Plain { topic, records: 1 + random.below(6), codec });
            }
            middle.push(Step::Built { topic, batches: 2 + random.below(3) });
            middle.push(Step::Follow { topic, records: 3 });
            for producer in [7, 8] {
                middle.push(Step::Idempotent { topic, producer, transactional: producer == 8 });
                middle.push(Step::Idempotent { topic, producer, transactional: producer == 8 });
            }
            middle.push(Step::End { topic, producer: 8, commits: random.flip() });
            middle.push(Step::End { topic, producer: 8, commits: false });
            middle.push(Step::Roll(topic));
            middle.push(Step::Flush(topic));
            middle.push(Step::Truncate(topic, i64::try_from(1 + random.below(12)).unwrap()));
            middle.push(Step::DeleteRecords(topic, i64::try_from(random.below(20)).unwrap()));
            middle.push(Step::Retain(topic));
        }
        middle.extend([Step::Checkpoint, Step::FlushAll, Step::Upkeep, Step::NewEpoch]);
        middle.extend([Step::Create(BRIEF), Step::DeleteTopic, Step::Upkeep]);
        random.shuffle(&mut middle);
        steps.extend(middle);
        if round % 3 == 1 {
            steps.push(Step::Restart(TOPICS[round % 2], i64::try_from(random.below(9)).unwrap()));
        }
        if round % 2 == 0 {
            steps.push(Step::Restarted);
        }
    }
    steps.push(Step::Restarted);
    steps
}

/// A run of the script on a disk.
pub struct Run {
    pub fs: SimFs,
    pub clock: Arc<ManualClock>,
    pub dir: Option<Dir>,
    pub model: BTreeMap<&'static str, Partition>,
    epoch: i32,
    serial: u64,
    /// Producers begin anew after a truncation and after a failure: a log forgets producers whose
    /// batches are below its start, and no model can tell which.
    generation: i64,
}

impl Run {
    pub fn new(fs: SimFs) -> Self {
        let clock = Arc::new(ManualClock::new(START_MS));
        Self { fs, clock, dir: None, model: BTreeMap::new(), epoch: 0, serial: 0, generation: 0 }
    }

    /// Does one step; the model knows of it before and after.
    pub fn step(&mut self, step: &Step) -> Result<()> {
        self.clock.advance(10);
        match *step {
            Step::Open => self.open(),
            Step::Create(topic) => self.create(topic),
            Step::Plain { topic, records, codec } => {
                let batch = self.batch(topic, records, -1, false, None);
                let mut bytes = encode(&batch, None, self.clock.now_ms(), codec);
                let epoch = self.epoch;
                self.append(topic, vec![batch], |log| {
                    log.append_leader(&mut bytes, Origin::Client, epoch).map(|_| ())
                })
            }
            Step::Built { topic, batches } => self.built(topic, batches),
            Step::Follow { topic, records } => {
                let batch = self.batch(topic, records, -1, false, None);
                let bytes = encode(&batch, Some(self.epoch), self.clock.now_ms(), Codec::None);
                let epoch = self.epoch;
                self.append(topic, vec![batch], |log| {
                    log.append_follower(&bytes, epoch).map(|_| ())
                })
            }
            Step::Idempotent { topic, producer, transactional } => {
                let batch = self.batch(topic, 2, self.id(producer), transactional, None);
                let mut bytes = encode(&batch, None, self.clock.now_ms(), Codec::None);
                let epoch = self.epoch;
                self.append(topic, vec![batch], |log| {
                    log.append_leader(&mut bytes, Origin::Client, epoch).map(|_| ())
                })
            }
            Step::End { topic, producer, commits } => {
                let producer = self.id(producer);
                if !self.model[topic].current.open().contains_key(&producer) {
                    return Ok(());
                }
                let batch = self.batch(topic, 1, producer, true, Some(commits));
                let mut bytes = encode(&batch, None, self.clock.now_ms(), Codec::None);
                let epoch = self.epoch;
                self.append(topic, vec![batch], |log| {
                    log.append_leader(&mut bytes, Origin::Coordinator, epoch).map(|_| ())
                })
            }
            Step::Roll(topic) => self.log(topic)?.roll().map(|_| ()),
            Step::Flush(topic) => {
                self.log(topic)?.flush()?;
                self.partition(topic).synced();
                Ok(())
            }
            Step::Truncate(topic, back) => {
                self.new_producers();
                let mut state = self.model[topic].current.clone();
                let offset = (state.end - back).max(0);
                state.truncate(offset);
                self.change(topic, state, |log| log.truncate_to(offset).map(|_| ()))
            }
            Step::Restart(topic, ahead) => {
                self.new_producers();
                let at = self.model[topic].current.end + ahead - 4;
                let at = at.max(0);
                let state = State { start: at, end: at, batches: Vec::new() };
                // The new segment is there before the old ones go, which are below it by then.
                let mut both = self.model[topic].current.clone();
                both.truncate(at);
                (both.start, both.end) = (at, at);
                self.partition(topic).begin(both);
                self.change(topic, state, |log| log.truncate_fully_and_start_at(at, None))
            }
            Step::DeleteRecords(topic, back) => {
                let mut state = self.model[topic].current.clone();
                let before = (state.end - back).max(0);
                state.start = state.start.max(before);
                self.change(topic, state, |log| log.delete_records(before).map(|_| ()))
            }
            Step::Retain(topic) => self.retain(topic),
            Step::Checkpoint => self.dir().checkpoint(),
            Step::FlushAll => {
                self.dir().flush()?;
                self.all_synced();
                Ok(())
            }
            Step::Upkeep => self.upkeep(),
            Step::NewEpoch => {
                self.epoch += 1;
                Ok(())
            }
            Step::DeleteTopic => {
                if self.dir().partition(BRIEF, 0).is_ok() {
                    self.dir().delete_topic(BRIEF)?;
                }
                Ok(())
            }
            Step::Restarted => {
                self.dir().close()?;
                self.all_synced();
                self.dir = None;
                self.open()?;
                self.adopt().map_err(|why| Error::Invalid(format!("after a clean stop: {why}")))
            }
        }
    }

    pub fn open(&mut self) -> Result<()> {
        self.dir = None;
        self.dir = Some(subject::open(&self.fs, &self.clock)?);
        Ok(())
    }

    /// The logs hold all that was acknowledged, with or without what was under way. From now on
    /// they hold what they hold.
    pub fn adopt(&mut self) -> Result<(), String> {
        for topic in self.model.keys().copied().collect::<Vec<_>>() {
            let log = match self.log(topic) {
                Ok(log) => log,
                Err(_) if !self.model[topic].exists => {
                    self.step(&Step::Create(topic)).map_err(|error| error.to_string())?;
                    continue;
                }
                Err(error) => return Err(format!("lost: {topic}: {error}")),
            };
            let found = subject::content(&log).map_err(|error| format!("{topic}: {error}"))?;
            let expected = self.model[topic].after_process_crash();
            expected.check(&found).map_err(|why| format!("{topic}: {why}"))?;
            let partition = self.partition(topic);
            partition.exists = true;
            partition.adopt(found);
        }
        Ok(())
    }

    fn id(&self, producer: i64) -> i64 {
        producer + 10 * self.generation
    }

    pub fn new_producers(&mut self) {
        self.generation += 1;
    }

    pub fn dir(&self) -> &Dir {
        self.dir.as_ref().unwrap()
    }

    pub fn log(&self, topic: &str) -> Result<Arc<Log<SimFs>>> {
        self.dir().partition(topic, 0)
    }

    fn partition(&mut self, topic: &str) -> &mut Partition {
        self.model.get_mut(topic).unwrap()
    }

    fn all_synced(&mut self) {
        self.model.values_mut().for_each(Partition::synced);
    }

    fn create(&mut self, topic: &'static str) -> Result<()> {
        if self.dir().partition(topic, 0).is_ok() {
            return Ok(());
        }
        if topic != BRIEF {
            self.model.insert(topic, Partition::coming());
        }
        self.dir().create_topic(topic, 1, &subject::topic_config(topic), Some(Uuid([7; 16])))?;
        if topic != BRIEF {
            self.partition(topic).exists = true;
        }
        Ok(())
    }

    fn change(
        &mut self,
        topic: &str,
        state: State,
        change: impl FnOnce(&Log<SimFs>) -> Result<()>,
    ) -> Result<()> {
        let log = self.log(topic)?;
        self.partition(topic).begin(state.clone());
        change(&log)?;
        self.partition(topic).done(state);
        Ok(())
    }

    fn append(
        &mut self,
        topic: &str,
        batches: Vec<Batch>,
        append: impl FnOnce(&Log<SimFs>) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.model[topic].current.clone();
        for batch in batches {
            state.push(batch);
        }
        self.change(topic, state, append)?;
        if topic == "sync" {
            self.partition(topic).synced();
        }
        Ok(())
    }

    fn built(&mut self, topic: &'static str, count: usize) -> Result<()> {
        let mut batches = Vec::new();
        let mut bytes = Vec::new();
        let mut next = self.model[topic].current.end;
        for _ in 0..count {
            let mut batch = self.batch(topic, 2, -1, false, None);
            (batch.base, batch.last) = (next, next + 1);
            next += 2;
            bytes.extend(encode(&batch, None, self.clock.now_ms(), Codec::None));
            batches.push(batch);
        }
        let epoch = self.epoch;
        self.append(topic, batches, |log| log.append_built(&mut bytes, epoch).map(|_| ()))
    }

    /// Retention decides by itself how far it goes: at most to the end.
    fn retain(&mut self, topic: &str) -> Result<()> {
        let now_ms = self.clock.now_ms();
        let mut state = self.model[topic].current.clone();
        let log = self.log(topic)?;
        self.partition(topic).begin(State { start: state.end, ..state.clone() });
        log.apply_retention(now_ms)?;
        state.start = log.start_offset()?;
        self.partition(topic).begin(state.clone());
        self.partition(topic).done(state);
        Ok(())
    }

    fn upkeep(&mut self) -> Result<()> {
        self.clock.advance(2 * DELETE_DELAY_MS);
        for topic in TOPICS {
            if let Some(partition) = self.model.get_mut(topic) {
                let state = partition.current.clone();
                partition.begin(State { start: state.end, ..state });
            }
        }
        self.dir().upkeep(self.clock.now_ms())?;
        for topic in TOPICS {
            if !self.model.contains_key(topic) {
                continue;
            }
            let start = self.log(topic)?.start_offset()?;
            let state = State { start, ..self.model[topic].current.clone() };
            self.partition(topic).begin(state.clone());
            self.partition(topic).done(state);
        }
        Ok(())
    }

    fn batch(
        &mut self,
        topic: &str,
        records: usize,
        producer: i64,
        transactional: bool,
        commits: Option<bool>,
    ) -> Batch {
        let state = &self.model[topic].current;
        let sequence = match (producer, commits) {
            (-1, _) | (_, Some(_)) => -1,
            _ => state.sequence(producer),
        };
        let base = state.end;
        let mut values = Vec::new();
        for _ in 0..records {
            self.serial += 1;
            // Long enough that a segment holds a few batches and a sector less than one.
            let length = 40 + usize::try_from(self.serial * 37 % 150).unwrap();
            let mut value = format!("{:08}", self.serial).into_bytes();
            let filler = Random::new(self.serial).bytes(length);
            value.extend(filler);
            values.push(value);
        }
        if commits.is_some() {
            values = vec![EndTxnMarker { coordinator_epoch: 0 }.to_value().to_vec()];
        }
        let last = base + i64::try_from(values.len()).unwrap() - 1;
        Batch { base, last, producer, sequence, transactional, commits, values }
    }
}

/// A batch as a client sends it, from offset 0, or as a leader has it.
fn encode(batch: &Batch, leader_epoch: Option<i32>, now_ms: i64, codec: Codec) -> Vec<u8> {
    let spec = BatchSpec {
        leader_epoch: leader_epoch.unwrap_or(-1),
        producer_id: batch.producer,
        producer_epoch: if batch.producer < 0 { -1 } else { 0 },
        base_sequence: batch.sequence,
        transactional: batch.transactional,
        control: batch.commits.is_some(),
        ..BatchSpec::at(leader_epoch.map_or(0, |_| batch.base))
    };
    let mut builder = BatchBuilder::new(spec).unwrap();
    for value in &batch.values {
        let key = match batch.commits {
            Some(true) => Some(ControlType::Commit.to_key()),
            Some(false) => Some(ControlType::Abort.to_key()),
            None => None,
        };
        builder.push(now_ms, key.as_ref().map(|key| &key[..]), Some(value), []).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_compressed(codec, None, &mut Encoder::new(), &mut bytes).unwrap();
    bytes
}

/// Appends one batch behind whatever is there, for a log that was recovered.
pub fn one_more(log: &Log<SimFs>, state: &State, now_ms: i64) -> Result<State> {
    let value = b"one more".repeat(5);
    let base = state.end;
    let (producer, sequence, transactional, commits) = (-1, -1, false, None);
    let values = vec![value];
    let batch = Batch { base, last: base, producer, sequence, transactional, commits, values };
    let mut bytes = encode(&batch, None, now_ms, Codec::None);
    log.append_leader(&mut bytes, Origin::Client, 1_000)?;
    let mut state = state.clone();
    state.push(batch);
    Ok(state)
}
