//! The native half of the `kafkaseg` Python package: translates types and errors, decides nothing.

#![expect(clippy::needless_pass_by_value, reason = "Python hands arguments over by value")]

mod arrow;
mod error;
mod pulse;
mod scan;

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
    use super::error::raise_sample;
    #[pymodule_export]
    use super::scan::{Found, ScanPlan, ScanReader};
}
