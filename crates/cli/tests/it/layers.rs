//! What `barchan layers` shows of a scripted server.

use std::fs;

use crate::fake::layers::{ARCHIVE, DIFF, HARM};
use crate::fake::{Fake, ID, Script};
use crate::program::Ran;

async fn diff(fake: &Fake, arguments: &[&str]) -> Ran {
    let all = [&["layers", "diff"], arguments].concat();
    fake.program(&all).output().await.unwrap().into()
}

#[tokio::test]
async fn what_differs_is_shown_as_lines_a_patch_and_an_archive() {
    let fake = Fake::start(Script::Hangs);
    let shown = diff(&fake, &[ID, "1", "2"]).await;
    assert_eq!(
        (shown.code, fake.calls().pop()),
        (Some(0), Some("diff 1 2".to_owned()))
    );
    assert_eq!(
        shown.stdout,
        "M /workspace/a  (content)\nA /workspace/\\u{1b}[2J\n"
    );
    assert!(
        shown
            .stderr
            .contains("1 added, 1 changed, 0 deleted from layer 1 to layer 2"),
        "{}",
        shown.stderr
    );
    let patch = diff(&fake, &["--patch", ID, "1", "2"]).await;
    assert_eq!((patch.code, patch.stdout.as_str()), (Some(0), DIFF));
    assert!(
        patch.stderr.contains("binary: A /workspace/\\u{1b}"),
        "{}",
        patch.stderr
    );
    let json = diff(&fake, &["--json", ID, "1", "2"]).await;
    assert_eq!((json.code, json.stdout.lines().count()), (Some(0), 3));
    assert!(!json.stdout.contains(HARM));
    for (flags, code) in [(&[][..], 0), (&[], 1), (&["--force"], 0)] {
        let arguments = [&["--tar", "d.tar"], flags, &[ID, "1", "2"]].concat();
        let written = diff(&fake, &arguments).await;
        assert_eq!(written.code, Some(code), "{}", written.stderr);
        assert_eq!(fs::read(fake.home.path().join("d.tar")).unwrap(), ARCHIVE);
    }
}

#[tokio::test]
async fn without_an_end_it_is_compared_how_the_sandbox_is_now() {
    let fake = Fake::start(Script::Hangs);
    for (arguments, expected, words) in [
        (&[ID][..], "diff - now", "from the layer before to now"),
        (&[ID, "1"], "diff 1 now", "from layer 1 to now"),
    ] {
        let shown = diff(&fake, arguments).await;
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        assert_eq!(fake.calls().pop().unwrap(), expected);
        assert!(shown.stderr.contains(words), "{}", shown.stderr);
    }
}

#[tokio::test]
async fn a_diff_that_is_not_whole_says_so() {
    let fake = Fake::start(Script::Hangs);
    for (from, code, words) in [
        ("7", 1, "too slow (LAYER::FAILED)"),
        ("8", 3, "not all was compared"),
        ("9", 1, "broke off"),
    ] {
        let shown = diff(&fake, &[ID, from, "2"]).await;
        assert_eq!(shown.code, Some(code), "{}", shown.stderr);
        assert!(shown.stderr.contains(words), "{}", shown.stderr);
    }
}
