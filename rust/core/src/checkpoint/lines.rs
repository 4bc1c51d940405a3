//! The framing that offset and leader-epoch checkpoints share.
//!
//! ```text
//! 0            version
//! 2            number of entries
//! …            one line per entry, fields separated by white space
//! ```
//!
//! 1. A file of no bytes, or with the version line alone, holds no entries.
//! 2. The number of entries is exact. Every line is terminated when written; a missing last
//!    terminator is accepted when read.

use crate::record::CorruptKind;

/// Reads a checkpoint, giving the `N` fields of every entry line to `entry`.
pub(super) fn decode<const N: usize>(
    bytes: &[u8],
    mut entry: impl FnMut([&str; N]) -> Result<(), CorruptKind>,
) -> Result<(), CorruptKind> {
    let text = text(bytes)?;
    let mut lines = lines(text);
    let Some(version) = lines.next() else {
        return Ok(());
    };
    if number::<i32>(version)? != 0 {
        return Err(CorruptKind::Side("checkpoint version is not 0"));
    }
    let Some(count) = lines.next() else {
        return Ok(());
    };
    let count: i32 = number(count)?;
    let mut found = 0_i32;
    for line in lines {
        let fields = fields(line)
            .ok_or(CorruptKind::Side("checkpoint entry has a wrong number of fields"))?;
        entry(fields)?;
        found = found.saturating_add(1);
    }
    if found == count {
        Ok(())
    } else {
        Err(CorruptKind::Side("checkpoint count does not match its entries"))
    }
}

/// Writes a checkpoint from its entry lines.
pub(super) fn encode(entries: impl ExactSizeIterator<Item = String>) -> Vec<u8> {
    let mut output = format!("0\n{}\n", entries.len());
    for entry in entries {
        output.push_str(&entry);
        output.push('\n');
    }
    output.into_bytes()
}

/// The file's text.
pub(super) fn text(bytes: &[u8]) -> Result<&str, CorruptKind> {
    str::from_utf8(bytes).map_err(|_| CorruptKind::Side("file is not UTF-8"))
}

/// A decimal number, as Java reads it: a sign and leading zeros are allowed.
pub(super) fn number<T: std::str::FromStr>(text: &str) -> Result<T, CorruptKind> {
    text.parse().map_err(|_| CorruptKind::Side("a number of the checkpoint does not parse"))
}

/// Lines ended by `\n`, `\r` or `\r\n`; the last one need not be ended.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let (line, tail) = rest.split_at_checked(end)?;
        rest =
            tail.strip_prefix("\r\n").or_else(|| tail.strip_prefix(['\n', '\r'])).unwrap_or(tail);
        Some(line)
    })
}

/// Exactly `N` fields between runs of white space. White space before the first field makes an
/// empty field, white space after the last does not, as in Java.
fn fields<const N: usize>(line: &str) -> Option<[&str; N]> {
    let space = |c: char| matches!(c, ' ' | '\t' | '\u{b}' | '\u{c}');
    if line.starts_with(space) {
        return None;
    }
    let mut found = line.split(space).filter(|field| !field.is_empty());
    let mut fields = [""; N];
    for field in &mut fields {
        *field = found.next()?;
    }
    found.next().is_none().then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<[String; 2]>, CorruptKind> {
        let mut found = Vec::new();
        decode(text.as_bytes(), |fields: [&str; 2]| {
            found.push(fields.map(str::to_owned));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn nothing_and_a_version_alone_are_empty() {
        for text in ["", "0", "0\n", "0\n0\n", "0\r\n0", "+0\n00\n"] {
            assert_eq!(read(text), Ok(Vec::new()), "{text:?}");
        }
    }

    #[test]
    fn line_ends_and_spaces_follow_java() {
        for text in ["0\n1\na b\n", "0\n1\na b", "0\r\n1\r\na b\r\n", "0\r1\ra\t \u{b}b  "] {
            assert_eq!(read(text), Ok(vec![["a".to_owned(), "b".to_owned()]]), "{text:?}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "1\n0\n",
            "-1\n0\n",
            "x\n0\n",
            "\n",
            "0\n\n",
            "0\n-1\n",
            "0\n2\na b\n",
            "0\n0\na b\n",
            "0\n1\na\n",
            "0\n1\na b c\n",
            "0\n1\n a b\n",
            "0\n1\na b\n\n",
            "0 \n0\n",
            "0\n9999999999\n",
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
        assert!(decode(&[b'0', b'\n', 0xff], |_: [&str; 2]| Ok(())).is_err());
    }
}
