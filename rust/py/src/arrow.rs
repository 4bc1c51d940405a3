//! Arrow across the border, through the C data interface.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// One record batch, for any library that speaks the Arrow C data interface.
#[pyclass(frozen, module = "kafkaseg._native")]
pub(crate) struct ArrowBatch {
    batch: RecordBatch,
}

impl ArrowBatch {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }
}

#[pymethods]
impl ArrowBatch {
    /// Rows of the batch.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The interface lets a producer ignore a requested schema that it cannot serve.
        let _ = requested_schema;
        let data = StructArray::from(self.batch.clone()).to_data();
        let (array, _) = to_ffi(&data).map_err(arrow_error)?;
        Ok((schema_capsule(py, &self.batch.schema())?, array_capsule(py, array)?))
    }
}

pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(Arc::as_ref(schema)).map_err(arrow_error)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// Takes over the stream of an object that speaks the Arrow C stream interface.
pub(crate) fn stream_reader(data: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = data.call_method0(intern!(data.py(), "__arrow_c_stream__"))?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast();
    #[expect(unsafe_code, reason = "the C stream interface is a pointer in a capsule")]
    // SAFETY: the interface promises that a capsule of this name points to a stream, which the
    // consumer moves out; what is left behind is marked as released, and the capsule lives until
    // then.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    RecordBatchStreamReader::try_new(stream).map_err(arrow_error)
}

fn array_capsule(py: Python<'_>, array: FFI_ArrowArray) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, array, c"arrow_array")
}

fn arrow_error(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
