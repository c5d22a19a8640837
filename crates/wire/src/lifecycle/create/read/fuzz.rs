use barchan_testkit::{fuzz, inputs};
use proptest::collection::vec;
use proptest::sample::select;
use proptest::strategy::{Strategy, Union};
use serde_json::json;

use super::*;

/// The request's own names in both spellings, and ours.
const NAMES: &[&str] = &[
    "image",
    "uri",
    "auth",
    "username",
    "password",
    "snapshotId",
    "snapshot_id",
    "templateId",
    "timeout",
    "resourceLimits",
    "resource_limits",
    "cpu",
    "memory",
    "env",
    "metadata",
    "lifecycle",
    "preStart",
    "periodic",
    "command",
    "timeoutSeconds",
    "name",
    "schedule",
    "entrypoint",
    "networkPolicy",
    "egress",
    "action",
    "target",
    "credentialProxy",
    "enabled",
    "secureAccess",
    "volumes",
    "mountPath",
    "readOnly",
    "subPath",
    "host",
    "path",
    "pvc",
    "claimName",
    "storage",
    "ossfs",
    "extensions",
    "poolRef",
    "platform",
    "os",
    "arch",
];

/// A whole request with other values in some places.
fn spoiled() -> impl Strategy<Value = Value> {
    let field = (select(NAMES), inputs::json(NAMES));
    vec(field, 0..6).prop_map(|fields| {
        let mut whole = json!({
            "image": {"uri": "host"},
            "entrypoint": ["sh"],
            "resourceLimits": {"cpu": "1"},
        });
        for (name, value) in fields {
            whole[name] = value;
        }
        whole
    })
}

/// What the rules promise to whoever gets a request.
fn assert_sound(request: &CreateSandbox) {
    let is_pooled = request.extensions.contains_key("poolRef");
    if request.template_id.is_none() && !is_pooled {
        assert!(request.image.is_some() != request.snapshot_id.is_some());
        assert!(request.resource_limits.is_some());
        assert!(request.image.is_none() || request.entrypoint.is_some());
    }
    let first = request.entrypoint.as_ref().map(|words| words.len());
    assert_ne!(first, Some(0));
    assert!(
        request
            .timeout_s
            .is_none_or(|seconds| seconds >= TIMEOUT_S_MIN.unsigned_abs())
    );
    assert!(!request.env.contains_key("OPENSANDBOX_LIFECYCLE"));
}

fuzz! {
    fn any_create_is_sound_or_refused_in_words(
        body in Union::new(vec![spoiled().boxed(), inputs::json(NAMES).boxed()]),
    ) {
        match CreateSandbox::read(Some(&body)) {
            Ok(request) => assert_sound(&request),
            Err(refusal) => {
                assert!((1..=64).contains(&refusal.detail.len()));
                let told = serde_json::to_string(&refusal).unwrap();
                assert!(told.len() < 64 * 4096, "{} bytes of refusal", told.len());
            }
        }
    }

    fn a_create_says_the_same_when_it_is_sent_on(body in spoiled()) {
        let Ok(request) = CreateSandbox::read(Some(&body)) else { return };
        let again = serde_json::to_value(&request).unwrap();
        assert_eq!(CreateSandbox::read(Some(&again)).unwrap(), request, "{again}");
    }

    fn refusals_show_no_secret(body in spoiled(), name in "[A-Z]{1,5}") {
        let mut body = body;
        body["env"] = json!({name: ["hunter2"]});
        body["image"] = json!({"uri": 5, "auth": {"username": "hunter2", "password": 9_753_123}});
        let refusal = CreateSandbox::read(Some(&body)).unwrap_err();
        let told = serde_json::to_string(&refusal).unwrap();
        assert!(!told.contains("hunter2") && !told.contains("9753123"), "{told}");
    }
}
