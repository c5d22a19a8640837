//! Pure. Values that are taken out of what is answered, wherever its pieces are cut.

use std::fmt;
use std::sync::Arc;

use super::replace::Replacer;

/// What stands where a value stood.
pub(super) const INSTEAD: &str = "[secret]";

/// One answer on its way.
pub struct Scrubber {
    replacer: Arc<Replacer>,
    /// What may be the beginning of a value.
    held: Vec<u8>,
}

impl Scrubber {
    pub(super) const fn new(replacer: Arc<Replacer>) -> Self {
        Self {
            replacer,
            held: Vec::new(),
        }
    }

    /// A value of a header without them; `None` if there are none in it.
    #[must_use]
    pub fn header(&self, value: &[u8]) -> Option<Vec<u8>> {
        self.replaced(value)
    }

    /// What goes on of the body after some more of it. What is kept back is as long whether it
    /// begins a value or not, or whoever counts pieces would find values out; no value goes beyond
    /// the end of a line, so that who waits for one gets it.
    pub fn piece(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let line = self.held.iter().rposition(|byte| *byte == b'\n');
        let sure = (self.held.len() + 1).saturating_sub(self.replacer.longest());
        let until = sure.max(line.map_or(0, |at| at + 1));
        let mut out = Vec::new();
        let replaced = self
            .replacer
            .replace_until(&self.held, (until, usize::MAX), &mut out);
        let replaced = replaced.unwrap_or(0);
        let done = replaced.max(until);
        out.extend_from_slice(self.held.get(replaced..done).unwrap_or_default());
        self.held.drain(..done);
        out
    }

    /// What is left at its end.
    pub fn end(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.replaced(&held).unwrap_or(held)
    }

    fn replaced(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        // What stands instead is no longer than a value.
        self.replacer.replace(bytes, usize::MAX).ok().flatten()
    }
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Scrubber")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replacer() -> Arc<Replacer> {
        let pairs = ["hunter2", "hunt", "2hunter"].map(|it| (it.into(), INSTEAD.into()));
        Arc::new(Replacer::new(pairs.into()).unwrap())
    }

    proptest! {
        #[test]
        fn it_is_the_same_wherever_the_pieces_are_cut(
            words in prop::collection::vec("(hunter2|hunt|2hunter|h|un|2|x|\\n){0,6}", 0..8),
        ) {
            let whole: String = words.concat();
            let expected = Scrubber::new(replacer()).header(whole.as_bytes());
            let expected = expected.unwrap_or(whole.into_bytes());
            let mut scrubber = Scrubber::new(replacer());
            let mut out = Vec::new();
            for word in &words {
                out.extend(scrubber.piece(word.as_bytes()));
            }
            out.extend(scrubber.end());
            prop_assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(expected).unwrap());
        }
    }

    #[test]
    fn what_cannot_be_a_value_does_not_wait() {
        let mut scrubber = Scrubber::new(replacer());
        assert_eq!(scrubber.piece(b"data: a line\n"), b"data: a line\n");
        // Longer than the longest value: all but its end, whatever that is.
        assert_eq!(scrubber.piece(b"data: hunt"), b"data");
        assert_eq!(scrubber.piece(b"er\n"), b": [secret]er\n");
        assert_eq!(scrubber.piece(b"data: nice"), b"data");
        assert_eq!(scrubber.end(), b": nice");
    }
}
