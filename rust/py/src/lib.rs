//! The native half of the `kafkaseg` Python package: translates types and errors, decides nothing.

#![expect(clippy::needless_pass_by_value, reason = "Python hands arguments over by value")]

mod arrow;
mod batch;
mod dir;
mod error;
mod files;
mod internal;
mod log;
mod names;
mod probe;
mod probe_log;
mod pulse;
mod scan;
mod watch;

use pyo3::prelude::*;

/// Rust engine of kafkaseg.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "a Python dunder name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use super::arrow::ArrowBatch;
    #[pymodule_export]
    use super::batch::{decode_batch, encode_batch, encode_marker, patch_batch};
    #[pymodule_export]
    use super::dir::NativeDir;
    #[pymodule_export]
    use super::error::raise_sample;
    #[pymodule_export]
    use super::files::{read_checkpoint, read_index, read_properties};
    #[pymodule_export]
    use super::internal::{InternalReader, decode_control, decode_internal, is_internal};
    #[pymodule_export]
    use super::log::{ManualClock, NativeFetch, NativeLog};
    #[pymodule_export]
    use super::names::{parse_partition_name, parse_segment_name, parse_snapshot_name};
    #[pymodule_export]
    use super::probe::probe;
    #[pymodule_export]
    use super::probe_log::{probe_append, probe_lookup, probe_threads};
    #[pymodule_export]
    use super::scan::{Found, ScanPlan, ScanReader};
}
