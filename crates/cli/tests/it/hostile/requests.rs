//! Requests that are well framed and cannot be granted.

use serde_json::json;

use super::raw::Served;

#[tokio::test(flavor = "multi_thread")]
async fn creates_that_cannot_be_are_refused_with_the_reason() {
    let served = Served::start().await;
    let long = "x".repeat(5_000);
    let parameter = "400 SANDBOX::INVALID_PARAMETER";
    let entrypoint = "400 DOCKER::INVALID_ENTRYPOINT";
    for (changes, expected) in [
        (
            json!({"image": {"uri": "nope:1"}}),
            "500 DOCKER::SANDBOX_IMAGE_PULL_FAILED",
        ),
        (
            json!({"image": {"uri": "../../etc"}}),
            "500 DOCKER::SANDBOX_IMAGE_PULL_FAILED",
        ),
        (json!({"image": {"uri": long}}), parameter),
        (json!({"image": {"uri": "a\0b"}}), parameter),
        (json!({"entrypoint": [""]}), entrypoint),
        (json!({"entrypoint": ["a\0b"]}), entrypoint),
        (json!({"entrypoint": []}), "422"),
        (json!({"resourceLimits": {"": ""}}), parameter),
        (json!({"resourceLimits": {"cpu": ""}}), parameter),
        (json!({"resourceLimits": {"cpu": "99999999999"}}), parameter),
        (
            json!({"resourceLimits": {"memory": "999999999Ti"}}),
            parameter,
        ),
        (json!({"resourceLimits": {"disk": "8000Pi"}}), parameter),
        (json!({"env": {"A\0": "b"}}), parameter),
        (json!({"env": {"": "b"}}), parameter),
        (json!({"env": {"A": "x".repeat(200_000)}}), parameter),
        (
            json!({"metadata": {long.clone(): "b"}}),
            "400 SANDBOX::INVALID_METADATA_LABEL",
        ),
        (json!({"timeout": -5}), "422"),
        (json!({"timeout": 1e30}), "422"),
    ] {
        let shown: String = changes.to_string().chars().take(80).collect();
        assert_eq!(served.try_create(&changes).code(), expected, "{shown}");
    }
    for bytes in [&b"\xff\xfe"[..], b"{\"image\":", &vec![b'['; 100_000]] {
        assert_eq!(served.post("/v1/sandboxes", bytes).code(), "422");
    }
    let large = vec![b' '; 9 << 20];
    assert_eq!(
        served.post("/v1/sandboxes", &large).code(),
        "413 BODY_TOO_LARGE"
    );
    assert_eq!(
        served.get("/v1/sandboxes").json()["items"],
        json!([]),
        "nothing is left"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entrypoint_that_cannot_last_is_told_with_its_end() {
    let served = Served::start().await;
    for (entrypoint, state, reason) in [
        (json!(["true"]), "Terminated", "CONTAINER_EXITED"),
        (json!(["/no/such"]), "Failed", "CONTAINER_EXITED_ERROR"),
        (json!(["/tmp"]), "Failed", "CONTAINER_EXITED_ERROR"),
    ] {
        let created = served.try_create(&json!({"entrypoint": entrypoint}));
        assert_eq!(created.code(), "202");
        let path = format!("/v1/sandboxes/{}", created.id());
        served.until(&path, |sandbox| {
            sandbox["status"]["state"] == state && sandbox["status"]["reason"] == reason
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_cannot_be_are_refused_before_they_start() {
    let served = Served::start().await;
    let id = served.create();
    let long = "x".repeat(5_000);
    for (body, expected) in [
        (
            json!({"command": format!("echo {} | wc -c", "x".repeat(200_000))}),
            "200001",
        ),
        (
            json!({"command": format!(": {}; echo fine", "x".repeat(2_500_000))}),
            "fine",
        ),
        (
            json!({"command": "echo fine", "envs": {long.clone(): "x"}}),
            "fine",
        ),
        (
            json!({"command": "x".repeat(17 << 20)}),
            "413 INVALID_REQUEST_BODY",
        ),
        (json!({"command": "echo a\0b"}), "400 INVALID_REQUEST_BODY"),
        (
            json!({"command": "pwd", "cwd": "/tmp\0/x"}),
            "400 INVALID_FILE",
        ),
        (
            json!({"command": "pwd", "cwd": format!("/{long}")}),
            "400 INVALID_FILE",
        ),
        (
            json!({"command": "pwd", "cwd": "/nope"}),
            "400 INVALID_REQUEST_BODY",
        ),
        (
            json!({"command": "env", "envs": {"A\0B": "x"}}),
            "400 INVALID_REQUEST_BODY",
        ),
        (
            json!({"command": "env", "envs": {"A=B": "x"}}),
            "400 INVALID_REQUEST_BODY",
        ),
        (
            json!({"command": "env", "envs": {"": "x"}}),
            "400 INVALID_REQUEST_BODY",
        ),
        (json!({"argv": ["a\0"]}), "400 INVALID_REQUEST_BODY"),
        (json!({"argv": []}), "400 INVALID_REQUEST_BODY"),
        (json!({"argv": ["printf", "x".repeat(131_071)]}), "xxx"),
        (
            json!({"argv": ["true", "x".repeat(131_072)]}),
            "argument list too long",
        ),
        (
            json!({"argv": vec!["true"; 2_000_000]}),
            "argument list too long",
        ),
        (
            json!({"command": "id", "uid": -1}),
            "400 INVALID_REQUEST_BODY",
        ),
    ] {
        let shown: String = body.to_string().chars().take(60).collect();
        let path = format!("/v1/sandboxes/{id}/proxy/44772/command");
        let answer = served.post(&path, body.to_string().as_bytes());
        match answer.code().as_str() {
            "200" => assert!(answer.text().contains(expected), "{shown}: {answer:?}"),
            code => assert_eq!(code, expected, "{shown}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_lead_nowhere_but_into_the_sandbox() {
    let served = Served::start().await;
    let id = served.create();
    let inside = format!("/v1/sandboxes/{id}/proxy/44772");
    let links =
        "ln -s /proc/1/root/etc/shadow /tmp/l; ln -s / /tmp/r; mkfifo /tmp/f; ln -s o /tmp/o";
    let made = json!({"command": links}).to_string();
    assert_eq!(
        served
            .post(&format!("{inside}/command"), made.as_bytes())
            .code(),
        "200"
    );
    let long = format!("/{}", "a".repeat(5_000));
    for (path, expected) in [
        ("../../../../etc/hostname", "sandbox\n"),
        ("/tmp/r/tmp/../etc/hostname", "sandbox\n"),
        ("/tmp/l", "404 FILE_NOT_FOUND"),
        ("/proc/1/root/etc/shadow", "404 FILE_NOT_FOUND"),
        ("/tmp/f", "400 INVALID_FILE"),
        ("/tmp/o", "400 INVALID_FILE"),
        ("/dev/zero", "400 INVALID_FILE"),
        ("/a%00b", "400 INVALID_FILE"),
        (long.as_str(), "400 INVALID_FILE"),
        ("", "400 MISSING_QUERY"),
    ] {
        let answer = served.get(&format!("{inside}/files/download?path={path}"));
        match answer.code().as_str() {
            "200" => assert_eq!(answer.text(), expected, "{path}"),
            code => assert_eq!(code, expected, "{path}"),
        }
    }
}
