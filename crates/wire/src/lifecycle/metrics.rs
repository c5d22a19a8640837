//! Pure. What clients report of themselves.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{Faults, ValidationBody};
use super::lax::Need::{May, Must};
use super::lax::Reader;

/// The only kind of event there is.
pub const CREATE_EVENT: &str = "sandbox.create";

/// How long a create took, as its caller saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateEvent {
    /// Always [`CREATE_EVENT`].
    pub event_type: String,
    /// Which sandbox, when one came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
    /// Of which image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// From the call to a usable sandbox, in milliseconds.
    pub create_duration_ms: u64,
    /// Whether one came of it.
    pub success: bool,
}

impl CreateEvent {
    /// Reads an event; `None` stands for a request without a JSON body.
    ///
    /// # Errors
    /// Every fault of the body.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        let mut faults = Faults::default();
        let Some(mut reader) = Reader::body(body, &mut faults) else {
            return Err(faults.refusal());
        };
        let event_type = reader.string("eventType", Must);
        let sandbox_id = reader.string("sandboxId", May);
        let image = reader.string("image", May);
        let create_duration_ms = reader.integer("createDurationMs", Must, 0, i64::MAX);
        let success = reader.boolean("success", Must);
        if event_type
            .as_deref()
            .is_some_and(|kind| kind != CREATE_EVENT)
        {
            reader.refuse("literal_error", "eventType", "must be 'sandbox.create'");
        }
        match (event_type, create_duration_ms, success) {
            (Some(event_type), Some(duration), Some(success)) => {
                let create_duration_ms = duration.unsigned_abs();
                faults.or(Self {
                    event_type,
                    sandbox_id,
                    image,
                    create_duration_ms,
                    success,
                })
            }
            _ => Err(faults.refusal()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_duration_is_whole_milliseconds() {
        let event = |ms: Value| {
            let kind = CREATE_EVENT;
            json!({"eventType": kind, "createDurationMs": ms, "success": true})
        };
        assert_eq!(
            CreateEvent::read(Some(&event(json!(12))))
                .unwrap()
                .create_duration_ms,
            12
        );
        for bad in [json!(12.5), json!(-1), json!(null), json!("x")] {
            assert!(
                CreateEvent::read(Some(&event(bad.clone()))).is_err(),
                "{bad}"
            );
        }
        let other = json!({"eventType": "other", "createDurationMs": 1, "success": true});
        assert_eq!(
            CreateEvent::read(Some(&other)).unwrap_err().detail[0].kind,
            "literal_error"
        );
        assert!(CreateEvent::read(None).is_err());
    }
}
