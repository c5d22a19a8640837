//! Calls to the lifecycle API of a server.

mod images;
mod layers;
mod outbound;
mod snapshots;

use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::{
    CreateSandbox, CreatedSandbox, Endpoint, Expiration, NamedVolume, NamedVolumes, ReloadReport,
    Sandbox, SandboxList, Time,
};
use barchan_wire::secret::Secret;
use http::Method;
use serde::Deserialize;

use crate::error::ClientError;
use crate::http::{Http, parse};
use crate::limits::Limits;
use crate::sandbox;
use crate::sandbox::encoded;
use crate::target::Target;

pub use images::ImageDownload;
pub use layers::{DiffEnd, DiffForm};
pub use snapshots::SnapshotFilter;

/// A server, and what may be asked of it. Cheap to clone: clones share their connections.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) http: Http,
}

/// Which sandboxes a list shows. All parts must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// One of these states; any when empty.
    pub states: Vec<String>,
    /// Exactly these labels among others.
    pub metadata: Vec<(String, String)>,
}

/// Sandboxes asked for at a time: the largest page that servers give.
const PAGE_SIZE: u64 = 200;
/// Pages read of one list; a list that grows while it is read must end too.
const PAGES_MAX: u64 = 500;

impl Client {
    /// A client of a server. Connects with the first call.
    ///
    /// # Errors
    /// When the key cannot stand in a header.
    pub fn new(target: Target, key: Option<&Secret>, limits: Limits) -> Result<Self, ClientError> {
        Ok(Self {
            http: Http::new(target, key, limits)?,
        })
    }

    /// Where the server is.
    #[must_use]
    pub fn target(&self) -> &Target {
        self.http.target()
    }

    /// Whether the server is well.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn health(&self) -> Result<(), ClientError> {
        self.http
            .call::<()>(Method::GET, "/health", None)
            .await
            .map(drop)
    }

    /// The version of the API that the server speaks.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn version(&self) -> Result<String, ClientError> {
        #[derive(Deserialize)]
        struct Answer {
            version: String,
        }
        self.http
            .get::<Answer>("/version")
            .await
            .map(|answer| answer.version)
    }

    /// Has the server read its settings again.
    ///
    /// # Errors
    /// When there is a fault in them, which changes nothing, or when the server does not allow it.
    pub async fn reload(&self) -> Result<ReloadReport, ClientError> {
        let done = self.http.call::<()>(Method::POST, "/x/reload", None);
        parse(&done.await?)
    }

    /// Makes a sandbox; it takes commands when this returns.
    ///
    /// # Errors
    /// When the server refuses or fails.
    pub async fn create(&self, request: &CreateSandbox) -> Result<CreatedSandbox, ClientError> {
        parse(
            &self
                .http
                .call(Method::POST, "/v1/sandboxes", Some(request))
                .await?,
        )
    }

    /// What is known of a sandbox.
    ///
    /// # Errors
    /// When there is no such sandbox.
    pub async fn get(&self, id: &SandboxId) -> Result<Sandbox, ClientError> {
        self.http.get(&format!("/v1/sandboxes/{id}")).await
    }

    /// One page of the sandboxes that pass the filter, youngest first.
    ///
    /// # Errors
    /// When the server refuses the filter.
    pub async fn page(&self, filter: &Filter, page: u64) -> Result<SandboxList, ClientError> {
        self.http
            .get(&format!("/v1/sandboxes?{}", query(filter, page)))
            .await
    }

    /// All sandboxes that pass the filter, youngest first.
    ///
    /// # Errors
    /// When the server refuses the filter.
    pub async fn list(&self, filter: &Filter) -> Result<Vec<Sandbox>, ClientError> {
        let mut found = Vec::new();
        for page in 1..=PAGES_MAX {
            let answer = self.page(filter, page).await?;
            found.extend(answer.items);
            if !answer.pagination.has_next_page {
                break;
            }
        }
        Ok(found)
    }

    /// Ends a sandbox and removes it.
    ///
    /// # Errors
    /// When there is no such sandbox.
    pub async fn delete(&self, id: &SandboxId) -> Result<(), ClientError> {
        let path = format!("/v1/sandboxes/{id}");
        self.http
            .call::<()>(Method::DELETE, &path, None)
            .await
            .map(drop)
    }

    /// Every named volume, by name.
    ///
    /// # Errors
    /// When the server cannot say, or has none of this program's own calls.
    pub async fn volumes(&self) -> Result<Vec<NamedVolume>, ClientError> {
        let found = self.http.get::<NamedVolumes>("/x/volumes").await?;
        Ok(found.volumes)
    }

    /// Removes a named volume with all that is in it.
    ///
    /// # Errors
    /// When there is none of the name, or a sandbox has it mounted.
    pub async fn remove_volume(&self, name: &str) -> Result<(), ClientError> {
        let path = format!("/x/volumes/{}", encoded(name));
        self.http
            .call::<()>(Method::DELETE, &path, None)
            .await
            .map(drop)
    }

    /// Sets when a sandbox ends by itself; the answer is what the server noted.
    ///
    /// # Errors
    /// When the moment is past or the sandbox never ends by itself.
    pub async fn renew(&self, id: &SandboxId, until: Time) -> Result<Time, ClientError> {
        let path = format!("/v1/sandboxes/{id}/renew-expiration");
        let body = Expiration { expires_at: until };
        let answer: Expiration = parse(&self.http.call(Method::POST, &path, Some(&body)).await?)?;
        Ok(answer.expires_at)
    }

    /// Stops all processes of a sandbox from running.
    ///
    /// # Errors
    /// When it is not running.
    pub async fn pause(&self, id: &SandboxId) -> Result<(), ClientError> {
        self.verb(id, "pause").await
    }

    /// Keeps what a sandbox has written, and ends all its processes.
    ///
    /// # Errors
    /// When it is not running, or the host seals no layers.
    pub async fn pause_to_disk(&self, id: &SandboxId) -> Result<(), ClientError> {
        self.verb(id, "pause?to=disk").await
    }

    /// Lets a paused sandbox run on, or start anew with the files that it was paused with.
    ///
    /// # Errors
    /// When it is not paused.
    pub async fn resume(&self, id: &SandboxId) -> Result<(), ClientError> {
        self.verb(id, "resume").await
    }

    async fn verb(&self, id: &SandboxId, verb: &str) -> Result<(), ClientError> {
        let path = format!("/v1/sandboxes/{id}/{verb}");
        self.http
            .call::<()>(Method::POST, &path, None)
            .await
            .map(drop)
    }

    /// Where a port of a sandbox is reached, for clients that go there themselves.
    ///
    /// # Errors
    /// When there is no such sandbox.
    pub async fn endpoint(&self, id: &SandboxId, port: u16) -> Result<Endpoint, ClientError> {
        self.http
            .get(&format!("/v1/sandboxes/{id}/endpoints/{port}"))
            .await
    }

    /// The daemon inside a sandbox.
    #[must_use]
    pub fn sandbox(&self, id: &SandboxId) -> sandbox::Sandbox {
        sandbox::Sandbox::new(self.http.clone(), id)
    }
}

/// The metadata filter is a query text inside the query, so its values are encoded twice.
fn query(filter: &Filter, page: u64) -> String {
    let mut query = format!("page={page}&pageSize={PAGE_SIZE}");
    for state in &filter.states {
        query.push_str(&format!("&state={}", encoded(state)));
    }
    if !filter.metadata.is_empty() {
        let pair = |(key, value): &(String, String)| format!("{}={}", encoded(key), encoded(value));
        let pairs: Vec<String> = filter.metadata.iter().map(pair).collect();
        query.push_str(&format!("&metadata={}", encoded(&pairs.join("&"))));
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_written_as_servers_read_it() {
        let filter = Filter {
            states: vec!["Running".to_owned()],
            metadata: vec![("a/b".to_owned(), "x y".to_owned())],
        };
        assert_eq!(
            query(&filter, 2),
            "page=2&pageSize=200&state=Running&metadata=a%252Fb%3Dx%2520y"
        );
    }
}
