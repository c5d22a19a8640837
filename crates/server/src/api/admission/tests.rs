use serde_json::{Map, Value, json};

use barchan_runtime::Gpus;

use super::*;

pub(super) fn admission() -> Admission {
    Admission {
        idle_timeout_s: None,
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
        vault_proxies: Vec::new(),
        arch: "amd64",
        has_host_paths: true,
        volume_default_bytes: 1 << 30,
        volume_bytes_max: Some(100 << 30),
    }
}

pub(super) fn able() -> Capabilities {
    Capabilities {
        runtime: "fake".into(),
        limit_cpu: true,
        limit_memory: true,
        limit_pids: true,
        limit_disk: true,
        pause: true,
        pause_to_disk: true,
        limit_volume: true,
        snapshot: true,
        layers: true,
        gpus: 2,
        network: true,
    }
}

/// The default request with some fields replaced.
pub(super) fn asked(changes: &Value) -> CreateSandbox {
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
    let snapshot = json!({"image": null, "entrypoint": null, "snapshotId": "s"});
    check("404 SNAPSHOT::NOT_FOUND", &[snapshot]);
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
    let hook = |name: &str| json!({"name": name, "schedule": "@hourly", "command": ["true"]});
    let many_hooks: Vec<Value> = (0..33).map(|n| hook(&n.to_string())).collect();
    check(
        "400 SANDBOX::INVALID_PARAMETER",
        &[
            json!({"timeout": 1_000_000_000_000_000_000_i64}),
            json!({"platform": {"os": "windows", "arch": "amd64"}}),
            json!({"platform": {"os": "linux", "arch": "arm64"}}),
            json!({"extensions": {"access.renew.extend.seconds": "299"}}),
            json!({"extensions": {"access.renew.extend.seconds": "+300"}}),
            json!({"lifecycle": {"preStart": {"command": [""]}}}),
            json!({"lifecycle": {"preStart": {"command": ["a\u{0}b"]}}}),
            json!({"lifecycle": {"preStart": {"command": ["a", long]}}}),
            json!({"lifecycle": {"periodic": [hook("")]}}),
            json!({"lifecycle": {"periodic": [hook(&"n".repeat(64))]}}),
            json!({"lifecycle": {"periodic": many_hooks}}),
            json!({"secureAccess": true}),
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

/// So many entries, each of a length.
fn map(prefix: &str, count: usize, bytes: usize) -> Value {
    let entries = (0..count).map(|n| (format!("{prefix}{n:05}"), json!("x".repeat(bytes))));
    Value::Object(entries.collect())
}

#[test]
fn what_every_list_shows_has_an_end() {
    let kept = |count, bytes| map("opensandbox.extensions.", count, bytes);
    let words = |count, bytes| json!(vec!["x".repeat(bytes); count]);
    let label = "400 SANDBOX::INVALID_METADATA_LABEL";
    let parameter = "400 SANDBOX::INVALID_PARAMETER";
    let entrypoint = "400 DOCKER::INVALID_ENTRYPOINT";
    for (field, most, beyond, told) in [
        ("metadata", map("l", 64, 63), map("l", 65, 1), label),
        ("extensions", kept(64, 200), kept(65, 1), parameter),
        // Names of 28 bytes.
        ("extensions", kept(16, 996), kept(16, 997), parameter),
        ("env", map("E", 4096, 100), map("E", 4097, 1), parameter),
        ("entrypoint", words(4096, 63), words(4097, 1), entrypoint),
        (
            "entrypoint",
            words(2, 131_071),
            words(3, 100_000),
            entrypoint,
        ),
    ] {
        check("granted", &[json!({ field: most })]);
        check(told, &[json!({ field: beyond })]);
    }
    // What is dropped is not counted.
    check("granted", &[json!({"extensions": map("other.", 1000, 10)})]);
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
        json!({"cpu": "8193"}),
        json!({"": ""}),
        json!({"": "1", "cpu": "1"}),
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

#[test]
fn graphics_processors_are_given_as_far_as_there_are_any() {
    let gpu = |text: &str| json!({"resourceLimits": {"gpu": text}});
    let none = Capabilities { gpus: 0, ..able() };
    for (text, expected) in [
        ("1", Some(Gpus::Count(1))),
        ("2", Some(Gpus::Count(2))),
        ("all", Some(Gpus::All)),
        ("ALL", Some(Gpus::All)),
        ("3", None),
        ("0", None),
        ("-1", None),
        ("some", None),
        ("", None),
    ] {
        let draft = admission().admit(asked(&gpu(text)), &able());
        assert_eq!(draft.ok().and_then(|draft| draft.gpus), expected, "{text}");
        let told = code_of(&admission(), &gpu(text), &none);
        assert_eq!(told, "400 SANDBOX::INVALID_PARAMETER", "{text}");
    }
}
