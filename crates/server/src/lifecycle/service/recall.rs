//! What is known of sandboxes, also of those that are gone.

use std::sync::Arc;

use barchan_wire::id::SandboxId;

use super::Lifecycle;
use crate::lifecycle::LifecycleError;
use crate::lifecycle::state::Record;

impl Lifecycle {
    /// A sandbox that is there or whose end is still readable.
    ///
    /// # Errors
    /// When nothing is known of it.
    pub fn recall(&self, id: &SandboxId) -> Result<Arc<Record>, LifecycleError> {
        let known = self.get(id).ok().or_else(|| self.grave(id));
        known.ok_or_else(|| LifecycleError::NotFound(id.to_string()))
    }
}
