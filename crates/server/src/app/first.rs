//! The first start with a database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use barchan_runtime::Runtime;

use super::StartError;

/// Where snapshots lie in the state directory.
const SHELF: &str = "images/snapshots";
/// How long the runtime may take to say what it has.
const LIST_WAIT: Duration = Duration::from_secs(60);

/// A new database knows of no snapshot, so there should be none: where its file was lost, all would
/// be taken for leftovers.
pub(super) async fn check_shelf(
    runtime: &dyn Runtime,
    state: &Path,
    database: PathBuf,
) -> Result<(), StartError> {
    let listed = tokio::time::timeout(LIST_WAIT, runtime.snapshots()).await;
    let late = |_| StartError::Runtime("it does not say which snapshots there are".to_owned());
    let there = listed.map_err(late)?;
    let there = there.map_err(|error| StartError::Runtime(error.to_string()))?;
    match there.len() {
        0 => Ok(()),
        count => Err(StartError::Forgotten {
            database,
            count,
            shelf: state.join(SHELF),
        }),
    }
}
