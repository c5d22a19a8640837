//! An image that holds a few programs and no shell.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::raw::Served;

/// Puts the image `bare` into a store: these programs, what they are linked with, and nothing else.
fn put(images: &Path, programs: &[&str]) {
    let layer = "ba5e".repeat(16);
    let root = images.join("layers").join(&layer);
    for folder in ["bin", "dev", "etc", "proc", "sys", "tmp", "workspace"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for program in programs {
        let program = Path::new("/usr/bin").join(program);
        fs::copy(
            &program,
            root.join("bin").join(program.file_name().unwrap()),
        )
        .unwrap();
        let linked = Command::new("ldd").arg(&program).output().unwrap();
        assert!(linked.status.success(), "{linked:?}");
        let linked = String::from_utf8(linked.stdout).unwrap();
        for library in linked.split_whitespace().filter(|it| it.starts_with('/')) {
            let place = root.join(&library[1..]);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(library, place).unwrap();
        }
    }
    let manifest = json!({
        "name": "bare", "digest": format!("sha256:{layer}"), "base": null, "on_host": false,
        "layers": [layer], "env": {}, "path": [], "entrypoint": [], "created_unix_s": 0,
        "recipe_digest": "", "pinned": true, "bytes": 0,
    });
    fs::write(images.join("images/bare.json"), manifest.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_a_shell_runs_programs_and_says_what_it_cannot_run() {
    let served = Served::start().await;
    put(&served.state().join("images"), &["tail", "ls"]);
    let entrypoint = json!(["tail", "-f", "/dev/null"]);
    let created = served.try_create(&json!({"image": {"uri": "bare"}, "entrypoint": entrypoint}));
    assert_eq!(created.code(), "202", "{created:?}");
    let inside = format!("/v1/sandboxes/{}/proxy/44772", created.id());
    let line = json!({"command": "echo hi"});
    let no_shell = "this image has no shell (neither bash nor sh)";
    for (route, body, code, said) in [
        ("/command", line.clone(), "200", "\"evalue\":\"127\""),
        ("/command", line.clone(), "200", no_shell),
        ("/command", json!({"argv": ["ls", "/bin"]}), "200", "tail"),
        ("/command", json!({"argv": ["sh"]}), "200", "sh: not found"),
        ("/x/exec", line, "200", no_shell),
        ("/x/exec", json!({"argv": ["ls", "/bin"]}), "200", "tail"),
        ("/session", json!({}), "501 NOT_SUPPORTED", no_shell),
        ("/pty", json!({}), "201", "session_id"),
        (
            "/x/fs/grep",
            json!({"pattern": "root", "path": "/etc"}),
            "200",
            "",
        ),
    ] {
        let answer = served.post(&format!("{inside}{route}"), body.to_string().as_bytes());
        assert_eq!(answer.code(), code, "{route} {body}: {}", answer.text());
        assert!(
            answer.text().contains(said),
            "{route} {body}: {}",
            answer.text()
        );
    }
    let sh = json!({"image": {"uri": "bare"}, "entrypoint": ["sh", "-c", "sleep 9"]});
    let created = served.try_create(&sh);
    assert_eq!(created.code(), "202");
    served.until(&format!("/v1/sandboxes/{}", created.id()), |sandbox| {
        let status = &sandbox["status"];
        status["state"] == "Failed" && status["reason"] == "CONTAINER_EXITED_ERROR"
    });
}
