//! Pure. Names as text from which they come back byte for byte: a byte that is no UTF-8 is `\xHH`,
//! and a backslash `\x5c`.

use std::fmt::Write;

/// The exact spelling of a name.
#[must_use]
pub fn exact(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for (at, part) in chunk.valid().split('\\').enumerate() {
            text.push_str(if at == 0 { "" } else { "\\x5c" });
            text.push_str(part);
        }
        for byte in chunk.invalid() {
            // Text takes whatever is written.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Turns every `\xHH` into its byte; a backslash with anything else behind it is itself.
#[must_use]
pub fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let escaped = match rest {
            [b'\\', b'x', high, low, ..] => digit(*high).zip(digit(*low)),
            _ => None,
        };
        if let Some((high, low)) = escaped {
            bytes.push(high << 4 | low);
            rest = rest.get(4..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    bytes
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
