//! Calls about what sandboxes reach, and about what waits for somebody's word.

use barchan_wire::egress::ConnectionList;
use barchan_wire::id::SandboxId;
use barchan_wire::lifecycle::approval::{Approval, ApprovalList, ApprovalState, Decide, Word};
use http::Method;

use super::Client;
use crate::error::ClientError;
use crate::http::parse;
use crate::sandbox::encoded;

impl Client {
    /// What a sandbox reached or tried to: what is open, and the last that ended, newest first.
    ///
    /// # Errors
    /// When there is no such sandbox, it does not live, or nothing guards it.
    pub async fn connections(&self, id: &SandboxId) -> Result<ConnectionList, ClientError> {
        self.http
            .get(&format!("/x/sandboxes/{id}/connections"))
            .await
    }

    /// What somebody is or was asked, in these states or in any; the youngest first.
    ///
    /// # Errors
    /// When the server does not allow it.
    pub async fn approvals(&self, states: &[ApprovalState]) -> Result<Vec<Approval>, ClientError> {
        let states = states.iter().enumerate().map(|(at, state)| {
            let mark = if at == 0 { '?' } else { '&' };
            format!("{mark}state={}", state.word())
        });
        let path = format!("/x/approvals{}", states.collect::<String>());
        Ok(self.http.get::<ApprovalList>(&path).await?.items)
    }

    /// One of them.
    ///
    /// # Errors
    /// When there is none of this id.
    pub async fn approval(&self, id: &str) -> Result<Approval, ClientError> {
        self.http
            .get(&format!("/x/approvals/{}", encoded(id)))
            .await
    }

    /// Says something about one that waits.
    ///
    /// # Errors
    /// When there is none of this id, or it does not wait any more.
    pub async fn decide(
        &self,
        id: &str,
        word: Word,
        said: &Decide,
    ) -> Result<Approval, ClientError> {
        let word = match word {
            Word::Approve => "approve",
            Word::Reject => "reject",
        };
        let path = format!("/x/approvals/{}/{word}", encoded(id));
        parse(&self.http.call(Method::POST, &path, Some(said)).await?)
    }
}
