//! Just enough JSON for the two small files that use it.
//!
//! Memory is bounded by the text, nesting by [`DEPTH_MAX`].

use crate::record::CorruptKind;

const MALFORMED: CorruptKind = CorruptKind::Side("malformed JSON");
const DEPTH_MAX: usize = 32;

/// A JSON value. Numbers keep their text, so that no digit of an i64 is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text that holds one value.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, CorruptKind> {
        let text = str::from_utf8(bytes).map_err(|_| MALFORMED)?;
        let mut parser = Parser { rest: text };
        let value = parser.value(0)?;
        parser.skip_space();
        if parser.rest.is_empty() { Ok(value) } else { Err(MALFORMED) }
    }

    /// A field of an object; the last of two with one name.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else {
            return None;
        };
        let field = fields.iter().rev().find(|(key, _)| key == name);
        field.map(|(_, value)| value)
    }

    /// An integer of this type.
    pub(crate) fn integer<T: std::str::FromStr>(&self) -> Option<T> {
        match self {
            Self::Number(text) => text.parse().ok(),
            _ => None,
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Takes a token after white space, if it is next.
    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), CorruptKind> {
        if self.eat(token) { Ok(()) } else { Err(MALFORMED) }
    }

    fn value(&mut self, depth: usize) -> Result<Json, CorruptKind> {
        if depth > DEPTH_MAX {
            return Err(MALFORMED);
        }
        if self.eat("{") {
            self.object(depth)
        } else if self.eat("[") {
            self.list(depth)
        } else if self.eat("\"") {
            self.text().map(Json::Text)
        } else if self.eat("null") {
            Ok(Json::Null)
        } else if self.eat("true") {
            Ok(Json::Bool(true))
        } else if self.eat("false") {
            Ok(Json::Bool(false))
        } else {
            self.number()
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, CorruptKind> {
        let mut fields = Vec::new();
        if self.eat("}") {
            return Ok(Json::Object(fields));
        }
        loop {
            self.expect("\"")?;
            let key = self.text()?;
            self.expect(":")?;
            fields.push((key, self.value(depth + 1)?));
            if self.eat("}") {
                return Ok(Json::Object(fields));
            }
            self.expect(",")?;
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, CorruptKind> {
        let mut items = Vec::new();
        if self.eat("]") {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.eat("]") {
                return Ok(Json::List(items));
            }
            self.expect(",")?;
        }
    }

    fn number(&mut self) -> Result<Json, CorruptKind> {
        let end = self.rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
        let (text, rest) = self
            .rest
            .split_at_checked(end.unwrap_or(self.rest.len()))
            .filter(|(text, _)| text.parse::<f64>().is_ok())
            .ok_or(MALFORMED)?;
        self.rest = rest;
        Ok(Json::Number(text.to_owned()))
    }

    /// The rest of a text whose opening quote is taken.
    fn text(&mut self) -> Result<String, CorruptKind> {
        let mut units: Vec<u16> = Vec::new();
        let mut chars = self.rest.chars();
        loop {
            match chars.next().ok_or(MALFORMED)? {
                '"' => break,
                '\\' => units.push(escape(&mut chars)?),
                '\0'..='\u{1f}' => return Err(MALFORMED),
                plain => units.extend(plain.encode_utf16(&mut [0; 2]).iter()),
            }
        }
        self.rest = chars.as_str();
        String::from_utf16(&units).map_err(|_| MALFORMED)
    }
}

fn escape(chars: &mut std::str::Chars<'_>) -> Result<u16, CorruptKind> {
    let plain = match chars.next().ok_or(MALFORMED)? {
        '"' => '"',
        '\\' => '\\',
        '/' => '/',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            let digit = |c: char| c.to_digit(16).and_then(|digit| u16::try_from(digit).ok());
            let mut unit = 0_u16;
            for _ in 0..4 {
                unit = (unit << 4) | chars.next().and_then(digit).ok_or(MALFORMED)?;
            }
            return Ok(unit);
        }
        _ => return Err(MALFORMED),
    };
    u16::try_from(u32::from(plain)).map_err(|_| MALFORMED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn values_of_every_kind_read() {
        let text = r#" {"a":[1,-2.5e3,true,false,null,{}],"b":"x\"\\\/\n\u00e9\ud83d\ude00","a":9223372036854775807} "#;
        let json = Json::parse(text.as_bytes()).unwrap();
        assert_eq!(json.get("a").unwrap().integer(), Some(i64::MAX));
        assert_eq!(json.get("b"), Some(&Json::Text("x\"\\/\né😀".to_owned())));
        assert_eq!(json.get("c"), None);
        assert_eq!(Json::parse(b"[]"), Ok(Json::List(Vec::new())));
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "\"x",
            "\"\\x\"",
            "\"\\ud800\"",
            "nul",
            "1 2",
            "[1",
            "--1",
            "\"\n\"",
            "{\"a\":1,}",
            "+",
            "e",
        ] {
            assert!(Json::parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(Json::parse(&[b'"', 0xff, b'"']).is_err());
        let deep = "[".repeat(100_000);
        assert!(Json::parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn random_text_never_panics() {
        let mut random = Random::new(10);
        for _ in 0..100_000 {
            let bytes: Vec<u8> = (0..random.below(24))
                .map(|_| *random.pick(b"{}[]\",:\\u0d81e-. nulltruefalse\xc3\xa9"))
                .collect();
            let _ = Json::parse(&bytes);
        }
    }
}
