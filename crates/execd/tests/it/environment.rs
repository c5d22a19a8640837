//! Environment, users, working directories, standard input and shells.

use serde_json::json;

use crate::world::{Setup, World};

#[test]
fn values_arrive_exactly_and_are_never_code() {
    let world = World::new();
    let values = [
        "l1\nl2",
        "",
        "it's \"$(touch pwn)\" \\ ;",
        "`touch pwn`",
        "naïve 文",
    ];
    for value in values {
        let run = world.run(&json!({
            "command": "printf %s \"$A\"; echo \"|${A+set}\"", "envs": {"A": value}
        }));
        assert_eq!(run.out(), format!("{value}|set\n"));
    }
    assert!(!world.d("pwn").exists());
}

#[test]
fn the_nearest_setting_wins() {
    let world = World::with(Setup {
        env: json!({"A": "boot", "B": "boot", "C": "boot", "PATH": "/usr/bin:/bin"}),
        ..Setup::default()
    });
    std::fs::write(world.at("settings"), "B=file\nC='file'\n").unwrap();
    let run = world.run(&json!({"command": "echo $A $B $C $HOME", "envs": {"C": "request"}}));
    assert_eq!(run.out(), "boot file request /root\n");
    // As clients append to it, each command seeing what was set before it.
    let set = "printf '%s\\n' 'D='\\''two\nlines'\\''' >> \"$EXECD_ENVS\"";
    assert_eq!(world.sh(set).code, 0);
    assert_eq!(world.sh("printf %s \"$D\"").out(), "two\nlines");
    let run = world.sh("env | grep -c ^PATH=");
    assert_eq!(run.out(), "1\n");
}

#[test]
fn nothing_of_the_hosts_environment_leaks() {
    let world = World::new();
    let run = world.run(&json!({"argv": ["env"]}));
    let mut names: Vec<&str> = run
        .stdout
        .iter()
        .filter_map(|it| it.split('=').next())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["BARCHAN_COMMAND_ID", "EXECD_ENVS", "HOME", "PATH", "PWD"]
    );
}

#[test]
fn a_command_runs_where_it_is_told_to() {
    let world = World::with(Setup {
        env: json!({"SUB": "sub dir"}),
        ..Setup::default()
    });
    std::fs::create_dir(world.d("sub dir")).unwrap();
    let d = world.d("").canonicalize().unwrap();
    for (cwd, wanted) in [
        (json!(null), d.clone()),
        (json!(""), d.clone()),
        (json!("/"), "/".into()),
        (json!("sub dir"), d.join("sub dir")),
        (json!("$SUB"), d.join("sub dir")),
        (json!("${SUB}/.."), d.join("sub dir/..")),
        (json!("~"), "/root".into()),
    ] {
        let run = world.run(&json!({"command": "pwd -P", "cwd": cwd}));
        let wanted = wanted.canonicalize().unwrap();
        assert_eq!(run.out(), format!("{}\n", wanted.display()), "{cwd}");
    }
    for cwd in ["/nope", "$NOPE", "/etc/passwd", "a\0b", &"x".repeat(5000)] {
        let answer = world.post("/command", &json!({"command": "pwd", "cwd": cwd}));
        assert_eq!(answer.error().0, 400, "{cwd}");
    }
}

#[test]
fn a_command_runs_as_whom_it_is_told_to() {
    let world = World::new();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let nobody = passwd
        .lines()
        .find(|line| line.starts_with("nobody:"))
        .expect("a user nobody");
    let fields: Vec<&str> = nobody.split(':').collect();
    let (uid, gid, home) = (fields[2], fields[3], fields[5]);
    for (ids, wanted) in [
        (json!({}), "0 0 /root\n".to_owned()),
        (json!({"uid": 0}), "0 0 /root\n".to_owned()),
        (
            json!({"uid": uid.parse::<u32>().unwrap()}),
            format!("{uid} {gid} {home}\n"),
        ),
        (json!({"uid": 4242}), "4242 4242 /tmp\n".to_owned()),
        (
            json!({"uid": 4242, "gid": 4243}),
            "4242 4243 /tmp\n".to_owned(),
        ),
    ] {
        let mut body = json!({"command": "echo $(id -u) $(id -g) $HOME", "cwd": "/"});
        body.as_object_mut()
            .unwrap()
            .extend(ids.as_object().unwrap().clone());
        assert_eq!(world.run(&body).out(), wanted, "{ids}");
    }
    let script = "f=$(mktemp ~/t.XXXXXX) && rm \"$f\" && echo ok";
    let run = world.run(&json!({"command": script, "cwd": "/", "uid": 4242}));
    assert_eq!(
        run.out(),
        "ok\n",
        "the home of a stranger is writable: {}",
        run.err()
    );
    for ids in [
        json!({"gid": 1}),
        json!({"uid": u32::MAX}),
        json!({"uid": -1}),
        json!({"uid": "0"}),
    ] {
        let mut body = json!({"command": "true"});
        body.as_object_mut()
            .unwrap()
            .extend(ids.as_object().unwrap().clone());
        assert_eq!(world.post("/command", &body).error().0, 400, "{ids}");
    }
}

#[test]
fn standard_input_is_at_its_end() {
    let world = World::new();
    let run = world.sh("cat > f; echo rc=$?");
    assert_eq!(run.out(), "rc=0\n");
    assert_eq!(std::fs::read(world.d("f")).unwrap(), b"");
    assert_eq!(world.sh("read x; echo $?").out(), "1\n");
}

#[test]
fn long_scripts_run_like_short_ones() {
    let world = World::new();
    let filler = "x".repeat(300_000);
    let run = world.sh(&format!("echo {filler} | wc -c"));
    assert_eq!((run.out().trim(), run.code), ("300001", 0), "{}", run.err());
    let heredoc = format!(
        "cat <<'EOF' | wc -c\n{}\nEOF\n",
        "$two `x`\n".repeat(220_000)
    );
    assert_eq!(
        world.sh(&heredoc).out().trim(),
        (220_000 * 9 + 1).to_string()
    );
    let padding = format!("# {filler}\n");
    for script in [
        "echo $0 $#",
        "exit 3",
        "ls /proc/self/fd | wc -l",
        "cat; echo $?",
        "echo $$ >/dev/null",
    ] {
        let short = world.sh(script);
        let long = world.sh(&format!("{script}\n{padding}"));
        assert_eq!(
            (long.out(), long.err(), long.code),
            (short.out(), short.err(), short.code),
            "{script}"
        );
    }
    // A script that replaces the shell with itself still gets the whole of it.
    let long = world.sh(&format!("{padding}a=1\n{padding}echo $a\nfalse"));
    assert_eq!((long.out().as_str(), long.code), ("1\n", 1));
}

#[test]
fn an_argument_the_kernel_refuses_is_an_end_with_a_reason() {
    let world = World::new();
    let run = world.run(&json!({"argv": ["echo", "x".repeat(200_000)]}));
    assert_eq!(run.code, 126);
    assert!(
        run.err().contains("argument list too long"),
        "{}",
        run.err()
    );
    assert_eq!(world.sh("echo x").code, 0);
}

#[test]
fn programs_start_with_usual_signals_and_descriptors() {
    let world = World::new();
    let run = world.sh("set -o pipefail; yes | head -1; echo $?");
    assert_eq!(run.out(), "y\n141\n");
    let run = world.run(&json!({"argv": ["ls", "/proc/self/fd"]}));
    assert_eq!(run.out(), "0\n1\n2\n3\n", "3 is the directory it reads");
    // Of the ignored signals only those that have names: the C library's own two may be inherited.
    let run = world.sh("grep -E '^Sig(Blk|Ign)' /proc/self/status | cut -c17-");
    for mask in run.stdout {
        let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
        assert_eq!(mask & 0x7fff_ffff, 0);
    }
}

#[test]
fn argv_is_run_without_a_shell() {
    let world = World::new();
    std::fs::write(world.d("tool"), "#!/bin/sh\necho \"$0 $*\"\n").unwrap();
    world.sh("chmod +x tool");
    for (argv, out) in [
        (json!(["echo", "$HOME", "*", "a b", ""]), "$HOME * a b \n"),
        (json!(["./tool", "x"]), "tool x\n"),
        (json!(["/bin/sh", "-c", "echo $0", "name"]), "name\n"),
    ] {
        let run = world.run(&json!({"argv": argv}));
        assert!(run.out().ends_with(out), "{argv}: {:?}", run.out());
    }
}
