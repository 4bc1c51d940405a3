//! Progress of long work, told to Python from whichever thread does it.

use std::sync::{Arc, Mutex, PoisonError};

use kafkaseg_core::dir::{DirProgress, OnProgress};
use kafkaseg_core::{Error, Result};
use pyo3::prelude::*;

use crate::error::to_py;
use crate::pulse::Signals;

/// Tells a Python function of progress, and looks for signals on the way.
pub(crate) struct Watch {
    shared: Arc<Shared>,
}

struct Shared {
    told: Option<Py<PyAny>>,
    /// What the function raised.
    raised: Mutex<Option<PyErr>>,
    signals: Mutex<Signals>,
}

impl Watch {
    pub(crate) fn new(told: Option<Py<PyAny>>) -> Self {
        let shared = Shared { told, raised: Mutex::new(None), signals: Mutex::new(Signals::new()) };
        Self { shared: Arc::new(shared) }
    }

    /// The function as the engine takes it.
    pub(crate) fn dir_progress(&self) -> OnProgress {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |progress| shared.tell(progress))
    }

    /// The outcome of the work, with the exception that ended it if one did.
    pub(crate) fn outcome<T>(self, py: Python<'_>, outcome: Result<T>) -> PyResult<T> {
        outcome.map_err(|error| {
            let raised = self.shared.take_raised();
            match (raised, error) {
                (Some(raised), Error::Interrupted) => raised,
                (_, error) => to_py(py, error),
            }
        })
    }
}

impl Shared {
    fn take_raised(&self) -> Option<PyErr> {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        raised.or_else(|| signals.take_raised())
    }

    fn tell(&self, progress: DirProgress) -> Result<()> {
        let mut signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        signals.check()?;
        drop(signals);
        let Some(told) = &self.told else { return Ok(()) };
        let DirProgress { partitions, total_partitions, bytes } = progress;
        let called = Python::try_attach(|py| told.call1(py, (partitions, total_partitions, bytes)));
        match called {
            Some(Err(raised)) => {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
                Err(Error::Interrupted)
            }
            Some(Ok(_)) | None => Ok(()),
        }
    }
}
