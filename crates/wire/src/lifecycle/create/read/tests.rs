use serde_json::{Value, json};

use super::*;

/// What the Python SDK sends by default.
fn default_body() -> Value {
    json!({
        "image": {"uri": "python:3.11"},
        "timeout": 600,
        "resourceLimits": {"cpu": "1", "memory": "2Gi"},
        "entrypoint": ["tail", "-f", "/dev/null"],
        "secureAccess": false,
    })
}

/// The default body with some fields replaced; null takes a field away.
fn body_with(changes: &Value) -> Value {
    let mut body = default_body();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => body.as_object_mut().unwrap().remove(name),
            value => body
                .as_object_mut()
                .unwrap()
                .insert(name.clone(), value.clone()),
        };
    }
    body
}

fn kinds(changes: &Value) -> Vec<String> {
    match CreateSandbox::read(Some(&body_with(changes))) {
        Ok(_) => Vec::new(),
        Err(refusal) => refusal
            .detail
            .iter()
            .map(|fault| {
                let loc: Vec<String> = fault
                    .loc
                    .iter()
                    .map(|at| at.as_str().map_or(at.to_string(), str::to_owned))
                    .collect();
                format!("{} {}", fault.kind, loc.join("."))
            })
            .collect(),
    }
}

#[test]
fn the_default_request_is_read_and_written_back() {
    let request = CreateSandbox::read(Some(&default_body())).unwrap();
    assert_eq!(request.timeout_s, Some(600));
    assert_eq!(request.image, Some(Image::new("python:3.11")));
    assert_eq!(serde_json::to_value(&request).unwrap(), default_body());
}

#[test]
fn lenient_spellings_are_read() {
    for changes in [
        json!({"timeout": "600"}),
        json!({"timeout": 600.0}),
        json!({"timeout": null}),
        json!({"resourceLimits": null, "resource_limits": {"cpu": "1"}}),
        json!({"env": {"A": null, "B": ""}}),
        json!({"unknown": {"deep": [1]}}),
        json!({"secureAccess": "no"}),
        json!({"extensions": {"poolRef": " "}}),
        json!({"snapshotId": "  "}),
        json!({"extensions": {"poolRef": "p"}, "image": null, "resourceLimits": null}),
        json!({"timeout": 1_000_000_000_000_000_000_i64}),
        json!({"platform": {"os": "LINUX", "arch": "amd64"}}),
        json!({"lifecycle": {"preStart": {"command": ["a"]}}}),
    ] {
        assert_eq!(kinds(&changes), [""; 0], "{changes}");
    }
}

#[test]
fn null_environment_values_are_dropped_and_empty_ones_kept() {
    let body = body_with(&json!({"env": {"A": null, "B": ""}}));
    let env = CreateSandbox::read(Some(&body)).unwrap().env;
    assert_eq!(env.keys().collect::<Vec<_>>(), ["B"]);
}

#[test]
fn malformed_fields_are_named() {
    for (changes, expected) in [
        (json!({"timeout": 59}), "greater_than_equal body.timeout"),
        (json!({"timeout": 60.5}), "int_from_float body.timeout"),
        (json!({"timeout": -1}), "greater_than_equal body.timeout"),
        (json!({"timeout": "x"}), "int_parsing body.timeout"),
        (
            json!({"image": "python"}),
            "model_attributes_type body.image",
        ),
        (json!({"image": {}}), "missing body.image.uri"),
        (
            json!({"image": {"uri": "a", "auth": {"username": "u"}}}),
            "missing body.image.auth.password",
        ),
        (json!({"entrypoint": []}), "too_short body.entrypoint"),
        (json!({"entrypoint": "sh"}), "list_type body.entrypoint"),
        (
            json!({"entrypoint": ["sh", 1]}),
            "string_type body.entrypoint.1",
        ),
        (
            json!({"resourceLimits": {"cpu": 1}}),
            "string_type body.resourceLimits.cpu",
        ),
        (
            json!({"resourceLimits": []}),
            "dict_type body.resourceLimits",
        ),
        (
            json!({"metadata": {"a": null}}),
            "string_type body.metadata.a",
        ),
        (json!({"env": {"A": 1}}), "string_type body.env.A"),
        (
            json!({"secureAccess": "maybe"}),
            "bool_parsing body.secureAccess",
        ),
        (
            json!({"templateId": ""}),
            "string_too_short body.templateId",
        ),
        (
            json!({"volumes": [1]}),
            "model_attributes_type body.volumes.0",
        ),
        (
            json!({"volumes": [{"name": "a", "host": {"path": "/p"}}]}),
            "missing body.volumes.0.mountPath",
        ),
        (
            json!({"networkPolicy": {"egress": [{"action": "allow"}]}}),
            "missing body.networkPolicy.egress.0.target",
        ),
        (
            json!({"lifecycle": {"x": 1}}),
            "extra_forbidden body.lifecycle.x",
        ),
        (
            json!({"lifecycle": {"preStart": {"command": []}}}),
            "too_short body.lifecycle.preStart.command",
        ),
    ] {
        assert_eq!(kinds(&changes), [expected], "{changes}");
    }
}

#[test]
fn rules_between_fields_hold() {
    for changes in [
        json!({"image": null}),
        json!({"image": {"uri": "  "}}),
        json!({"snapshotId": "s"}),
        json!({"entrypoint": null}),
        json!({"resourceLimits": null}),
        json!({"env": {"OPENSANDBOX_LIFECYCLE": "x"}}),
        json!({"credentialProxy": {"enabled": true}}),
        json!({"extensions": {"poolRef": "p"}, "snapshotId": "s"}),
    ] {
        assert_eq!(kinds(&changes), ["value_error body"], "{changes}");
    }
    let template = json!({"templateId": "t", "timeout": null});
    assert_eq!(
        kinds(&template).len(),
        4,
        "image, entrypoint, limits, missing timeout"
    );
}

#[test]
fn all_faults_are_told_at_once_and_secrets_are_not() {
    let body = body_with(&json!({
        "timeout": 1,
        "entrypoint": [],
        "image": {"uri": "a", "auth": {"username": "u", "password": 12345}},
        "env": {"TOKEN": 98765},
    }));
    let refusal = CreateSandbox::read(Some(&body)).unwrap_err();
    assert_eq!(refusal.detail.len(), 4);
    let text = serde_json::to_string(&refusal).unwrap();
    assert!(!text.contains("12345") && !text.contains("98765"), "{text}");
}
