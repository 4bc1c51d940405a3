//! Logs that this process owns.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kafkaseg_core::clock::{Clock, ManualClock as Manual, SystemClock};
use kafkaseg_core::dir::{DirOptions, Partition};
use kafkaseg_core::fs::RealFs;
use kafkaseg_core::log::{AppendInfo, Fetch, Isolation, Log, Recovery, SendWay};
use kafkaseg_core::record::{Codec, Origin};
use kafkaseg_core::{CorruptKind, Error, Result};
use kafkaseg_scan::{TableOptions, TableWriter};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::arrow::stream_reader;
use crate::error::to_py;
use crate::pulse::run;
use crate::watch::Watch;

/// A clock that stands still until it is told otherwise.
#[pyclass(frozen, module = "kafkaseg._native")]
pub(crate) struct ManualClock {
    clock: Arc<Manual>,
}

#[pymethods]
impl ManualClock {
    #[new]
    fn new(now_ms: i64) -> Self {
        Self { clock: Arc::new(Manual::new(now_ms)) }
    }

    /// Milliseconds since 1970.
    #[getter]
    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Sets the time.
    fn set(&self, now_ms: i64) {
        self.clock.set(now_ms);
    }

    /// Lets time pass.
    fn advance(&self, ms: i64) {
        self.clock.advance(ms);
    }
}

/// The clock that Python gave, or the system's.
pub(crate) fn clock_of(clock: Option<&ManualClock>) -> Arc<dyn Clock> {
    match clock {
        Some(manual) => Arc::<Manual>::clone(&manual.clock),
        None => Arc::new(SystemClock),
    }
}

/// One partition.
#[pyclass(frozen, module = "kafkaseg._native")]
pub(crate) struct NativeLog {
    log: Arc<Log<RealFs>>,
    /// Where the log was opened by its own path.
    partition: Option<Partition>,
}

impl NativeLog {
    pub(crate) fn of(log: Arc<Log<RealFs>>) -> Self {
        Self { log, partition: None }
    }

    pub(crate) fn log(&self) -> &Arc<Log<RealFs>> {
        &self.log
    }
}

#[pymethods]
impl NativeLog {
    /// Opens a partition directory.
    #[staticmethod]
    #[pyo3(signature = (path, config, *, create, kafka_recovery, replicated, clock, progress))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        config: BTreeMap<String, String>,
        create: bool,
        kafka_recovery: bool,
        replicated: bool,
        clock: Option<&ManualClock>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let watch = Watch::new(progress);
        let options = DirOptions {
            create,
            kafka_recovery,
            replicated,
            clock: clock_of(clock),
            progress: Some(watch.dir_progress()),
            ..DirOptions::default()
        };
        let opened = py.detach(|| Partition::open(&path, options, &config));
        let partition = watch.outcome(py, opened)?;
        Ok(Self { log: Arc::clone(partition.log()), partition: Some(partition) })
    }

    /// The directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.log.path().to_owned()
    }

    #[getter]
    fn topic(&self) -> &str {
        self.log.topic()
    }

    #[getter]
    fn partition(&self) -> i32 {
        self.log.partition()
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.log.is_closed()
    }

    #[getter]
    fn is_poisoned(&self) -> bool {
        self.log.is_poisoned()
    }

    /// The configuration, every name with its value.
    fn config(&self) -> BTreeMap<&'static str, String> {
        self.log.config().entries().into_iter().collect()
    }

    /// What opening found and did, as a dict.
    fn recovery<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(partition) = &self.partition else { return Ok(None) };
        let key = (self.log.topic().to_owned(), self.log.partition());
        let all = partition.parent().recovery();
        let clean = Recovery { is_clean: all.is_clean, ..Recovery::default() };
        recovery_dict(py, all.logs.get(&key).unwrap_or(&clean)).map(Some)
    }

    /// Damage that ends the log: file, position and the check that failed.
    fn damage(&self) -> Option<(PathBuf, u64, &'static str)> {
        self.log.damage().map(|damage| (damage.file.clone(), damage.position, damage.kind.name()))
    }

    /// First base, start, last stable, high watermark, end.
    fn bounds(&self, py: Python<'_>) -> PyResult<(i64, i64, i64, i64, i64)> {
        let bounds = self.log.bounds().map_err(|error| to_py(py, error))?;
        let kafkaseg_core::log::Bounds { first_base, start, last_stable, high_watermark, end } =
            bounds;
        Ok((first_base, start, last_stable, high_watermark, end))
    }

    #[getter]
    fn recovery_point(&self) -> i64 {
        self.log.recovery_point()
    }

    /// Appends a batch, or several from a leader.
    fn append_batch<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        origin: &str,
        leader_epoch: i32,
    ) -> PyResult<Bound<'py, PyDict>> {
        let origin = origin_of(origin).map_err(|error| to_py(py, error))?;
        let mut bytes = data.to_vec();
        let info = run(py, |_| match origin {
            Origin::Replication => self.log.append_follower(&bytes, leader_epoch),
            _ => self.log.append_leader(&mut bytes, origin, leader_epoch),
        })?;
        info_dict(py, &info)
    }

    /// Appends what an Arrow C stream gives: records, batches, bytes, first and last offset.
    #[pyo3(signature = (stream, *, now_ms, batch_bytes, compression, level, leader_epoch))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn append_stream(
        &self,
        py: Python<'_>,
        stream: &Bound<'_, PyAny>,
        now_ms: Option<i64>,
        batch_bytes: usize,
        compression: &str,
        level: Option<i32>,
        leader_epoch: i32,
    ) -> PyResult<(u64, u64, u64, Option<(i64, i64)>)> {
        let reader = stream_reader(stream)?;
        let codec = Codec::from_name(compression)
            .ok_or_else(|| to_py(py, Error::Invalid(format!("no codec {compression:?}"))))?;
        let options = TableOptions { batch_bytes, codec, level, leader_epoch };
        let appended = run(py, move |pulse| {
            let mut writer = TableWriter::new(&self.log, &options)?;
            for rows in reader {
                let rows = rows.map_err(|error| Error::Invalid(error.to_string()))?;
                let now_ms = now_ms.unwrap_or_else(|| self.log.now_ms());
                writer.append(&self.log, &rows, now_ms, pulse)?;
            }
            Ok(writer.appended())
        })?;
        Ok((appended.records, appended.batches, appended.bytes, appended.offsets))
    }

    /// Finds the records from an offset on.
    fn fetch(
        &self,
        py: Python<'_>,
        offset: i64,
        max_bytes: u64,
        isolation: &str,
        min_one: bool,
    ) -> PyResult<NativeFetch> {
        let isolation = isolation_of(isolation).map_err(|error| to_py(py, error))?;
        let fetch = run(py, |_| self.log.read(offset, max_bytes, isolation, min_one))?;
        Ok(NativeFetch { fetch })
    }

    /// The same with the bytes.
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: i64,
        max_bytes: u64,
        isolation: &str,
        min_one: bool,
    ) -> PyResult<(NativeFetch, Bound<'py, PyBytes>)> {
        let isolation = isolation_of(isolation).map_err(|error| to_py(py, error))?;
        let (fetch, bytes) = run(py, |_| {
            let mut bytes = Vec::new();
            let fetch = self.log.read_into(offset, max_bytes, isolation, min_one, &mut bytes)?;
            Ok((fetch, bytes))
        })?;
        Ok((NativeFetch { fetch }, PyBytes::new(py, &bytes)))
    }

    /// Offset, timestamp and leader epoch for a time.
    fn offset_for_time(
        &self,
        py: Python<'_>,
        timestamp: i64,
        isolation: &str,
    ) -> PyResult<Option<(i64, i64, Option<i32>)>> {
        let isolation = isolation_of(isolation).map_err(|error| to_py(py, error))?;
        let found = run(py, |_| self.log.offset_for_time(timestamp, isolation))?;
        Ok(found.map(|found| (found.offset, found.timestamp, found.leader_epoch)))
    }

    fn end_offset_for_epoch(&self, py: Python<'_>, epoch: i32) -> PyResult<Option<(i32, i64)>> {
        run(py, |_| self.log.end_offset_for_epoch(epoch))
    }

    fn assign_epoch(&self, py: Python<'_>, epoch: i32) -> PyResult<()> {
        run(py, |_| self.log.assign_epoch(epoch))
    }

    fn set_high_watermark(&self, py: Python<'_>, offset: i64) -> PyResult<i64> {
        run(py, |_| self.log.set_high_watermark(offset))
    }

    fn truncate_to(&self, py: Python<'_>, offset: i64) -> PyResult<bool> {
        run(py, |_| self.log.truncate_to(offset))
    }

    fn truncate_fully_and_start_at(
        &self,
        py: Python<'_>,
        offset: i64,
        log_start: Option<i64>,
    ) -> PyResult<()> {
        run(py, |_| self.log.truncate_fully_and_start_at(offset, log_start))
    }

    fn delete_records(&self, py: Python<'_>, before: i64) -> PyResult<i64> {
        run(py, |_| self.log.delete_records(before))
    }

    /// Segments and bytes that went, and the log start after it.
    fn apply_retention(&self, py: Python<'_>, now_ms: Option<i64>) -> PyResult<(u64, u64, i64)> {
        let done = run(py, |_| {
            let now_ms = now_ms.unwrap_or_else(|| self.log.now_ms());
            self.log.apply_retention(now_ms)
        })?;
        Ok((done.segments, done.bytes, done.log_start))
    }

    fn purge(&self, py: Python<'_>, now_ms: Option<i64>) -> PyResult<usize> {
        run(py, |_| self.log.purge(now_ms.unwrap_or_else(|| self.log.now_ms())))
    }

    fn expire_producers(&self, py: Python<'_>, now_ms: Option<i64>) -> PyResult<()> {
        run(py, |_| self.log.expire_producers(now_ms.unwrap_or_else(|| self.log.now_ms())))
    }

    fn roll(&self, py: Python<'_>) -> PyResult<i64> {
        run(py, |_| self.log.roll())
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        run(py, |_| self.log.flush())
    }

    /// One dict a segment.
    fn segments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let segments = run(py, |_| self.log.segments())?;
        let list = PyList::empty(py);
        for segment in segments {
            let dict = PyDict::new(py);
            dict.set_item("base_offset", segment.base_offset)?;
            dict.set_item("next_offset", segment.next_offset)?;
            dict.set_item("bytes", segment.bytes)?;
            dict.set_item("largest_timestamp", segment.largest_timestamp)?;
            dict.set_item("offset_index_entries", segment.offset_index_entries)?;
            dict.set_item("time_index_entries", segment.time_index_entries)?;
            dict.set_item("is_active", segment.is_active)?;
            list.append(dict)?;
        }
        Ok(list)
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = run(py, |_| self.log.stats())?;
        stats_dict(py, &stats)
    }

    /// Closes the log.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        run(py, |_| match &self.partition {
            Some(partition) => partition.close(),
            None => self.log.close(),
        })
    }
}

/// A slice of a segment's file.
#[pyclass(frozen, module = "kafkaseg._native")]
pub(crate) struct NativeFetch {
    fetch: Fetch<RealFs>,
}

#[pymethods]
impl NativeFetch {
    /// What is known of the slice, as a dict.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fetch = &self.fetch;
        let dict = PyDict::new(py);
        dict.set_item("base_offset", fetch.base_offset)?;
        dict.set_item("segment", fetch.segment())?;
        dict.set_item("position", fetch.position())?;
        dict.set_item("bytes", fetch.bytes())?;
        dict.set_item("first_entry_incomplete", fetch.first_entry_incomplete)?;
        let aborted = fetch.aborted.as_ref().map(|aborted| {
            let row = |txn: &kafkaseg_core::index::AbortedTxn| (txn.producer_id, txn.first_offset);
            aborted.iter().map(row).collect::<Vec<_>>()
        });
        dict.set_item("aborted", aborted)?;
        dict.set_item("log_start_offset", fetch.log_start)?;
        dict.set_item("high_watermark", fetch.high_watermark)?;
        dict.set_item("last_stable_offset", fetch.last_stable_offset)?;
        Ok(dict)
    }

    /// The bytes.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = run(py, |_| {
            let mut bytes = Vec::new();
            self.fetch.read(&mut bytes)?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Sends the slice from a place in it on: bytes sent, how, whether all of it.
    fn send(
        &self,
        py: Python<'_>,
        fileno: i32,
        skip: u64,
        timeout: Option<f64>,
    ) -> PyResult<(u64, &'static str, bool)> {
        if fileno < 0 {
            return Err(to_py(py, Error::Invalid("the socket is closed".into())));
        }
        let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        #[expect(unsafe_code, reason = "Python lends a file descriptor as a number")]
        // SAFETY: the caller holds a reference to the socket object for the duration of the call,
        // so the descriptor stays open; it is used here and not kept.
        let socket = unsafe { BorrowedFd::borrow_raw(fileno) };
        let sent = run(py, |_| self.fetch.send(socket, skip, timeout))?;
        let way = match sent.way {
            SendWay::Sendfile => "sendfile",
            SendWay::Copy => "copy",
        };
        Ok((sent.bytes, way, sent.is_complete))
    }
}

fn origin_of(name: &str) -> Result<Origin> {
    match name {
        "client" => Ok(Origin::Client),
        "coordinator" => Ok(Origin::Coordinator),
        "raft" => Ok(Origin::RaftLeader),
        "replication" => Ok(Origin::Replication),
        other => Err(Error::Invalid(format!(
            "no origin {other:?}; the origins are client, coordinator, raft and replication"
        ))),
    }
}

fn isolation_of(name: &str) -> Result<Isolation> {
    match name {
        "read_uncommitted" => Ok(Isolation::HighWatermark),
        "read_committed" => Ok(Isolation::Committed),
        "log_end" => Ok(Isolation::LogEnd),
        other => Err(Error::Invalid(format!(
            "no isolation {other:?}; it is read_uncommitted, read_committed or log_end"
        ))),
    }
}

fn info_dict<'py>(py: Python<'py>, info: &AppendInfo) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("base_offset", info.base_offset)?;
    dict.set_item("last_offset", info.last_offset)?;
    dict.set_item("max_timestamp", info.max_timestamp)?;
    dict.set_item("log_append_time", info.log_append_time)?;
    dict.set_item("log_start_offset", info.log_start)?;
    dict.set_item("bytes", info.bytes)?;
    dict.set_item("duplicate", info.is_duplicate)?;
    Ok(dict)
}

pub(crate) fn stats_dict<'py>(
    py: Python<'py>,
    stats: &kafkaseg_core::log::LogStats,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("segments", stats.segments)?;
    dict.set_item("bytes", stats.bytes)?;
    dict.set_item("offsets", stats.offsets)?;
    dict.set_item("appends", stats.appends)?;
    dict.set_item("appended_bytes", stats.appended_bytes)?;
    dict.set_item("flushes", stats.flushes)?;
    dict.set_item("offset_index_entries", stats.offset_index_entries)?;
    dict.set_item("time_index_entries", stats.time_index_entries)?;
    dict.set_item("maps", stats.maps)?;
    dict.set_item("descriptors", stats.descriptors)?;
    dict.set_item("waiting_files", stats.waiting_files)?;
    dict.set_item("producers", stats.producers)?;
    Ok(dict)
}

pub(crate) fn recovery_dict<'py>(
    py: Python<'py>,
    recovery: &Recovery,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("clean", recovery.is_clean)?;
    dict.set_item("segments_recovered", &recovery.segments_recovered)?;
    dict.set_item("bytes_checked", recovery.bytes_checked)?;
    dict.set_item("bytes_truncated", recovery.bytes_truncated())?;
    let cuts = PyList::empty(py);
    for cut in &recovery.cuts {
        let row = PyDict::new(py);
        row.set_item("file", &cut.file)?;
        row.set_item("position", cut.position)?;
        row.set_item("bytes", cut.bytes)?;
        row.set_item("kind", cut.kind.map(CorruptKind::name))?;
        row.set_item("kept_in", &cut.kept_in)?;
        cuts.append(row)?;
    }
    dict.set_item("cuts", cuts)?;
    dict.set_item("indexes_rebuilt", &recovery.indexes_rebuilt)?;
    let leftovers: Vec<_> = recovery.leftovers.iter().map(|(path, _)| path).collect();
    dict.set_item("leftovers", leftovers)?;
    dict.set_item("segments_split", &recovery.segments_split)?;
    dict.set_item("skipped", &recovery.skipped)?;
    Ok(dict)
}
