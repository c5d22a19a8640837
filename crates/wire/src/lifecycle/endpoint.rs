//! Pure. The address of a port in a sandbox.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// Where a port of a sandbox is reached and what must be sent along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// `host[:port][/path]`: no scheme and no slash at the end; callers put theirs around it.
    pub endpoint: String,
    /// Headers that every request to the endpoint must carry. They hold the sandbox's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, Secret>>,
}
