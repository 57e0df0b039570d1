//! Server-sent events, as far as an MCP answer needs them: the data of each event, piece by piece.
//! It keeps the three line ends of the format apart from its content and is bounded by what is fed to it. Event
//! names, ids and retry times are for clients that resume; this one does not.

/// Splits a stream into the data of its events.
#[derive(Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    any: bool,
    after_cr: bool,
}

impl Events {
    /// The data of every event that this piece completes.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Vec<Vec<u8>> {
        let mut complete = Vec::new();
        for byte in piece {
            let after_cr = std::mem::replace(&mut self.after_cr, *byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\r' | b'\n' => complete.extend(self.end_of_line()),
                other => self.line.push(*other),
            }
        }
        complete
    }

    fn end_of_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        if line.is_empty() {
            let whole = std::mem::take(&mut self.any).then(|| std::mem::take(&mut self.data));
            return whole.filter(|data| !data.is_empty());
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', rest @ ..]) => rest.strip_prefix(b" ").unwrap_or(rest),
            _ => return None,
        };
        if std::mem::replace(&mut self.any, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, step: usize) -> Vec<String> {
        let mut events = Events::default();
        let pieces = text.as_bytes().chunks(step);
        pieces.flat_map(|piece| events.feed(piece)).map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn events_end_at_blank_lines_however_lines_end() {
        let text =
            ": hello\n\nid: 1\ndata:\n\nevent: x\r\ndata: {\"a\":\r\ndata:1}\r\n\r\ndata: two\r\rdata: cut";
        for step in 1..text.len() {
            assert_eq!(split(text, step), ["{\"a\":\n1}", "two"], "{step}");
        }
    }

    #[test]
    fn other_fields_are_not_data() {
        assert_eq!(split("database: x\ndata : y\nxdata: z\n\n", 3), Vec::<String>::new());
        assert_eq!(split("\u{feff}data: x\n\n", 2), ["x"]);
    }
}
