//! Batches from records, and records from batches.

use std::path::Path;

use kafkaseg_core::codec::{Decoder, Encoder};
use kafkaseg_core::record::{
    BatchBuilder, BatchMut, BatchSpec, BatchView, Codec, ControlType, EndTxnMarker, EntryRecords,
    EntryView, Header, RecordView, TimestampType,
};
use kafkaseg_core::{CorruptKind, Error, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::error::to_py;
use crate::pulse::run;

/// Records between two looks for signals.
const RECORDS_BETWEEN: usize = 1 << 14;

/// What a batch is apart from its records, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SpecDict {
    base_offset: i64,
    last_offset: Option<i64>,
    leader_epoch: i32,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    transactional: bool,
    control: bool,
    append_time: Option<i64>,
    delete_horizon: Option<i64>,
    empty_max_timestamp: i64,
}

impl From<SpecDict> for BatchSpec {
    fn from(spec: SpecDict) -> Self {
        Self {
            base_offset: spec.base_offset,
            last_offset: spec.last_offset,
            leader_epoch: spec.leader_epoch,
            producer_id: spec.producer_id,
            producer_epoch: spec.producer_epoch,
            base_sequence: spec.base_sequence,
            transactional: spec.transactional,
            control: spec.control,
            append_time: spec.append_time,
            delete_horizon: spec.delete_horizon,
            empty_max_timestamp: spec.empty_max_timestamp,
        }
    }
}

/// A batch of objects with the attributes of `kafkaseg.Record`. `now` is the time of records
/// without one; `offset_deltas` puts them at distances from the base offset.
#[pyfunction]
#[pyo3(signature = (records, *, spec, now, offset_deltas, compression, level))]
pub(crate) fn encode_batch<'py>(
    py: Python<'py>,
    records: &Bound<'py, PyAny>,
    spec: SpecDict,
    now: i64,
    offset_deltas: Option<Vec<i64>>,
    compression: &str,
    level: Option<i32>,
) -> PyResult<Bound<'py, PyBytes>> {
    let base_offset = spec.base_offset;
    let codec = codec_of(compression).map_err(|error| to_py(py, error))?;
    let mut builder = BatchBuilder::new(spec.into()).map_err(|error| to_py(py, error))?;
    let mut pushed = 0_usize;
    for record in records.try_iter()? {
        let offset = match &offset_deltas {
            None => None,
            Some(deltas) => match deltas.get(pushed).and_then(|at| base_offset.checked_add(*at)) {
                None => return Err(to_py(py, fewer_deltas(deltas.len()))),
                offset => offset,
            },
        };
        push(&mut builder, &record?, now, offset)?;
        pushed += 1;
        if pushed.is_multiple_of(RECORDS_BETWEEN) {
            py.check_signals()?;
        }
    }
    if offset_deltas.is_some_and(|deltas| deltas.len() != pushed) {
        return Err(to_py(py, fewer_deltas(pushed)));
    }
    let batch = run(py, |_| {
        let mut output = Vec::with_capacity(builder.encoded_bytes());
        builder.finish_compressed(codec, level, &mut Encoder::new(), &mut output)?;
        Ok(output)
    })?;
    Ok(PyBytes::new(py, &batch))
}

fn codec_of(name: &str) -> Result<Codec> {
    Codec::from_name(name).ok_or_else(|| {
        let known: Vec<_> = Codec::ALL.iter().map(|codec| codec.name()).collect();
        Error::Invalid(format!("no codec {name:?}; the codecs are {}", known.join(", ")))
    })
}

fn fewer_deltas(found: usize) -> Error {
    Error::Invalid(format!("as many offset deltas as records are needed; one list ends at {found}"))
}

/// Adds one record, at the next offset if none is given.
fn push(
    builder: &mut BatchBuilder,
    record: &Bound<'_, PyAny>,
    now: i64,
    offset: Option<i64>,
) -> PyResult<()> {
    let py = record.py();
    let timestamp: Option<i64> = record.getattr(intern!(py, "timestamp"))?.extract()?;
    let timestamp = timestamp.unwrap_or(now);
    let key = nullable_bytes("key", record.getattr(intern!(py, "key"))?)?;
    let value = nullable_bytes("value", record.getattr(intern!(py, "value"))?)?;
    let headers = headers_of(&record.getattr(intern!(py, "headers"))?)?;
    let headers = headers.iter().map(|(name, value)| Header {
        key: name.as_bytes(),
        value: value.as_ref().map(PyBytesMethods::as_bytes),
    });
    let (key, value) =
        (key.as_ref().map(PyBytesMethods::as_bytes), value.as_ref().map(PyBytesMethods::as_bytes));
    let pushed = match offset {
        None => builder.push(timestamp, key, value, headers).map(|_| ()),
        Some(offset) => builder.push_at(offset, timestamp, key, value, headers),
    };
    pushed.map_err(|error| to_py(py, error))
}

fn nullable_bytes<'py>(
    field: &str,
    value: Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    if value.is_none() {
        return Ok(None);
    }
    value.cast_into::<PyBytes>().map(Some).map_err(|error| {
        let found = error.into_inner();
        let found = found.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("the {field} of a record is bytes or None, not {found}"))
    })
}

type PyHeader<'py> = (Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>);

fn headers_of<'py>(headers: &Bound<'py, PyAny>) -> PyResult<Vec<PyHeader<'py>>> {
    // Most records have none, and their empty tuple is not worth an iterator.
    if headers.cast_exact::<PyTuple>().is_ok_and(PyTupleMethods::is_empty) {
        return Ok(Vec::new());
    }
    let py = headers.py();
    let one = |header: PyResult<Bound<'py, PyAny>>| -> PyResult<PyHeader<'py>> {
        let (name, value): (Bound<'py, PyString>, Bound<'py, PyAny>) = header?.extract()?;
        // Names that are no UTF-8 on disk are read with escapes; they go back as they were.
        let name = name.call_method1(intern!(py, "encode"), ("utf-8", "surrogateescape"))?;
        Ok((name.cast_into()?, nullable_bytes("header value", value)?))
    };
    headers.try_iter()?.map(one).collect()
}

/// The batch with the marker that ends a transaction.
#[pyfunction]
#[pyo3(signature = (commit, coordinator_epoch, *, spec, timestamp))]
pub(crate) fn encode_marker(
    py: Python<'_>,
    commit: bool,
    coordinator_epoch: i32,
    spec: SpecDict,
    timestamp: i64,
) -> PyResult<Bound<'_, PyBytes>> {
    let kind = if commit { ControlType::Commit } else { ControlType::Abort };
    let batch = run(py, |_| {
        let mut builder = BatchBuilder::new(spec.into())?;
        let value = EndTxnMarker { coordinator_epoch }.to_value();
        builder.push(timestamp, Some(&kind.to_key()), Some(&value), std::iter::empty())?;
        let mut output = Vec::new();
        builder.finish(&mut output)?;
        Ok(output)
    })?;
    Ok(PyBytes::new(py, &batch))
}

/// The batch at the start of `data` with other offsets, epoch or timestamps; what follows it stays.
#[pyfunction]
#[pyo3(signature = (data, *, base_offset, last_offset, leader_epoch, append_time, max_timestamp))]
pub(crate) fn patch_batch<'py>(
    py: Python<'py>,
    data: &[u8],
    base_offset: Option<i64>,
    last_offset: Option<i64>,
    leader_epoch: Option<i32>,
    append_time: Option<bool>,
    max_timestamp: Option<i64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let stamp = append_time.is_some() || max_timestamp.is_some();
    let patch = |bytes: &mut [u8]| -> Result<()> {
        if stamp {
            // The new checksum must not hide damage that the old one shows.
            let checked = BatchView::parse(bytes).and_then(|batch| batch.check_crc());
            checked.map_err(|kind| damage(0, kind))?;
        }
        let mut batch = BatchMut::parse(bytes).map_err(|kind| damage(0, kind))?;
        if let Some(offset) = base_offset {
            batch.set_base_offset(offset)?;
        }
        if let Some(offset) = last_offset {
            batch.set_last_offset(offset)?;
        }
        if let Some(epoch) = leader_epoch {
            batch.set_leader_epoch(epoch);
        }
        if stamp {
            let header = batch.header();
            let kind = match append_time {
                Some(true) => TimestampType::LogAppendTime,
                Some(false) => TimestampType::CreateTime,
                None => header.attributes.timestamp_type(),
            };
            batch.set_max_timestamp(kind, max_timestamp.unwrap_or(header.max_timestamp))?;
        }
        Ok(())
    };
    PyBytes::new_with(py, data.len(), |bytes| {
        bytes.copy_from_slice(data);
        patch(bytes).map_err(|error| to_py(py, error))
    })
}

/// Facts and records of the entry at a position of `data`.
#[pyfunction]
#[pyo3(signature = (data, position, max_inflated_bytes))]
pub(crate) fn decode_batch<'py>(
    py: Python<'py>,
    data: &[u8],
    position: usize,
    max_inflated_bytes: usize,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyList>)> {
    let at = u64::try_from(position).unwrap_or(u64::MAX);
    let fail = |kind| to_py(py, damage(at, kind));
    let Some(bytes) = data.get(position..) else {
        let past = format!("position {position} lies past the {} bytes of the data", data.len());
        return Err(to_py(py, Error::Invalid(past)));
    };
    let entry = EntryView::parse(bytes).map_err(fail)?;
    let mut decoder = Decoder::new();
    let records = run(py, |_| EntryRecords::open(&entry, &mut decoder, max_inflated_bytes))?;
    let rows = PyList::empty(py);
    let mut base_offset = None;
    for record in records.map_err(fail)? {
        let record = record.map_err(fail)?;
        base_offset.get_or_insert(record.offset);
        rows.append(row(py, &record)?)?;
        if rows.len().is_multiple_of(RECORDS_BETWEEN) {
            py.check_signals()?;
        }
    }
    let facts = facts(py, &entry)?;
    // A wrapper message does not say where it starts; its first record does.
    let base_offset = entry.base_offset().or(base_offset);
    facts.set_item("base_offset", base_offset)?;
    Ok((facts, rows))
}

/// Key, value, headers, timestamp and offset.
fn row<'py>(py: Python<'py>, record: &RecordView<'_>) -> PyResult<Bound<'py, PyTuple>> {
    let mut headers = Vec::with_capacity(record.headers.len());
    for header in record.headers.iter() {
        let name = PyString::from_encoded_object(
            &PyBytes::new(py, header.key),
            Some(c"utf-8"),
            Some(c"surrogateescape"),
        )?;
        headers.push((name, header.value.map(|value| PyBytes::new(py, value))));
    }
    (
        record.key.map(|key| PyBytes::new(py, key)),
        record.value.map(|value| PyBytes::new(py, value)),
        PyTuple::new(py, headers)?,
        record.timestamp,
        record.offset,
    )
        .into_pyobject(py)
}

fn facts<'py>(py: Python<'py>, entry: &EntryView<'_>) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("magic", entry.magic())?;
    facts.set_item("bytes", entry.total_bytes())?;
    facts.set_item("last_offset", entry.last_offset())?;
    facts.set_item("leader_epoch", entry.leader_epoch())?;
    facts.set_item("compression", entry.codec().map_or("none", Codec::name))?;
    facts.set_item("max_timestamp", entry.max_timestamp())?;
    facts.set_item(
        "timestamp_type",
        match entry.timestamp_type() {
            TimestampType::None => None,
            TimestampType::CreateTime => Some("create"),
            TimestampType::LogAppendTime => Some("append"),
        },
    )?;
    match entry {
        EntryView::Legacy(message) => facts.set_item("crc", message.crc())?,
        EntryView::Batch(batch) => {
            let header = batch.header();
            facts.set_item("crc", header.crc)?;
            facts.set_item("base_timestamp", header.base_timestamp)?;
            facts.set_item("producer_id", header.producer_id)?;
            facts.set_item("producer_epoch", header.producer_epoch)?;
            facts.set_item("base_sequence", header.base_sequence)?;
            facts.set_item("transactional", header.attributes.is_transactional())?;
            facts.set_item("control", header.attributes.is_control())?;
            facts.set_item("delete_horizon", header.delete_horizon())?;
        }
    }
    Ok(facts)
}

/// Damage of bytes that are in no file.
fn damage(position: u64, kind: CorruptKind) -> Error {
    Error::corrupt(Path::new("<bytes>"), position, kind)
}
