//! Kafka's message encoding, read by tables of fields.
//!
//! | type | plain versions | flexible versions |
//! |---|---|---|
//! | integers, f64, uuid, bool | big-endian, fixed width | the same |
//! | string | i16 length, −1 null | uvarint of length + 1, 0 null |
//! | bytes | i32 length, −1 null | uvarint of length + 1, 0 null |
//! | array | i32 count, −1 null | uvarint of count + 1, 0 null |
//! | structure | its fields | its fields, then tagged fields |
//! | structure that may be null | – | i8: −1 null, 1 present; as a tagged field: 0 null, 1 present |
//! | tagged fields | – | uvarint count; each uvarint tag, uvarint size, that many bytes |
//!
//! 1. Tags increase strictly. Unknown ones are read over and never stored.
//! 2. Counts and lengths are held against the bytes left before anything is reserved, and one
//!    message holds at most [`MESSAGE_VALUES_MAX`] values, so that memory is bounded however
//!    small the encoding of an element.

use super::Value;
use crate::bytes::Reader;
use crate::limits::MESSAGE_VALUES_MAX;
use crate::record::CorruptKind;
use crate::record::varint::read_unsigned;
use crate::uuid::Uuid;

const SHORT: CorruptKind = CorruptKind::Message("it is cut off");
const NEITHER: CorruptKind = CorruptKind::Message("a structure is neither null nor present");

/// The type of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    Float64,
    Text,
    Bytes,
    Uuid,
    List(&'static Kind),
    Struct(&'static [Field]),
}

/// One field of a structure and the versions that have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    name: &'static str,
    kind: Kind,
    since: i16,
    until: i16,
    nullable: bool,
    tag: Option<u32>,
}

impl Field {
    /// A field that every version has and that is never null.
    pub(super) const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, since: 0, until: i16::MAX, nullable: false, tag: None }
    }

    /// The first version that has it.
    pub(super) const fn since(self, since: i16) -> Self {
        Self { since, ..self }
    }

    /// The last version that has it.
    pub(super) const fn until(self, until: i16) -> Self {
        Self { until, ..self }
    }

    /// It may be null.
    pub(super) const fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// It stands among the tagged fields.
    pub(super) const fn tagged(self, tag: u32) -> Self {
        Self { tag: Some(tag), ..self }
    }

    fn is_in(&self, version: i16) -> bool {
        self.since <= version && version <= self.until
    }
}

/// A message with its versions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    /// The newest version the table describes; all from 0 on are readable.
    pub(super) latest: i16,
    /// The first version in flexible encoding.
    pub(super) flexible_since: i16,
    pub(super) fields: &'static [Field],
}

impl Message {
    /// A message that is always in plain encoding.
    pub(super) const fn plain(latest: i16, fields: &'static [Field]) -> Self {
        Self::flexible_since(latest, i16::MAX, fields)
    }

    /// A message that is always in flexible encoding.
    pub(super) const fn flexible(latest: i16, fields: &'static [Field]) -> Self {
        Self::flexible_since(latest, 0, fields)
    }

    /// A message that changed its encoding at a version.
    pub(super) const fn flexible_since(
        latest: i16,
        flexible_since: i16,
        fields: &'static [Field],
    ) -> Self {
        Self { latest, flexible_since, fields }
    }

    /// Whether the table describes a version.
    pub(super) fn knows(&self, version: i16) -> bool {
        (0..=self.latest).contains(&version)
    }

    /// Reads a message that takes all the bytes.
    pub(super) fn decode(&self, version: i16, bytes: &[u8]) -> Result<Value, CorruptKind> {
        let (value, rest) = self.decode_prefix(version, bytes)?;
        if rest.is_empty() {
            Ok(value)
        } else {
            Err(CorruptKind::Message("bytes are left after it"))
        }
    }

    /// Reads a message; also gives the bytes after it.
    pub(super) fn decode_prefix<'a>(
        &self,
        version: i16,
        bytes: &'a [u8],
    ) -> Result<(Value, &'a [u8]), CorruptKind> {
        let mut decoder = Decoder {
            reader: Reader::new(bytes, SHORT),
            version,
            flexible: version >= self.flexible_since,
            values_left: MESSAGE_VALUES_MAX,
        };
        let value = decoder.fields(self.fields)?;
        Ok((value, decoder.reader.rest()))
    }
}

struct Decoder<'a> {
    reader: Reader<'a>,
    version: i16,
    flexible: bool,
    values_left: usize,
}

impl Decoder<'_> {
    fn fields(&mut self, fields: &'static [Field]) -> Result<Value, CorruptKind> {
        let mut record = Vec::new();
        for field in fields {
            if field.tag.is_none() && field.is_in(self.version) {
                record.push((field.name, self.value(field.kind, field.nullable)?));
            }
        }
        if self.flexible {
            self.tagged(fields, &mut record)?;
        }
        Ok(Value::Record(record))
    }

    fn tagged(
        &mut self,
        fields: &'static [Field],
        record: &mut Vec<(&'static str, Value)>,
    ) -> Result<(), CorruptKind> {
        let mut lowest = 0;
        for _ in 0..self.unsigned()? {
            let tag = self.unsigned()?;
            if tag < lowest {
                return Err(CorruptKind::Message("its tagged fields are out of order"));
            }
            lowest = tag.saturating_add(1);
            let size = self.unsigned()?;
            let bytes = self.take(size)?;
            let is_it = |field: &&Field| field.tag == Some(tag) && field.is_in(self.version);
            if let Some(field) = fields.iter().find(is_it) {
                record.push((field.name, self.within(bytes, field)?));
            }
        }
        Ok(())
    }

    /// Reads the value of a tagged field, which takes all its bytes.
    fn within(&mut self, bytes: &[u8], field: &Field) -> Result<Value, CorruptKind> {
        let mut inner = Decoder { reader: Reader::new(bytes, SHORT), ..*self };
        let value = match field.kind {
            Kind::Struct(fields) if field.nullable => match inner.unsigned()? {
                0 => Value::Null,
                1 => inner.fields(fields)?,
                _ => return Err(NEITHER),
            },
            kind => inner.value(kind, field.nullable)?,
        };
        self.values_left = inner.values_left;
        if inner.reader.rest().is_empty() {
            Ok(value)
        } else {
            Err(CorruptKind::Message("a tagged field is longer than its value"))
        }
    }

    fn value(&mut self, kind: Kind, nullable: bool) -> Result<Value, CorruptKind> {
        self.values_left = self
            .values_left
            .checked_sub(1)
            .ok_or(CorruptKind::Message("it holds too many values"))?;
        match kind {
            Kind::Bool => Ok(Value::Bool(self.reader.array::<1>()? != [0])),
            Kind::Int8 => Ok(Value::Int(i8::from_be_bytes(self.reader.array()?).into())),
            Kind::Int16 => Ok(Value::Int(self.reader.i16()?.into())),
            Kind::Uint16 => Ok(Value::Int(u16::from_be_bytes(self.reader.array()?).into())),
            Kind::Int32 => Ok(Value::Int(self.reader.i32()?.into())),
            Kind::Int64 => Ok(Value::Int(self.reader.i64()?)),
            Kind::Float64 => Ok(Value::Float(f64::from_be_bytes(self.reader.array()?))),
            Kind::Uuid => Ok(Value::Uuid(Uuid(self.reader.array()?))),
            Kind::Text | Kind::Bytes | Kind::List(_) => match self.length(kind)? {
                Some(length) => self.sized(kind, length),
                None if nullable => Ok(Value::Null),
                None => Err(CorruptKind::Message("a field is null that may not be")),
            },
            Kind::Struct(fields) if nullable => match self.reader.array::<1>()? {
                [0xff] => Ok(Value::Null),
                [1] => self.fields(fields),
                _ => Err(NEITHER),
            },
            Kind::Struct(fields) => self.fields(fields),
        }
    }

    fn sized(&mut self, kind: Kind, length: u32) -> Result<Value, CorruptKind> {
        match kind {
            Kind::List(element) => self.list(*element, length),
            Kind::Text => str::from_utf8(self.take(length)?)
                .map(|text| Value::Text(text.to_owned()))
                .map_err(|_| CorruptKind::Message("a string is not UTF-8")),
            _ => Ok(Value::Bytes(self.take(length)?.to_vec())),
        }
    }

    fn list(&mut self, element: Kind, count: u32) -> Result<Value, CorruptKind> {
        let room = self.reader.rest().len() / self.bytes_min(element).max(1);
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= room && *count <= self.values_left)
            .ok_or(CorruptKind::FieldLength(i64::from(count)))?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(self.value(element, false)?);
        }
        Ok(Value::List(items))
    }

    /// Bytes that an element takes at least.
    fn bytes_min(&self, kind: Kind) -> usize {
        match kind {
            Kind::Text | Kind::Bytes | Kind::List(_) if self.flexible => 1,
            Kind::Bool | Kind::Int8 => 1,
            Kind::Int16 | Kind::Uint16 | Kind::Text => 2,
            Kind::Int32 | Kind::Bytes | Kind::List(_) => 4,
            Kind::Int64 | Kind::Float64 => 8,
            Kind::Uuid => 16,
            Kind::Struct(fields) => {
                let untagged =
                    fields.iter().filter(|field| field.tag.is_none() && field.is_in(self.version));
                let own: usize = untagged
                    .map(|field| match field.kind {
                        Kind::Struct(_) if field.nullable => 1,
                        kind => self.bytes_min(kind),
                    })
                    .sum();
                own.saturating_add(usize::from(self.flexible))
            }
        }
    }

    /// The length or count before a value; `None` is null.
    fn length(&mut self, kind: Kind) -> Result<Option<u32>, CorruptKind> {
        if self.flexible {
            return Ok(self.unsigned()?.checked_sub(1));
        }
        let length = match kind {
            Kind::Text => self.reader.i16()?.into(),
            _ => self.reader.i32()?,
        };
        match length {
            -1 => Ok(None),
            _ => {
                u32::try_from(length).map(Some).map_err(|_| CorruptKind::FieldLength(length.into()))
            }
        }
    }

    fn unsigned(&mut self) -> Result<u32, CorruptKind> {
        let (value, taken) = read_unsigned(self.reader.rest())?;
        self.reader.take(taken)?;
        Ok(value)
    }
}

impl<'a> Decoder<'a> {
    fn take(&mut self, length: u32) -> Result<&'a [u8], CorruptKind> {
        usize::try_from(length)
            .ok()
            .filter(|length| *length <= self.reader.rest().len())
            .ok_or(CorruptKind::FieldLength(length.into()))
            .and_then(|length| self.reader.take(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: &[Field] = &[
        Field::new("name", Kind::Text).nullable(),
        Field::new("items", Kind::List(&Kind::Int16)).since(1),
        Field::new("extra", Kind::Int8).tagged(3),
        Field::new("maybe", Kind::Struct(&[Field::new("x", Kind::Int8)])).nullable().tagged(4),
    ];
    const MESSAGE: Message = Message::flexible_since(2, 2, PAIR);

    fn refused(version: i16, bytes: &[u8]) -> CorruptKind {
        MESSAGE.decode(version, bytes).unwrap_err()
    }

    #[test]
    fn fields_follow_their_versions_and_encodings() {
        let name = Value::Text("ab".to_owned());
        let items = Value::List(vec![Value::Int(-1), Value::Int(2)]);
        assert_eq!(
            MESSAGE.decode(0, &[0, 2, b'a', b'b']),
            Ok(Value::Record(vec![("name", name.clone())]))
        );
        assert_eq!(
            MESSAGE.decode(1, &[0, 2, b'a', b'b', 0, 0, 0, 2, 0xff, 0xff, 0, 2]),
            Ok(Value::Record(vec![("name", name.clone()), ("items", items.clone())]))
        );
        let flexible = [3, b'a', b'b', 3, 0xff, 0xff, 0, 2, 2, 3, 1, 0xfb, 4, 3, 1, 7, 0];
        let decoded = MESSAGE.decode(2, &flexible).unwrap();
        assert_eq!(decoded.get("name"), Some(&name));
        assert_eq!(decoded.get("items"), Some(&items));
        assert_eq!(decoded.get("extra"), Some(&Value::Int(-5)));
        assert_eq!(decoded.get("maybe").unwrap().get("x"), Some(&Value::Int(7)));
        assert_eq!(decoded.get("none"), None);
    }

    #[test]
    fn null_is_a_value_only_where_it_may_stand() {
        assert_eq!(
            MESSAGE.decode(0, &[0xff, 0xff]),
            Ok(Value::Record(vec![("name", Value::Null)]))
        );
        assert!(matches!(refused(1, &[0xff; 6]), CorruptKind::Message(_)));
        assert!(matches!(refused(2, &[0, 0, 0]), CorruptKind::Message(_)));
        let null_struct = MESSAGE.decode(2, &[0, 1, 1, 4, 1, 0]).unwrap();
        assert_eq!(null_struct.get("maybe"), Some(&Value::Null));
        assert!(matches!(refused(2, &[0, 1, 1, 4, 1, 2]), CorruptKind::Message(_)));
    }

    #[test]
    fn lengths_beyond_the_bytes_left_are_refused_before_memory_is_taken() {
        assert_eq!(refused(0, &[0x7f, 0xff, 0]), CorruptKind::FieldLength(0x7fff));
        assert_eq!(refused(0, &[0xff, 0xfe]), CorruptKind::FieldLength(-2));
        let count = [0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0];
        assert_eq!(refused(1, &count), CorruptKind::FieldLength(0x7fff_ffff));
        let compact = [1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
        assert_eq!(refused(2, &compact), CorruptKind::FieldLength(0xffff_fffe));
        assert!(matches!(refused(2, &[1, 1, 1, 3, 9, 0]), CorruptKind::FieldLength(9)));
    }

    #[test]
    fn tagged_fields_that_are_unknown_out_of_order_or_too_long() {
        let unknown = MESSAGE.decode(2, &[1, 1, 2, 0, 2, 9, 9, 9, 0]).unwrap();
        assert_eq!(unknown.get("extra"), None);
        for bytes in [
            &[1, 1, 2, 3, 1, 0, 3, 1, 0][..],
            &[1, 1, 2, 4, 1, 0, 3, 1, 0],
            &[1, 1, 1, 3, 2, 0, 0],
            &[1, 1, 0, 0],
        ] {
            assert!(matches!(refused(2, bytes), CorruptKind::Message(_)), "{bytes:?}");
        }
    }

    #[test]
    fn a_flood_of_tagged_fields_takes_no_memory() {
        let mut bytes = vec![1, 1, 0xc0, 0x84, 0x3d];
        for tag in 10..1_000_010_u32 {
            let groups = [tag & 0x7f | 0x80, tag >> 7 & 0x7f | 0x80, tag >> 14 & 0x7f];
            bytes.extend(groups.map(|group| u8::try_from(group).unwrap()));
            bytes.push(0);
        }
        let decoded = MESSAGE.decode(2, &bytes).unwrap();
        assert!(matches!(decoded, Value::Record(fields) if fields.len() == 2));
    }

    #[test]
    fn one_message_holds_a_bounded_number_of_values() {
        const LISTS: Message =
            Message::flexible(0, &[Field::new("lists", Kind::List(&Kind::List(&Kind::Int8)))]);
        let mut bytes = vec![0xff, 0xff, 0xff, 0x07];
        bytes.resize(20 << 20, 1);
        let refused = LISTS.decode(0, &bytes);
        assert_eq!(refused, Err(CorruptKind::FieldLength(0x00ff_fffe)));
    }
}
