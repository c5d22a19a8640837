//! Everything together: the program, the private server that it starts, real sandboxes.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;
use tokio::process::Command;

use crate::program::{Ran, program};
use crate::terminal::{Screen, until};

/// Longest wait for what must happen soon.
const SOON: Duration = Duration::from_secs(30);

/// A user of this machine with a state directory of their own.
struct User {
    home: TempDir,
}

impl User {
    fn new() -> Self {
        Self {
            home: TempDir::new().unwrap(),
        }
    }

    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = program(self.home.path());
        command.args(arguments);
        command
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> impl Future<Output = Ran> {
        let mut command = self.program(arguments);
        async move { command.output().await.unwrap().into() }
    }

    /// The ids of the sandboxes there are.
    async fn ids(&self) -> Vec<String> {
        let ran = self.run(&["list", "--quiet"]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout.lines().map(str::to_owned).collect()
    }

    async fn create(&self) -> String {
        let ran = self.run(&["create"]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout.trim().to_owned()
    }
}

impl Drop for User {
    /// Ends the server, then waits for the launcher, which leaves when nobody needs it.
    fn drop(&mut self) {
        let state = self.home.path().join("state");
        let (server, launcher) = (
            listener(&state.join("server/api.sock")),
            listener(&state.join("jail/launcher.sock")),
        );
        if let Some(pid) = server {
            let _ = kill_process(pid, Signal::TERM);
        }
        for pid in server.into_iter().chain(launcher) {
            for _ in 0..SOON.as_millis() / 5 {
                if test_kill_process(pid).is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Who listens on a socket.
pub(crate) fn listener(socket: &Path) -> Option<Pid> {
    let stream = UnixStream::connect(socket).ok()?;
    socket_peercred(&stream).ok().map(|peer| peer.pid)
}

#[tokio::test]
async fn a_command_runs_in_a_sandbox_of_its_own() {
    let user = User::new();
    let look = format!(
        "id -u; test -e {} || echo alone",
        user.home.path().display()
    );
    for (command, code, stdout, stderr) in [
        (&["echo", "hi"][..], 0, "hi\n", ""),
        (&["sh", "-c", "printf 'a\\r\\nb'; exit 7"], 7, "a\r\nb", ""),
        (
            &["sh", "-c", "echo oops >&2; kill -9 $$"],
            137,
            "",
            "oops\n",
        ),
        (&["sh", "-c", &look], 0, "0\nalone\n", ""),
    ] {
        let ran = user.run(&[&["run", "--"], command].concat()).await;
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.as_str()),
            (stdout, stderr),
            "{command:?}"
        );
        assert_eq!(ran.code, Some(code), "{command:?}");
    }
    let missing = user.run(&["run", "no-such-program"]).await;
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(127), ""));
    assert!(
        missing.stderr.contains("no-such-program"),
        "{}",
        missing.stderr
    );
    assert_eq!(user.ids().await, Vec::<String>::new());
}

#[tokio::test]
async fn flags_reach_the_sandbox() {
    let user = User::new();
    let ran = user.run(&[
        "run",
        "-e",
        "A=b c",
        "--cwd",
        "/tmp",
        "--",
        "sh",
        "-c",
        "echo $A; pwd",
    ]);
    assert_eq!(ran.await.stdout, "b c\n/tmp\n");
    let late = user.run(&["run", "--timeout", "1s", "sleep", "60"]);
    let late = tokio::time::timeout(SOON, late).await.unwrap();
    assert_eq!(late.code, Some(124), "{}", late.stderr);
    assert!(late.stderr.contains("took too long"), "{}", late.stderr);
}

#[tokio::test]
async fn input_and_output_are_bytes() {
    let user = User::new();
    let id = user.create().await;
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at * 7 % 256) as u8).collect();
    std::fs::write(user.home.path().join("in"), &content).unwrap();
    for arguments in [
        &["exec", "-i", &id, "--", "cat"][..],
        &["run", "--stdin", "--", "cat"],
    ] {
        let mut command = user.program(arguments);
        let input = std::fs::File::open(user.home.path().join("in")).unwrap();
        let ran = command.stdin(input).output().await.unwrap();
        assert_eq!(ran.status.code(), Some(0), "{arguments:?} {ran:?}");
        assert!(ran.stdout == content, "{arguments:?}: {}", ran.stdout.len());
    }
    // Without the flag nothing is read, so nothing can wait for it.
    let mut command = user.program(&["exec", &id, "--", "sh", "-c", "cat; echo end >&2; exit 9"]);
    let input = std::fs::File::open(user.home.path().join("in")).unwrap();
    let ran = command.stdin(input).output().await.unwrap();
    let told = (ran.status.code(), ran.stdout.len(), ran.stderr.as_slice());
    assert_eq!(told, (Some(9), 0, &b"end\n"[..]));
    user.run(&["kill", &id]).await;
}

#[tokio::test]
async fn memory_that_ran_out_is_told() {
    let user = User::new();
    // Nobody ends the lines of /dev/zero, so tail keeps all of them.
    let ran = user.run(&["run", "--memory", "64Mi", "--", "tail", "/dev/zero"]);
    let ran = ran.await;
    assert_eq!(ran.code, Some(137), "{}", ran.stderr);
    assert!(ran.stderr.contains("memory ran out"), "{}", ran.stderr);
}

#[tokio::test]
async fn files_go_in_and_come_out_unchanged() {
    let user = User::new();
    let content: Vec<u8> = (0..3_000_000_u32)
        .map(|n| n.to_le_bytes()[0] ^ 0x80)
        .collect();
    let home = user.home.path();
    std::fs::write(home.join("in"), &content).unwrap();
    let id = user.create().await;
    let there = format!("{}:/tmp/a b", &id[..8]);
    for (source, destination) in [("in", there.as_str()), (there.as_str(), "out")] {
        let ran = user.run(&["cp", source, destination]).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    }
    assert!(std::fs::read(home.join("out")).unwrap() == content);
    let counted = user.run(&["exec", &id, "--", "wc", "-c", "/tmp/a b"]).await;
    assert_eq!(counted.stdout, "3000000 /tmp/a b\n");
    let killed = user.run(&["kill", &id]).await;
    assert_eq!((killed.code, killed.stdout), (Some(0), format!("{id}\n")));
    let gone = user.run(&["exec", &id, "true"]).await;
    assert_eq!(gone.code, Some(125));
    assert!(gone.stderr.contains("SANDBOX_NOT_FOUND"), "{}", gone.stderr);
}

#[tokio::test]
async fn eight_at_once_start_one_server() {
    let user = User::new();
    let runs = (0..8).map(|_| user.run(&["list", "--quiet"]));
    for ran in futures::future::join_all(runs).await {
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), ""),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(servers(user.home.path()).len(), 1);
}

/// Whoever waits until nobody holds a pipe or a lock any more must not wait for the server.
#[tokio::test]
async fn what_stays_running_holds_nothing_of_its_caller() {
    let user = User::new();
    let run = user.program(&["run", "--", "true"]);
    let run = run.as_std();
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec 9>&1; exec \"$0\" \"$@\""])
        .arg(run.get_program())
        .args(run.get_args())
        .envs(
            run.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    let ran = tokio::time::timeout(SOON, command.output()).await;
    let ran = Ran::from(ran.expect("somebody still holds descriptor 9").unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(servers(user.home.path()).len(), 1);
}

/// The processes that serve a home.
fn servers(home: &Path) -> Vec<String> {
    let ours = format!("BARCHAN_STATE_DIR={}", home.join("state").display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let text = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let is_ours = text("environ")
            .split(|byte| *byte == 0)
            .any(|it| it == ours.as_bytes());
        let command = text("cmdline");
        let has = |flag: &[u8]| command.split(|byte| *byte == 0).any(|it| it == flag);
        // Root's server is two processes, one of which the other started.
        if is_ours && has(b"--private") && !has(b"--kept") {
            found.push(entry.file_name().into_string().unwrap());
        }
    }
    found
}

#[tokio::test]
async fn ctrl_c_leaves_no_sandbox_behind() {
    let user = User::new();
    let mut child = user
        .program(&["run", "--", "sh", "-c", "echo ready; sleep 300"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    let stdout = child.stdout.as_mut().unwrap();
    tokio::time::timeout(
        SOON,
        tokio::io::AsyncReadExt::read_exact(stdout, &mut ready),
    )
    .await
    .unwrap()
    .unwrap();
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(130));
    assert_eq!(user.ids().await, Vec::<String>::new());
}

#[tokio::test]
async fn an_unknown_image_is_named_with_the_way_to_get_it() {
    let user = User::new();
    let ran = user.run(&["run", "--image", "nowhere", "true"]).await;
    assert_eq!(ran.code, Some(125));
    assert!(
        ran.stderr.contains("nowhere") && ran.stderr.contains("image"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_command_in_a_sandbox_has_a_terminal_and_its_keys() {
    let user = User::new();
    let id = user.create().await;
    let script = "trap 'echo code-130; exit 9' INT; tty; stty size; sleep 1000";
    let program = user.program(&["exec", "-t", &id, "--", "sh", "-c", script]);
    let mut screen = Screen::start(program);
    until("the size", || screen.shows(b"33 91")).await;
    assert!(screen.shows(b"/dev/pts/"));
    screen.kind(b"\x03");
    until("the signal", || screen.shows(b"code-130")).await;
    assert_eq!(screen.code().await, Some(9));
    let ran = user
        .run(&[
            "exec",
            &id,
            "--",
            "sh",
            "-c",
            "cat /proc/*/comm | grep -c sleep",
        ])
        .await;
    assert_eq!(ran.stdout, "0\n");
    user.run(&["kill", &id]).await;
}
