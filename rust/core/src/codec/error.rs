//! Why compressed bytes were not inflated.

use std::fmt;

use crate::record::CorruptKind;

/// Why compressed bytes were not inflated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InflateError {
    /// They inflate to more than the caller, or the limit of a single block, allows. A stream may
    /// still read them.
    OverBudget,
    /// They break the rules of their codec.
    Corrupt(&'static str),
}

impl From<InflateError> for CorruptKind {
    fn from(error: InflateError) -> Self {
        Self::Inflate(match error {
            InflateError::OverBudget => "more bytes than the limit allows",
            InflateError::Corrupt(why) => why,
        })
    }
}

impl fmt::Display for InflateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        CorruptKind::from(*self).fmt(f)
    }
}

impl std::error::Error for InflateError {}
