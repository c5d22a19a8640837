use super::*;

fn check_text(text: &str) -> Result<Order, Fault> {
    check(serde_json::from_str(text).unwrap())
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    for (text, part) in [
        ("{}", "workspace"),
        (r#"{"overlays":[]}"#, "workspace"),
        (r#"{"workspace":{"path":"w"}}"#, "absolute"),
        (r#"{"workspace":{"path":""}}"#, "absolute"),
        (r#"{"workspace":{"path":"/w/"}}"#, "clean"),
        (r#"{"workspace":{"path":"/w/../x"}}"#, "clean"),
        (r#"{"workspace":{"path":"/w/./x"}}"#, "clean"),
        (r#"{"workspace":{"path":"/w/."}}"#, "clean"),
        (r#"{"workspace":{"path":"//w"}}"#, "clean"),
        (r#"{"workspace":{"path":"/w\u0000"}}"#, "clean"),
        (r#"{"workspace":{"path":"/"   ,"mode":"rw"}}"#, "overlay"),
        (r#"{"workspace":{"path":"/proc/1"}}"#, "kernel"),
        (
            r#"{"workspace":{"path":"/w","mode":"ro","persist":true}}"#,
            "persist",
        ),
        (
            r#"{"workspace":{"path":"/w"},"overlays":[{"path":"/w"}]}"#,
            "twice",
        ),
        (
            r#"{"workspace":{"path":"/w"},"extra_writable":["/w"]}"#,
            "twice",
        ),
        (
            r#"{"workspace":{"path":"/w"},"binds":[{"source":"/a","dest":"/dev/x"}]}"#,
            "kernel",
        ),
        (
            r#"{"workspace":{"path":"/w"},"binds":[{"source":"a"}]}"#,
            "absolute",
        ),
        (r#"{"workspace":{"path":"/w"},"gid":1}"#, "uid"),
        (r#"{"workspace":{"path":"/w"},"uid":4294967295}"#, "nobody"),
    ] {
        let fault = check_text(text).unwrap_err();
        assert_eq!(fault.kind, Kind::BadRequest);
        assert!(fault.message.contains(part), "{text}: {fault}");
    }
    let userns = check_text(r#"{"workspace":{"path":"/w"},"uid_mode":"userns"}"#);
    assert_eq!(userns.unwrap_err().kind, Kind::Unavailable);
}

#[test]
fn there_is_a_limit_to_mounts() {
    let overlays = |count: usize| {
        let all: Vec<_> = (0..count)
            .map(|at| format!(r#"{{"path":"/w{at}"}}"#))
            .collect();
        check_text(&format!(r#"{{"overlays":[{}]}}"#, all.join(",")))
    };
    assert_eq!(overlays(ISOLATED_OVERLAYS_MAX).unwrap().overlays, 16);
    assert!(overlays(ISOLATED_OVERLAYS_MAX + 1).is_err());
    let binds = |count: usize| {
        let all: Vec<_> = (0..count).map(|at| format!(r#""/b{at}""#)).collect();
        let all = all.join(",");
        check_text(&format!(
            r#"{{"workspace":{{"path":"/w"}},"extra_writable":[{all}]}}"#
        ))
    };
    assert!(binds(ISOLATED_BINDS_MAX).is_ok());
    assert!(binds(ISOLATED_BINDS_MAX + 1).is_err());
}

#[test]
fn defaults_are_filled_in_and_outer_trees_come_first() {
    let order = check_text(
        r#"{"workspace":{"path":"/a/b"},"overlays":[{"path":"/","persist":false}],
            "binds":[{"source":"/data","dest":"/mnt","readonly":true}]}"#,
    )
    .unwrap();
    let told: Vec<_> = order
        .trees
        .iter()
        .map(|tree| (tree.target.to_str().unwrap(), tree.how, tree.persist))
        .collect();
    assert_eq!(
        told,
        [
            ("/", How::Overlay(1), false),
            ("/mnt", How::ReadOnly, false),
            ("/a/b", How::Overlay(0), true),
        ]
    );
    assert_eq!(order.cwd, Path::new("/a/b"));
    assert_eq!(order.spec.profile, Some(Profile::Strict));
    assert_eq!(order.spec.share_net, Some(false));
    assert_eq!(order.spec.overlays.unwrap().len(), 2);
    assert_eq!(order.idle, None);
    for (profile, share_net, wanted) in [
        ("strict", "null", false),
        ("strict", "true", true),
        ("balanced", "null", true),
        ("balanced", "false", false),
    ] {
        let order = check_text(&format!(
            r#"{{"workspace":{{"path":"/w"}},"profile":"{profile}","share_net":{share_net},
                "idle_timeout_seconds":5}}"#
        ))
        .unwrap();
        assert_eq!(order.spec.share_net, Some(wanted), "{profile} {share_net}");
        assert_eq!(order.idle, Some(Duration::from_secs(5)));
    }
}

#[test]
fn the_system_can_be_seen_and_overlaid_but_not_written_to() {
    for (place, how, good) in [
        ("/etc", How::ReadWrite, false),
        ("/usr/local", How::ReadWrite, false),
        ("/", How::ReadWrite, false),
        ("/etc", How::ReadOnly, true),
        ("/usr", How::Overlay(0), true),
        ("/etcetera", How::ReadWrite, true),
        ("/tmp", How::ReadWrite, true),
        ("/proc/1/root", How::ReadOnly, false),
        ("/sys", How::Overlay(0), false),
    ] {
        assert_eq!(
            permit(Path::new(place), how).is_ok(),
            good,
            "{place} {how:?}"
        );
    }
}

#[test]
fn variables_are_hidden_by_profile_and_list() {
    let names = ["A", "B_TOKEN", "aws_region", "PATH"];
    let all: Variables = names.map(|name| (name.to_owned(), String::new())).into();
    for (profile, mode, keys, wanted) in [
        (Profile::Strict, PassMode::Deny, &[][..], &["A", "PATH"][..]),
        (Profile::Strict, PassMode::Deny, &["a"], &["PATH"]),
        (Profile::Balanced, PassMode::Deny, &[], &names),
        (
            Profile::Balanced,
            PassMode::Deny,
            &["*TOKEN*", "AWS_*"],
            &["A", "PATH"],
        ),
        (Profile::Strict, PassMode::Allow, &["B_TOKEN"], &["B_TOKEN"]),
        (Profile::Strict, PassMode::Allow, &[], &[]),
    ] {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        let seen = visible(all.clone(), profile, &EnvPassthrough { mode, keys });
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        assert_eq!(
            seen.keys().collect::<Vec<_>>(),
            wanted,
            "{profile:?} {mode:?}"
        );
    }
}
