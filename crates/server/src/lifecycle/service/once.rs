//! Commands that are run once, whoever dies in between.

use barchan_wire::id::SandboxId;
use uuid::Uuid;

use super::Lifecycle;
use crate::lifecycle::LifecycleError;
use crate::lifecycle::state::State;
use crate::store::{Claim, Outcome, Settled, Standing};

impl Lifecycle {
    /// What a caller's key stands for. A new one gets a command's id, which is kept before this
    /// returns, unless nothing can begin now.
    ///
    /// # Errors
    /// When it cannot be kept, or a tenant asks for another's.
    pub async fn claim(
        &self,
        id: &SandboxId,
        key: &str,
        fingerprint: [u8; 32],
        may_begin: bool,
    ) -> Result<Standing, LifecycleError> {
        if self.2.tenant().is_some() {
            self.recall(id)?;
        }
        let slot = self.0.store.slot().await?;
        let claimed = slot.claim(Claim {
            sandbox: id.to_string(),
            key: key.to_owned(),
            fingerprint,
            command: Uuid::new_v4().simple().to_string(),
            may_begin,
            now_us: self.0.clock.now().wall.as_microsecond(),
        });
        Ok(claimed.standing().await?)
    }

    /// Keeps what came of a command.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub async fn settle(
        &self,
        id: &SandboxId,
        key: &str,
        outcome: Outcome,
    ) -> Result<(), LifecycleError> {
        let slot = self.0.store.slot().await?;
        let settled = Settled {
            sandbox: id.to_string(),
            key: key.to_owned(),
            outcome,
        };
        Ok(slot.settle(settled).kept().await?)
    }

    /// Whether nothing in a sandbox can still run.
    #[must_use]
    pub fn has_ended(&self, id: &SandboxId) -> bool {
        self.get(id)
            .map_or(true, |record| matches!(record.state(), State::Ended(_)))
    }
}
