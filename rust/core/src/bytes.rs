//! A cursor over big-endian fields that never reads past its end.

use crate::record::CorruptKind;

/// Takes fields from the front of a slice. Running out of bytes is the error it was made with.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    short: CorruptKind,
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`; `short` is the answer when a field does not fit.
    pub(crate) fn new(bytes: &'a [u8], short: CorruptKind) -> Self {
        Self { rest: bytes, short }
    }

    /// Bytes not yet taken.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], CorruptKind> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(self.short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], CorruptKind> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(self.short)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, CorruptKind> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, CorruptKind> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, CorruptKind> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, CorruptKind> {
        self.array().map(i64::from_be_bytes)
    }
}
