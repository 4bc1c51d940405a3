//! What a log costs, measured inside the engine: no interpreter between two calls. Only the
//! benchmarks call this.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use kafkaseg_core::fs::{Fs, RealFs};
use kafkaseg_core::index::{IndexMode, OffsetIndex, TimeIndex};
use kafkaseg_core::log::{Isolation, Log};
use kafkaseg_core::names::SegmentFile;
use kafkaseg_core::record::Origin;
use kafkaseg_core::{Error, Result};
use pyo3::prelude::*;

use crate::log::NativeLog;
use crate::pulse::run;

/// Appends ready-made batches of a client, one after the other and over again, until so many bytes
/// are written: seconds, bytes and batches.
#[pyfunction]
pub(crate) fn probe_append(
    py: Python<'_>,
    log: &Bound<'_, NativeLog>,
    batches: Vec<Vec<u8>>,
    total_bytes: u64,
) -> PyResult<(f64, u64, u64)> {
    let log = log.get().log();
    run(py, |_| {
        let mut ring = batches;
        let (mut bytes, mut count) = (0, 0);
        let start = Instant::now();
        while bytes < total_bytes {
            for batch in &mut ring {
                // The log wrote its offset there the last time; a client sends 0.
                batch.get_mut(..8).unwrap_or_default().fill(0);
                bytes += log.append_leader(batch, Origin::Client, 0)?.bytes;
                count += 1;
                if bytes >= total_bytes {
                    break;
                }
            }
        }
        Ok((start.elapsed().as_secs_f64(), bytes, count))
    })
}

/// Seconds that threads take to append a batch so many times each.
#[pyfunction]
pub(crate) fn probe_threads(
    py: Python<'_>,
    log: &Bound<'_, NativeLog>,
    batch: Vec<u8>,
    threads: usize,
    appends: usize,
) -> PyResult<f64> {
    let log = log.get().log();
    run(py, |_| {
        let work = || {
            let mut bytes = batch.clone();
            for _ in 0..appends {
                bytes.get_mut(..8).unwrap_or_default().fill(0);
                log.append_leader(&mut bytes, Origin::Client, 0)?;
            }
            Ok::<_, Error>(())
        };
        let start = Instant::now();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| {
                worker.join().map_err(|_| Error::Invalid("a thread panicked".into()))?
            })
        })?;
        Ok(start.elapsed().as_secs_f64())
    })
}

/// Looks up targets drawn by a generator that other programs can repeat: seconds, and the sum of what
/// was found. Kinds: `index` and `timeindex` search the file at the path, `position` and `time` look
/// up an offset's batch and a timestamp's record in the log.
#[pyfunction]
#[pyo3(signature = (kind, path, log, *, first, span, lookups, seed))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
pub(crate) fn probe_lookup(
    py: Python<'_>,
    kind: &str,
    path: Option<PathBuf>,
    log: Option<&Bound<'_, NativeLog>>,
    first: i64,
    span: u64,
    lookups: u64,
    seed: u64,
) -> PyResult<(f64, i64)> {
    let log = log.map(|log| Arc::clone(log.get().log()));
    let draw = Draw { state: seed, first, span: span.max(1) };
    run(py, |_| match (kind, path, log) {
        ("index", Some(path), _) => {
            let (folder, base) = place(&path)?;
            let index = OffsetIndex::open(folder, base, u64::MAX, IndexMode::Sealed)?;
            measure(draw, lookups, |target| Ok(i64::from(index.lookup(target)?.position)))
        }
        ("timeindex", Some(path), _) => {
            let (folder, base) = place(&path)?;
            let index = TimeIndex::open(folder, base, u64::MAX, IndexMode::Sealed)?;
            measure(draw, lookups, |target| Ok(index.lookup(target)?.offset))
        }
        ("position", _, Some(log)) => measure(draw, lookups, |target| position(&log, target)),
        ("time", _, Some(log)) => measure(draw, lookups, |target| {
            let found = log.offset_for_time(target, Isolation::LogEnd)?;
            Ok(found.map_or(-1, |found| found.offset))
        }),
        _ => Err(Error::Invalid(format!("no lookup {kind:?} of such a thing"))),
    })
}

fn position(log: &Log<RealFs>, target: i64) -> Result<i64> {
    let fetch = log.read(target, 1, Isolation::LogEnd, true)?;
    Ok(i64::try_from(fetch.position()).unwrap_or(i64::MAX))
}

fn place(path: &Path) -> Result<(Arc<<RealFs as Fs>::Dir>, i64)> {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(SegmentFile::parse);
    let base = name.map_or(0, |name| name.base_offset);
    Ok((Arc::new(RealFs.open_dir(path.parent().unwrap_or(Path::new(".")))?), base))
}

/// A linear congruential generator.
struct Draw {
    state: u64,
    first: i64,
    span: u64,
}

impl Draw {
    fn next(&mut self) -> i64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let step = (self.state >> 33) % self.span;
        self.first.saturating_add(i64::try_from(step).unwrap_or(0))
    }
}

fn measure(
    mut draw: Draw,
    lookups: u64,
    mut find: impl FnMut(i64) -> Result<i64>,
) -> Result<(f64, i64)> {
    let mut sum = 0_i64;
    // The first one opens files.
    find(draw.first)?;
    let start = Instant::now();
    for _ in 0..lookups {
        sum = sum.wrapping_add(find(draw.next())?);
    }
    Ok((start.elapsed().as_secs_f64(), sum))
}
