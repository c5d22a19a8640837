//! Pure. Extended headers: what does not fit into a header and stands before it.

use super::Broken;

/// What stands before a header and belongs to it.
#[derive(Debug, Default)]
pub(super) struct Extended {
    pub(super) name: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) modified: Option<i64>,
    pub(super) nanoseconds: u32,
    pub(super) user: Option<u64>,
    pub(super) group: Option<u64>,
    pub(super) attributes: Vec<(Vec<u8>, Vec<u8>)>,
    sparse: Sparse,
}

/// What is said of a file with holes.
#[derive(Debug, Default)]
struct Sparse {
    is_there: bool,
    version: [Option<u64>; 2],
    size: Option<u64>,
}

/// Where extended attributes are among the records.
pub(crate) const ATTRIBUTE: &[u8] = b"SCHILY.xattr.";

const ODD: Broken = Broken("an extended header in the archive is damaged");

impl Extended {
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        for (key, value) in records(bytes)? {
            match key {
                b"path" if self.sparse.is_there => {}
                b"path" => self.name = Some(value.to_owned()),
                b"linkpath" => self.link = Some(value.to_owned()),
                b"size" => self.size = Some(number(value)?),
                b"uid" => self.user = Some(number(value)?),
                b"gid" => self.group = Some(number(value)?),
                b"mtime" => {
                    let (seconds, nanoseconds) = time(value).ok_or(ODD)?;
                    (self.modified, self.nanoseconds) = (Some(seconds), nanoseconds);
                }
                key if key.starts_with(ATTRIBUTE) => {
                    let name = key.get(ATTRIBUTE.len()..).unwrap_or_default();
                    self.attributes.push((name.to_owned(), value.to_owned()));
                }
                key if key.starts_with(b"GNU.sparse.") => {
                    self.sparse.is_there = true;
                    match key {
                        b"GNU.sparse.major" => self.sparse.version[0] = Some(number(value)?),
                        b"GNU.sparse.minor" => self.sparse.version[1] = Some(number(value)?),
                        b"GNU.sparse.realsize" => self.sparse.size = Some(number(value)?),
                        b"GNU.sparse.name" => self.name = Some(value.to_owned()),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The size of a file of which only the parts with data follow; `None` for one without holes.
    pub(super) fn sparse_size(&self) -> Result<Option<u64>, Broken> {
        if !self.sparse.is_there {
            return Ok(None);
        }
        if self.sparse.version != [Some(1), Some(0)] {
            return Err(Broken(
                "the archive holds a sparse file in an old PAX format; pack it in the GNU format \
                 (tar --format=gnu)",
            ));
        }
        self.sparse.size.map(Some).ok_or(ODD)
    }
}

fn number(value: &[u8]) -> Result<u64, Broken> {
    let text = std::str::from_utf8(value).map_err(|_| ODD)?;
    text.parse().map_err(|_| ODD)
}

/// Seconds, which may have a sign and a fraction, as whole ones and nanoseconds beyond.
fn time(value: &[u8]) -> Option<(i64, u32)> {
    let text = std::str::from_utf8(value).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.get(..fraction.len().min(9))?;
    let nanoseconds: u32 = format!("{digits:0<9}").parse().ok()?;
    match whole.starts_with('-') && nanoseconds > 0 {
        true => Some((seconds.checked_sub(1)?, 1_000_000_000 - nanoseconds)),
        false => Some((seconds, nanoseconds)),
    }
}

/// A key and its value.
pub(crate) type Record<'a> = (&'a [u8], &'a [u8]);

/// The records of an extended header. Each begins with its own length: a value may hold anything,
/// line ends too.
pub(crate) fn records(mut bytes: &[u8]) -> Result<Vec<Record<'_>>, Broken> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let digits = bytes.iter().position(|byte| *byte == b' ').ok_or(ODD)?;
        let length = bytes
            .get(..digits)
            .and_then(|it| std::str::from_utf8(it).ok());
        let length: usize = length.and_then(|it| it.parse().ok()).ok_or(ODD)?;
        let record = bytes.get(digits + 1..length).ok_or(ODD)?;
        let record = record.strip_suffix(b"\n").ok_or(ODD)?;
        let middle = record.iter().position(|byte| *byte == b'=').ok_or(ODD)?;
        let (key, value) = record.split_at(middle);
        all.push((key, value.get(1..).unwrap_or_default()));
        bytes = bytes.get(length..).unwrap_or_default();
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_signs_and_fractions() {
        for (text, expected) in [
            ("0", Some((0, 0))),
            ("12.5", Some((12, 500_000_000))),
            ("12.000000001", Some((12, 1))),
            ("12.0000000019", Some((12, 1))),
            ("-1", Some((-1, 0))),
            ("-1.25", Some((-2, 750_000_000))),
            ("-0.25", Some((-1, 750_000_000))),
            ("", None),
            ("1.x", None),
            ("1.-5", None),
        ] {
            assert_eq!(time(text.as_bytes()), expected, "{text}");
        }
    }
}
