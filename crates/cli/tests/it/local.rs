//! What the program does without a server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use crate::program::{Ran, program, run};
use crate::world::until;

#[tokio::test]
async fn settings_are_written_once_and_for_the_owner_alone() {
    let home = TempDir::new().unwrap();
    let init = async |arguments: &[&str]| -> Ran {
        program(home.path())
            .arg("init-config")
            .args(arguments)
            .output()
            .await
            .unwrap()
            .into()
    };
    assert_eq!(init(&["a.toml", "--example", "native"]).await.code, Some(0));
    let path = home.path().join("a.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("[server]") && text.contains("#port = 8080"),
        "{text}"
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );

    fs::write(&path, "mine").unwrap();
    let refused = init(&["a.toml"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(init(&["a.toml", "--force"]).await.code, Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    let unknown = init(&["b.toml", "--example", "nothing"]).await;
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.stderr.contains("there are: native"),
        "{}",
        unknown.stderr
    );
    assert!(!home.path().join("b.toml").exists());
}

#[tokio::test]
async fn a_folder_of_others_stays_as_it_is() {
    let home = TempDir::new().unwrap();
    let project = home.path().join("project");
    fs::create_dir_all(project.join("src")).unwrap();
    fs::set_permissions(&project, fs::Permissions::from_mode(0o755)).unwrap();
    for command in [&["serve"][..], &["list"], &["image", "list"]] {
        let mut program = program(home.path());
        program.arg("--state-dir").arg(&project).args(command);
        let ran: Ran = program.output().await.unwrap().into();
        assert_eq!(ran.code, Some(1), "{command:?}");
        assert!(ran.stderr.contains("is not empty"), "{}", ran.stderr);
    }
    let mode = project.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode, fs::read_dir(&project).unwrap().count()), (0o755, 1));
}

#[tokio::test]
async fn the_reference_holds_every_setting() {
    let home = TempDir::new().unwrap();
    let init: Ran = program(home.path())
        .args(["init-config", "a"])
        .output()
        .await
        .unwrap()
        .into();
    assert_eq!(init.code, Some(0), "{}", init.stderr);
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/barchan.toml");
    assert!(
        fs::read(reference).unwrap() == fs::read(home.path().join("a")).unwrap(),
        "settings changed: run `barchan init-config docs/reference/barchan.toml --force`"
    );
    let page = run(&["config", "reference"]).await;
    let held = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/settings.md");
    assert!(
        page.stdout == fs::read_to_string(held).unwrap(),
        "settings changed: run `barchan config reference > docs/reference/settings.md`"
    );
}

#[tokio::test]
async fn completion_scripts_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completion", shell]).await.stdout;
        for command in ["run", "create", "init-config", "doctor"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

#[tokio::test]
async fn help_is_short_and_names_every_command() {
    let help = run(&["-h"]).await.stdout;
    assert!(help.lines().count() <= 40, "{help}");
    for command in [
        "run",
        "exec",
        "cp",
        "kill",
        "image",
        "serve",
        "config",
        "doctor",
        "completion",
    ] {
        assert!(
            help.contains(&format!("\n  {command} ")),
            "{command}: {help}"
        );
    }
}

#[tokio::test]
async fn a_wrong_command_line_is_told_apart_from_a_failure() {
    for (arguments, why) in [
        (&["run"][..], "CMD"),
        (&["run", "--timeout", "soon", "x"], "no duration"),
        (&["create", "--env", "novalue"], "KEY=VALUE"),
        (&["nonsense"], "unrecognized"),
    ] {
        let ran = run(arguments).await;
        assert_eq!(ran.code, Some(2), "{arguments:?}");
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
        assert!(!ran.stderr.contains('\x1b'), "colours without a terminal");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let ran = run(&["--server", "unix:/nowhere/s", "list"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("unix:/nowhere/s"), "{}", ran.stderr);
    let ran = run(&["--server", "https://example.org", "list"]).await;
    assert!(ran.stderr.contains("TLS"), "{}", ran.stderr);
}

#[tokio::test]
async fn the_settings_file_names_the_server_and_its_faults_are_told() {
    let home = TempDir::new().unwrap();
    let folder = home.path().join(".config/barchan");
    fs::create_dir_all(&folder).unwrap();
    for (text, why) in [
        (
            "server = \"unix:/nowhere/t\"\napi_key = \"k\"\n",
            "unix:/nowhere/t",
        ),
        ("sever = \"x\"\n", "it may set `server` and `api_key`"),
    ] {
        fs::write(folder.join("client.toml"), text).unwrap();
        let ran: Ran = program(home.path())
            .arg("list")
            .output()
            .await
            .unwrap()
            .into();
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
}

#[tokio::test]
async fn images_are_built_one_after_another_before_there_is_a_server() {
    let home = TempDir::new().unwrap();
    for name in ["first", "second"] {
        let recipe = format!("name = \"{name}\"\nbase = \"host\"\n");
        fs::write(home.path().join("recipe.toml"), recipe).unwrap();
        let mut build = program(home.path());
        let built = build.args(["image", "build", "recipe.toml"]).output();
        let built: Ran = built.await.unwrap().into();
        assert_eq!(built.code, Some(0), "{name}: {}", built.stderr);
    }
    let socket = home.path().join("state/jail/launcher.sock");
    until("the launcher leaves", async || !socket.exists()).await;
}
