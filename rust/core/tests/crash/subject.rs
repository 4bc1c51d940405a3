//! The engine under test, opened on a simulated disk and read back.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kafkaseg_core::clock::ManualClock;
use kafkaseg_core::codec::Decoder;
use kafkaseg_core::config::DirConfig;
use kafkaseg_core::dir::{DirOptions, LogDir};
use kafkaseg_core::fs::SimFs;
use kafkaseg_core::log::{Isolation, Log};
use kafkaseg_core::record::{EntryRecords, EntryView};
use kafkaseg_core::{Error, Result};

use crate::model::{Batch, State};

pub const ROOT: &str = "/logs";
pub const START_MS: i64 = 1_700_000_000_000;
pub const DELETE_DELAY_MS: i64 = 1000;

/// Small enough that every step meets every kind of file.
const CONFIG: [(&str, &str); 7] = [
    ("internal.segment.bytes", "2048"),
    ("index.interval.bytes", "300"),
    ("segment.index.bytes", "240"),
    ("retention.bytes", "9000"),
    ("retention.ms", "-1"),
    ("file.delete.delay.ms", "1000"),
    ("num.recovery.threads.per.data.dir", "1"),
];

pub type Dir = LogDir<SimFs>;

pub fn open(fs: &SimFs, clock: &Arc<ManualClock>) -> Result<Dir> {
    let config = DirConfig::parse(CONFIG).unwrap();
    let options = DirOptions { config, clock: clock.clone(), ..DirOptions::default() };
    LogDir::open(fs, Path::new(ROOT), options)
}

pub fn topic_config(topic: &str) -> BTreeMap<String, String> {
    let fsync = if topic == "sync" { "always" } else { "never" };
    let preallocate = if topic == "sync" { "true" } else { "false" };
    BTreeMap::from([
        ("fsync".to_owned(), fsync.to_owned()),
        ("preallocate".to_owned(), preallocate.to_owned()),
    ])
}

/// Reads a log whole.
pub fn content(log: &Log<SimFs>) -> Result<State> {
    let (start, end) = (log.start_offset()?, log.end_offset()?);
    let mut state = State { start, end, batches: Vec::new() };
    let mut decoder = Decoder::new();
    let mut buffer = Vec::new();
    let mut offset = start;
    while offset < end {
        log.read_into(offset, 1 << 20, Isolation::LogEnd, true, &mut buffer)?;
        if buffer.is_empty() {
            break;
        }
        let mut rest = &buffer[..];
        while let Ok(entry) = EntryView::parse(rest) {
            let batch = decode(&entry, &mut decoder)?;
            offset = batch.last + 1;
            state.batches.push(batch);
            rest = &rest[entry.total_bytes()..];
        }
    }
    Ok(state)
}

pub fn decode(entry: &EntryView<'_>, decoder: &mut Decoder) -> Result<Batch> {
    let EntryView::Batch(view) = entry else { panic!("an entry that nobody wrote") };
    let header = *view.header();
    let broken = |kind| Error::corrupt(Path::new("batch"), 0, kind);
    let records = EntryRecords::open(entry, decoder, 1 << 20)?.map_err(broken)?;
    let mut values = Vec::new();
    let mut commits = None;
    for record in records {
        let record = record.map_err(broken)?;
        if header.attributes.is_control() {
            commits = Some(record.key == Some(&[0, 0, 0, 1]));
        }
        values.push(record.value.unwrap_or_default().to_vec());
    }
    Ok(Batch {
        base: header.base_offset,
        last: header.last_offset(),
        producer: header.producer_id,
        sequence: header.base_sequence,
        transactional: header.attributes.is_transactional(),
        commits,
        values,
    })
}
