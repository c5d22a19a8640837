//! What a session sees of its sandbox and of other sessions. Every refusal stands beside the same
//! thing done where it is allowed.

use std::net::TcpListener;

use serde_json::json;

use super::possible;
use crate::world::{World, sleepers, until};

#[test]
fn sessions_see_neither_each_other_nor_the_sandbox() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let (one, other) = (world.isolate_in("rw"), world.isolate_in("rw"));
    let shared = world.d("shared");
    for (left, look) in [
        ("/tmp/left", "cat /tmp/left"),
        ("/run/left", "cat /run/left"),
        ("/dev/shm/left", "cat /dev/shm/left"),
    ] {
        world.sh_in(&one, &format!("echo mine > {left}"));
        assert_eq!(world.sh_in(&one, look), "mine\n", "the control: {left}");
        assert!(world.sh_in(&other, look).contains("No such file"), "{left}");
        assert!(world.sh(look).err().contains("No such file"), "{left}");
    }
    world.sh_in(&one, &format!("echo ours > {}", shared.display()));
    let look = format!("cat {}", shared.display());
    assert_eq!(world.sh_in(&other, &look), "ours\n", "what both were given");
}

#[test]
fn processes_of_others_are_out_of_sight_and_reach() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let (one, other) = (world.isolate_in("rw"), world.isolate_in("rw"));
    world.background_in(&one, "exec sleep 60618");
    until("it runs", || sleepers("60618") == 1);
    let look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
    assert!(
        world.sh_in(&one, look).contains("sleep 60618"),
        "the control"
    );
    assert!(!world.sh_in(&other, look).contains("60618"));
    // Not even by number, and PID 1 of a session is beyond what runs in it.
    let killed = world.sh_in(&other, "kill -9 -1; kill -9 1; echo $?");
    assert!(killed.contains('0'), "{killed}");
    assert_eq!(world.sh_in(&other, "echo alive"), "alive\n");
    assert_eq!(sleepers("60618"), 1);
    for attack in ["cat /proc/1/environ", "ls /proc/1/root/", "cat /proc/1/mem"] {
        let said = world.sh_in(&one, attack);
        assert!(said.contains("ermission denied"), "{attack}: {said}");
    }
}

#[test]
fn a_workspace_is_what_its_mode_says() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    std::fs::write(world.d("file"), "before\n").unwrap();
    let path = world.d("file").display().to_string();
    for (mode, inside, outside) in [
        ("ro", "before\n", "before\n"),
        ("overlay", "after\n", "before\n"),
        ("rw", "after\n", "after\n"),
    ] {
        let id = world.isolate_in(mode);
        let said = world.sh_in(&id, &format!("echo after > {path}"));
        assert_eq!(said.contains("Read-only"), mode == "ro", "{mode}: {said}");
        assert_eq!(world.sh_in(&id, &format!("cat {path}")), inside, "{mode}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), outside, "{mode}");
    }
}

#[test]
fn the_sandboxs_own_files_are_read_only() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let id = world.isolate_in("rw");
    for path in ["/etc/left", "/usr/left", "/left", "/dev/left", "/sys/left"] {
        let said = world.sh_in(&id, &format!("echo x > {path}"));
        assert!(
            said.contains("Read-only") || said.contains("denied"),
            "{path}: {said}"
        );
        assert!(!std::path::Path::new(path).exists());
    }
    let said = world.sh_in(&id, "echo x > /proc/sys/kernel/domainname; cat /proc/kcore");
    assert!(
        said.contains("Read-only") || said.contains("denied"),
        "{said}"
    );
    let whole = world.isolate(&json!({"workspace": {"path": "/", "mode": "overlay"}}));
    assert_eq!(
        world.sh_in(&whole, "echo x > /etc/left && cat /etc/left"),
        "x\n"
    );
    assert!(!std::path::Path::new("/etc/left").exists());
    assert_eq!(
        world.sh_in(&whole, "echo x > /dev/null; ls /proc | grep -c '^1$'"),
        "1\n"
    );
}

#[test]
fn binds_and_writable_paths_are_where_they_were_asked_for() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    for name in ["ws", "data", "more", "ws/deep"] {
        std::fs::create_dir(world.d(name)).unwrap();
    }
    std::fs::write(world.d("data/file"), "content").unwrap();
    let d = |name: &str| world.d(name).display().to_string();
    let id = world.isolate(&json!({
        "workspace": {"path": d("ws"), "mode": "ro"},
        "overlays": [{"path": d("ws/deep"), "mode": "rw"}],
        "extra_writable": [d("more")],
        "binds": [
            {"source": d("data"), "dest": "/tmp/view/data", "readonly": true},
            {"source": d("data/file"), "dest": "/tmp/one"},
        ],
    }));
    let script = format!(
        "pwd; cat /tmp/view/data/file /tmp/one; echo; echo > /tmp/view/data/x; echo > {}/x; \
         echo deep > {}/x; echo more > {}/x; echo new > /tmp/one",
        d("ws"),
        d("ws/deep"),
        d("more")
    );
    let said = world.sh_in(&id, &script);
    assert!(
        said.starts_with(&format!("{}\ncontentcontent\n", d("ws"))),
        "{said}"
    );
    assert_eq!(said.matches("Read-only").count(), 2, "{said}");
    for (name, content) in [
        ("ws/deep/x", "deep\n"),
        ("more/x", "more\n"),
        ("data/file", "new\n"),
    ] {
        assert_eq!(std::fs::read_to_string(world.d(name)).unwrap(), content);
    }
}

#[test]
fn places_that_a_session_may_not_have_are_refused_and_nothing_stays() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let d = world.at("d").display().to_string();
    std::os::unix::fs::symlink("/etc", world.d("etc")).unwrap();
    std::os::unix::fs::symlink("/proc", world.d("proc")).unwrap();
    std::fs::write(world.d("file"), "").unwrap();
    world.isolate_in("rw");
    let before = world.descriptors();
    for (spec, part) in [
        (
            json!({"workspace": {"path": "/etc", "mode": "rw"}}),
            "system",
        ),
        (
            json!({"workspace": {"path": format!("{d}/etc"), "mode": "rw"}}),
            "system",
        ),
        (
            json!({"workspace": {"path": format!("{d}/proc"), "mode": "ro"}}),
            "kernel",
        ),
        (
            json!({"workspace": {"path": format!("{d}/none")}}),
            "existing",
        ),
        (
            json!({"workspace": {"path": format!("{d}/file")}}),
            "directory",
        ),
        (
            json!({"workspace": {"path": d}, "binds": [{"source": d, "dest": "/none/x"}]}),
            "no new folders",
        ),
        (
            json!({"workspace": {"path": d}, "extra_writable": ["/usr/local"]}),
            "system",
        ),
    ] {
        let answer = world.post("/v1/isolated/session", &spec);
        assert_eq!(
            answer.error(),
            (400, "INVALID_REQUEST_BODY".to_owned()),
            "{spec}"
        );
        assert!(answer.text().contains(part), "{spec}: {}", answer.text());
    }
    // The last caller's connection among them, which the daemon closes in its own time.
    until("nothing more to be open than before", || {
        world.descriptors() <= before
    });
    assert_eq!(
        world.get("/v1/isolated/sessions").json()["sessions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(world.children(), 2, "the entrypoint and one session");
}

#[test]
fn the_network_is_ones_own_unless_shared() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reach = format!("(echo > /dev/tcp/127.0.0.1/{port}) 2>&1 && echo reached");
    let bash = format!("bash -c '{reach}'");
    for (profile, share, reached) in [
        ("strict", json!(null), false),
        ("strict", json!(true), true),
        ("balanced", json!(null), true),
        ("balanced", json!(false), false),
    ] {
        let id = world.isolate(&json!({
            "workspace": {"path": world.at("d"), "mode": "ro"},
            "profile": profile,
            "share_net": share,
        }));
        let said = world.sh_in(&id, &bash);
        assert_eq!(
            said.contains("reached"),
            reached,
            "{profile} {share}: {said}"
        );
        if !reached {
            // Refused, not unreachable: the loopback interface is up.
            assert!(said.contains("refused"), "{said}");
        }
    }
}

#[test]
fn commands_hold_no_more_than_any_command_of_a_sandbox() {
    let world = World::new();
    if !possible(&world) {
        return;
    }
    let id = world.isolate_in("rw");
    let status = world.sh_in(&id, "cat /proc/self/status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_owned()
    };
    // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE,
    // SYS_CHROOT and SETFCAP, by their numbers.
    let wanted: u64 = [0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 31]
        .iter()
        .map(|bit| 1 << bit)
        .sum();
    for set in ["CapEff:", "CapPrm:", "CapBnd:"] {
        assert_eq!(
            u64::from_str_radix(&field(set), 16).unwrap(),
            wanted,
            "{set}"
        );
    }
    assert_eq!(
        (field("NoNewPrivs:"), field("Seccomp:")),
        ("1".to_owned(), "2".to_owned())
    );
    for attack in [
        "unshare -m true",
        "mount -t tmpfs none /tmp",
        "umount /tmp",
        "chroot / umount /",
    ] {
        let run = world.run_in(&id, &json!({"code": attack}));
        assert_ne!(run.code, 0, "{attack}");
    }
    // What a session is made of hangs below /tmp and nowhere in sight.
    let mounts = world.sh_in(&id, "cat /proc/self/mountinfo");
    assert!(
        !mounts.contains("/layer") && !mounts.contains("/store"),
        "{mounts}"
    );
}

#[test]
fn a_session_has_its_user_and_its_variables() {
    let world = World::with(crate::world::Setup {
        env: json!({"PLAIN": "1", "MY_TOKEN": "secret", "AWS_REGION": "x"}),
        ..Default::default()
    });
    if !possible(&world) {
        return;
    }
    let path = world.at("d");
    let env = "env | cut -d= -f1 | grep -E 'PLAIN|TOKEN|AWS' | sort | tr '\\n' ' '";
    for (spec, seen) in [
        (json!({}), "PLAIN "),
        (json!({"profile": "balanced"}), "AWS_REGION MY_TOKEN PLAIN "),
        (
            json!({"env_passthrough": {"mode": "allow", "keys": ["MY_TOKEN"]}}),
            "MY_TOKEN ",
        ),
        (
            json!({"env_passthrough": {"mode": "deny", "keys": ["PLAIN"]}}),
            "",
        ),
    ] {
        let mut spec = spec;
        spec["workspace"] = json!({"path": path, "mode": "ro"});
        let id = world.isolate(&spec);
        assert_eq!(world.sh_in(&id, env), seen, "{spec}");
        let run = world.run_in(
            &id,
            &json!({"code": "echo $MY_TOKEN $OWN", "envs": {"OWN": "2"}}),
        );
        assert_eq!(run.out().contains("secret"), seen.contains("TOKEN"));
        assert!(run.out().contains('2'));
    }
    let id = world.isolate(&json!({
        "workspace": {"path": "/var/tmp", "mode": "overlay"}, "uid": 65534, "gid": 65533,
    }));
    assert_eq!(world.sh_in(&id, "id -u; id -g"), "65534\n65533\n");
    let route = format!("/v1/isolated/session/{id}/directories");
    let made = world.post(&route, &json!({"/tmp/mine": {}}));
    assert_eq!(made.status, 200, "{}", made.text());
    assert_eq!(world.sh_in(&id, "stat -c %u /tmp/mine"), "65534\n");
}
