//! Pure. Fields of a message, one after the other, each within what is there.

/// What is left of some bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn short(&mut self) -> Option<u16> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_be_bytes(*first))
    }

    /// A field with its length in one byte before it.
    pub(super) fn after_byte(&mut self) -> Option<Self> {
        let count = self.byte()?;
        self.take(count.into()).map(Self)
    }

    /// A field with its length in two bytes before it.
    pub(super) fn after_short(&mut self) -> Option<Self> {
        let count = self.short()?;
        self.take(count.into()).map(Self)
    }
}
