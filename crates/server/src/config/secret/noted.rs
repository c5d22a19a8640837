//! Where secrets outside of the settings are read: in the files and variables that hold them, or in
//! what a process that may read those noted.
//!
//! Settings are read by serde, which hands nothing on to the type that reads a secret, so which of
//! the two holds is kept for the thread that reads them.

use std::cell::RefCell;

use super::Place;

/// The text of each place, or why it has none.
pub(in crate::config) type Noted = Vec<(Place, Result<String, String>)>;

#[derive(Default)]
enum Source {
    #[default]
    Places,
    /// The places themselves, and what is read there is noted.
    Noting(Noted),
    Given(Noted),
}

thread_local! {
    static SOURCE: RefCell<Source> = RefCell::default();
}

/// The text of a place; `read` reads it there.
pub(super) fn text(
    place: &Place,
    read: impl FnOnce() -> Result<String, String>,
) -> Result<String, String> {
    SOURCE.with_borrow_mut(|source| match source {
        Source::Places => read(),
        Source::Noting(noted) => {
            let text = read();
            noted.push((place.clone(), text.clone()));
            text
        }
        Source::Given(noted) => {
            let found = noted.iter().find(|(is, _)| is == place);
            let text = found.map(|(_, text)| text.clone());
            text.unwrap_or_else(|| Err(format!("the secret {place:?} was not read")))
        }
    })
}

/// Notes what `work` reads.
pub(in crate::config) fn noting<T>(work: impl FnOnce() -> T) -> (T, Noted) {
    let (done, source) = with(Source::Noting(Noted::new()), work);
    match source {
        Source::Noting(noted) => (done, noted),
        _ => (done, Noted::new()),
    }
}

/// Lets `work` read these, and no place itself.
pub(in crate::config) fn given<T>(noted: Noted, work: impl FnOnce() -> T) -> T {
    with(Source::Given(noted), work).0
}

fn with<T>(source: Source, work: impl FnOnce() -> T) -> (T, Source) {
    SOURCE.set(source);
    let done = work();
    (done, SOURCE.take())
}
