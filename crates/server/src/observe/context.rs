//! Pure. Where a piece of work stands in a trace, as W3C Trace Context says it in headers.

use std::sync::Arc;

use uuid::Uuid;

/// The header that names trace and span.
pub(crate) const TRACEPARENT: &str = "traceparent";
/// The header with what others add to a trace.
pub(crate) const TRACESTATE: &str = "tracestate";
/// Longest text of the latter that is passed on, in bytes.
pub(crate) const STATE_BYTES_MAX: usize = 512;

/// Bits of a trace's id that decide whether a trace of ours is collected.
pub(crate) const RATIO_BITS: u32 = 56;

/// A span's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Context {
    trace: [u8; 16],
    span: [u8; 8],
    is_sampled: bool,
    state: Option<Arc<str>>,
}

impl Context {
    /// A new trace. `takes` says by a number of so many random bits whether it is collected.
    pub(crate) fn root(takes: impl FnOnce(u64) -> bool) -> Self {
        let trace = Uuid::new_v4().into_bytes();
        let number = trace.iter().rev().take(7);
        let number = number.fold(0, |number, byte| number << 8 | u64::from(*byte));
        Self {
            trace,
            span: span_id(),
            is_sampled: takes(number),
            state: None,
        }
    }

    /// Reads a caller's headers; anything but the shape of the standard counts as none.
    // BOUNDARY: stranger → host, fixed in length. Test: only_the_standards_shape_is_continued
    pub(crate) fn read(parent: &[u8], state: Option<&[u8]>) -> Option<Self> {
        let text = std::str::from_utf8(parent).ok()?;
        let is_hex = |text: &str| {
            let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            text.bytes().all(lower)
        };
        let mut parts = text.splitn(5, '-');
        let version = parts.next().filter(|it| it.len() == 2 && is_hex(it))?;
        let (trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?);
        // Later versions may say more behind the flags; this one does not.
        let is_known = version == "00" && parts.next().is_none();
        let is_later = version != "00" && version != "ff";
        if !(is_known || is_later)
            || flags.len() != 2
            || ![trace, span, flags].map(is_hex).iter().all(|it| *it)
        {
            return None;
        }
        let mut found = Self {
            trace: [0; 16],
            span: [0; 8],
            is_sampled: u8::from_str_radix(flags, 16).ok()? & 1 == 1,
            state: None,
        };
        hex::decode_to_slice(trace, &mut found.trace).ok()?;
        hex::decode_to_slice(span, &mut found.span).ok()?;
        if found.trace == [0; 16] || found.span == [0; 8] {
            return None;
        }
        found.state = state
            .filter(|state| state.len() <= STATE_BYTES_MAX)
            .and_then(|state| std::str::from_utf8(state).ok())
            .map(Arc::from);
        Some(found)
    }

    /// The place of new work below this.
    pub(crate) fn next(&self) -> Self {
        Self {
            span: span_id(),
            ..self.clone()
        }
    }

    pub(crate) fn trace_id(&self) -> [u8; 16] {
        self.trace
    }

    pub(crate) fn span_id(&self) -> [u8; 8] {
        self.span
    }

    /// Whether it is collected.
    pub(crate) fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// What others said of the trace.
    pub(crate) fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// As the header says it.
    pub(crate) fn header(&self) -> String {
        let (trace, span) = (hex::encode(self.trace), hex::encode(self.span));
        let flags = u8::from(self.is_sampled);
        format!("00-{trace}-{span}-{flags:02x}")
    }
}

/// A new id. The version in it makes sure that it is not all zero.
fn span_id() -> [u8; 8] {
    let mut id = [0; 8];
    let random = Uuid::new_v4().into_bytes();
    for (to, from) in id.iter_mut().zip(random) {
        *to = from;
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn only_the_standards_shape_is_continued() {
        let good = format!("00-{TRACE}-{SPAN}-01");
        for (sent, is_continued) in [
            (good.clone(), true),
            (format!("00-{TRACE}-{SPAN}-00"), true),
            (format!("01-{TRACE}-{SPAN}-01-more"), true),
            (format!("00-{TRACE}-{SPAN}-01-more"), false),
            (format!("ff-{TRACE}-{SPAN}-01"), false),
            (format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), false),
            (format!("00-{TRACE}-{SPAN}"), false),
            (format!("00-{TRACE}-{SPAN}-1"), false),
            (format!("00-{TRACE}00-{SPAN}-01"), false),
            (format!("00-{}-{SPAN}-01", "0".repeat(32)), false),
            (format!("00-{TRACE}-{}-01", "0".repeat(16)), false),
            (format!(" {good}"), false),
            (format!("00-{TRACE}-{SPAN}-0é"), false),
            ("a".repeat(100_000), false),
            (String::new(), false),
        ] {
            let read = Context::read(sent.as_bytes(), None);
            assert_eq!(read.is_some(), is_continued, "{sent:.80}");
        }
        let read = Context::read(good.as_bytes(), Some(b"a=b")).unwrap();
        assert_eq!((read.header(), read.state()), (good, Some("a=b")));
        let next = read.next();
        assert_eq!(next.trace_id(), read.trace_id());
        assert_ne!(next.span_id(), read.span_id());
        let long = "x".repeat(STATE_BYTES_MAX + 1);
        let read = Context::read(read.header().as_bytes(), Some(long.as_bytes())).unwrap();
        assert_eq!(read.state(), None);
    }

    #[test]
    fn a_new_trace_is_taken_by_a_number_below_the_bound() {
        let mut seen = Vec::new();
        for takes in [true, false] {
            let root = Context::root(|number| {
                seen.push(number);
                takes
            });
            assert_eq!(root.is_sampled(), takes);
            assert!(Context::read(root.header().as_bytes(), None) == Some(root));
        }
        assert!(seen.iter().all(|number| *number < 1 << RATIO_BITS) && seen[0] != seen[1]);
    }
}
