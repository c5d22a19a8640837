//! Pure. What the layer that is being unpacked has brought itself: what it hides is below it.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// The names of a layer, each as a number that its maker cannot foresee.
#[derive(Debug, Default)]
pub(super) struct Seen {
    state: RandomState,
    names: HashSet<u64>,
}

impl Seen {
    /// Notes a name and those of the directories above it.
    pub(super) fn add(&mut self, parts: &[&[u8]]) {
        for end in (1..=parts.len()).rev() {
            let number = self.number(parts.get(..end).unwrap_or_default().iter().copied());
            // Those above were noted with it.
            if !self.names.insert(number) {
                return;
            }
        }
    }

    /// Whether an entry of a directory is noted, or one in it.
    pub(super) fn has(&self, above: &[Vec<u8>], own: &[u8]) -> bool {
        let parts = above.iter().map(Vec::as_slice).chain([own]);
        self.names.contains(&self.number(parts))
    }

    pub(super) fn clear(&mut self) {
        self.names.clear();
    }

    fn number<'a>(&self, parts: impl Iterator<Item = &'a [u8]>) -> u64 {
        let mut whole = Vec::new();
        for part in parts {
            whole.extend_from_slice(part);
            whole.push(b'/');
        }
        self.state.hash_one(whole)
    }
}
