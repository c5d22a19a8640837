//! Pure. The query of a request: raw bytes, because a file name need not be text.

use crate::fault::{Fault, Kind};

/// The pairs of a query, decoded once.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(Vec<u8>, Vec<u8>)>);

impl Query {
    /// Reads a query string.
    ///
    /// # Errors
    /// A `%` that two hexadecimal digits do not follow.
    pub(crate) fn new(text: Option<&str>) -> Result<Self, Fault> {
        let pieces = text
            .unwrap_or_default()
            .split('&')
            .filter(|piece| !piece.is_empty());
        let pairs = pieces.map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            Ok((decode(name)?, decode(value)?))
        });
        pairs.collect::<Result<_, Fault>>().map(Self)
    }

    /// Every value of a name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let named = move |pair: &&(Vec<u8>, Vec<u8>)| pair.0 == name.as_bytes();
        self.0.iter().filter(named).map(|pair| pair.1.as_slice())
    }

    /// The first value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The first value of a name that must be there.
    ///
    /// # Errors
    /// When it is absent or empty.
    pub(crate) fn required(&self, name: &str) -> Result<&[u8], Fault> {
        let missing = || Fault::new(Kind::MissingQuery, format!("the query needs `{name}`"));
        self.get(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(missing)
    }

    /// The first value of a name, as a number.
    ///
    /// # Errors
    /// When it is no whole number of 0 or more.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Fault> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(value).unwrap_or_default();
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => Ok(Some(number)),
            _ => Err(Fault::new(
                Kind::BadRequest,
                format!("`{name}` must be a whole number of 0 or more"),
            )),
        }
    }

    /// Whether a name is set to something that means yes.
    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(b"true" | b"True" | b"1"))
    }
}

/// Decodes `%HH` and `+` as forms write them.
fn decode(text: &str) -> Result<Vec<u8>, Fault> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => match (bytes.next().and_then(digit), bytes.next().and_then(digit)) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => {
                    let message = "the query holds a % without two hexadecimal digits behind it";
                    return Err(Fault::new(Kind::BadRequest, message));
                }
            },
            byte => byte,
        });
    }
    Ok(decoded)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_once_and_stay_bytes() {
        let text = "path=%2Ftmp%2Fa+b%2541%2Bc%26d%23e&path=%FF&x&y=1=2&verbose=true";
        let query = Query::new(Some(text)).unwrap();
        let paths: Vec<&[u8]> = query.all("path").collect();
        assert_eq!(paths, [&b"/tmp/a b%41+c&d#e"[..], b"\xff"]);
        assert_eq!(query.get("x"), Some(&b""[..]));
        assert_eq!(query.get("y"), Some(&b"1=2"[..]));
        assert!(query.flag("verbose") && !query.flag("y"));
    }

    #[test]
    fn what_is_missing_or_broken_is_said() {
        let query = Query::new(Some("cursor=-1&depth=abc&n=12&empty=")).unwrap();
        for name in ["cursor", "depth", "empty"] {
            assert_eq!(query.number(name).unwrap_err().kind, Kind::BadRequest);
        }
        assert_eq!(query.number("n"), Ok(Some(12)));
        assert_eq!(query.number("none"), Ok(None));
        assert_eq!(
            query.required("empty").unwrap_err().kind,
            Kind::MissingQuery
        );
        assert!(Query::new(Some("a=%4")).is_err());
        assert!(Query::new(Some("a=%zz")).is_err());
        assert!(Query::new(None).unwrap().get("a").is_none());
    }
}
