//! Looks for text in files.
//!
//! One walk, by name, is handed out in batches to as many threads as there are cores. What they
//! find is put together in the order of the walk, so that the first so many matches are always the
//! same ones.

mod board;
mod line_matcher;
mod one_file;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use barchan_wire::execd::fs::refusal::Refusal;
use barchan_wire::execd::fs::search::{Found, Grep, GrepMode, MATCHES_MAX, Skipped, Truncation};

use self::board::Board;
use self::line_matcher::LineMatcher;
use self::one_file::{Hits, OneFile};
use super::pattern::Pattern;
use super::resolve::{regular, shown};
use super::tree::{Tree, Wanted, is_no_directory};
use crate::files::work::Stop;
use crate::limits::SEARCH_THREADS_MAX;

/// Most matches when the caller names no number.
const COUNT: u64 = 1000;
/// Files that a thread takes at once: enough that the walk is not what they wait for.
const BATCH: usize = 64;
/// Directories that are not entered when the caller names none: packed, and never looked for.
const EXCLUDED: &str = ".git";

/// A search that was understood.
#[derive(Debug)]
pub(crate) struct Order {
    root: PathBuf,
    matcher: LineMatcher,
    pattern: Option<Pattern>,
    excluded: Vec<String>,
    mode: GrepMode,
    count_max: u64,
}

impl Order {
    /// Reads a request.
    ///
    /// # Errors
    /// For patterns that make no sense or are too large.
    pub(crate) fn new(asked: Grep, root: PathBuf) -> Result<Self, Refusal> {
        let matcher = LineMatcher::new(&asked)?;
        let pattern = asked.glob.as_deref().map(Pattern::new).transpose()?;
        let excluded = asked.exclude_dirs;
        Ok(Self {
            root,
            matcher,
            pattern,
            excluded: excluded.unwrap_or_else(|| vec![EXCLUDED.to_owned()]),
            mode: asked.mode,
            count_max: asked.max_count.unwrap_or(COUNT).min(MATCHES_MAX),
        })
    }
}

/// Carries out a search.
///
/// # Errors
/// When the root does not exist or cannot be read.
pub(crate) fn search(order: &Order, stop: &Stop) -> Result<Found, Refusal> {
    let wanted = Wanted {
        pattern: order.pattern.as_ref(),
        excluded: &order.excluded,
        links: false,
    };
    match Tree::new(&order.root, wanted, stop) {
        Ok(tree) => Ok(in_tree(order, tree, stop)),
        Err(refusal) if is_no_directory(&refusal) => in_file(order, stop),
        Err(refusal) => Err(refusal),
    }
}

/// Searches a file that the caller named: whatever it holds, he wants it searched.
fn in_file(order: &Order, stop: &Stop) -> Result<Found, Refusal> {
    regular(&order.root, "search")?;
    let board = Board::new(order.mode, order.count_max);
    let hits = OneFile::new(order, &board.stopping(stop), true).search(&order.root);
    let hits: Vec<Hits> = hits.into_iter().collect();
    board.put(0, hits);
    Ok(board.finish((None, Vec::new()), stop.now()))
}

fn in_tree(order: &Order, tree: Tree<'_>, stop: &Stop) -> Found {
    let board = Board::new(order.mode, order.count_max);
    let queue = Mutex::new(Queue { tree, number: 0 });
    let work = || {
        let stopping = board.stopping(stop);
        let mut file = OneFile::new(order, &stopping, false);
        while let Some((number, batch)) = lock(&queue).take(&board, stop) {
            let hits = batch.iter().filter_map(|path| file.search(path));
            board.put(number, hits.collect());
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        for _ in 1..cores.min(SEARCH_THREADS_MAX) {
            // Without another thread this one does it all.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    board.finish(queue.tree.gaps(), stop.now())
}

/// The walk, and the number of the next batch.
struct Queue<'a> {
    tree: Tree<'a>,
    number: u64,
}

impl Queue<'_> {
    fn take(&mut self, board: &Board, stop: &Stop) -> Option<(u64, Vec<PathBuf>)> {
        if board.is_full() || stop.now() {
            return None;
        }
        let batch: Vec<PathBuf> = self
            .tree
            .by_ref()
            .take(BATCH)
            .map(|leaf| leaf.path)
            .collect();
        let number = self.number;
        self.number += 1;
        (!batch.is_empty()).then_some((number, batch))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
