//! Records of the topics that Kafka keeps for itself, as dicts, lists and plain values.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kafkaseg_core::fs::{RealFile, RealFs};
use kafkaseg_core::internal::{self, InternalRecord, MetadataSnapshot, Value};
use kafkaseg_core::{CorruptKind, Error};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::error::to_py;
use crate::files;
use crate::pulse::run;
use crate::scan::ScanPlan;

/// Kind, version, key and value.
type Decoded<'py> = (String, i16, Bound<'py, PyAny>, Bound<'py, PyAny>);
/// The same after topic, partition, offset and timestamp.
type Row<'py> = (Option<String>, i32, i64, i64, Decoded<'py>);

/// Whether a topic is one of those that can be decoded.
#[pyfunction]
pub(crate) fn is_internal(topic: &str) -> bool {
    internal::is_internal(topic)
}

/// A record of an internal topic.
#[pyfunction]
pub(crate) fn decode_internal<'py>(
    py: Python<'py>,
    topic: &str,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> PyResult<Decoded<'py>> {
    decoded(py, internal::decode_internal(topic, key, value))
}

/// A record of a control batch.
#[pyfunction]
pub(crate) fn decode_control<'py>(
    py: Python<'py>,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> PyResult<Decoded<'py>> {
    decoded(py, internal::decode_control(key, value))
}

fn decoded(py: Python<'_>, record: Result<InternalRecord, CorruptKind>) -> PyResult<Decoded<'_>> {
    let record = record.map_err(|kind| to_py(py, Error::corrupt(Path::new("<bytes>"), 0, kind)))?;
    to_tuple(py, record)
}

fn to_tuple(py: Python<'_>, record: InternalRecord) -> PyResult<Decoded<'_>> {
    let (key, value) = (to_python(py, record.key)?, to_python(py, record.value)?);
    Ok((record.kind.into_owned(), record.version, key, value))
}

fn to_python(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => number.into_pyobject(py)?.into_any(),
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
        Value::Uuid(id) => id.to_string().into_pyobject(py)?.into_any(),
        Value::List(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item)?)?;
            }
            list.into_any()
        }
        Value::Record(fields) => {
            let dict = PyDict::new(py);
            for (name, field) in fields {
                dict.set_item(name, to_python(py, field)?)?;
            }
            dict.into_any()
        }
    })
}

enum Source {
    Topics(Box<kafkaseg_scan::InternalReader<RealFs>>),
    Snapshot(Box<MetadataSnapshot<RealFile>>),
}

/// Gives decoded records, some at a time.
#[pyclass(frozen, module = "kafkaseg._native")]
pub(crate) struct InternalReader {
    source: Mutex<Source>,
}

#[pymethods]
impl InternalReader {
    /// Over the internal topics of a plan, all decoded as those of one topic if it is given.
    #[staticmethod]
    fn of_plan(plan: &ScanPlan, decode_as: Option<String>) -> Self {
        let plan = Arc::clone(plan.plan());
        let reader = kafkaseg_scan::InternalReader::new(RealFs, plan, decode_as);
        Self { source: Mutex::new(Source::Topics(Box::new(reader))) }
    }

    /// Over a snapshot of the metadata log.
    #[staticmethod]
    fn of_snapshot(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let snapshot = run(py, |_| MetadataSnapshot::open(files::open(&path)?))?;
        Ok(Self { source: Mutex::new(Source::Snapshot(Box::new(snapshot))) })
    }

    /// The next records; `None` at the end. Those of a snapshot have no topic.
    fn next_rows<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Row<'py>>>> {
        let records = run(py, |pulse| {
            let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(match &mut *source {
                Source::Topics(reader) => reader.next_rows(pulse)?.map(|rows| {
                    let flat = rows.into_iter().map(|row| {
                        (Some(row.topic), row.partition, row.offset, row.timestamp, row.record)
                    });
                    flat.collect::<Vec<_>>()
                }),
                Source::Snapshot(snapshot) => snapshot.next_batch()?.map(|records| {
                    let flat = records
                        .into_iter()
                        .map(|record| (None, -1, record.offset, record.timestamp, record.record));
                    flat.collect()
                }),
            })
        })?;
        let Some(records) = records else { return Ok(None) };
        let rows = records.into_iter().map(|(topic, partition, offset, timestamp, record)| {
            Ok((topic, partition, offset, timestamp, to_tuple(py, record)?))
        });
        rows.collect::<PyResult<_>>().map(Some)
    }
}
