//! Pure. Renewing: the moment at which a sandbox is to end.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{Faults, ValidationBody};
use super::lax::Reader;
use super::time::Time;

/// The body of a renewal and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Expiration {
    /// When the sandbox ends by itself.
    pub expires_at: Time,
}

impl Expiration {
    /// Reads the body of a renewal; `None` stands for a request without a JSON body.
    ///
    /// # Errors
    /// Every fault of the body.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        let mut faults = Faults::default();
        let moment = Reader::body(body, &mut faults).and_then(|mut it| it.time("expiresAt"));
        match moment {
            Some(expires_at) => faults.or(Self { expires_at }),
            None => Err(faults.refusal()),
        }
    }
}
