use serde_json::json;

use super::*;

fn admission() -> Admission {
    Admission {
        timeout_s_max: None,
        default: Limits {
            pids: Some(4096),
            disk_bytes: Some(10 << 30),
            ..Limits::default()
        },
        max: Limits {
            memory_bytes: Some(64 << 30),
            ..Limits::default()
        },
        strict: true,
        arch: "amd64",
    }
}

fn able() -> Capabilities {
    Capabilities {
        runtime: "fake",
        limit_cpu: true,
        limit_memory: true,
        limit_pids: true,
        limit_disk: true,
        pause: true,
    }
}

/// The default request with some fields replaced.
fn asked(changes: &Value) -> CreateSandbox {
    let mut body = json!({
        "image": {"uri": "host"},
        "timeout": 600,
        "resourceLimits": {"cpu": "1", "memory": "2Gi"},
        "entrypoint": ["tail", "-f", "/dev/null"],
    });
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    CreateSandbox::read(Some(&body)).unwrap()
}

fn code_of(admission: &Admission, changes: &Value, host: &Capabilities) -> String {
    match admission.admit(asked(changes), host) {
        Ok(_) => "granted".to_owned(),
        Err(refusal) => format!("{} {}", refusal.status(), refusal.code()),
    }
}

#[track_caller]
fn check(expected: &str, cases: &[Value]) {
    for changes in cases {
        let told = code_of(&admission(), changes, &able());
        let shown: String = changes.to_string().chars().take(200).collect();
        assert_eq!(told, expected, "{shown}");
    }
}

#[test]
fn what_is_granted() {
    check(
        "granted",
        &[
            json!({}),
            json!({"timeout": null}),
            json!({"metadata": {"a/b": "c"}}),
            json!({"platform": {"os": "linux", "arch": "amd64"}}),
            json!({"extensions": {"access.renew.extend.seconds": "300"}}),
            json!({"image": {"uri": "x", "auth": {"username": "u", "password": "p"}}}),
            json!({"env": {"OPENSANDBOX_EGRESS_LOG_LEVEL": "x"}}),
            json!({"resourceLimits": {}}),
            json!({"resourceLimits": {"other": "?"}}),
        ],
    );
}

#[test]
fn what_this_server_does_not_do_is_refused_by_its_own_code() {
    let label = "400 SANDBOX::INVALID_METADATA_LABEL";
    check(
        label,
        &[
            json!({"metadata": {"a b": ""}}),
            json!({"metadata": {"opensandbox.io/a": ""}}),
        ],
    );
    let pool = json!({"extensions": {"poolRef": "p"}});
    check("400 SANDBOX::UNSUPPORTED_POOL_REF", &[pool]);
    let snapshot = json!({"image": null, "entrypoint": null, "snapshotId": "s"});
    check("404 SNAPSHOT::NOT_FOUND", &[snapshot]);
    let volume = |kind: &str| json!({"volumes": [{"name": "v", "mountPath": "/m", kind: {}}]});
    check("400 VOLUME::HOST_PATH_NOT_ALLOWED", &[volume("host")]);
    check("400 VOLUME::UNSUPPORTED_BACKEND", &[volume("pvc")]);
    let template = json!({"templateId": "tpl-1", "timeout": 600});
    let template = CreateSandbox::read(Some(&template)).unwrap();
    let refusal = admission().admit(template, &able()).unwrap_err();
    assert_eq!(refusal.code(), "DOCKER::INVALID_ENTRYPOINT");
}

#[test]
fn bad_parameters_are_refused() {
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let many: Map<String, Value> = (0..9)
        .map(|n| (format!("E{n}"), json!("x".repeat(125_000))))
        .collect();
    check(
        "400 SANDBOX::INVALID_PARAMETER",
        &[
            json!({"timeout": 1_000_000_000_000_000_000_i64}),
            json!({"platform": {"os": "windows", "arch": "amd64"}}),
            json!({"platform": {"os": "linux", "arch": "arm64"}}),
            json!({"extensions": {"access.renew.extend.seconds": "299"}}),
            json!({"extensions": {"access.renew.extend.seconds": "+300"}}),
            json!({"lifecycle": {}}),
            json!({"secureAccess": true}),
            json!({"networkPolicy": {}}),
            json!({"env": {"A=B": ""}}),
            json!({"env": {"": ""}}),
            json!({"env": {"A": "\u{0}"}}),
            json!({"env": {"A": long}}),
            json!({"env": many}),
            json!({"env": {"OPENSANDBOX_EGRESS_X": "1"}}),
            json!({"image": {"uri": "a\u{0}"}}),
            json!({"image": {"uri": "x".repeat(2000)}}),
        ],
    );
    let entrypoints = [json!([""]), json!(["a\u{0}b"]), json!(["sh", long])];
    check(
        "400 DOCKER::INVALID_ENTRYPOINT",
        &entrypoints.map(|entrypoint| json!({ "entrypoint": entrypoint })),
    );
}

#[test]
fn amounts_that_make_no_sense_are_refused() {
    let limits = [
        json!({"cpu": "abc"}),
        json!({"cpu": "١"}),
        json!({"memory": "1E"}),
        json!({"memory": "1"}),
        json!({"disk": "1Ki"}),
        json!({"pids": "1"}),
        json!({"pids": "99999999999999"}),
        json!({"memory": "65Gi"}),
        json!({"memory": "99999999999999999999T"}),
        json!({"gpu": "1"}),
        json!({"disk": "-1"}),
        json!({"pids": "0"}),
    ];
    check(
        "400 SANDBOX::INVALID_PARAMETER",
        &limits.map(|limits| json!({ "resourceLimits": limits })),
    );
}

#[test]
fn limits_are_the_callers_else_the_defaults() {
    let limits = |changes| admission().admit(asked(&changes), &able()).unwrap().limits;
    let default = limits(json!({}));
    assert_eq!(
        (default.cpu_millis, default.memory_bytes),
        (Some(1000), Some(2 << 30))
    );
    assert_eq!(
        (default.pids, default.disk_bytes),
        (Some(4096), Some(10 << 30))
    );
    let own = limits(json!({"resourceLimits": {"cpu": "250m", "pids": "9", "disk": "1G"}}));
    assert_eq!((own.cpu_millis, own.memory_bytes), (Some(250), None));
    assert_eq!((own.pids, own.disk_bytes), (Some(9), Some(1_000_000_000)));
}

#[test]
fn what_the_host_cannot_enforce_is_refused_unless_that_is_allowed() {
    let unable = Capabilities {
        limit_memory: false,
        ..able()
    };
    let with_memory = json!({});
    let without = json!({"resourceLimits": {"cpu": "1"}});
    let strict = admission();
    let loose = Admission {
        strict: false,
        ..admission()
    };
    assert_eq!(
        code_of(&strict, &with_memory, &unable),
        "400 SANDBOX::INVALID_PARAMETER"
    );
    assert_eq!(code_of(&strict, &without, &unable), "granted");
    assert_eq!(code_of(&loose, &with_memory, &unable), "granted");
}

#[test]
fn a_time_to_live_stays_within_the_operators_maximum() {
    let bounded = Admission {
        timeout_s_max: Some(600),
        ..admission()
    };
    for (timeout, expected) in [
        (json!(600), "granted"),
        (json!(601), "400 SANDBOX::INVALID_PARAMETER"),
        (json!(null), "400 SANDBOX::INVALID_PARAMETER"),
    ] {
        let changes = json!({ "timeout": timeout });
        assert_eq!(code_of(&bounded, &changes, &able()), expected, "{changes}");
    }
}

#[test]
fn only_kept_extensions_are_kept_and_guard_settings_never_reach_a_sandbox() {
    let changes = json!({
        "extensions": {"opensandbox.extensions.team": "a", "other": "b"},
        "env": {"OPENSANDBOX_EGRESS_POLICY_FILE": "x", "A": "1"},
    });
    let draft = admission().admit(asked(&changes), &able()).unwrap();
    let kept: Vec<_> = draft.origin.extensions.keys().collect();
    assert_eq!(kept, ["opensandbox.extensions.team"]);
    assert_eq!(draft.env.keys().collect::<Vec<_>>(), ["A"]);
}
