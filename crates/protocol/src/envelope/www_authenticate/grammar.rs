//! The grammar of `WWW-Authenticate` (RFC 9110 sections 5.6 and 11.6.1): challenges, token68, parameters.
//! It never guesses: what does not follow the grammar is an error for the whole header, since a lenient reader and
//! a strict one would see different challenges. What the parameters mean is decided by the caller.

use crate::payload::challenge::BadChallenge;

const MOST_CHALLENGES: usize = 32;
const MOST_PARAMETERS: usize = 64;

/// One challenge: its scheme and its parameters, names in lower case.
pub(super) struct Parsed {
    pub(super) scheme: String,
    parameters: Vec<(String, Vec<u8>)>,
    /// A parameter of this challenge occurs twice; which one counts is nobody's to say.
    repeated: bool,
    /// The credentials are a single token68, after which no parameter can follow.
    closed: bool,
}

impl Parsed {
    /// The value of a parameter.
    pub(super) fn take(&mut self, name: &str) -> Result<Option<String>, BadChallenge> {
        if self.repeated {
            return Err(BadChallenge::Malformed);
        }
        let at = self.parameters.iter().position(|(known, _)| known == name);
        at.map(|at| String::from_utf8(self.parameters.swap_remove(at).1).map_err(|_| BadChallenge::Malformed))
            .transpose()
    }

    fn add(&mut self, name: &[u8], value: Vec<u8>) -> Result<(), BadChallenge> {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        self.repeated |= self.parameters.iter().any(|(known, _)| *known == name);
        self.parameters.push((name, value));
        if self.parameters.len() > MOST_PARAMETERS { Err(BadChallenge::Malformed) } else { Ok(()) }
    }
}

/// All challenges of a header value.
pub(super) fn challenges(value: &[u8]) -> Result<Vec<Parsed>, BadChallenge> {
    let mut reader = Reader { rest: value };
    let mut found: Vec<Parsed> = Vec::new();
    loop {
        reader.skip(b" \t,");
        if reader.rest.is_empty() {
            return Ok(found);
        }
        let word = reader.token()?;
        let mut ahead = Reader { rest: reader.rest };
        ahead.skip(b" \t");
        if ahead.eat(b'=') {
            let open =
                found.last_mut().filter(|challenge| !challenge.closed).ok_or(BadChallenge::Malformed)?;
            reader.rest = ahead.rest;
            let value = reader.value()?;
            open.add(word, value)?;
        } else {
            if found.len() == MOST_CHALLENGES {
                return Err(BadChallenge::Malformed);
            }
            found.push(reader.challenge(word)?);
        }
        reader.end_of_element()?;
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// What follows a scheme: nothing, a token68, or its first parameter.
    fn challenge(&mut self, scheme: &[u8]) -> Result<Parsed, BadChallenge> {
        let scheme = String::from_utf8_lossy(scheme).into_owned();
        let mut parsed = Parsed { scheme, parameters: Vec::new(), repeated: false, closed: false };
        let before = self.rest.len();
        self.skip(b" ");
        let spaced = self.rest.len() < before;
        self.skip(b" \t");
        if self.rest.is_empty() || self.rest.starts_with(b",") {
            return Ok(parsed);
        }
        if !spaced {
            return Err(BadChallenge::Malformed);
        }
        if let Some(rest) = after_token68(self.rest) {
            self.rest = rest;
            parsed.closed = true;
            return Ok(parsed);
        }
        let name = self.token()?;
        self.skip(b" \t");
        if !self.eat(b'=') {
            return Err(BadChallenge::Malformed);
        }
        let value = self.value()?;
        parsed.add(name, value)?;
        Ok(parsed)
    }

    /// A parameter's value: a token or a quoted string, escapes undone.
    fn value(&mut self) -> Result<Vec<u8>, BadChallenge> {
        self.skip(b" \t");
        if !self.eat(b'"') {
            return self.token().map(<[u8]>::to_vec);
        }
        let mut value = Vec::new();
        loop {
            match self.next()? {
                b'"' => return Ok(value),
                b'\\' => value.push(self.next().and_then(printable)?),
                byte => value.push(printable(byte)?),
            }
        }
    }

    fn token(&mut self) -> Result<&'a [u8], BadChallenge> {
        let length = self.rest.iter().take_while(|byte| is_tchar(**byte)).count();
        let (token, rest) = self.rest.split_at_checked(length).ok_or(BadChallenge::Malformed)?;
        self.rest = rest;
        if token.is_empty() { Err(BadChallenge::Malformed) } else { Ok(token) }
    }

    fn end_of_element(&mut self) -> Result<(), BadChallenge> {
        self.skip(b" \t");
        if self.rest.is_empty() || self.rest.starts_with(b",") {
            Ok(())
        } else {
            Err(BadChallenge::Malformed)
        }
    }

    fn next(&mut self) -> Result<u8, BadChallenge> {
        let (first, rest) = self.rest.split_first().ok_or(BadChallenge::Malformed)?;
        self.rest = rest;
        Ok(*first)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip(&mut self, bytes: &[u8]) {
        while let Some((first, rest)) = self.rest.split_first()
            && bytes.contains(first)
        {
            self.rest = rest;
        }
    }
}

/// What follows a token68 that is the whole of an element, if one stands here.
fn after_token68(text: &[u8]) -> Option<&[u8]> {
    let is_68 = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(byte);
    let length = text.iter().take_while(|byte| is_68(byte)).count();
    let padding = text.get(length..)?.iter().take_while(|byte| **byte == b'=').count();
    let rest = text.get(length.checked_add(padding)?..)?;
    let blank = rest.iter().take_while(|byte| b" \t".contains(byte)).count();
    let ends = matches!(rest.get(blank), None | Some(b','));
    (length > 0 && ends).then_some(rest)
}

fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn printable(byte: u8) -> Result<u8, BadChallenge> {
    if byte == b'\t' || (byte >= b' ' && byte != 0x7f) { Ok(byte) } else { Err(BadChallenge::Malformed) }
}

/// Appends `value` as a quoted string.
pub(super) fn quote(out: &mut String, value: &str) {
    out.push('"');
    for letter in value.chars() {
        if matches!(letter, '"' | '\\') {
            out.push('\\');
        }
        out.push(letter);
    }
    out.push('"');
}
