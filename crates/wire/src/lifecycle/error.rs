//! Pure. The shapes in which the lifecycle API refuses a request.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Most faults listed in one answer.
const FAULTS_MAX: usize = 64;
/// Longest piece of a refused value that is shown back, in bytes.
const INPUT_BYTES_MAX: usize = 200;

/// Any refusal but that of a malformed request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What programs decide by.
    pub code: String,
    /// What was tried, on what, and what to do next.
    pub message: String,
    /// Present on unknown routes only, where older clients look for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl ErrorBody {
    /// An error of a code with its message.
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            detail: None,
        }
    }
}

/// The refusal of a malformed request (status 422).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidationBody {
    /// Each fault; never empty.
    pub detail: Vec<Fault>,
}

/// One thing wrong with a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind of fault, as programs know it: `missing`, `int_parsing`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Where: `["body", "image", "uri"]`.
    pub loc: Vec<Value>,
    /// What is expected there.
    pub msg: String,
    /// The refused value when it is short and no secret can be in it.
    pub input: Value,
    /// Limits that the value broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ctx: Option<Value>,
}

/// Faults as they are found, up to a limit.
#[derive(Debug, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Notes a fault at a place.
    pub fn add(&mut self, kind: &str, loc: &[Value], msg: impl Into<String>, input: &Value) {
        self.add_with(kind, loc, msg, input, None);
    }

    /// Notes a fault with the limits that were broken.
    pub fn add_with(
        &mut self,
        kind: &str,
        loc: &[Value],
        msg: impl Into<String>,
        input: &Value,
        ctx: Option<Value>,
    ) {
        if self.0.len() < FAULTS_MAX {
            self.0.push(Fault {
                kind: kind.to_owned(),
                loc: loc.to_vec(),
                msg: msg.into(),
                input: shown(loc, input),
                ctx,
            });
        }
    }

    /// A rule between fields of the body is broken.
    pub fn add_rule(&mut self, msg: &str) {
        self.add(
            "value_error",
            &[json!("body")],
            format!("Value error, {msg}"),
            &Value::Null,
        );
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `value` when nothing is wrong, else the refusal.
    ///
    /// # Errors
    /// Every fault noted so far.
    pub fn or<T>(self, value: T) -> Result<T, ValidationBody> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self.refusal())
        }
    }

    /// The refusal that lists what was noted.
    #[must_use]
    pub fn refusal(self) -> ValidationBody {
        ValidationBody { detail: self.0 }
    }
}

/// What may be shown of a refused value: scalars, cut short, and nothing from where secrets are.
fn shown(loc: &[Value], input: &Value) -> Value {
    let secret = loc
        .iter()
        .any(|step| matches!(step.as_str(), Some("env" | "auth" | "ossfs")));
    match input {
        _ if secret => Value::Null,
        Value::String(text) if text.len() > INPUT_BYTES_MAX => {
            let end = text.floor_char_boundary(INPUT_BYTES_MAX);
            json!(format!("{}…", &text[..end]))
        }
        Value::Array(_) | Value::Object(_) => Value::Null,
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_long_values_are_not_shown() {
        for (loc, input, expected) in [
            (json!(["body", "timeout"]), json!("x"), json!("x")),
            (json!(["body", "env", "KEY"]), json!(5), Value::Null),
            (
                json!(["body", "image", "auth", "password"]),
                json!(5),
                Value::Null,
            ),
            (json!(["body"]), json!({"env": {"A": "b"}}), Value::Null),
        ] {
            assert_eq!(shown(loc.as_array().unwrap(), &input), expected, "{loc}");
        }
        let long = shown(&[], &json!("é".repeat(500)));
        assert!(long.as_str().unwrap().len() <= INPUT_BYTES_MAX + 3);
    }

    #[test]
    fn faults_are_counted_up_to_a_limit() {
        let mut faults = Faults::default();
        for _ in 0..1000 {
            faults.add("missing", &[], "is required", &Value::Null);
        }
        assert_eq!(faults.or(()).unwrap_err().detail.len(), FAULTS_MAX);
    }
}
