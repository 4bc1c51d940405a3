//! Java's properties text: `meta.properties` and configuration files.
//!
//! 1. Bytes are ISO-8859-1; other characters are `\uXXXX`, in UTF-16.
//! 2. A line whose first visible character is `#` or `!` is a comment; blank lines are skipped.
//! 3. A backslash at the end of a line joins the next one, without its leading white space.
//! 4. The key ends at the first `=`, `:` or white space that no backslash precedes; white space
//!    around the separator is dropped, white space at the end of the value is kept.
//! 5. `\t \n \r \f` are control characters; any other escaped character stands for itself.
//! 6. Of two values for a key the last wins.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::record::CorruptKind;

/// Keys and values, in order of the keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    values: BTreeMap<String, String>,
}

impl Properties {
    /// Reads properties text.
    pub fn decode(bytes: &[u8]) -> Result<Self, CorruptKind> {
        let mut values = BTreeMap::new();
        for line in (LogicalLines { rest: bytes }) {
            let (key, value) = split_key(&line);
            values.insert(unescape(key)?, unescape(value)?);
        }
        Ok(Self { values })
    }

    /// The text as Java stores it: an empty comment, the date, one line per key.
    pub fn encode(&self, written_ms: i64) -> Vec<u8> {
        let mut output = format!("#\n#{}\n", java_date(written_ms));
        for (key, value) in &self.values {
            escape(key, true, &mut output);
            output.push('=');
            escape(value, false, &mut output);
            output.push('\n');
        }
        output.into_bytes()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: &str, value: impl Into<String>) {
        self.values.insert(key.to_owned(), value.into());
    }

    /// Every key with its value, in order of the keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// Lines without comments and blanks, continuations joined, escapes still in place.
struct LogicalLines<'a> {
    rest: &'a [u8],
}

impl LogicalLines<'_> {
    /// The next line as it stands, leading white space dropped.
    fn natural(&mut self) -> Option<&[u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let (line, tail) = self.rest.split_at_checked(end.unwrap_or(self.rest.len()))?;
        self.rest = match tail {
            [b'\r', b'\n', tail @ ..] | [_, tail @ ..] => tail,
            [] => tail,
        };
        let start = line.iter().position(|byte| !is_space(*byte));
        line.get(start.unwrap_or(line.len())..)
    }
}

impl Iterator for LogicalLines<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut logical = loop {
            let line = self.natural()?;
            if !matches!(line.first(), None | Some(b'#' | b'!')) {
                break line.to_vec();
            }
        };
        while continues(&logical) {
            logical.pop();
            let Some(line) = self.natural() else { break };
            logical.extend_from_slice(line);
            if line.is_empty() {
                break;
            }
        }
        Some(logical)
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0c)
}

/// An odd number of backslashes ends the line.
fn continues(line: &[u8]) -> bool {
    let backslashes = line.iter().rev().take_while(|byte| **byte == b'\\').count();
    backslashes % 2 == 1
}

/// Splits a logical line at its separator.
fn split_key(line: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    let end = line.iter().position(|byte| {
        let ends = !escaped && (is_space(*byte) || matches!(byte, b'=' | b':'));
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    let (key, rest) = line.split_at_checked(end.unwrap_or(line.len())).unwrap_or((line, &[]));
    let rest = skip_spaces(rest);
    let value = match rest {
        [b'=' | b':', value @ ..] => skip_spaces(value),
        _ => rest,
    };
    (key, value)
}

fn skip_spaces(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !is_space(*byte));
    bytes.get(start.unwrap_or(bytes.len())..).unwrap_or_default()
}

fn unescape(raw: &[u8]) -> Result<String, CorruptKind> {
    let mut units: Vec<u16> = Vec::with_capacity(raw.len());
    let mut rest = raw.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            units.push(u16::from(byte));
            continue;
        }
        match rest.next() {
            Some(b'u') => units.push(hex_unit(&mut rest)?),
            Some(b't') => units.push(0x09),
            Some(b'n') => units.push(0x0a),
            Some(b'r') => units.push(0x0d),
            Some(b'f') => units.push(0x0c),
            Some(other) => units.push(u16::from(other)),
            None => {}
        }
    }
    String::from_utf16(&units)
        .map_err(|_| CorruptKind::Side("properties hold half a surrogate pair"))
}

fn hex_unit(rest: &mut impl Iterator<Item = u8>) -> Result<u16, CorruptKind> {
    let mut unit = 0_u16;
    for _ in 0..4 {
        let digit = rest
            .next()
            .and_then(|byte| char::from(byte).to_digit(16))
            .and_then(|digit| u16::try_from(digit).ok())
            .ok_or(CorruptKind::Side("properties hold a malformed \\u escape"))?;
        unit = (unit << 4) | digit;
    }
    Ok(unit)
}

/// Appends a key or value so that Java reads it back.
fn escape(text: &str, is_key: bool, output: &mut String) {
    for (index, character) in text.chars().enumerate() {
        match character {
            ' ' if is_key || index == 0 => output.push_str("\\ "),
            '\t' => output.push_str("\\t"),
            '\n' => output.push_str("\\n"),
            '\r' => output.push_str("\\r"),
            '\u{c}' => output.push_str("\\f"),
            '\\' | '=' | ':' | '#' | '!' => {
                output.push('\\');
                output.push(character);
            }
            ' '..='~' => output.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(output, "\\u{unit:04X}");
                }
            }
        }
    }
}

/// A moment as Java prints it, in UTC: `Tue Nov 14 22:13:20 UTC 2023`.
fn java_date(ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"];
    let name = |names: &'static [&'static str], index: i64| {
        let index = usize::try_from(index).unwrap_or(0);
        names.get(index).copied().unwrap_or_default()
    };
    let seconds = ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years are counted from March, so that a leap day ends its year, in eras of 400 years.
    let since_march = days.saturating_add(719_468);
    let (era, day) = (since_march.div_euclid(146_097), since_march.rem_euclid(146_097));
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era + i64::from(month >= 10);
    format!(
        "{} {} {day_of_month:02} {:02}:{:02}:{:02} UTC {year}",
        name(&DAYS, days.rem_euclid(7)),
        name(&MONTHS, month),
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn read(text: &str) -> Vec<(String, String)> {
        let properties = Properties::decode(text.as_bytes()).unwrap();
        properties.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn one(text: &str) -> (String, String) {
        let mut found = read(text);
        assert_eq!(found.len(), 1, "{text:?} → {found:?}");
        found.remove(0)
    }

    #[test]
    fn separators_and_spaces_follow_java() {
        for text in
            ["a=b", "a:b", "a b", "  a = b", "a\t:\u{c}b", "a   b", "a=b\r\n", "\n\r\n a=b\r"]
        {
            assert_eq!(one(text), ("a".into(), "b".into()), "{text:?}");
        }
        assert_eq!(one("a==b"), ("a".into(), "=b".into()));
        assert_eq!(one("a = b "), ("a".into(), "b ".into()));
        assert_eq!(one("a"), ("a".into(), String::new()));
        assert_eq!(one("=b"), (String::new(), "b".into()));
        assert_eq!(one("a b = c"), ("a".into(), "b = c".into()));
        assert_eq!(one("a=1\na=2"), ("a".into(), "2".into()));
    }

    #[test]
    fn comments_and_continuations_follow_java() {
        assert_eq!(read("# a=b \\\n! c=d\n  #e\n\n   \n"), []);
        assert_eq!(one("a=b,\\\n   c,\\\r\n\td"), ("a".into(), "b,c,d".into()));
        assert_eq!(one("a=b\\\n#c"), ("a".into(), "b#c".into()));
        assert_eq!(one("a=b\\"), ("a".into(), "b".into()));
        assert_eq!(read("a=b\\\n\nc=d").len(), 2);
        assert_eq!(one("a=b\\\\"), ("a".into(), "b\\".into()));
        assert_eq!(one("a\\\n  b=c"), ("ab".into(), "c".into()));
    }

    #[test]
    fn escapes_follow_java() {
        assert_eq!(one("a\\ b\\=\\:\\#=c"), ("a b=:#".into(), "c".into()));
        assert_eq!(one("a=\\t\\n\\r\\f\\q\\\"\\\\"), ("a".into(), "\t\n\r\u{c}q\"\\".into()));
        assert_eq!(one("a=\\u00e9\\ud83D\\uDE00"), ("a".into(), "é😀".into()));
        let latin = Properties::decode(&[b'a', b'=', 0xe9]).unwrap();
        assert_eq!(latin.get("a"), Some("é"));
        for text in ["a=\\u12", "a=\\u12g4", "a=\\ud800", "\\u=1"] {
            assert!(Properties::decode(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn dates_print_as_in_java() {
        for (ms, text) in [
            (0, "Thu Jan 01 00:00:00 UTC 1970"),
            (1_700_000_000_000, "Tue Nov 14 22:13:20 UTC 2023"),
            (951_782_399_999, "Mon Feb 28 23:59:59 UTC 2000"),
            (951_782_400_000, "Tue Feb 29 00:00:00 UTC 2000"),
            (4_107_542_400_000, "Mon Mar 01 00:00:00 UTC 2100"),
            (-1, "Wed Dec 31 23:59:59 UTC 1969"),
        ] {
            assert_eq!(java_date(ms), text);
        }
        let _ = (java_date(i64::MIN), java_date(i64::MAX));
    }

    #[test]
    fn whatever_is_written_reads_back() {
        const LETTERS: [char; 18] = [
            'a', ' ', '=', ':', '#', '!', '\\', '\n', '\r', '\t', '\u{c}', 'u', '0', 'é', '\u{0}',
            '😀', '\u{7f}', '\u{ffff}',
        ];
        let mut random = Random::new(8);
        let text = |random: &mut Random| -> String {
            (0..random.below(12)).map(|_| *random.pick(&LETTERS)).collect()
        };
        for _ in 0..50_000 {
            let mut properties = Properties::default();
            for _ in 0..random.below(4) {
                let (key, value) = (text(&mut random), text(&mut random));
                properties.insert(&key, value);
            }
            let bytes = properties.encode(0);
            assert_eq!(Properties::decode(&bytes).as_ref(), Ok(&properties));
        }
    }

    #[test]
    fn random_text_never_panics() {
        let mut random = Random::new(9);
        for _ in 0..100_000 {
            let bytes: Vec<u8> = (0..random.below(24))
                .map(|_| *random.pick(b"ab=: \\\\\\u0d8#!\n\r\t\x0c\xe9"))
                .collect();
            let _ = Properties::decode(&bytes);
        }
    }
}
