use super::*;

fn users() -> Users {
    Users {
        passwd: "ann:x:1000:1001::/home/ann:/bin/sh\n".to_owned(),
        group: "audio:x:29:ann\n".to_owned(),
    }
}

fn check_text(text: &str) -> Result<Order, Fault> {
    check(serde_json::from_str(text).unwrap(), users)
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    for (text, part) in [
        ("{}", "exactly one"),
        (r#"{"command":"a","argv":["a"]}"#, "exactly one"),
        (r#"{"command":"  "}"#, "empty"),
        (r#"{"command":"a\u0000b"}"#, "NUL"),
        (r#"{"argv":[]}"#, "program"),
        (r#"{"argv":["",""]}"#, "program"),
        (r#"{"argv":["a","\u0000"]}"#, "NUL"),
        (r#"{"command":"a","gid":1}"#, "`gid` needs `uid`"),
        (r#"{"command":"a","uid":4294967295}"#, "nobody"),
        (r#"{"command":"a","timeout":-1}"#, "negative"),
        (
            r#"{"command":"a","envs":{"X;touch pwn":"1"}}"#,
            "X;touch pwn",
        ),
        (r#"{"command":"a","envs":{"X":"\u0000"}}"#, "NUL"),
    ] {
        let fault = check_text(text).unwrap_err();
        assert_eq!(fault.kind, Kind::BadRequest);
        assert!(fault.message.contains(part), "{text}: {fault}");
    }
}

#[test]
fn timeouts_are_milliseconds_of_any_kind() {
    for (timeout, wanted) in [
        ("null", None),
        ("0", None),
        ("0.0", None),
        ("1500.0", Some(Duration::from_millis(1500))),
        ("1", Some(Duration::from_millis(1))),
        ("1e12", Some(Duration::from_secs(1_000_000_000))),
        ("1e300", Some(Duration::from_secs(3_200_000_000))),
    ] {
        let order = check_text(&format!(r#"{{"command":"a","timeout":{timeout}}}"#));
        assert_eq!(order.unwrap().timeout, wanted, "{timeout}");
    }
}

#[test]
fn a_person_comes_with_groups_and_a_home() {
    for (ids, uid, gid, groups, home) in [
        (r#""uid":1000"#, 1000, 1001, vec![1001, 29], "/home/ann"),
        (r#""uid":1000,"gid":5"#, 1000, 5, vec![5], "/home/ann"),
        (r#""uid":4242"#, 4242, 4242, vec![4242], "/tmp"),
    ] {
        let order = check_text(&format!(r#"{{"command":"a",{ids}}}"#)).unwrap();
        let person = order.person.unwrap();
        assert_eq!(person.ids, Ids { uid, gid, groups });
        assert_eq!(person.variables.get("HOME").map(String::as_str), Some(home));
    }
}

#[test]
fn a_callers_id_is_kept_and_makes_the_command_stay() {
    let order = check_text(r#"{"command":"a"}"#).unwrap();
    assert_eq!((&order.id, order.leave), (&None, Leave::Kill));
    let id = "0123456789abcdef0123456789abcdef";
    let keyed = order.clone().keyed(id).unwrap();
    assert_eq!((keyed.id.as_deref(), keyed.leave), (Some(id), Leave::Stay));
    for id in [
        "",
        "0123",
        &"A".repeat(32),
        &"g".repeat(32),
        &"é".repeat(16),
    ] {
        assert_eq!(
            order.clone().keyed(id).unwrap_err().kind,
            Kind::BadRequest,
            "{id}"
        );
    }
}
