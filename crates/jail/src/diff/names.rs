//! The names in several folders that stand for one.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, statat};
use rustix::io::Errno;

use super::budget::{Budget, Stop};

/// Most names of a folder that are brought into order.
pub(super) const SORTED_MAX: usize = 10_000;

/// Names that are still to come.
pub(super) enum Names {
    /// Few: all of them, the last one first.
    Sorted(Vec<CString>),
    /// Many: one folder after the other, without what one before has too.
    Listed { source: usize, names: Dir },
}

impl Names {
    /// Those of these folders. At most `sorted_max` are remembered.
    pub(super) fn of(
        sources: &[&OwnedFd],
        sorted_max: usize,
        budget: &Budget<'_>,
    ) -> Result<Self, Stop> {
        let mut sorted = BTreeSet::new();
        for source in sources {
            let mut names = Dir::read_from(source)?;
            while let Some(name) = next(&mut names)? {
                budget.check_time()?;
                sorted.insert(name);
                if sorted.len() > sorted_max.min(SORTED_MAX) {
                    return Self::listed(sources);
                }
            }
        }
        Ok(Self::Sorted(sorted.into_iter().rev().collect()))
    }

    fn listed(sources: &[&OwnedFd]) -> Result<Self, Stop> {
        let first = sources.first().ok_or(Errno::INVAL)?;
        let names = Dir::read_from(first)?;
        Ok(Self::Listed { source: 0, names })
    }

    /// How many are remembered.
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Sorted(names) => names.capacity(),
            Self::Listed { .. } => 0,
        }
    }

    /// The next one, of the same folders.
    pub(super) fn next(
        &mut self,
        sources: &[&OwnedFd],
        budget: &mut Budget<'_>,
    ) -> Result<Option<CString>, Stop> {
        let (source, names) = match self {
            Self::Sorted(names) => {
                let next = names.pop();
                return next.map(|name| budget.look().map(|()| name)).transpose();
            }
            Self::Listed { source, names } => (source, names),
        };
        loop {
            if let Some(name) = next(names)? {
                budget.look()?;
                if !is_in_one(sources.get(..*source).unwrap_or_default(), &name)? {
                    return Ok(Some(name));
                }
                continue;
            }
            let Some(after) = sources.get(*source + 1) else {
                return Ok(None);
            };
            *names = Dir::read_from(after)?;
            *source += 1;
        }
    }
}

fn is_in_one(sources: &[&OwnedFd], name: &CStr) -> Result<bool, Errno> {
    for source in sources {
        match statat(source, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => return Ok(true),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(false)
}

fn next(names: &mut Dir) -> Result<Option<CString>, Errno> {
    for entry in names {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Limits;

    #[test]
    fn names_of_several_folders_come_once_and_few_in_order() {
        let home = tempfile::tempdir().unwrap();
        let folders = [&["b", "d"][..], &["c", "b", "a"], &[], &["d", "e", "a"]];
        let opened: Vec<OwnedFd> = folders
            .iter()
            .enumerate()
            .map(|(number, names)| {
                let folder = home.path().join(number.to_string());
                std::fs::create_dir(&folder).unwrap();
                for name in *names {
                    std::fs::write(folder.join(name), "").unwrap();
                }
                std::fs::File::open(folder).unwrap().into()
            })
            .collect();
        let sources: Vec<_> = opened.iter().collect();
        let limits = Limits::default();
        for (sorted_max, is_sorted, looked) in [(5, true, 5), (4, false, 8), (0, false, 8)] {
            let mut budget = Budget::new(&limits);
            let mut names = Names::of(&sources, sorted_max, &budget).unwrap();
            assert_eq!(matches!(names, Names::Sorted(_)), is_sorted, "{sorted_max}");
            let mut found = Vec::new();
            while let Some(name) = names.next(&sources, &mut budget).unwrap() {
                found.push(name.into_string().unwrap());
            }
            if !is_sorted {
                found.sort();
            }
            assert_eq!(found, ["a", "b", "c", "d", "e"], "{sorted_max}");
            assert_eq!(budget.summary.entries, looked, "{sorted_max}");
        }
    }
}
