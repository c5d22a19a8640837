//! Pure. Sandboxes of pools: what a pool's template makes, and what whoever gets one may want.

use barchan_runtime::Capabilities;
use barchan_wire::lifecycle::create::{NETWORKS, POOL_REF};
use barchan_wire::lifecycle::{CreateSandbox, pool};
use serde_json::{Map, Value};

use super::Admission;
use crate::api::errors::Refusal;
use crate::lifecycle::state::Allotment;
use crate::lifecycle::{Draft, KeptPool};

impl Admission {
    /// The sandboxes that a pod template stands for.
    pub(in crate::api) fn admit_template(
        &self,
        template: &Map<String, Value>,
        host: &Capabilities,
    ) -> Result<Draft, Refusal> {
        let body = pool::sandbox_of(template);
        let body = body.map_err(|bad| Refusal::parameter(bad.to_string()))?;
        let asked = CreateSandbox::read(Some(&body))?;
        // They get a time to live when somebody gets them.
        let unbounded = Self {
            timeout_s_max: None,
            ..self.clone()
        };
        unbounded.admit(asked, host)
    }

    /// The same of a pool that was kept, with what is wrong as a text.
    pub(crate) fn draft_of(&self, pool: &KeptPool, host: &Capabilities) -> Result<Draft, String> {
        let draft = self.admit_template(&pool.template, host);
        draft.map_err(|refusal| refusal.message())
    }

    /// What a request for a sandbox of a pool wants, and of which pool; `None` when it is a request
    /// for another. Image, entrypoint and limits are the pool's, whatever the request says: clients
    /// always send them.
    pub(in crate::api) fn admit_pooled(
        &self,
        asked: &CreateSandbox,
    ) -> Result<Option<(String, Allotment)>, Refusal> {
        let name = asked.extensions.get(POOL_REF).map(|name| name.trim());
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        for (present, field) in [
            (!asked.env.is_empty(), "env"),
            (!asked.volumes.is_empty(), "volumes"),
            (asked.network_policy.is_some(), "networkPolicy"),
            (asked.extensions.contains_key(NETWORKS), NETWORKS),
            (asked.platform.is_some(), "platform"),
        ] {
            if present {
                let message = format!(
                    "a sandbox of a pool stands ready already, so {field} cannot be chosen: put \
                     it into the pool's template or leave extensions.poolRef out"
                );
                return Err(Refusal::parameter(message));
            }
        }
        self.wishes(asked)
            .map(|wishes| Some((name.to_owned(), wishes)))
    }
}
