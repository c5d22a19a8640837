//! `barchan layers export` of an archive, as a user runs it.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ran, program};

/// A home with a tree that is to be exported, and a folder `here` that it goes to.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        fs::create_dir_all(home.path().join("make/workspace")).unwrap();
        fs::create_dir(home.path().join("here")).unwrap();
        Self(home)
    }

    /// Files of the sandbox, or of the folder.
    fn with(self, below: &str, files: &[&str]) -> Self {
        for name in files {
            let path = self.0.path().join(below).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, *name).unwrap();
        }
        self
    }

    /// Packs the tree, with more arguments.
    fn packed(self, arguments: &[&str]) -> Self {
        self.pack(arguments);
        self
    }

    fn pack(&self, arguments: &[&str]) {
        let ran = Command::new("tar")
            .args(["-cPf", "../layer.tar", "--sort=name"])
            .args(arguments)
            .current_dir(self.0.path().join("make"))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }

    async fn export(&self, arguments: &[&str]) -> Ran {
        let mut command = program(self.0.path());
        command.args(["layers", "export", "--archive", "layer.tar"]);
        command.args(arguments).output().await.unwrap().into()
    }

    fn has(&self, name: &str) -> bool {
        fs::symlink_metadata(self.0.path().join("here").join(name)).is_ok()
    }
}

/// Lines of a table without the blanks between columns.
fn lines(text: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(words).collect()
}

#[tokio::test]
async fn what_is_held_comes_once_it_is_approved() {
    let home = Home::new()
        .with("make/workspace", &["src/a", "b", ".envrc", ".wh.old"])
        .with("make", &["etc/passwd"])
        .with("here", &["b", "old"])
        .packed(&["workspace", "etc"]);
    let dry = home.export(&["--dry-run", "here"]).await;
    assert_eq!(dry.code, Some(3), "{dry:?}");
    assert!(dry.stderr.contains("nothing was changed"), "{}", dry.stderr);
    assert!(!home.has("src"));
    let ran = home.export(&["here"]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(
        lines(&ran.stdout),
        [
            "WHAT PATH WHY",
            "held .envrc it sets the environment or picks tools",
            "changed b",
            "gone old",
            "new src/a",
        ]
    );
    for part in [
        "/workspace of the sandbox, to here; 2 entries elsewhere",
        "1 held: read them in the sandbox, then add --approve PATH",
        "1 gone in the sandbox: --delete removes them here",
    ] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    assert!(home.has("src/a") && home.has("old") && !home.has(".envrc"));
    let ran = home
        .export(&[
            "--approve",
            "./.envrc",
            "--approve",
            "none",
            "--delete",
            "here",
        ])
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warning = "`none` is approved, but nothing is brought there";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(home.has(".envrc") && !home.has("old"));
    let ran = home.export(&["--approve-all", "--delete", "made"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(home.0.path().join("made/src/a").is_file());
}

#[tokio::test]
async fn programs_are_told_every_entry() {
    let home = Home::new().with("make/workspace", &["a", ".git/hooks/x", ".wh.old"]);
    symlink("/etc", home.0.path().join("make/workspace/l")).unwrap();
    let home = home.with("here", &["old/deep"]).packed(&["workspace"]);
    let ran = home.export(&["--dry-run", "--json", "here"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), ""));
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&told["root"], &told["whole"]),
        (&"/workspace".into(), &false.into())
    );
    let entries = told["entries"].as_array().unwrap();
    let shown = |entry: &Value| {
        let field = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
        let code = entry["reasons"][0]["code"].as_str().unwrap_or("-");
        let fields = ["path", "kind", "action", "target", "approve"];
        let fields = fields.map(field).join(" ");
        format!("{fields} {} {code}", entry["removes"])
    };
    assert_eq!(
        entries.iter().map(shown).collect::<Vec<_>>(),
        [
            ".git/hooks/x file held - ./.git/hooks/x null git",
            "a file new - - null -",
            "l link held /etc link:l null link_leads_out",
            "old gone gone - - 2 -",
        ]
    );
}

#[tokio::test]
async fn what_a_hostile_sandbox_wrote_stays_in_the_folder() {
    let home = Home::new().with("make", &["a", "x\u{1b}[2J\u{202e}\n", "pipe"]);
    let home = home.with("", &["outside"]);
    symlink("..", home.0.path().join("make/l")).unwrap();
    symlink("..", home.0.path().join("here/up")).unwrap();
    for (what, arguments, parts) in [
        (
            "upwards",
            &["--transform=s,^a$,../outside,", "a"][..],
            &["leads upwards"][..],
        ),
        (
            "absolute",
            &["--transform=s,^a$,/outside,", "a"],
            &["begins at the root"],
        ),
        (
            "through a link",
            &["--transform=s,^a$,l/outside,", "l", "a"],
            &["may lead out", "beneath what is no folder"],
        ),
        (
            "through a link that is there",
            &["--transform=s,^a$,up/outside,", "a"],
            &["a link of the folder is on the way"],
        ),
        ("terminals", &["."], &[r"x\u{1b}[2J\u{202e}\n"]),
    ] {
        home.pack(arguments);
        let ran = home.export(&["--root", "/", "here"]).await;
        assert_eq!(ran.code, Some(3), "{what}: {ran:?}");
        for part in parts {
            assert!(ran.stdout.contains(part), "{what}: {}", ran.stdout);
        }
        let outside = fs::read_to_string(home.0.path().join("outside")).unwrap();
        assert_eq!(outside, "outside", "{what}");
    }
}

#[tokio::test]
async fn what_is_no_archive_or_too_much_changes_nothing() {
    let home = Home::new()
        .with("make/workspace", &["a", "b"])
        .packed(&["workspace"]);
    let layer = home.0.path().join("layer.tar");
    let whole = fs::read(&layer).unwrap();
    for (what, bytes, arguments, part) in [
        ("cut", whole[..1600].to_vec(), &[][..], "nothing is done"),
        ("text", b"<html>".repeat(1000), &[], "no tar archive"),
        (
            "large",
            whole.clone(),
            &["--max-bytes", "4096"],
            "more than 4096 bytes",
        ),
        (
            "root",
            whole.clone(),
            &["--root", "/a/../b"],
            "without `..`",
        ),
        ("approval", whole, &["--approve", "/a"], "names no entry"),
    ] {
        fs::write(&layer, bytes).unwrap();
        let ran = home.export(&[arguments, &["here"]].concat()).await;
        assert_eq!(ran.code, Some(1), "{what}: {ran:?}");
        assert!(ran.stderr.contains(part), "{what}: {}", ran.stderr);
        assert!(!home.has("a"), "{what}");
    }
    fs::write(home.0.path().join("file"), "x").unwrap();
    let ran = home.export(&["file"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
}
