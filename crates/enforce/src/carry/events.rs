//! A stream of events, read as it passes.
//!
//! Bytes come in pieces of any size; what is longer than the limit is passed over and never held. Fields other than
//! `data` and `id` mean nothing here.

/// What a stream told.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    /// The id by which a stream can be taken up again after this.
    Id(Vec<u8>),
    /// The data of a whole event.
    Data(Vec<u8>),
}

/// A reader of events.
pub struct Events {
    limit: usize,
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    /// Whether what is being read was longer than the limit: this line, this event.
    long: (bool, bool),
    /// Whether the last byte was a carriage return, which a line feed may follow.
    returned: bool,
}

impl Events {
    /// Holds at most `limit` bytes of an event.
    pub fn bounded(limit: usize) -> Self {
        Self { limit, line: Vec::new(), data: None, long: (false, false), returned: false }
    }

    /// Reads on; what is complete now.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Told> {
        let mut complete = Vec::new();
        for byte in bytes {
            let follows = std::mem::replace(&mut self.returned, *byte == b'\r');
            match byte {
                b'\n' if follows => {}
                b'\n' | b'\r' => complete.extend(self.end_line()),
                _ if self.line.len() < self.limit => self.line.push(*byte),
                _ => self.long.0 = true,
            }
        }
        complete
    }

    fn end_line(&mut self) -> Option<Told> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.long.0) {
            self.long.1 = true;
            return None;
        }
        if line.is_empty() {
            let (data, long) = (self.data.take(), std::mem::take(&mut self.long.1));
            return data.filter(|_| !long).map(Told::Data);
        }
        if let Some(id) = value(&line, b"id") {
            return Some(Told::Id(id.to_vec()));
        }
        let value = value(&line, b"data")?;
        let data = self.data.get_or_insert_default();
        if !data.is_empty() {
            data.push(b'\n');
        }
        if data.len().saturating_add(value.len()) > self.limit {
            self.long.1 = true;
        } else {
            data.extend_from_slice(value);
        }
        None
    }
}

fn value<'a>(line: &'a [u8], field: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(field)?;
    let value = if rest.is_empty() { rest } else { rest.strip_prefix(b":")? };
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, size: usize, limit: usize) -> Vec<Told> {
        let mut events = Events::bounded(limit);
        text.as_bytes().chunks(size).flat_map(|piece| events.feed(piece)).collect()
    }

    fn data(text: &str) -> Told {
        Told::Data(text.into())
    }

    #[test]
    fn events_are_read_however_they_are_cut_and_ended() {
        let text = ": hello\r\n\r\nevent: message\ndata: {\"a\":\ndata:1}\nid: 4\n\ndata: two\r\rdata: three";
        for size in [1, 2, 7, 200] {
            assert_eq!(told(text, size, 1000), [Told::Id(b"4".into()), data("{\"a\":\n1}"), data("two")]);
        }
        // A priming event: an id and nothing else.
        assert_eq!(told("id:7\ndata\n\n", 3, 1000), [Told::Id(b"7".into()), data("")]);
        assert_eq!(told("idle: 7\ndatum: 1\n\n", 3, 1000), []);
    }

    #[test]
    fn what_is_too_long_is_passed_over_and_the_rest_is_read() {
        let long = "x".repeat(100);
        let lines = "data: yyyyyyyyyyyyyyyy\n".repeat(10);
        let text = format!("data: {long}\n\ndata: one\n\n{lines}\nid: {long}\n\ndata: two\n\n");
        for size in [1, 9, 1000] {
            assert_eq!(told(&text, size, 64), [data("one"), data("two")]);
        }
    }
}
