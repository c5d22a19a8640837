//! `barchan cp`, in both directions.

use std::fs;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;

use crate::fake::{Fake, ID, Script};
use crate::program::Ran;

async fn cp(fake: &Fake, source: &str, destination: &str) -> Ran {
    fake.program(&["cp", source, destination])
        .output()
        .await
        .unwrap()
        .into()
}

fn uploaded(fake: &Fake) -> String {
    let seen = fake.seen.lock().unwrap();
    String::from_utf8_lossy(&seen.files["uploaded"]).into_owned()
}

#[tokio::test]
async fn a_file_goes_in_under_its_name_and_mode() {
    let fake = Fake::start(Script::Hangs);
    fs::write(fake.home.path().join("a.sh"), "#!/bin/sh\n").unwrap();
    for (destination, path) in [("/tmp/", "/tmp/a.sh"), ("/tmp/b", "/tmp/b"), ("", "a.sh")] {
        let ran = cp(&fake, "a.sh", &format!("{ID}:{destination}")).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let body = uploaded(&fake);
        assert!(
            body.contains(&format!(r#""path":"{path}","mode":644"#)),
            "{body}"
        );
        assert!(body.contains("#!/bin/sh\n"), "{body}");
    }
}

#[tokio::test]
async fn standard_input_goes_in() {
    let fake = Fake::start(Script::Hangs);
    let mut child = fake
        .program(&["cp", "-", &format!("{ID}:/tmp/x")])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"piped")
        .await
        .unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    assert!(uploaded(&fake).contains("piped"));
}

#[tokio::test]
async fn a_file_comes_out_whole() {
    let fake = Fake::start(Script::Hangs);
    let content = vec![b'q'; 3_000_000];
    fake.seen
        .lock()
        .unwrap()
        .files
        .insert("/tmp/a".to_owned(), content.clone());
    let home = fake.home.path();
    fs::create_dir(home.join("folder")).unwrap();
    for (destination, file) in [(".", "a"), ("folder", "folder/a"), ("named", "named")] {
        let ran = cp(&fake, &format!("{ID}:/tmp/a"), destination).await;
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (Some(0), ""),
            "{destination}"
        );
        assert_eq!(fs::read(home.join(file)).unwrap(), content, "{destination}");
    }
    let ran = cp(&fake, &format!("{ID}:/tmp/a"), "-").await;
    assert_eq!(ran.stdout.len(), content.len());
}

#[tokio::test]
async fn what_is_not_there_leaves_nothing_behind() {
    let fake = Fake::start(Script::Hangs);
    let ran = cp(&fake, &format!("{ID}:/tmp/none"), "here").await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("FILE_NOT_FOUND"), "{}", ran.stderr);
    let left = fs::read_dir(fake.home.path()).unwrap().count();
    assert_eq!(left, 1, "the socket alone");
}

#[tokio::test]
async fn senseless_copies_are_refused() {
    let fake = Fake::start(Script::Hangs);
    fs::create_dir(fake.home.path().join("folder")).unwrap();
    let inside = format!("{ID}:/a");
    for (source, destination, why) in [
        ("a", "b", "must be in a sandbox"),
        (inside.as_str(), inside.as_str(), "takes two steps"),
        ("folder", inside.as_str(), "--recursive"),
        ("none", inside.as_str(), "cannot open none"),
    ] {
        let ran = cp(&fake, source, destination).await;
        assert_eq!(ran.code, Some(1), "{source} {destination}");
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
}
