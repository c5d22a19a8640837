//! Pure. The `Range` header.

/// What a request wants of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it.
    Whole,
    /// This many bytes from there on.
    Part {
        /// First byte.
        start: u64,
        /// How many, at least 1.
        len: u64,
    },
    /// The header is malformed, or asks for nothing that exists.
    Nothing,
}

/// What `header` wants of a file of `size` bytes; only the first of several ranges counts, and a
/// unit other than bytes is as good as no header.
pub(crate) fn parse(header: &str, size: u64) -> Wanted {
    let Some((unit, ranges)) = header.split_once('=') else {
        return Wanted::Nothing;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Wanted::Whole;
    }
    let first = ranges.split(',').next().unwrap_or_default().trim();
    let Some((from, to)) = first.split_once('-') else {
        return Wanted::Nothing;
    };
    match (digits(from), digits(to)) {
        (Some(Some(start)), Some(to)) if start < size => {
            let last = to.unwrap_or(u64::MAX).min(size - 1);
            if last < start {
                return Wanted::Nothing;
            }
            Wanted::Part {
                start,
                len: last - start + 1,
            }
        }
        (Some(None), Some(Some(suffix))) if suffix > 0 && size > 0 => {
            let len = suffix.min(size);
            Wanted::Part {
                start: size - len,
                len,
            }
        }
        _ => Wanted::Nothing,
    }
}

/// A number, nothing, or something else.
fn digits(text: &str) -> Option<Option<u64>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(None);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Some(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_http_means_them() {
        let part = |start, len| Wanted::Part { start, len };
        let g3 = 3 << 30;
        for (header, size, wanted) in [
            ("bytes=0-4", 10, part(0, 5)),
            ("bytes=5-", 10, part(5, 5)),
            ("bytes=-3", 10, part(7, 3)),
            ("bytes=-30", 10, part(0, 10)),
            ("bytes=8-30", 10, part(8, 2)),
            ("bytes=0-0,5-6", 10, part(0, 1)),
            ("Bytes = 1-1", 10, part(1, 1)),
            ("bytes=2147483648-4294967296", g3, part(1 << 31, 1 << 30)),
            ("bytes=0-99999999999999999999999", 10, part(0, 10)),
            ("bytes=10-", 10, Wanted::Nothing),
            ("bytes=5-4", 10, Wanted::Nothing),
            ("bytes=-0", 10, Wanted::Nothing),
            ("bytes=0-", 0, Wanted::Nothing),
            ("bytes=-", 10, Wanted::Nothing),
            ("bytes=a-b", 10, Wanted::Nothing),
            ("bytes=+1-2", 10, Wanted::Nothing),
            ("bytes", 10, Wanted::Nothing),
            ("lines=1-2", 10, Wanted::Whole),
        ] {
            assert_eq!(parse(header, size), wanted, "{header} of {size}");
        }
    }
}
