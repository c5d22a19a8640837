//! Calls about snapshots.

use barchan_wire::id::{SandboxId, SnapshotId};
use barchan_wire::lifecycle::{CreateSnapshot, Snapshot, SnapshotList};
use http::Method;

use super::{Client, PAGE_SIZE, PAGES_MAX};
use crate::error::ClientError;
use crate::http::parse;
use crate::sandbox::encoded;

/// Which snapshots a list shows. All parts must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotFilter {
    /// Of this sandbox.
    pub sandbox: Option<String>,
    /// Of exactly this name.
    pub name: Option<String>,
    /// In one of these states, letter for letter; any when empty.
    pub states: Vec<String>,
}

impl Client {
    /// Begins to take a snapshot of a running sandbox.
    ///
    /// # Errors
    /// When there is no such sandbox or it does not run.
    pub async fn take_snapshot(
        &self,
        sandbox: &SandboxId,
        name: Option<&str>,
    ) -> Result<Snapshot, ClientError> {
        let path = format!("/v1/sandboxes/{sandbox}/snapshots");
        let name = name.map(str::to_owned);
        let body = CreateSnapshot { name };
        parse(&self.http.call(Method::POST, &path, Some(&body)).await?)
    }

    /// What is known of a snapshot.
    ///
    /// # Errors
    /// When there is no such snapshot.
    pub async fn snapshot(&self, id: &SnapshotId) -> Result<Snapshot, ClientError> {
        self.http.get(&format!("/v1/snapshots/{id}")).await
    }

    /// All snapshots that pass the filter, youngest first.
    ///
    /// # Errors
    /// When the server refuses the filter.
    pub async fn snapshots(&self, filter: &SnapshotFilter) -> Result<Vec<Snapshot>, ClientError> {
        let mut found = Vec::new();
        for page in 1..=PAGES_MAX {
            let path = format!("/v1/snapshots?{}", query(filter, page));
            let answer: SnapshotList = self.http.get(&path).await?;
            found.extend(answer.items);
            if !answer.pagination.has_next_page {
                break;
            }
        }
        Ok(found)
    }

    /// Removes a snapshot.
    ///
    /// # Errors
    /// When there is none, it is being taken, or something stands on it.
    pub async fn remove_snapshot(&self, id: &SnapshotId) -> Result<(), ClientError> {
        let path = format!("/v1/snapshots/{id}");
        let done = self.http.call::<()>(Method::DELETE, &path, None);
        done.await.map(drop)
    }
}

fn query(filter: &SnapshotFilter, page: u64) -> String {
    let mut query = format!("page={page}&pageSize={PAGE_SIZE}");
    let one = [("sandboxId", &filter.sandbox), ("name", &filter.name)];
    let one = one
        .iter()
        .filter_map(|(key, value)| Some((*key, value.as_ref()?)));
    let states = filter.states.iter().map(|state| ("state", state));
    for (key, value) in one.chain(states) {
        query.push_str(&format!("&{key}={}", encoded(value)));
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_written_as_servers_read_it() {
        let filter = SnapshotFilter {
            sandbox: None,
            name: Some("a b".to_owned()),
            states: vec!["Ready".to_owned(), "Failed".to_owned()],
        };
        let expected = "page=1&pageSize=200&name=a%20b&state=Ready&state=Failed";
        assert_eq!(query(&filter, 1), expected);
    }
}
