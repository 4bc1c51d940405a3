//! The limits that a scan runs into, measured by the same code in the same process: what the
//! memory, the checksum, a codec and the kernel cost with nothing around them. Only the benchmarks
//! call this.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use kafkaseg_core::codec::Decoder;
use kafkaseg_core::fs::{Dir, File, Fs, RealFs};
use kafkaseg_core::index::OffsetIndexView;
use kafkaseg_core::limits::LEGACY_SET_BYTES_MAX;
use kafkaseg_core::record::{BatchView, Codec, Records, crc32, crc32c};
use kafkaseg_core::{CorruptKind, Error, Result};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::pulse::run;

/// Bytes given to the kernel or to a checksum at a time: a read of the scan, a producer's batch.
const READ_BYTES: usize = 1 << 20;
const BATCH_BYTES: usize = 16 << 10;
const PAGE: usize = 4096;
/// The default size of a scan's Arrow batches.
const COPY_BYTES: usize = 1 << 20;

/// What a probe works on: bytes, or a file by its path.
#[derive(FromPyObject)]
pub(crate) enum Subject {
    Bytes(PyBackedBytes),
    Path(PathBuf),
}

/// Seconds that `rounds` rounds of one kind of work take.
///
/// | kind | data | a round |
/// |---|---|---|
/// | memcpy | bytes | copies them into 1 MiB that are written over and over, as a scan's columns are |
/// | crc32c, crc32 | bytes | checksums them, 16 KiB at a time |
/// | inflate | a `.log` | inflates the payload of every batch |
/// | records | a `.log` | inflates every batch and walks its records |
/// | index | an `.index` of base offset 0 | one search |
/// | pread | the path of a file | reads it, 1 MiB at a time, into one aligned buffer |
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "an argument of a Python function")]
pub(crate) fn probe(py: Python<'_>, kind: &str, data: Subject, rounds: u32) -> PyResult<f64> {
    run(py, |_| match (kind, &data) {
        ("memcpy", Subject::Bytes(bytes)) => {
            let mut copy = vec![1; COPY_BYTES];
            timed(rounds, |_| {
                for piece in bytes.chunks(COPY_BYTES) {
                    copy.get_mut(..piece.len()).unwrap_or_default().copy_from_slice(piece);
                    black_box(&mut copy);
                }
                Ok(())
            })
        }
        ("crc32c", Subject::Bytes(bytes)) => timed(rounds, |_| {
            checksum(bytes, crc32c);
            Ok(())
        }),
        ("crc32", Subject::Bytes(bytes)) => timed(rounds, |_| {
            checksum(bytes, crc32);
            Ok(())
        }),
        ("inflate", Subject::Bytes(log)) => {
            let mut decoder = Decoder::default();
            timed(rounds, |_| named(each_batch(log, &mut decoder, |_, _| Ok(()))))
        }
        ("records", Subject::Bytes(log)) => {
            let mut decoder = Decoder::default();
            timed(rounds, |_| named(each_batch(log, &mut decoder, walk_records)))
        }
        ("index", Subject::Bytes(bytes)) => {
            let index = OffsetIndexView::new(0, bytes);
            let last = index.iter().next_back().map_or(0, |entry| entry.offset);
            timed(rounds, |round| {
                black_box(index.lookup(spread(round, last)));
                Ok(())
            })
        }
        ("pread", Subject::Path(path)) => pread(path, rounds),
        _ => Err(Error::Invalid(format!("no probe {kind:?} of such data"))),
    })
}

fn timed(rounds: u32, mut round: impl FnMut(u32) -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    for number in 0..rounds {
        round(number)?;
    }
    Ok(start.elapsed().as_secs_f64())
}

fn checksum(bytes: &[u8], sum: impl Fn(&[u8]) -> u32) {
    for piece in bytes.chunks(BATCH_BYTES) {
        black_box(sum(piece));
    }
}

/// Calls `take` with the inflated payload of every batch of a log.
fn each_batch(
    mut log: &[u8],
    decoder: &mut Decoder,
    mut take: impl FnMut(&BatchView<'_>, &[u8]) -> Result<(), CorruptKind>,
) -> Result<(), CorruptKind> {
    while !log.is_empty() {
        let batch = BatchView::parse(log)?;
        let payload = match batch.codec()? {
            Codec::None => batch.payload(),
            codec => decoder.inflate(codec, batch.payload(), LEGACY_SET_BYTES_MAX)?,
        };
        take(&batch, black_box(payload))?;
        log = log.get(batch.bytes().len()..).unwrap_or_default();
    }
    Ok(())
}

fn walk_records(batch: &BatchView<'_>, payload: &[u8]) -> Result<(), CorruptKind> {
    let mut records = Records::new(batch.header(), payload);
    let mut bytes = 0;
    while let Some(record) = records.next_record()? {
        bytes += record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
    }
    black_box(bytes);
    Ok(())
}

fn named(outcome: Result<(), CorruptKind>) -> Result<()> {
    outcome.map_err(|kind| Error::Invalid(format!("the log is damaged: {kind}")))
}

/// An offset up to `last` that the branch predictor cannot guess.
fn spread(round: u32, last: i64) -> i64 {
    let mixed = u64::from(round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    i64::try_from(mixed).unwrap_or(0) % last.max(1)
}

fn pread(path: &Path, rounds: u32) -> Result<f64> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let file = RealFs.open_dir(folder)?.open(name)?;
    let mut storage = vec![1; READ_BYTES + PAGE];
    let past = storage.as_ptr().addr() % PAGE;
    let place = storage.get_mut(PAGE - past..).and_then(|rest| rest.get_mut(..READ_BYTES));
    let place = place.unwrap_or_default();
    timed(rounds, |_| {
        let mut position = 0;
        loop {
            let read = file.read_at(place, position)?;
            black_box(&mut *place);
            if read == 0 {
                return Ok(());
            }
            position = position.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        }
    })
}
