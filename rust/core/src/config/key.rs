//! One row of a configuration's table: a name, the broker's names for it, and its value.

use super::suggest;
use crate::error::{Error, Result};

/// A name of a configuration of type `C`.
pub(super) struct Key<C: 'static> {
    /// The topic's name, or the broker's when topics have none.
    pub(super) name: &'static str,
    /// The broker's names for it, the strongest first.
    pub(super) synonyms: &'static [Synonym],
    /// Where and how it is kept.
    pub(super) slot: Slot<C>,
}

/// A broker's name for a topic's setting.
pub(super) struct Synonym {
    pub(super) name: &'static str,
    /// What a value of this name is multiplied with.
    pub(super) unit: i64,
    /// What the broker refuses although a topic may have it, after the range of the topic.
    pub(super) refuses_zero: bool,
}

impl Synonym {
    /// A name with the same unit and range as the topic's.
    pub(super) const fn same(name: &'static str) -> Self {
        Self { name, unit: 1, refuses_zero: false }
    }

    /// A name in another unit, where 0 is refused.
    pub(super) const fn retention(name: &'static str, unit: i64) -> Self {
        Self { name, unit, refuses_zero: true }
    }

    /// A name in another unit.
    pub(super) const fn scaled(name: &'static str, unit: i64) -> Self {
        Self { name, unit, refuses_zero: false }
    }
}

/// Where a value is kept, and what it may be.
pub(super) enum Slot<C> {
    /// A whole number of Kafka's type long.
    Long { at: fn(&mut C) -> &mut i64, min: i64 },
    /// A whole number of Kafka's type int that is not negative.
    Int { at: fn(&mut C) -> &mut u32, min: u32 },
    /// `true` or `false`.
    Bool { at: fn(&mut C) -> &mut bool },
    /// A number between two bounds.
    Double { at: fn(&mut C) -> &mut f64, min: f64, max: f64 },
    /// Anything else: `set` is false for a value that is not allowed.
    Other { allowed: &'static str, set: fn(&mut C, &str) -> bool, get: fn(&C) -> Option<String> },
}

/// The largest value of Kafka's type int.
const INT_MAX: u32 = 2_147_483_647;

impl<C: Clone> Key<C> {
    /// Sets the value from the pair that is strongest for this key, if one is there.
    pub(super) fn apply(&self, config: &mut C, pairs: &[(&str, &str)]) -> Result<()> {
        // Of two values for the same name the last wins, as in a properties file.
        let find = |name: &str| pairs.iter().rev().find(|(key, _)| *key == name);
        if let Some((name, value)) = find(self.name) {
            return self.set(config, name, value, 1, false);
        }
        for synonym in self.synonyms {
            if let Some((name, value)) = find(synonym.name) {
                return self.set(config, name, value, synonym.unit, synonym.refuses_zero);
            }
        }
        Ok(())
    }

    /// Whether a name is the key's or one of its synonyms.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// The name and its synonyms.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.synonyms.iter().map(|synonym| synonym.name))
    }

    fn set(
        &self,
        config: &mut C,
        name: &str,
        value: &str,
        unit: i64,
        refuses_zero: bool,
    ) -> Result<()> {
        let value = value.trim();
        let stored = match &self.slot {
            Slot::Long { at, min } => {
                scaled(value, unit, *min, refuses_zero).map(|number| *at(config) = number).is_some()
            }
            Slot::Int { at, min } => {
                let number = value.parse().ok().filter(|number| (*min..=INT_MAX).contains(number));
                number.map(|number| *at(config) = number).is_some()
            }
            Slot::Bool { at } => boolean(value).map(|flag| *at(config) = flag).is_some(),
            Slot::Double { at, min, max } => {
                let number = value.parse().ok().filter(|number| (*min..=*max).contains(number));
                number.map(|number| *at(config) = number).is_some()
            }
            Slot::Other { set, .. } => set(config, value),
        };
        if stored {
            return Ok(());
        }
        let allowed = self.slot.allowed(unit, refuses_zero);
        Err(Error::Invalid(format!("{name} cannot be {value:?}: it takes {allowed}")))
    }

    /// The value as Kafka prints it; `None` for one that is not set.
    pub(super) fn get(&self, config: &C) -> Option<String> {
        let mut copy = config.clone();
        match &self.slot {
            Slot::Long { at, .. } => Some(at(&mut copy).to_string()),
            Slot::Int { at, .. } => Some(at(&mut copy).to_string()),
            Slot::Bool { at } => Some(at(&mut copy).to_string()),
            // Java prints at least one digit after the point.
            Slot::Double { at, .. } => Some(format!("{:?}", at(&mut copy))),
            Slot::Other { get, .. } => get(config),
        }
    }
}

impl<C> Slot<C> {
    fn allowed(&self, unit: i64, refuses_zero: bool) -> String {
        match self {
            // A bound of a smaller unit is the same bound, or 1, in a larger one.
            Self::Long { min, .. } if refuses_zero => {
                format!("a whole number, {min} or from 1 up{}", up_to(unit))
            }
            Self::Long { min: i64::MIN, .. } => format!("a whole number{}", up_to(unit)),
            Self::Long { min, .. } => format!("a whole number from {min} up{}", up_to(unit)),
            Self::Int { min, .. } => format!("a whole number from {min} to {INT_MAX}"),
            Self::Bool { .. } => "true or false".to_owned(),
            Self::Double { min, max, .. } => format!("a number from {min} to {max}"),
            Self::Other { allowed, .. } => (*allowed).to_owned(),
        }
    }
}

fn up_to(unit: i64) -> String {
    if unit == 1 { String::new() } else { format!(" to {INT_MAX}") }
}

/// A whole number in our unit, if it is in the range.
fn scaled(text: &str, unit: i64, min: i64, refuses_zero: bool) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    if refuses_zero && number == 0 {
        return None;
    }
    if unit == 1 {
        return (number >= min).then_some(number);
    }
    // Kafka reads the names in hours and minutes as int, and any negative one as "without end".
    let number = i64::from(i32::try_from(number).ok()?);
    if number < 0 && refuses_zero {
        return Some(-1);
    }
    number.checked_mul(unit).filter(|scaled| *scaled >= min)
}

fn boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        return Some(true);
    }
    text.eq_ignore_ascii_case("false").then_some(false)
}

/// The elements of a list, as Kafka splits them.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim();
    text.split(',').map(str::trim).filter(move |_| !text.is_empty())
}

/// The error for a name that nobody knows.
pub(super) fn unknown(name: &str, known: impl Iterator<Item = &'static str>) -> Error {
    const REMOVED: [&str; 6] = [
        "message.format.version",
        "log.message.format.version",
        "message.downconversion.enable",
        "message.timestamp.difference.max.ms",
        "log.message.timestamp.difference.max.ms",
        "inter.broker.protocol.version",
    ];
    if REMOVED.contains(&name) {
        return Error::Invalid(format!("{name} is no configuration since Kafka 4.0"));
    }
    Error::Invalid(match suggest::nearest(name, known) {
        Some(nearest) => format!("unknown configuration {name:?}; did you mean {nearest:?}?"),
        None => format!("unknown configuration {name:?}"),
    })
}
