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
        self.replacer.replace(value)
    }

    /// What goes on of the body after some more of it. Nothing is kept back but what a value may
    /// begin with: who waits for the end of a line gets it.
    pub fn piece(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let until = self.replacer.open_end(&self.held);
        let mut out = Vec::new();
        let replaced = self.replacer.replace_until(&self.held, until, &mut out);
        let done = replaced.max(until);
        out.extend_from_slice(self.held.get(replaced..done).unwrap_or_default());
        self.held.drain(..done);
        out
    }

    /// What is left at its end.
    pub fn end(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.replacer.replace(&held).unwrap_or(held)
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
            words in prop::collection::vec("(hunter2|hunt|2hunter|h|un|2|x){0,6}", 0..8),
        ) {
            let whole: String = words.concat();
            let expected = replacer().replace(whole.as_bytes()).unwrap_or(whole.into_bytes());
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
        assert_eq!(scrubber.piece(b"data: a line\n\n"), b"data: a line\n\n");
        assert_eq!(scrubber.piece(b"data: hunte"), b"data: ");
        assert_eq!(scrubber.piece(b"r\n"), b"[secret]er\n");
        assert_eq!(scrubber.end(), b"");
    }
}
