//! Uploads of one file that may break off and be resumed: what has arrived waits beside its place
//! until the rest comes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::identity::Identity;
use super::stage::Staged;
use crate::clock;
use crate::fault::{Fault, Kind};
use crate::limits::{UPLOAD_IDLE_MS, UPLOADS_MAX};

/// A file of which the beginning has arrived. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Unfinished {
    staged: Staged,
    received: u64,
    /// Bytes of the whole; `None` if that is known only at the end.
    total: Option<u64>,
    hash: Option<Sha256>,
}

impl Unfinished {
    /// Begins a file; its digest is taken along if asked for.
    pub(crate) fn new(staged: Staged, total: Option<u64>, with_digest: bool) -> Self {
        Self {
            staged,
            received: 0,
            total,
            hash: with_digest.then(Sha256::new),
        }
    }

    /// Bytes that have arrived.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Bytes of the whole.
    pub(crate) fn total(&self) -> Option<u64> {
        self.total
    }

    /// Appends.
    ///
    /// # Errors
    /// When there is more than was told, or it cannot be written.
    pub(crate) fn write(&mut self, bytes: &Bytes) -> Result<(), Fault> {
        let received = self.received.saturating_add(bytes.len() as u64);
        if let Some(total) = self.total.filter(|total| received > *total) {
            let message = format!("the upload is longer than the {total} bytes it was told to be");
            return Err(Fault::new(Kind::BadContent, message));
        }
        self.staged.write(bytes)?;
        if let Some(hash) = &mut self.hash {
            hash.update(bytes);
        }
        self.received = received;
        Ok(())
    }

    /// Puts the file in its place if its digest is the expected one; returns the digest.
    ///
    /// # Errors
    /// When it is not, or the kernel refuses; the old content stays then.
    pub(crate) fn commit(
        mut self,
        expected: Option<&str>,
        arrange: impl FnOnce(&mut Staged),
    ) -> Result<Option<String>, Fault> {
        let found = self.hash.take().map(|hash| hex::encode(hash.finalize()));
        if let Some(expected) = expected {
            let Some(found) = &found else {
                let message = "ask for `sha256=true` in the first request to compare at the end";
                return Err(Fault::new(Kind::BadRequest, message));
            };
            if !found.eq_ignore_ascii_case(expected) {
                let message = format!("what arrived has the SHA-256 {found}; nothing was written");
                return Err(Fault::new(Kind::BadContent, message));
            }
        }
        arrange(&mut self.staged);
        self.staged.commit()?;
        Ok(found)
    }
}

/// Whose upload it is, and of which file.
type Key = (Option<Identity>, PathBuf);

/// Uploads that wait for their rest.
#[derive(Debug, Default)]
pub(crate) struct Uploads(RefCell<BTreeMap<Key, Slot>>);

#[derive(Debug)]
enum Slot {
    Waits(Box<Unfinished>, u64),
    /// A request is at work on it.
    Busy,
}

impl Uploads {
    /// Makes room for a new upload of this file, in the place of one that waits.
    ///
    /// # Errors
    /// When a request is at work on it.
    pub(crate) fn begin(&self, who: Option<Identity>, path: &Path) -> Result<(), Fault> {
        let mut all = self.0.borrow_mut();
        let key = (who, path.to_owned());
        if matches!(all.get(&key), Some(Slot::Busy)) {
            return Err(busy());
        }
        all.remove(&key);
        let now = clock::monotonic_ms();
        all.retain(|_, slot| match slot {
            Slot::Waits(_, since) => since.saturating_add(UPLOAD_IDLE_MS) > now,
            Slot::Busy => true,
        });
        if all.len() >= UPLOADS_MAX {
            let waits = all.iter().filter_map(|(key, slot)| match slot {
                Slot::Waits(_, since) => Some((*since, key.clone())),
                Slot::Busy => None,
            });
            let Some((_, oldest)) = waits.min_by_key(|(since, _)| *since) else {
                let message = format!("{UPLOADS_MAX} uploads are under way; try again later");
                return Err(Fault::new(Kind::Busy, message));
            };
            all.remove(&oldest);
        }
        all.insert(key, Slot::Busy);
        Ok(())
    }

    /// Takes an upload to go on with it; `None` where there is none.
    ///
    /// # Errors
    /// When a request is at work on it.
    pub(crate) fn take(
        &self,
        who: Option<Identity>,
        path: &Path,
    ) -> Result<Option<Unfinished>, Fault> {
        let mut all = self.0.borrow_mut();
        let Some(slot) = all.get_mut(&(who, path.to_owned())) else {
            return Ok(None);
        };
        match std::mem::replace(slot, Slot::Busy) {
            Slot::Waits(unfinished, _) => Ok(Some(*unfinished)),
            Slot::Busy => Err(busy()),
        }
    }

    /// Puts an upload back to wait for its rest; `None` forgets it.
    pub(crate) fn put(&self, who: Option<Identity>, path: &Path, left: Option<Unfinished>) {
        let key = (who, path.to_owned());
        let mut all = self.0.borrow_mut();
        match left {
            Some(left) => {
                all.insert(key, Slot::Waits(Box::new(left), clock::monotonic_ms()));
            }
            None => {
                all.remove(&key);
            }
        }
    }
}

fn busy() -> Fault {
    let message = "another request is at work on the upload of this file; try again when it ended";
    Fault::new(Kind::Conflict, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::permission::Rights;

    #[test]
    fn the_oldest_that_waits_makes_room_for_a_new_one() {
        let scratch = tempfile::tempdir().unwrap();
        let uploads = Uploads::default();
        let path = |number: usize| scratch.path().join(number.to_string());
        let begin = |number: usize| {
            uploads.begin(None, &path(number))?;
            let staged = Staged::new(&path(number), Rights::default())?;
            Ok::<_, Fault>(Unfinished::new(staged, Some(1), false))
        };
        for number in 0..UPLOADS_MAX {
            let left = begin(number).unwrap();
            uploads.put(None, &path(number), (number > 0).then_some(left));
        }
        let kept: Vec<_> = (0..2)
            .map(|number| begin(UPLOADS_MAX + number).unwrap())
            .collect();
        assert_eq!(begin(UPLOADS_MAX).unwrap_err().kind, Kind::Conflict);
        assert!(uploads.take(None, &path(1)).unwrap().is_none());
        assert!(uploads.take(None, &path(2)).unwrap().is_some());
        assert_eq!(
            uploads.take(None, &path(2)).unwrap_err().kind,
            Kind::Conflict
        );
        drop((kept, uploads));
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}
