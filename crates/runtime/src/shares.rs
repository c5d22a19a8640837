//! Pure. Places that several share: nobody has more than a part of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places, some of them taken.
#[derive(Debug)]
pub struct Shares {
    taken: Arc<Mutex<HashMap<String, usize>>>,
    all_max: usize,
    each_max: usize,
}

/// A place that somebody has, until it is dropped.
#[derive(Debug)]
pub struct Share {
    taken: Arc<Mutex<HashMap<String, usize>>>,
    whose: String,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All places are taken: so many.
    All(usize),
    /// Whoever asks has as many as one may.
    Own(usize),
}

impl Shares {
    /// So many places, of which one may have so many.
    #[must_use]
    pub fn new(all_max: usize, each_max: usize) -> Self {
        Self {
            taken: Arc::default(),
            all_max,
            each_max,
        }
    }

    /// Takes a place for somebody.
    ///
    /// # Errors
    /// When there is none.
    pub fn take(&self, whose: &str) -> Result<Share, Full> {
        let mut taken = lock(&self.taken);
        if taken.get(whose).copied().unwrap_or_default() >= self.each_max {
            return Err(Full::Own(self.each_max));
        }
        if taken.values().sum::<usize>() >= self.all_max {
            return Err(Full::All(self.all_max));
        }
        let whose = whose.to_owned();
        *taken.entry(whose.clone()).or_default() += 1;
        Ok(Share {
            taken: Arc::clone(&self.taken),
            whose,
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(own) = taken.get_mut(&self.whose) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.remove(&self.whose);
            }
        }
    }
}

fn lock(taken: &Mutex<HashMap<String, usize>>) -> MutexGuard<'_, HashMap<String, usize>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_has_more_than_a_part() {
        let shares = Shares::new(3, 2);
        let first = shares.take("a").unwrap();
        let _second = shares.take("a").unwrap();
        assert_eq!(shares.take("a").unwrap_err(), Full::Own(2));
        let _other = shares.take("b").unwrap();
        assert_eq!(shares.take("c").unwrap_err(), Full::All(3));
        drop(first);
        let _third = shares.take("c").unwrap();
        assert_eq!(shares.take("a").unwrap_err(), Full::All(3));
        assert_eq!(lock(&shares.taken).len(), 3);
    }
}
