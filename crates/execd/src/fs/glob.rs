//! Looks for files by name.

use std::path::{Path, PathBuf};

use barchan_wire::execd::fs::refusal::Refusal;
use barchan_wire::execd::fs::search::{MATCHES_MAX, Paths, Truncation};

use super::pattern::Pattern;
use super::resolve::shown;
use super::tree::{Tree, Wanted};
use crate::files::work::Stop;

/// Regular files below `root` that match, sorted; links count if what they point to is a regular
/// file below the root as well.
///
/// # Errors
/// When the pattern makes no sense, or the root cannot be read.
pub(crate) fn search(
    root: &Path,
    pattern: &str,
    max_count: Option<u64>,
    stop: &Stop,
) -> Result<Paths, Refusal> {
    let pattern = Pattern::new(pattern)?;
    let wanted = Wanted {
        pattern: Some(&pattern),
        excluded: &[],
        links: true,
    };
    let mut tree = Tree::new(root, wanted, stop)?;
    let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let count_max = max_count.unwrap_or(MATCHES_MAX).min(MATCHES_MAX) as usize;
    let is_file = |path: &PathBuf| {
        let real = path.canonicalize();
        real.is_ok_and(|real| real.starts_with(&real_root) && real.is_file())
    };
    let found = tree
        .by_ref()
        .filter(|leaf| !leaf.is_link || is_file(&leaf.path))
        .take(count_max + 1);
    let mut paths: Vec<String> = found.map(|leaf| shown(&leaf.path)).collect();
    let (gap, skipped) = tree.gaps();
    let truncated = (paths.len() > count_max).then_some(Truncation::Count);
    paths.truncate(count_max);
    paths.sort_unstable();
    Ok(Paths {
        paths,
        truncated: truncated.or(gap),
        skipped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_count_only_inside_the_root() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("root");
        std::fs::create_dir_all(root.join("d")).unwrap();
        std::fs::write(root.join("d/file"), "").unwrap();
        std::fs::write(scratch.path().join("outside"), "").unwrap();
        for (name, to) in [
            ("in", "d/file"),
            ("out", "../outside"),
            ("broken", "none"),
            ("dir", "d"),
            ("loop", "loop"),
        ] {
            symlink(to, root.join(name)).unwrap();
        }
        let (stop, _waiter) = Stop::after_ms(60_000);
        let found = search(&root, "*", None, &stop).unwrap();
        let at = |name: &str| shown(&root.join(name));
        assert_eq!(found.paths, [at("d/file"), at("in")]);
        assert_eq!(found.truncated, None);
        let found = search(&root, "*", Some(1), &stop).unwrap();
        assert_eq!(
            (found.paths, found.truncated),
            (vec![at("d/file")], Some(Truncation::Count))
        );
    }
}
