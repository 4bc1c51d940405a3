#![allow(missing_docs)]
use crate::record::{Codec, CorruptKind};
#[derive(Default)]
pub struct Decoder;
pub enum InflateError {
    OverBudget,
    Corrupt(&'static str),
}
impl From<InflateError> for CorruptKind {
    fn from(_e: InflateError) -> Self {
        CorruptKind::Inflate("stub")
    }
}
pub struct Inflation;
impl Inflation {
    pub fn start(_c: Codec, _i: &[u8]) -> Result<Self, InflateError> {
        Err(InflateError::Corrupt("stub"))
    }
    pub fn read(&mut self, _i: &[u8], _o: &mut [u8]) -> Result<usize, InflateError> {
        Ok(0)
    }
}
impl Decoder {
    pub fn inflate(&mut self, _c: Codec, _i: &[u8], _b: usize) -> Result<&[u8], InflateError> {
        Err(InflateError::Corrupt("stub"))
    }
    pub fn inflated(&self) -> &[u8] {
        &[]
    }
    pub fn inflate_legacy(
        &mut self,
        _c: Codec,
        _m: u8,
        _i: &[u8],
        _b: usize,
    ) -> Result<&[u8], InflateError> {
        Err(InflateError::Corrupt("stub"))
    }
}
