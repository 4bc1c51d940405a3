//! Kafka's identifiers of topics, directories and incarnations.
//!
//! The text form is URL-safe base64 of the 16 bytes without padding, always 22 characters. Names of
//! directories under deletion carry the same 16 bytes as 32 lowercase hexadecimal digits.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A 128-bit identifier, most significant byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Uuid {
    /// All zero: no identifier. As a directory it means "migrating".
    pub const ZERO: Self = Self([0; 16]);

    /// The topic id of `__cluster_metadata`. As a directory it means "unassigned".
    pub const ONE: Self = Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

    /// Whether this is one of the hundred values that never identify a directory.
    pub fn is_reserved(self) -> bool {
        u128::from_be_bytes(self.0) < 100
    }

    /// A new identifier. As in Kafka its text never begins with a dash, so that it can be given on a
    /// command line.
    pub fn random() -> Self {
        loop {
            // The standard library seeds each of these from the operating system.
            let half = || RandomState::new().build_hasher().finish();
            let id = Self(((u128::from(half()) << 64) | u128::from(half())).to_be_bytes());
            if !id.is_reserved() && !id.to_string().starts_with('-') {
                return id;
            }
        }
    }

    /// Reads the text form. Padding is accepted and the unused low bits of the last character are
    /// ignored, as Kafka does.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = match text.len() {
            22 => text,
            24 => text.strip_suffix("==")?,
            _ => return None,
        };
        let mut value = 0_u128;
        let (last, most) = digits.as_bytes().split_last()?;
        for digit in most {
            value = (value << 6) | u128::from(sextet(*digit)?);
        }
        // 21 characters carry 126 bits; the last one adds two.
        value = (value << 2) | u128::from(sextet(*last)? >> 4);
        Some(Self(value.to_be_bytes()))
    }

    /// Reads 32 lowercase hexadecimal digits.
    pub fn parse_hex(text: &str) -> Option<Self> {
        let lowercase = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 32 || !text.bytes().all(lowercase) {
            return None;
        }
        let value = u128::from_str_radix(text, 16).ok()?;
        Some(Self(value.to_be_bytes()))
    }

    /// The 32 lowercase hexadecimal digits.
    pub fn hex(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }
}

fn sextet(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = u128::from_be_bytes(self.0);
        let digits = (0..22).map(|place| {
            let sextet = if place == 21 { value << 4 } else { value >> (122 - place * 6) };
            let index = usize::try_from(sextet & 0x3f).unwrap_or(0);
            char::from(ALPHABET.get(index).copied().unwrap_or(b'A'))
        });
        f.write_str(&digits.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn the_published_example_reads_and_writes() {
        let id = Uuid([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(id.to_string(), "AAECAwQFBgcICQoLDA0ODw");
        assert_eq!(Uuid::parse("AAECAwQFBgcICQoLDA0ODw"), Some(id));
        assert_eq!(Uuid::parse("AAECAwQFBgcICQoLDA0ODw=="), Some(id));
        assert_eq!(Uuid::ONE.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(id.hex(), "000102030405060708090a0b0c0d0e0f");
    }

    #[test]
    fn other_lengths_and_alphabets_are_refused() {
        for text in [
            "",
            "AAECAwQFBgcICQoLDA0OD",
            "AAECAwQFBgcICQoLDA0ODw=",
            "AAECAwQFBgcICQoLDA0ODwAA",
            "AAECAwQFBgcICQoLDA0OD+",
            "AAECAwQFBgcICQoLDA0OD/",
            "AAECAwQFBgcICQoLDA0=Dw",
            "ääääääääääää",
        ] {
            assert_eq!(Uuid::parse(text), None, "{text}");
        }
        assert_eq!(Uuid::parse_hex("000102030405060708090A0B0C0D0E0F"), None);
        assert_eq!(Uuid::parse_hex("+00102030405060708090a0b0c0d0e0f"), None);
    }

    #[test]
    fn every_identifier_survives_both_texts() {
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let id =
                Uuid((u128::from(random.next()) << 64 | u128::from(random.next())).to_be_bytes());
            assert_eq!(id.to_string().len(), 22);
            assert_eq!(Uuid::parse(&id.to_string()), Some(id));
            assert_eq!(Uuid::parse_hex(&id.hex()), Some(id));
        }
    }

    #[test]
    fn a_hundred_values_are_reserved() {
        assert!(Uuid::ZERO.is_reserved() && Uuid::ONE.is_reserved());
        assert!(Uuid(99_u128.to_be_bytes()).is_reserved());
        assert!(!Uuid(100_u128.to_be_bytes()).is_reserved());
        assert!(!Uuid((1_u128 << 64).to_be_bytes()).is_reserved());
    }
}
