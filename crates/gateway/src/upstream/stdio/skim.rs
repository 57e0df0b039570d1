//! The id of a response that cannot be read: too long to hold, or not strict JSON.
//!
//! It walks over the bytes and keeps one number. It serves only to tell a waiting caller that no answer comes; nothing it
//! finds is ever passed on.

/// Longest member name or id that is kept.
const KEPT: usize = 24;

/// How far a walk has come.
#[derive(Default)]
pub(super) struct Skim {
    depth: usize,
    string: bool,
    escaped: bool,
    /// Whether what is read is a member's value; before the colon it is its name.
    value: bool,
    word: Vec<u8>,
    name: Vec<u8>,
    id: Option<Vec<u8>>,
    asks: bool,
}

impl Skim {
    /// Walks on.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.string {
            self.in_string(byte);
            return;
        }
        match byte {
            b'"' => {
                self.string = true;
                // An id that is a string is none of ours.
                self.keep(b'"');
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.word.clear();
                self.value = false;
            }
            b'}' | b']' => {
                self.settle();
                self.depth = self.depth.saturating_sub(1);
                self.word.clear();
            }
            b':' if self.depth == 1 && !self.value => {
                self.name = std::mem::take(&mut self.word);
                self.value = true;
                self.asks |= self.name == b"\"method";
            }
            b',' => self.settle(),
            b' ' | b'\t' | b'\r' => {}
            _ => self.keep(byte),
        }
    }

    fn in_string(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => {
                self.string = false;
                return;
            }
            _ => {}
        }
        self.keep(byte);
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.word.len() < KEPT {
            self.word.push(byte);
        }
    }

    /// A member of the outermost object ends.
    fn settle(&mut self) {
        if self.depth != 1 {
            return;
        }
        let word = std::mem::take(&mut self.word);
        if self.value && self.name == b"\"id" {
            self.id = Some(word);
        }
        self.value = false;
    }

    /// The number, if this was a response to one.
    pub(super) fn response(&self) -> Option<u64> {
        let id = self.id.as_ref().filter(|_| !self.asks && self.depth == 0)?;
        std::str::from_utf8(id).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skim(text: &str) -> Option<u64> {
        let mut skim = Skim::default();
        text.as_bytes().chunks(3).for_each(|piece| skim.feed(piece));
        skim.response()
    }

    #[test]
    fn the_id_of_a_response_is_found_wherever_it_stands() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":12,"result":{}}"#, Some(12)),
            (r#"{"result":{"id":3,"a":[{"id":4}]}, "id" : 12 }"#, Some(12)),
            (r#"{"id":12,"result":"\ud800 \" , \"id\":5 }"}"#, Some(12)),
            (r#"{"id":"12","result":{}}"#, None),
            (r#"{"id":12,"method":"ping"}"#, None),
            (r#"{"id":12.5,"result":{}}"#, None),
            (r#"{"id":-1,"result":{}}"#, None),
            (r#"{"id":[12],"result":{}}"#, None),
            (r#"[{"id":12,"result":{}}]"#, None),
            (r#"{"id":12,"result":{}"#, None),
            ("id 12", None),
        ] {
            assert_eq!(skim(text), id, "{text}");
        }
    }
}
