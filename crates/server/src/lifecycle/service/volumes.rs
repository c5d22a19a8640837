//! Named volumes: the runtime has them, and nothing of them is kept here.

use barchan_runtime::{ErrorKind, NamedVolume, RuntimeError};

use super::Lifecycle;
use crate::lifecycle::error::{LifecycleError, VolumeVerb};

impl Lifecycle {
    /// Every named volume, by name.
    ///
    /// # Errors
    /// When the runtime cannot say.
    pub async fn volumes(&self) -> Result<Vec<NamedVolume>, LifecycleError> {
        self.ask_of_volumes(VolumeVerb::List, self.0.runtime.volumes())
            .await
    }

    /// Removes a named volume.
    ///
    /// # Errors
    /// When there is none of the name, or a sandbox has it mounted.
    pub async fn remove_volume(&self, name: &str) -> Result<(), LifecycleError> {
        self.ask_of_volumes(VolumeVerb::Remove, self.0.runtime.remove_volume(name))
            .await
    }

    async fn ask_of_volumes<T>(
        &self,
        verb: VolumeVerb,
        answer: impl Future<Output = Result<T, RuntimeError>>,
    ) -> Result<T, LifecycleError> {
        let wait = self.1.verb_wait;
        let answer = tokio::time::timeout(wait, answer).await;
        let answer = answer.unwrap_or_else(|_| {
            let seconds = wait.as_secs();
            let message = format!("the runtime took more than {seconds} s to {verb}");
            Err(RuntimeError::new(ErrorKind::Unavailable, message))
        });
        answer.map_err(LifecycleError::Volumes)
    }
}
