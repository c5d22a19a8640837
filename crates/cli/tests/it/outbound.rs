//! What `barchan connections` and `barchan approvals` show of a scripted server.

use crate::fake::outbound::{HARM, OVER, WAITS};
use crate::fake::{Fake, ID, Script};
use crate::program::Ran;

async fn run(fake: &Fake, arguments: &[&str]) -> Ran {
    fake.program(arguments).output().await.unwrap().into()
}

#[tokio::test]
async fn connections_are_shown_without_what_steers_a_terminal() {
    let fake = Fake::start(Script::Hangs);
    let shown = run(&fake, &["connections", ID]).await;
    assert_eq!((shown.code, shown.stdout.lines().count()), (Some(0), 3));
    assert!(
        shown.stdout.contains("\\u{1b}[2J.example"),
        "{}",
        shown.stdout
    );
    assert!(
        shown.stdout.contains("no_rule (deny *.example)"),
        "{}",
        shown.stdout
    );
    assert!(shown.stderr.contains("3 more ended"), "{}", shown.stderr);
    let denied = run(&fake, &["connections", "--denied", ID]).await;
    assert!(!denied.stdout.contains("a.example"), "{}", denied.stdout);
    let json = run(&fake, &["connections", "--json", ID]).await;
    assert!(json.stdout.contains("\"forgotten\": 3"), "{}", json.stdout);
    assert!(!json.stdout.contains(HARM), "{}", json.stdout);
}

#[tokio::test]
async fn approvals_are_listed_and_decided() {
    let fake = Fake::start(Script::Hangs);
    for (arguments, call, lines) in [
        (&["approvals", "list"][..], "approvals pending", 2),
        (&["approvals", "ls", "-q"], "approvals pending", 1),
        (&["approvals", "list", "--all"], "approvals -", 3),
        (
            &["approvals", "list", "--state", "Expired"],
            "approvals expired",
            2,
        ),
    ] {
        let shown = run(&fake, arguments).await;
        assert_eq!(
            (shown.code, fake.calls().pop()),
            (Some(0), Some(call.to_owned()))
        );
        assert_eq!(shown.stdout.lines().count(), lines, "{}", shown.stdout);
        assert!(!shown.stdout.contains('\u{1b}'), "{}", shown.stdout);
    }
    let shown = run(&fake, &["approvals", "show", "aaaa"]).await;
    assert!(shown.stdout.contains(WAITS), "{}", shown.stderr);
    let said = run(
        &fake,
        &["approvals", "approve", "--reason", "a mirror", "aaaa"],
    )
    .await;
    assert_eq!(
        (said.code, said.stdout.trim()),
        (Some(0), WAITS),
        "{}",
        said.stderr
    );
    let call = format!("approve {WAITS} {{\"reason\":\"a mirror\"}}");
    assert_eq!(fake.calls().pop(), Some(call));
    let both = run(&fake, &["approvals", "reject", OVER, WAITS]).await;
    assert_eq!((both.code, both.stdout.trim()), (Some(1), WAITS));
    assert!(
        both.stderr.contains("APPROVAL::NOT_PENDING"),
        "{}",
        both.stderr
    );
    let nobody = run(&fake, &["approvals", "approve", "cccc"]).await;
    assert_eq!(nobody.code, Some(1));
    let word = run(&fake, &["approvals", "list", "--state", "maybe"]).await;
    assert_eq!(word.code, Some(2), "{}", word.stderr);
}
