//! A stream of events, read only as far as the one answer in it.
//!
//! Bytes come in pieces of any size; whoever reads them bounds how many. Fields other than `data` mean nothing here.

/// A reader of events.
#[derive(Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    /// Whether the last byte was a carriage return, which a line feed may follow.
    returned: bool,
}

impl Events {
    /// Reads on; the data of every event that is complete now.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut complete = Vec::new();
        for byte in bytes {
            let follows = std::mem::replace(&mut self.returned, *byte == b'\r');
            match byte {
                b'\n' if follows => {}
                b'\n' | b'\r' => complete.extend(self.end_line()),
                _ => self.line.push(*byte),
            }
        }
        complete
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.data.take();
        }
        let value = line.strip_prefix(b"data:").or_else(|| (line == b"data").then_some(&[][..]))?;
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &mut self.data {
            None => self.data = Some(value.to_vec()),
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut_and_ended() {
        let text = ": hello\r\n\r\nevent: message\ndata: {\"a\":\ndata:1}\nid: 4\n\ndata: two\r\rdata: three";
        for size in [1, 2, 7, 200] {
            let mut events = Events::default();
            let mut read = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                read.extend(events.feed(piece));
            }
            assert_eq!(read, [b"{\"a\":\n1}".to_vec(), b"two".to_vec()]);
        }
    }
}
