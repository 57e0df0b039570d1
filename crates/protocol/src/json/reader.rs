//! Reads JSON text by the grammar of RFC 8259, byte by byte.
//! Every bound acts before the step it guards: bytes before anything, depth before recursion, count before
//! allocation. Duplicate names cost a sort, never a comparison of all pairs.

use std::ops::Range;

use super::{Json, JsonError, JsonErrorKind, Limits, MAX_DEPTH, MAX_VALUES, Number};

/// Up to this many members a new name is compared with each earlier one; beyond it the names are sorted once.
const FEW: usize = 16;

pub(super) fn document(bytes: &[u8], limits: Limits) -> Result<Json, JsonError> {
    if bytes.len() > limits.bytes {
        return Err(JsonError { kind: JsonErrorKind::TooLarge, at: limits.bytes });
    }
    if [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| bytes.starts_with(mark)) {
        return Err(JsonError { kind: JsonErrorKind::ByteOrderMark, at: 0 });
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| JsonError { kind: JsonErrorKind::NotUtf8, at: error.valid_up_to() })?;
    let mut reader = Reader { text, at: 0, room: limits.depth.min(MAX_DEPTH), values: 0 };
    let value = reader.value()?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.fault(JsonErrorKind::TrailingBytes)),
    }
}

pub(super) fn locate(bytes: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut reader = Reader { text, at: 0, room: 0, values: 0 };
    reader.skip_space();
    for name in path {
        reader.enter(name)?;
    }
    let start = reader.at;
    reader.skip_value()?;
    Some(start..reader.at)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// Containers that may still be opened.
    room: usize,
    values: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Json, JsonError> {
        self.skip_space();
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.fault(JsonErrorKind::TooLarge));
        }
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => Ok(Json::Number(self.number()?)),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.unexpected()),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Json, JsonError>) -> Result<Json, JsonError> {
        self.room = self.room.checked_sub(1).ok_or_else(|| self.fault(JsonErrorKind::TooDeep))?;
        self.at += 1;
        self.skip_space();
        let value = read(self)?;
        self.room += 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Json, JsonError> {
        let mut elements = Vec::new();
        if self.eat(b']') {
            return Ok(Json::Array(elements));
        }
        loop {
            elements.push(self.value()?);
            self.skip_space();
            if self.eat(b']') {
                return Ok(Json::Array(elements));
            }
            self.expect(b',')?;
        }
    }

    fn object(&mut self) -> Result<Json, JsonError> {
        let mut members: Vec<(String, Json)> = Vec::new();
        // Offsets of the names from the FEW-th on, to say where a duplicate found by sorting stands.
        let mut later = Vec::new();
        if self.eat(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_space();
            let start = self.at;
            let name = self.string()?;
            if members.len() >= FEW {
                later.push(start);
            } else if members.iter().any(|(earlier, _)| *earlier == name) {
                return Err(JsonError { kind: JsonErrorKind::DuplicateMember, at: start });
            }
            self.skip_space();
            self.expect(b':')?;
            members.push((name, self.value()?));
            self.skip_space();
            if self.eat(b'}') {
                return match first_duplicate(&members, &later) {
                    None => Ok(Json::Object(members)),
                    Some(at) => Err(JsonError { kind: JsonErrorKind::DuplicateMember, at }),
                };
            }
            self.expect(b',')?;
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.expect(b'"')?;
        let mut decoded = String::new();
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
            let end = self.at + rest.iter().position(special).unwrap_or(rest.len());
            decoded.push_str(self.text.get(self.at..end).unwrap_or_default());
            self.at = end;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => decoded.push(self.escape()?),
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.at += 1;
        let plain = match self.peek() {
            Some(same @ (b'"' | b'\\' | b'/')) => char::from(same),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape(start);
            }
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(plain)
    }

    /// The four digits after `\u`, and the second half of a surrogate pair where they are the first.
    fn unicode_escape(&mut self, start: usize) -> Result<char, JsonError> {
        let lone = JsonError { kind: JsonErrorKind::LoneSurrogate, at: start };
        let first = self.four_digits()?;
        let code = match first {
            0xd800..=0xdbff => {
                if !(self.eat(b'\\') && self.eat(b'u')) {
                    return Err(lone);
                }
                match self.four_digits()? {
                    second @ 0xdc00..=0xdfff => 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => return Err(lone),
                }
            }
            code => code,
        };
        char::from_u32(code).ok_or(lone)
    }

    fn four_digits(&mut self) -> Result<u32, JsonError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.unexpected())?;
            self.at += 1;
        }
        Ok(code)
    }

    fn number(&mut self) -> Result<Number, JsonError> {
        let start = self.at;
        let bad = JsonError { kind: JsonErrorKind::BadNumber, at: start };
        self.eat(b'-');
        let zero = self.peek() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || (zero && whole > 1) {
            return Err(bad);
        }
        if self.eat(b'.') && self.digits() == 0 {
            return Err(bad);
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _sign = self.eat(b'+') || self.eat(b'-');
            if self.digits() == 0 {
                return Err(bad);
            }
        }
        self.text.get(start..self.at).map(|text| Number(text.into())).ok_or(bad)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, JsonError> {
        for byte in word.bytes() {
            self.expect(byte)?;
        }
        Ok(value)
    }

    /// Moves to the value of a member of the object that starts here.
    fn enter(&mut self, name: &str) -> Option<()> {
        if !self.eat(b'{') {
            return None;
        }
        loop {
            self.skip_space();
            let found = self.string().ok()? == name;
            self.skip_space();
            self.expect(b':').ok()?;
            self.skip_space();
            if found {
                return Some(());
            }
            self.skip_value()?;
            self.skip_space();
            if !self.eat(b',') {
                return None;
            }
        }
    }

    /// Moves past the value that starts here.
    // INVARIANT: the text was parsed before, so brackets balance and separators are where they belong.
    fn skip_value(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            match self.peek()? {
                b'"' => drop(self.string().ok()?),
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    open = open.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                _ => {
                    let start = self.at;
                    while self
                        .peek()
                        .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
                    {
                        self.at += 1;
                    }
                    if self.at == start {
                        return None;
                    }
                }
            }
            if open == 0 {
                return Some(());
            }
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.eat(byte) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> JsonError {
        self.fault(if self.peek().is_none() { JsonErrorKind::UnexpectedEnd } else { JsonErrorKind::Syntax })
    }

    fn fault(&self, kind: JsonErrorKind) -> JsonError {
        JsonError { kind, at: self.at }
    }
}

/// Offset of a name that stands twice among more than `FEW` members.
fn first_duplicate(members: &[(String, Json)], later: &[usize]) -> Option<usize> {
    if later.is_empty() {
        return None;
    }
    let mut names: Vec<(&str, usize)> =
        members.iter().enumerate().map(|(index, (name, _))| (name.as_str(), index)).collect();
    names.sort_unstable();
    // Equal names are in document order, so the second of a pair is the later one; the first FEW were compared.
    let second = names
        .windows(2)
        .filter_map(|pair| match pair {
            [(first, _), (second, index)] if first == second => Some(*index),
            _ => None,
        })
        .min()?;
    Some(later.get(second.saturating_sub(FEW)).copied().unwrap_or_default())
}
