//! Keys and values of the topics that Kafka keeps for itself.
//!
//! | topic | key | value |
//! |---|---|---|
//! | `__consumer_offsets`, `__transaction_state`, `__share_group_state` | i16 type, message in plain encoding | i16 version, message; null deletes |
//! | `__cluster_metadata` | null | uvarint frame version (1), uvarint type, uvarint version, message |
//!
//! Each record type is a table of fields with their versions; one reader serves them all. What a
//! newer release added does not stop a reader: a type or version without a table keeps its bytes.
//! Control records of these topics are those of [`crate::record::ControlRecord`];
//! [`decode_control`] gives them in the same form.

mod control;
mod group_types;
mod metadata;
mod offsets;
mod schema;
mod share_state;
mod snapshot;
#[cfg(test)]
mod tests;
mod transaction;
mod value;

use std::borrow::Cow;

pub use control::decode_control;
pub use snapshot::{MetadataSnapshot, SnapshotRecord};
pub use value::Value;

use crate::bytes::Reader;
use crate::record::CorruptKind;
use crate::record::varint::read_unsigned;
use schema::{Field, Message};

/// A decoded record of an internal topic.
#[derive(Debug, Clone, PartialEq)]
pub struct InternalRecord {
    /// Kafka's name of the record type, or `unknown(<number>)`.
    pub kind: Cow<'static, str>,
    /// Version of the value; −1 for a tombstone and for an unknown type.
    pub version: i16,
    /// The key; null in the metadata log, bytes for an unknown type.
    pub key: Value,
    /// The value; null for a tombstone, bytes for an unknown type or version.
    pub value: Value,
}

/// Whether [`decode_internal`] knows a topic.
pub fn is_internal(topic: &str) -> bool {
    topic == METADATA_TOPIC || by_number(topic).is_some()
}

/// Decodes a record of `__consumer_offsets`, `__transaction_state`, `__share_group_state` or
/// `__cluster_metadata`.
pub fn decode_internal(
    topic: &str,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<InternalRecord, CorruptKind> {
    if topic == METADATA_TOPIC {
        return decode_metadata(key, value);
    }
    let types = by_number(topic).ok_or(CorruptKind::Message("its topic is not internal"))?;
    let key = key.ok_or(CorruptKind::Message("its key is missing"))?;
    let (id, body) = split_number(key)?;
    let Some(keyed) = types(id) else {
        return Ok(unknown(id.into(), Some(key), value));
    };
    let (version, decoded) = keyed.decode_value(value)?;
    Ok(InternalRecord {
        kind: Cow::Borrowed(keyed.kind),
        version,
        key: Message::plain(0, keyed.key).decode(0, body)?,
        value: decoded,
    })
}

const METADATA_TOPIC: &str = "__cluster_metadata";

/// A record type whose key starts with its number.
#[derive(Debug)]
struct Keyed {
    id: i16,
    kind: &'static str,
    key: &'static [Field],
    value: Message,
    /// Layouts of early releases differ under the same version.
    unsettled: bool,
}

const fn keyed(id: i16, kind: &'static str, key: &'static [Field], value: Message) -> Keyed {
    Keyed { id, kind, key, value, unsettled: false }
}

impl Keyed {
    /// Values that do not fit the table are given as bytes.
    const fn unsettled(self) -> Self {
        Self { unsettled: true, ..self }
    }

    fn decode_value(&self, value: Option<&[u8]>) -> Result<(i16, Value), CorruptKind> {
        let Some(bytes) = value else {
            return Ok((-1, Value::Null));
        };
        let (version, body) = split_number(bytes)?;
        if !self.value.knows(version) {
            return Ok((version, Value::Bytes(bytes.to_vec())));
        }
        match self.value.decode(version, body) {
            Ok(mut decoded) => {
                if self.kind == "GroupMetadata" {
                    offsets::open_consumer_protocol(&mut decoded);
                }
                Ok((version, decoded))
            }
            Err(_) if self.unsettled => Ok((version, Value::Bytes(bytes.to_vec()))),
            Err(kind) => Err(kind),
        }
    }
}

type Types = fn(i16) -> Option<&'static Keyed>;

/// How the types of a topic are found by their number.
fn by_number(topic: &str) -> Option<Types> {
    match topic {
        "__consumer_offsets" => Some(offsets::by_id),
        "__transaction_state" => Some(|id| transaction::TYPES.iter().find(|keyed| keyed.id == id)),
        "__share_group_state" => Some(|id| share_state::TYPES.iter().find(|keyed| keyed.id == id)),
        _ => None,
    }
}

fn decode_metadata(
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<InternalRecord, CorruptKind> {
    let bytes = value.ok_or(CorruptKind::Message("its value is missing"))?;
    let mut rest = bytes;
    let mut next = || -> Result<u32, CorruptKind> {
        let (number, taken) = read_unsigned(rest)?;
        rest = rest.get(taken..).unwrap_or_default();
        Ok(number)
    };
    if next()? != 1 {
        return Err(CorruptKind::Message("its frame version is not 1"));
    }
    let (id, version) = (next()?, next()?);
    let version =
        i16::try_from(version).map_err(|_| CorruptKind::Message("its version is out of range"))?;
    let Some(known) = metadata::TYPES.iter().find(|known| known.id == id) else {
        return Ok(unknown(id.into(), key, value));
    };
    let decoded = if known.message.knows(version) {
        known.message.decode(version, rest)?
    } else {
        Value::Bytes(bytes.to_vec())
    };
    Ok(InternalRecord { kind: Cow::Borrowed(known.kind), version, key: raw(key), value: decoded })
}

fn unknown(id: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> InternalRecord {
    InternalRecord {
        kind: Cow::Owned(format!("unknown({id})")),
        version: -1,
        key: raw(key),
        value: raw(value),
    }
}

fn raw(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| Value::Bytes(bytes.to_vec()))
}

/// The i16 that starts a key or value, and what follows it.
fn split_number(bytes: &[u8]) -> Result<(i16, &[u8]), CorruptKind> {
    let mut reader = Reader::new(bytes, CorruptKind::Message("it is cut off"));
    Ok((reader.i16()?, reader.rest()))
}
