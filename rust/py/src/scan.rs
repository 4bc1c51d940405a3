//! Plans and readers of scans.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use kafkaseg_core::fs::RealFs;
use kafkaseg_core::{Error, Result};
use kafkaseg_scan::{
    Column, Discovery, Isolation, OffsetBound, OnCorrupt, OnMissing, ParallelReader, Plan, Pulse,
    Reader, Report, ScanOptions, Selection, TimeQuery, offset_for_time, schema_of,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyType};

use crate::arrow::{ArrowBatch, schema_capsule};
use crate::error::to_py;
use crate::pulse::{Signals, run};

/// Partitions found below some paths.
#[pyclass(frozen, module = "kafkaseg._native")]
pub(crate) struct Found {
    discovery: Discovery,
}

#[pymethods]
impl Found {
    /// Looks below the paths.
    #[new]
    fn new(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Self> {
        let discovery = run(py, |_| Discovery::look(&RealFs, &paths))?;
        Ok(Self { discovery })
    }

    /// Names of the topics.
    fn topics(&self) -> Vec<String> {
        self.discovery.topics().iter().map(ToString::to_string).collect()
    }

    /// Takes the snapshot and plans the scan.
    #[pyo3(signature = (*, topics, partitions, start, end, columns, **options))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn plan(
        &self,
        py: Python<'_>,
        topics: Option<Vec<String>>,
        partitions: Option<Vec<i32>>,
        start: Bound_,
        end: Bound_,
        columns: Vec<String>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<ScanPlan> {
        let selection = Selection { topics, partitions, start: start.into(), end: end.into() };
        let options = options_from(py, &columns, options)?;
        let plan =
            run(py, |pulse| Plan::make(&RealFs, &self.discovery, &selection, options, pulse))?;
        Ok(ScanPlan { plan: Arc::new(plan) })
    }
}

/// An offset bound as Python gives it: nothing, a number, or `{topic: {partition: offset}}`.
#[derive(FromPyObject)]
enum Bound_ {
    All(i64),
    Each(BTreeMap<String, BTreeMap<i32, i64>>),
    None(Option<i64>),
}

impl From<Bound_> for OffsetBound {
    fn from(bound: Bound_) -> Self {
        match bound {
            Bound_::All(offset) | Bound_::None(Some(offset)) => Self::All(offset),
            Bound_::Each(map) => Self::Each(map),
            Bound_::None(None) => Self::None,
        }
    }
}

fn options_from(
    py: Python<'_>,
    columns: &[String],
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<ScanOptions> {
    let columns = columns.iter().map(|name| Column::from_name(name)).collect::<Result<Vec<_>>>();
    let columns = columns.map_err(|error| to_py(py, error))?;
    let mut read = ScanOptions { columns, ..ScanOptions::default() };
    for (name, value) in options.into_iter().flatten() {
        let name: String = name.extract()?;
        match name.as_str() {
            "isolation" => read.isolation = choice(py, &name, &value, &ISOLATIONS)?,
            "on_corrupt" => read.on_corrupt = choice(py, &name, &value, &ON_CORRUPT)?,
            "on_missing" => read.on_missing = choice(py, &name, &value, &ON_MISSING)?,
            "start_timestamp" => read.start_timestamp = value.extract()?,
            "end_timestamp" => read.end_timestamp = value.extract()?,
            "control" => read.control = value.extract()?,
            "verify" => read.verify = value.extract()?,
            "batch_bytes" => read.batch_bytes = value.extract()?,
            "threads" => read.threads = value.extract()?,
            other => return Err(to_py(py, Error::Invalid(format!("no option {other:?}")))),
        }
    }
    Ok(read)
}

const ISOLATIONS: [(&str, Isolation); 2] = [
    ("read_uncommitted", Isolation::ReadUncommitted),
    ("read_committed", Isolation::ReadCommitted),
];
const ON_CORRUPT: [(&str, OnCorrupt); 3] =
    [("error", OnCorrupt::Error), ("skip", OnCorrupt::Skip), ("stop", OnCorrupt::Stop)];
const ON_MISSING: [(&str, OnMissing); 2] = [("error", OnMissing::Error), ("skip", OnMissing::Skip)];

fn choice<T: Copy>(
    py: Python<'_>,
    option: &str,
    value: &Bound<'_, PyAny>,
    choices: &[(&str, T)],
) -> PyResult<T> {
    let given: String = value.extract()?;
    choices.iter().find(|(name, _)| *name == given).map(|(_, choice)| *choice).ok_or_else(|| {
        let known: Vec<_> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
        let known = known.join(" or ");
        to_py(py, Error::Invalid(format!("{option} must be {known}, not {given:?}")))
    })
}

/// A scan resolved to files and positions; can be pickled.
#[pyclass(frozen, module = "kafkaseg._native")]
pub(crate) struct ScanPlan {
    plan: Arc<Plan>,
}

impl ScanPlan {
    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }
}

#[pymethods]
impl ScanPlan {
    /// A reader over the plan.
    fn open(&self, py: Python<'_>) -> PyResult<ScanReader> {
        let plan = Arc::clone(&self.plan);
        let schema = schema_of(&plan.options.columns);
        let source = run(py, |pulse| Source::open(plan, pulse))?;
        Ok(ScanReader { source: Arc::new(Mutex::new(source)), schema })
    }

    /// Number of records, from the batch headers where they tell it.
    fn count(&self, py: Python<'_>) -> PyResult<(u64, Py<PyDict>)> {
        let plan = Arc::clone(&self.plan);
        let (count, report) = run(py, |pulse| Reader::count(RealFs, plan, pulse))?;
        Ok((count, report_dict(py, &report)?.unbind()))
    }

    /// At most `parts` plans that together read exactly what this one does.
    fn splits(&self, py: Python<'_>, parts: usize) -> PyResult<Vec<Self>> {
        let plans = run(py, |pulse| self.plan.splits(&RealFs, parts, pulse))?;
        Ok(plans.into_iter().map(|plan| Self { plan: Arc::new(plan) }).collect())
    }

    /// A row for every batch, from the headers.
    fn batches(&self, py: Python<'_>) -> PyResult<(ArrowBatch, Py<PyDict>)> {
        let (batch, report) = run(py, |pulse| kafkaseg_scan::batches(&RealFs, &self.plan, pulse))?;
        Ok((ArrowBatch::new(batch), report_dict(py, &report)?.unbind()))
    }

    /// Per partition: topic, number and, where one qualifies, offset, timestamp and leader epoch.
    fn offsets_for_time(&self, py: Python<'_>, query: i64) -> PyResult<Vec<TimeRow>> {
        run(py, |pulse| {
            let query = TimeQuery::from_number(query)?;
            let mut answers = Vec::new();
            for partition in &self.plan.partitions {
                let found = offset_for_time(&RealFs, &self.plan, partition, query, pulse)?;
                let snapshot = &partition.snapshot;
                let found = found.map(|found| (found.offset, found.timestamp, found.leader_epoch));
                answers.push((snapshot.topic.to_string(), snapshot.partition, found));
            }
            Ok(answers)
        })
    }

    /// Per partition: topic, number, path, segments, bytes, first and last offset asked for.
    fn partitions(&self) -> Vec<PartitionRow> {
        self.plan
            .partitions
            .iter()
            .map(|partition| {
                let snapshot = &partition.snapshot;
                (
                    snapshot.topic.to_string(),
                    snapshot.partition,
                    snapshot.path(),
                    snapshot.segments.len(),
                    snapshot.segments.iter().map(|segment| segment.bytes).sum(),
                    partition.start,
                    partition.end,
                )
            })
            .collect()
    }

    /// Directories that were passed over, with the reason.
    fn passed(&self) -> Vec<(PathBuf, String)> {
        self.plan.passed.clone()
    }

    /// Bytes of segment files that will be read.
    #[getter]
    fn bytes(&self) -> u64 {
        self.plan.bytes()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &schema_of(&self.plan.options.columns))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let state = self.plan.encode().map_err(|error| to_py(py, error))?;
        let restore = py.get_type::<Self>().getattr("_restore")?;
        Ok((restore, (PyBytes::new(py, &state),)))
    }

    #[classmethod]
    fn _restore(class: &Bound<'_, PyType>, state: &[u8]) -> PyResult<Self> {
        let plan = Plan::decode(state).map_err(|error| to_py(class.py(), error))?;
        Ok(Self { plan: Arc::new(plan) })
    }
}

type TimeRow = (String, i32, Option<(i64, i64, Option<i32>)>);
type PartitionRow = (String, i32, PathBuf, usize, u64, i64, i64);

/// One thread or several, behind one face.
enum Source {
    Single(Box<Reader<RealFs>>),
    Parallel(ParallelReader<RealFs>),
}

impl Source {
    fn open(plan: Arc<Plan>, pulse: &mut Pulse<'_>) -> Result<Self> {
        if plan.options.threads <= 1 {
            return Ok(Self::Single(Box::new(Reader::new(RealFs, plan))));
        }
        Ok(Self::Parallel(ParallelReader::start(RealFs, Plan::clone(&plan), pulse)?))
    }

    fn next_batch(&mut self, pulse: &mut Pulse<'_>) -> Result<Option<RecordBatch>> {
        match self {
            Self::Single(reader) => reader.next_batch(pulse),
            Self::Parallel(reader) => reader.next_batch(pulse),
        }
    }

    fn report(&self) -> &Report {
        match self {
            Self::Single(reader) => reader.report(),
            Self::Parallel(reader) => reader.report(),
        }
    }
}

/// Gives the batches of a plan.
#[pyclass(frozen, module = "kafkaseg._native")]
pub(crate) struct ScanReader {
    source: Arc<Mutex<Source>>,
    schema: SchemaRef,
}

#[pymethods]
impl ScanReader {
    /// The next batch; `None` at the end.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<ArrowBatch>> {
        let batch = run(py, |pulse| lock(&self.source).next_batch(pulse))?;
        Ok(batch.map(ArrowBatch::new))
    }

    /// What was met so far.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = py.detach(|| lock(&self.source).report().clone());
        report_dict(py, &report)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore a requested schema that it cannot serve.
        let _ = requested_schema;
        let stream = Stream { source: Arc::clone(&self.source), schema: Arc::clone(&self.schema) };
        let stream = FFI_ArrowArrayStream::new(Box::new(stream));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// The reader as a C stream, pulled by whichever library took it.
struct Stream {
    source: Arc<Mutex<Source>>,
    schema: SchemaRef,
}

impl Iterator for Stream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut signals = Signals::new();
        let next = lock(&self.source).next_batch(&mut || signals.check());
        next.map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn lock(source: &Mutex<Source>) -> std::sync::MutexGuard<'_, Source> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}

fn report_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let places = |places: &[kafkaseg_scan::Place]| -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for place in places {
            rows.append((
                place.file.to_string_lossy(),
                place.position,
                place.bytes,
                place.kind.name(),
                place.kind.to_string(),
            ))?;
        }
        Ok(rows)
    };
    let dict = PyDict::new(py);
    dict.set_item("batches", report.batches)?;
    dict.set_item("records", report.records)?;
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("damage", places(&report.damage)?)?;
    dict.set_item("damage_count", report.damage_count)?;
    dict.set_item("tails", places(&report.tails)?)?;
    let missing: Vec<_> = report.missing.iter().map(|path| path.to_string_lossy()).collect();
    dict.set_item("missing", missing)?;
    Ok(dict)
}
