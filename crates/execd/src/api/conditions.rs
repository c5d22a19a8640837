//! Pure. Conditional requests: whether what a caller holds is still what the file is.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
};

use crate::files::download::Stamp;

/// What to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The content, and the part of it that is asked for if that is allowed.
    Serve {
        /// Whether a `Range` header counts.
        ranged: bool,
    },
    /// 304: the caller has it.
    NotModified,
    /// 412: it is not what the caller means.
    Failed,
}

/// The tag of a file's state. It changes with every change of the file, even one that sets the
/// time of its last change back.
pub(super) fn etag(stamp: &Stamp) -> String {
    let (seconds, nanoseconds) = stamp.changed;
    format!(
        "\"{seconds:x}-{nanoseconds:x}-{:x}-{:x}\"",
        stamp.size, stamp.inode
    )
}

/// The time of a file's last change as headers tell it; `None` for one before 1970.
pub(super) fn last_modified(stamp: &Stamp) -> Option<String> {
    let seconds = u64::try_from(stamp.modified.0).ok()?;
    // Later than what the header's four digits of a year can say.
    let seconds = Some(seconds).filter(|it| *it < 253_402_300_800)?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Some(httpdate::fmt_http_date(time))
}

/// Weighs the conditions in the order that HTTP lays down.
pub(super) fn judge(headers: &HeaderMap, stamp: &Stamp) -> Verdict {
    let of = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let tag = etag(stamp);
    let modified = stamp.modified.0;
    let failed = match (of(IF_MATCH), of(IF_UNMODIFIED_SINCE).and_then(seconds)) {
        (Some(list), _) => !names(list, &tag, false),
        (None, Some(since)) => modified > since,
        (None, None) => false,
    };
    if failed {
        return Verdict::Failed;
    }
    let unmodified = match (of(IF_NONE_MATCH), of(IF_MODIFIED_SINCE).and_then(seconds)) {
        (Some(list), _) => names(list, &tag, true),
        (None, Some(since)) => modified <= since,
        (None, None) => false,
    };
    if unmodified {
        return Verdict::NotModified;
    }
    let ranged = of(IF_RANGE).is_none_or(|it| it == tag || seconds(it) == Some(modified));
    Verdict::Serve { ranged }
}

/// Whether a list of tags names this one; where `weak` ones count, `W/` is passed over.
fn names(list: &str, tag: &str, weak: bool) -> bool {
    let mut tags = list.split(',').map(str::trim);
    tags.any(|it| it == "*" || it == tag || (weak && it.strip_prefix("W/") == Some(tag)))
}

fn seconds(text: &str) -> Option<i64> {
    let time = httpdate::parse_http_date(text).ok()?;
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVE: Verdict = Verdict::Serve { ranged: true };
    const WHOLE: Verdict = Verdict::Serve { ranged: false };

    #[test]
    fn conditions_are_weighed_in_order() {
        let stamp = Stamp {
            size: 10,
            mode: 0o644,
            inode: 7,
            modified: (784_111_777, 5),
            changed: (784_111_999, 1),
        };
        let tag = etag(&stamp);
        assert_eq!(tag, "\"2ebc997f-1-a-7\"");
        let date = last_modified(&stamp).unwrap();
        assert_eq!(date, "Sun, 06 Nov 1994 08:49:37 GMT");
        let earlier = "Sun, 06 Nov 1994 08:49:36 GMT";
        let weak = format!("\"x\", W/{tag}");
        for (conditions, wanted) in [
            (&[][..], SERVE),
            (&[("if-none-match", tag.as_str())], Verdict::NotModified),
            (&[("if-none-match", weak.as_str())], Verdict::NotModified),
            (&[("if-none-match", "*")], Verdict::NotModified),
            (
                &[("if-none-match", "\"x\""), ("if-modified-since", &date)],
                SERVE,
            ),
            (&[("if-modified-since", &date)], Verdict::NotModified),
            (&[("if-modified-since", earlier)], SERVE),
            (&[("if-modified-since", "yesterday")], SERVE),
            (&[("if-match", &tag)], SERVE),
            (&[("if-match", &weak)], Verdict::Failed),
            (&[("if-match", "*")], SERVE),
            (&[("if-unmodified-since", &date)], SERVE),
            (&[("if-unmodified-since", earlier)], Verdict::Failed),
            (&[("if-range", &tag)], SERVE),
            (&[("if-range", &date)], SERVE),
            (&[("if-range", earlier)], WHOLE),
            (&[("if-range", "\"x\"")], WHOLE),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in conditions {
                headers.insert(*name, value.parse().unwrap());
            }
            assert_eq!(judge(&headers, &stamp), wanted, "{conditions:?}");
        }
        let old = Stamp {
            modified: (-1, 0),
            ..stamp
        };
        assert_eq!(last_modified(&old), None);
    }
}
