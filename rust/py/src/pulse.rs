//! Releasing the interpreter during work, and letting it interrupt the work.

use std::time::{Duration, Instant};

use kafkaseg_core::{Error, Result};
use pyo3::prelude::*;

use crate::error::to_py;

/// How often signals are looked for: often enough for Ctrl-C to feel immediate.
const INTERVAL: Duration = Duration::from_millis(50);

/// Looks for signals now and then; keeps what a signal handler raised.
pub(crate) struct Signals {
    looked: Instant,
    raised: Option<PyErr>,
}

impl Signals {
    pub(crate) fn new() -> Self {
        Self { looked: Instant::now(), raised: None }
    }

    pub(crate) fn check(&mut self) -> Result<()> {
        if self.looked.elapsed() < INTERVAL {
            return Ok(());
        }
        self.looked = Instant::now();
        match Python::try_attach(|py: Python<'_>| Python::check_signals(py)) {
            Some(Err(raised)) => {
                self.raised = Some(raised);
                Err(Error::Interrupted)
            }
            // An interpreter that shuts down has no signals to deliver.
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// What a signal handler raised, if one did.
    pub(crate) fn take_raised(&mut self) -> Option<PyErr> {
        self.raised.take()
    }

    /// The exception for an error: what the signal handler raised, if that is why.
    pub(crate) fn exception(self, py: Python<'_>, error: Error) -> PyErr {
        match (error, self.raised) {
            (Error::Interrupted, Some(raised)) => raised,
            (error, _) => to_py(py, error),
        }
    }
}

/// Runs engine work without the interpreter, interruptible, its errors turned into exceptions.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut kafkaseg_scan::Pulse<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let mut signals = Signals::new();
    let outcome = py.detach(|| work(&mut || signals.check()));
    outcome.map_err(|error| signals.exception(py, error))
}
