//! Engine errors as Python exceptions. Every variant has its class in `kafkaseg.errors`.

use std::path::PathBuf;

use kafkaseg_core::record::{RecordError, RecordFault};
use kafkaseg_core::{CorruptKind, Error};
use pyo3::IntoPyObjectExt;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Turns an engine error into the Python exception that its caller can act on.
pub(crate) fn to_py(py: Python<'_>, error: Error) -> PyErr {
    match build(py, error) {
        Ok(raised) | Err(raised) => raised,
    }
}

fn build(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let message = error.to_string();
    let os = |class, errno: i32, said: String, path: PathBuf| {
        raise(py, class, (errno, said, path.into_os_string()), &[])
    };
    let plain = |class, attributes: &[Attribute<'_>]| raise(py, class, (message,), attributes);
    // No catch-all arm: an error that is added to the engine must be given a class here.
    match error {
        Error::Io { op, source, path } => {
            let class = match source.kind() {
                std::io::ErrorKind::NotFound => "LogFileNotFoundError",
                std::io::ErrorKind::PermissionDenied => "LogPermissionError",
                _ => "LogIOError",
            };
            let said = format!("cannot {op}: {}", said(py, &source)?);
            os(class, source.raw_os_error().unwrap_or(0), said, path)
        }
        Error::NoSpace { path } => {
            let source = std::io::Error::from_raw_os_error(ENOSPC);
            os("StorageFullError", ENOSPC, said(py, &source)?, path)
        }
        Error::Poisoned { path } => plain("StorageOfflineError", &[("path", file(py, path)?)]),
        Error::Locked { path } => plain("DirectoryLockedError", &[("path", file(py, path)?)]),
        Error::Corrupt { file: path, position, kind } => plain(
            "CorruptLogError",
            &[
                ("file", file(py, path)?),
                ("position", position.into_bound_py_any(py)?),
                ("kind", kind.name().into_bound_py_any(py)?),
            ],
        ),
        Error::Unsupported { what, found } => plain(
            "UnsupportedFormatError",
            &[("what", what.into_bound_py_any(py)?), ("found", found.into_bound_py_any(py)?)],
        ),
        Error::TooLarge { what, size, limit } => plain(
            "LimitExceededError",
            &[
                ("what", what.into_bound_py_any(py)?),
                ("size", size.into_bound_py_any(py)?),
                ("limit", limit.into_bound_py_any(py)?),
            ],
        ),
        Error::OutOfRange { asked, start, end } => plain(
            "OffsetOutOfRangeError",
            &[
                ("asked", asked.into_bound_py_any(py)?),
                ("start", start.into_bound_py_any(py)?),
                ("end", end.into_bound_py_any(py)?),
            ],
        ),
        Error::Changed { path, .. } => plain("LogChangedError", &[("path", file(py, path)?)]),
        Error::Rejected { code, .. } => {
            plain("RejectedError", &[("code", code.into_bound_py_any(py)?)])
        }
        Error::RejectedRecords { code, records, .. } => {
            let records = records.iter().map(|record| (record.index, record.fault.to_string()));
            let records = PyTuple::new(py, records.collect::<Vec<_>>())?.into_any();
            plain("RejectedError", &[("code", code.into_bound_py_any(py)?), ("records", records)])
        }
        Error::Invalid(_) => plain("InvalidArgumentError", &[]),
        Error::Interrupted => Ok(PyKeyboardInterrupt::new_err(())),
    }
}

type Attribute<'py> = (&'static str, Bound<'py, PyAny>);

fn raise<'py>(
    py: Python<'py>,
    class: &str,
    args: impl PyCallArgs<'py>,
    attributes: &[Attribute<'py>],
) -> PyResult<PyErr> {
    let class = py.import("kafkaseg.errors")?.getattr(class)?;
    let value = class.call(args, None::<&Bound<'_, PyDict>>)?;
    for (name, attribute) in attributes {
        value.setattr(*name, attribute)?;
    }
    Ok(PyErr::from_value(value))
}

/// A path as Python has it, also where it is no UTF-8.
fn file(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    path.into_os_string().into_bound_py_any(py)
}

/// What the operating system said, in the words of Python's own errors.
fn said(py: Python<'_>, source: &std::io::Error) -> PyResult<String> {
    match source.raw_os_error() {
        Some(errno) => py.import("os")?.call_method1("strerror", (errno,))?.extract(),
        None => Ok(source.to_string()),
    }
}

const ENOENT: i32 = 2;
const EIO: i32 = 5;
const EACCES: i32 = 13;
const ENOSPC: i32 = 28;

/// Raises a sample of one error variant, so that the mapping of all of them can be tested.
#[pyfunction]
pub(crate) fn raise_sample(py: Python<'_>, variant: &str) -> PyResult<()> {
    let path = PathBuf::from("orders-0/00000000000000000000.log");
    let io = |errno| Error::Io {
        op: "open",
        path: path.clone(),
        source: std::io::Error::from_raw_os_error(errno),
    };
    let error = match variant {
        "Io.NotFound" => io(ENOENT),
        "Io.PermissionDenied" => io(EACCES),
        "Io" => io(EIO),
        "NoSpace" => Error::NoSpace { path },
        "Poisoned" => Error::Poisoned { path },
        "Locked" => Error::Locked { path },
        "Corrupt" => Error::Corrupt {
            file: path,
            position: 4096,
            kind: CorruptKind::Crc { stored: 1, computed: 2 },
        },
        "Unsupported" => Error::Unsupported { what: "magic", found: "3".into() },
        "TooLarge" => Error::TooLarge { what: "record", size: 9, limit: 8 },
        "OutOfRange" => Error::OutOfRange { asked: 7, start: 10, end: 20 },
        "Changed" => Error::Changed { path, what: "was deleted" },
        "Rejected" => Error::Rejected { code: "INVALID_PRODUCER_EPOCH", reason: "fenced".into() },
        "RejectedRecords" => Error::RejectedRecords {
            code: "INVALID_RECORD",
            reason: "1 record fails".into(),
            records: vec![RecordError { index: 3, fault: RecordFault::NullKey }],
        },
        "Invalid" => Error::Invalid("no".into()),
        "Interrupted" => Error::Interrupted,
        other => Error::Invalid(format!("no error variant {other:?}")),
    };
    Err(to_py(py, error))
}
