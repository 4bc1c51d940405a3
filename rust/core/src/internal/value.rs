//! A decoded message, whatever its type.

use crate::uuid::Uuid;

/// A value of a decoded message.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Null, or no value at all: a tombstone.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer of any width.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes that Kafka does not interpret here, or that this release cannot.
    Bytes(Vec<u8>),
    /// An identifier.
    Uuid(Uuid),
    /// An array.
    List(Vec<Value>),
    /// Fields by Kafka's names, in the order of the bytes. Fields that the version does not have
    /// and tagged fields that were not written are left out.
    Record(Vec<(&'static str, Value)>),
}

impl Value {
    /// A field of a record.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Record(fields) => {
                let field = fields.iter().find(|(field, _)| *field == name);
                field.map(|(_, value)| value)
            }
            _ => None,
        }
    }
}
