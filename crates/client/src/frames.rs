//! Pure. Cuts an event stream into frames, wherever the network cut it.
//!
//! Servers write one JSON object a line, bare or after `data:`, with a blank line after it. Line
//! ends may be LF or CRLF; comments and other fields are skipped.

use crate::error::ClientError;

/// Longest frame that is read, in bytes; a daemon of ours sends far shorter ones.
pub const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A decoder fed with pieces of any size.
#[derive(Debug, Default)]
pub struct Frames {
    /// Bytes not yet handed out; a line may still be incomplete.
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    /// Lines of a `data:` event that its blank line has not ended yet.
    data: Option<Vec<u8>>,
}

impl Frames {
    /// Takes a piece and gives every frame that it completes.
    ///
    /// # Errors
    /// `TooLarge` when a frame passes [`FRAME_BYTES_MAX`].
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, ClientError> {
        self.buffer.extend_from_slice(piece);
        let mut frames = Vec::new();
        let mut start = 0;
        while let Some(length) = line_end(&self.buffer, start.max(self.searched)) {
            let line = self.buffer.get(start..length).unwrap_or_default().to_vec();
            start = length + 1;
            self.line(line.strip_suffix(b"\r").unwrap_or(&line), &mut frames);
        }
        self.buffer.drain(..start);
        self.searched = self.buffer.len();
        let held = self
            .buffer
            .len()
            .max(self.data.as_ref().map_or(0, Vec::len));
        if held > FRAME_BYTES_MAX {
            let limit_bytes = FRAME_BYTES_MAX;
            return Err(ClientError::TooLarge {
                what: "one event of the stream",
                limit_bytes,
            });
        }
        Ok(frames)
    }

    /// Gives what the end of the stream completes: a last frame without its line end.
    pub fn finish(mut self) -> Vec<Vec<u8>> {
        let rest = std::mem::take(&mut self.buffer);
        let mut frames = Vec::new();
        self.line(rest.strip_suffix(b"\r").unwrap_or(&rest), &mut frames);
        self.line(b"", &mut frames);
        frames
    }

    fn line(&mut self, line: &[u8], frames: &mut Vec<Vec<u8>>) {
        if line.is_empty() {
            frames.extend(self.data.take());
        } else if let Some(rest) = line.strip_prefix(b"data:") {
            let text = rest.strip_prefix(b" ").unwrap_or(rest);
            match &mut self.data {
                None => self.data = Some(text.to_vec()),
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(text);
                }
            }
        } else if matches!(line.first(), Some(b'{' | b'[')) {
            frames.push(line.to_vec());
        }
    }
}

fn line_end(buffer: &[u8], from: usize) -> Option<usize> {
    let rest = buffer.get(from..)?;
    rest.iter()
        .position(|byte| *byte == b'\n')
        .map(|at| from + at)
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    /// The same five events in each way of writing them that servers use.
    fn recordings() -> Vec<Vec<u8>> {
        let events = events();
        let bare: String = events.iter().map(|event| format!("{event}\n\n")).collect();
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        let data: String = events
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        let tight: String = events
            .iter()
            .map(|event| format!("data:{event}\n\n"))
            .collect();
        let noisy: String = events
            .iter()
            .map(|event| format!(": ping\nevent: message\nid: 7\ndata: {event}\nretry: 3\n\n"))
            .collect();
        let crlf = |text: &str| text.replace('\n', "\r\n");
        let all = [
            crlf(&bare),
            crlf(&data),
            crlf(&noisy),
            bare,
            lines,
            data,
            tight,
            noisy,
        ];
        all.into_iter().map(String::into_bytes).collect()
    }

    fn events() -> Vec<String> {
        let texts = [
            "abc",
            "h\u{e9}\u{1f600}",
            "data: {}\\n\\n",
            "tab\\there\\r",
            "",
        ];
        texts
            .iter()
            .map(|text| format!(r#"{{"type":"stdout","text":"{text}"}}"#))
            .collect()
    }

    fn decode(pieces: &[&[u8]]) -> Vec<String> {
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for piece in pieces {
            found.extend(frames.push(piece).unwrap());
        }
        found.extend(frames.finish());
        found
            .into_iter()
            .map(|frame| String::from_utf8(frame).unwrap())
            .collect()
    }

    #[test]
    fn a_stream_cut_at_any_byte_gives_the_same_frames() {
        for recording in recordings() {
            for at in 0..=recording.len() {
                let (one, other) = recording.split_at(at);
                assert_eq!(decode(&[one, other]), events(), "cut at {at}");
            }
            for size in 1..=recording.len() {
                let pieces: Vec<&[u8]> = recording.chunks(size).collect();
                assert_eq!(decode(&pieces), events(), "pieces of {size}");
            }
        }
    }

    #[test]
    fn a_last_frame_needs_no_line_end() {
        assert_eq!(
            decode(&[b"{\"a\":1}\n\n{\"b\":2}"]),
            ["{\"a\":1}", "{\"b\":2}"]
        );
        assert_eq!(decode(&[b"data: {\"a\":1}\r\n"]), ["{\"a\":1}"]);
    }

    #[test]
    fn a_data_event_may_span_lines() {
        assert_eq!(decode(&[b"data: {\"a\":\ndata: 1}\n\n"]), ["{\"a\":\n1}"]);
    }

    #[test]
    fn an_endless_frame_is_refused() {
        let mut frames = Frames::default();
        let piece = vec![b'x'; 1024 * 1024];
        let results: Vec<bool> = (0..9).map(|_| frames.push(&piece).is_ok()).collect();
        assert_eq!(results.iter().filter(|ok| **ok).count(), 8);

        let mut frames = Frames::default();
        let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
        assert!((0..9).any(|_| frames.push(&line).is_err()));
    }
}
