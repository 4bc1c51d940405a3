//! A cursor over the flexible message encoding of control and metadata records.
//!
//! Lengths and counts are plain variable-length integers of n + 1, with 0 for null; every structure
//! ends with a count of tagged fields, each a tag, a size and that many bytes. Nothing is reserved
//! for a count before it was compared with the bytes left.

use super::CorruptKind;
use super::varint::read_unsigned;

/// Bytes not yet read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flexible<'a> {
    rest: &'a [u8],
}

impl<'a> Flexible<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], CorruptKind> {
        let (chunk, rest) =
            self.rest.split_first_chunk::<N>().ok_or(CorruptKind::Message("it is cut off"))?;
        self.rest = rest;
        Ok(*chunk)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, CorruptKind> {
        self.chunk().map(i16::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, CorruptKind> {
        self.chunk().map(u16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, CorruptKind> {
        self.chunk().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, CorruptKind> {
        self.chunk().map(i64::from_be_bytes)
    }

    pub(crate) fn uuid(&mut self) -> Result<[u8; 16], CorruptKind> {
        self.chunk()
    }

    pub(crate) fn unsigned(&mut self) -> Result<u32, CorruptKind> {
        let (value, taken) = read_unsigned(self.rest)?;
        self.rest = self.rest.get(taken..).unwrap_or_default();
        Ok(value)
    }

    fn bytes(&mut self, length: u32) -> Result<&'a [u8], CorruptKind> {
        let (bytes, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length))
            .ok_or(CorruptKind::FieldLength(i64::from(length)))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A string that may not be null.
    pub(crate) fn string(&mut self) -> Result<&'a str, CorruptKind> {
        let length =
            self.unsigned()?.checked_sub(1).ok_or(CorruptKind::Message("a string is null"))?;
        std::str::from_utf8(self.bytes(length)?)
            .map_err(|_| CorruptKind::Message("a string is not UTF-8"))
    }

    /// An array that may not be null, of items that take at least `item_bytes_min`.
    pub(crate) fn array<T>(
        &mut self,
        item_bytes_min: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, CorruptKind>,
    ) -> Result<Vec<T>, CorruptKind> {
        let count =
            self.unsigned()?.checked_sub(1).ok_or(CorruptKind::Message("an array is null"))?;
        let room = self.rest.len() / item_bytes_min.max(1);
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= room)
            .ok_or(CorruptKind::FieldLength(i64::from(count)))?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Reads over the tagged fields that end a structure; none has a meaning here.
    pub(crate) fn skip_tags(&mut self) -> Result<(), CorruptKind> {
        let count = self.unsigned()?;
        for _ in 0..count {
            self.unsigned()?;
            let length = self.unsigned()?;
            self.bytes(length)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_held_against_the_bytes_left_before_anything_is_reserved() {
        let four_billion = [0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3];
        let items = Flexible::new(&four_billion).array(1, Flexible::u16);
        assert_eq!(items, Err(CorruptKind::FieldLength(0xffff_fffe)));
        assert_eq!(
            Flexible::new(&four_billion).string(),
            Err(CorruptKind::FieldLength(0xffff_fffe))
        );
    }

    #[test]
    fn null_is_refused_where_it_may_not_stand() {
        assert!(Flexible::new(&[0]).string().is_err());
        assert!(Flexible::new(&[0]).array(1, Flexible::u16).is_err());
        assert_eq!(Flexible::new(&[1]).string(), Ok(""));
    }

    #[test]
    fn unknown_tagged_fields_are_read_over() {
        let mut fields = Flexible::new(&[2, 0, 1, 0xaa, 0x81, 0x01, 0, 0x12, 0x34]);
        assert_eq!(fields.skip_tags(), Ok(()));
        assert_eq!(fields.u16(), Ok(0x1234));
        assert!(Flexible::new(&[1, 0, 2, 0xaa]).skip_tags().is_err());
        assert!(Flexible::new(&[0x80]).skip_tags().is_err());
    }
}
