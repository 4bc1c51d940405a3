//! Engine errors as Python exceptions. Every variant has its class in `kafkaseg.errors`.

use std::path::PathBuf;

use kafkaseg_core::{CorruptKind, Error};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Turns an engine error into the Python exception that its caller can act on.
pub(crate) fn to_py(py: Python<'_>, error: Error) -> PyErr {
    match build(py, error) {
        Ok(raised) | Err(raised) => raised,
    }
}

fn build(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let message = error.to_string();
    match error {
        Error::Io { source, path, .. } => {
            let class = match source.kind() {
                std::io::ErrorKind::NotFound => "LogFileNotFoundError",
                std::io::ErrorKind::PermissionDenied => "LogPermissionError",
                _ => "LogIOError",
            };
            let errno = source.raw_os_error().unwrap_or(0);
            raise(py, class, (errno, message, path), &[])
        }
        Error::NoSpace { path } => {
            raise(py, "StorageFullError", (rustix_nospc(), message, path), &[])
        }
        Error::Poisoned { path } => {
            raise(py, "StorageOfflineError", (message,), &[("path", text(path))])
        }
        Error::Locked { path } => {
            raise(py, "DirectoryLockedError", (message,), &[("path", text(path))])
        }
        Error::Corrupt { file, position, kind } => {
            let error = raise(
                py,
                "CorruptLogError",
                (message,),
                &[("file", text(file)), ("kind", kind.name().to_owned())],
            )?;
            error.value(py).setattr("position", position)?;
            Ok(error)
        }
        Error::Unsupported { what, found } => raise(
            py,
            "UnsupportedFormatError",
            (message,),
            &[("what", what.to_owned()), ("found", found)],
        ),
        Error::TooLarge { size, limit, .. } => {
            let error = raise(py, "LimitExceededError", (message,), &[])?;
            error.value(py).setattr("size", size)?;
            error.value(py).setattr("limit", limit)?;
            Ok(error)
        }
        Error::OutOfRange { asked, start, end } => {
            let error = raise(py, "OffsetOutOfRangeError", (message,), &[])?;
            error.value(py).setattr("asked", asked)?;
            error.value(py).setattr("start", start)?;
            error.value(py).setattr("end", end)?;
            Ok(error)
        }
        Error::Changed { path, .. } => {
            raise(py, "LogChangedError", (message,), &[("path", text(path))])
        }
        Error::Rejected { code, .. } => {
            raise(py, "RejectedError", (message,), &[("code", code.to_owned())])
        }
        Error::Invalid(_) => raise(py, "InvalidArgumentError", (message,), &[]),
        Error::Interrupted => Ok(PyKeyboardInterrupt::new_err(())),
        // `Error` grows with the engine; a variant without a class of its own is a bug that the
        // test over `raise_sample` shows.
        _ => raise(py, "KafkasegError", (message,), &[]),
    }
}

fn raise<'py>(
    py: Python<'py>,
    class: &str,
    args: impl PyCallArgs<'py>,
    attributes: &[(&str, String)],
) -> PyResult<PyErr> {
    let class = py.import("kafkaseg.errors")?.getattr(class)?;
    let value = class.call(args, None::<&Bound<'_, PyDict>>)?;
    for (name, attribute) in attributes {
        value.setattr(*name, attribute)?;
    }
    Ok(PyErr::from_value(value))
}

fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

fn rustix_nospc() -> i32 {
    std::io::Error::from(std::io::ErrorKind::StorageFull).raw_os_error().unwrap_or(28)
}

/// Raises a sample of one error variant, so that the mapping of all of them can be tested.
#[pyfunction]
pub(crate) fn raise_sample(py: Python<'_>, variant: &str) -> PyResult<()> {
    let path = PathBuf::from("orders-0/00000000000000000000.log");
    let io =
        |kind| Error::Io { op: "open", path: path.clone(), source: std::io::Error::from(kind) };
    let error = match variant {
        "Io.NotFound" => io(std::io::ErrorKind::NotFound),
        "Io.PermissionDenied" => io(std::io::ErrorKind::PermissionDenied),
        "Io" => io(std::io::ErrorKind::Other),
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
        "Invalid" => Error::Invalid("no".into()),
        "Interrupted" => Error::Interrupted,
        other => Error::Invalid(format!("no error variant {other:?}")),
    };
    Err(to_py(py, error))
}
