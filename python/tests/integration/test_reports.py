"""What users of other sandboxes reported about commands, sessions and streams, tried on this one
with the unmodified OpenSandbox SDK 1.1.1: directly and through the server's proxy."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.execd_sync import ExecutionHandlersSync

from conformance.world import until
from integration.sandboxes import Box, Told, told

EVERY_WAY = ["foreground", "argv", "background", "session"]

# Scripts with what their callers are told, whichever way they run. A log has both streams in one.
OUTPUTS: list[tuple[str, Told]] = [
    ("printf 'one\\ntwo'", Told("one\ntwo", "", 0)),
    ("printf 'one\\ntwo' >&2", Told("", "one\ntwo", 0)),
    (
        "printf 'a\\n\\nb\\r'; sleep 0.3; printf '\\n\\r\\nc\\n'",
        Told("a\n\nb\r\n\r\nc\n", "", 0),
    ),
    ("printf '\\377\\376bad\\nok\\n'", Told("\ufffd\ufffdbad\nok\n", "", 0)),
    (
        "printf '\\033[31mred\\033[0m \\033]0;t\\007\\n'",
        Told("\x1b[31mred\x1b[0m \x1b]0;t\x07\n", "", 0),
    ),
    ("printf out; sleep 0.1; printf err >&2; exit 7", Told("out", "err", 7)),
    (
        "echo out; sleep 0.1; echo 'timed out after 5s' >&2; exit 1",
        Told("out\n", "timed out after 5s\n", 1),
    ),
    ("exit 5", Told("", "", 5)),
    ("cat; echo rc=$?", Told("rc=0\n", "", 0)),
    ("echo " + "x" * 300_000 + " | wc -c", Told("300001\n", "", 0)),
]


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize(("script", "wanted"), OUTPUTS, ids=[it[0][:40] for it in OUTPUTS])
def test_output_and_codes_are_exact_whichever_way_a_script_runs(
    box: Box, way: str, script: str, wanted: Told
) -> None:
    if way == "background":
        wanted = replace(wanted, stdout=wanted.stdout + wanted.stderr, stderr="")
        assert box.told_in_background(script) == wanted
    elif way == "session":
        assert box.told_in_session(script) == wanted
    elif way == "foreground":
        assert box.sh(script) == wanted
    elif len(script) > 128 * 1024:
        done = told(box.run(["sh", "-c", script]))
        assert done.code == 126, "the kernel takes no longer argument"
        assert "too long" in done.stderr.lower()
    else:
        assert told(box.run(["sh", "-c", script])) == wanted


def test_the_text_of_an_execution_has_every_line_once(box: Box) -> None:
    script = "printf 'a\\n\\nb\\r'; sleep 0.3; printf '\\n\\r\\nc\\n'"
    assert box.run(script).text == "a\n\nb\n\nc"
    assert box.run("printf 'one\\ntwo'").text == "one\ntwo"


def test_progress_is_told_while_it_is_made(box: Box) -> None:
    seen: list[tuple[str, float]] = []
    begun = time.monotonic()
    handlers = ExecutionHandlersSync(
        on_stdout=lambda it: seen.append((it.text, time.monotonic() - begun))
    )
    script = 'for i in 1 2 3; do printf "$i%%\\r"; sleep 1; done; echo end'
    done = box.commands.run(script, handlers=handlers)
    assert [one[0] for one in seen] == ["1%\r", "2%\r", "3%\r", "end\n"]
    assert all(at < seen[3][1] - 0.1 for _, at in seen[:3]), "the third comes with the end"
    assert done.text.endswith("end")


def test_a_line_of_a_megabyte_is_one_line(box: Box) -> None:
    done = box.run("head -c 1500000 /dev/zero | tr '\\0' x; echo; echo ok")
    assert [one.text for one in done.logs.stdout] == ["x" * 1_500_000 + "\n", "ok\n"]
    assert done.exit_code == 0
    assert box.sh("echo next").stdout == "next\n"


def test_two_full_streams_do_not_block_each_other(box: Box) -> None:
    script = (
        'awk \'BEGIN { line = sprintf("%150s", ""); for (i = 0; i < 60000; i++) '
        '{ print i line; print i line > "/dev/stderr" } }\''
    )
    done = box.sh(script)
    wanted = [str(at) for at in range(60_000)]
    assert done.stdout.split() == wanted
    assert done.stderr.split() == wanted
    assert done.code == 0


def test_a_program_that_is_not_there_is_named(box: Box) -> None:
    for command in ("no_such_prog_xyz --v", ["no_such_prog_xyz", "--v"]):
        done = told(box.run(command))
        assert done.code == 127
        assert "no_such_prog_xyz" in done.stderr
        assert "not found" in done.stderr


def test_what_is_left_running_keeps_nobody_waiting(box: Box) -> None:
    begun = time.monotonic()
    done = box.sh("sleep 40.25 & echo started", timeout=timedelta(seconds=60))
    assert done == Told("started\n", "", 0)
    assert box.sh("echo next").stdout == "next\n"
    assert time.monotonic() - begun < 10
    assert box.sh("pkill -fx 'sleep 40.25'").code == 0, "the sleeper still ran"


def test_a_time_limit_ends_the_whole_tree(box: Box) -> None:
    begun = time.monotonic()
    limit = timedelta(seconds=1)
    done = box.sh("sleep 300.5 & yes y300 >/dev/null & wait", timeout=limit)
    assert done.code == 137
    assert time.monotonic() - begun < 5
    until("nothing of it lives", lambda: box.sh("pgrep -f 'sleep 300.[5]|yes y30[0]'").code == 1)


def test_orphans_do_not_stay_as_zombies(box: Box) -> None:
    for _ in range(20):
        box.sh("for i in 0 1 2 3 4 5 6 7 8 9; do (sh -c 'sleep 0.1 &'); done")
    count = "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"
    until("all are reaped", lambda: int(box.sh(count).stdout) <= 2)


def test_a_script_of_megabytes_runs(box: Box) -> None:
    lines = "0123456789abcde\n" * 131_072
    assert box.sh(f"wc -c <<'END'\n{lines}END\n") == Told("2097152\n", "", 0)


@pytest.mark.parametrize(
    ("timeout", "status"),
    [
        (None, 200),
        (0, 200),
        (0.0, 200),
        (1500.0, 200),
        (10**12, 200),
        (1e300, 200),
        (-1, 400),
        (-0.5, 400),
        ("1500", 400),
        (True, 400),
    ],
)
def test_time_limits_of_every_kind(raw: httpx.Client, timeout: Any, status: int) -> None:
    answer = raw.post("/command", json={"command": "echo x", "timeout": timeout})
    assert answer.status_code == status
    if status == 400:
        assert answer.json()["code"] == "INVALID_REQUEST_BODY"
    else:
        assert "execution_complete" in answer.text


def test_a_fraction_of_a_second_is_a_time_limit(box: Box) -> None:
    begun = time.monotonic()
    assert box.sh("sleep 20", timeout=timedelta(seconds=1.5)).code == 137
    assert 1.4 < time.monotonic() - begun < 6


VALUES = {
    "A": "l1\nl2",
    "B": "",
    # In a value with a single quote the SDK's `set_env` leaves `$NAME` to be filled in.
    "C": 'it\'s "$(touch pwn)" `touch pwn` \\ ;\t\\n',
    "D": 'naïve 文件 🤣 $A ${A} "$(touch pwn)" \\n',
}


@pytest.mark.parametrize("way", ["command", "set_env", "session"])
def test_values_are_never_code(box: Box, way: str) -> None:
    folder = box.folder()
    script = 'printf \'%s\\0\' "$A" "${B+set}" "$B" "$C" "$D" > out; echo $?'
    if way == "command":
        assert box.sh(script, envs=VALUES, working_directory=folder).stdout == "0\n"
    else:
        for name, value in VALUES.items():
            box.commands.set_env(name, value)
        if way == "set_env":
            assert box.sh(script, working_directory=folder).stdout == "0\n"
        else:
            session = box.commands.create_session(working_directory=folder)
            assert told(box.commands.run_in_session(session, script)).stdout == "0\n"
            box.commands.delete_session(session)
    found = box.files.read_bytes(f"{folder}/out").decode().split("\0")
    assert found == [VALUES["A"], "set", "", VALUES["C"], VALUES["D"], ""]
    assert box.sh("ls -A", working_directory=folder).stdout == "out\n"


@pytest.mark.parametrize("name", ["X;touch pwn", "A=B", "", "a b", "A\nB", "é"])
def test_names_that_are_none_are_refused(box: Box, name: str) -> None:
    with pytest.raises(SandboxApiException) as caught:
        box.run("true", envs={name: "x"})
    assert caught.value.status_code == 400


def test_a_heredoc_does_a_session_no_harm(box: Box) -> None:
    folder = box.folder()
    session = box.commands.create_session()
    script = f"cat > {folder}/m.txt <<'EOF'\none\n$two\nEOF"
    assert told(box.commands.run_in_session(session, script)) == Told("", "", 0)
    done = told(box.commands.run_in_session(session, f"cat {folder}/m.txt"))
    assert done == Told("one\n$two\n", "", 0)
    # One that nobody ends is the shell's to judge; the session outlives it.
    box.commands.run_in_session(session, "cat <<EOF\nnever ended", timeout=timedelta(seconds=5))
    assert told(box.commands.run_in_session(session, "echo on")).stdout == "on\n"
    box.commands.delete_session(session)


def test_exit_in_a_session_is_the_end_of_a_run_only(box: Box) -> None:
    session = box.commands.create_session()
    done = told(box.commands.run_in_session(session, "export K=1; echo x; exit 3"))
    assert done == Told("x\n", "", 3)
    assert told(box.commands.run_in_session(session, "echo after $K")).stdout == "after 1\n"
    assert told(box.commands.run_in_session(session, "kill -9 $$")).code == 137
    assert told(box.commands.run_in_session(session, "echo after $K")).stdout == "after 1\n"
    box.commands.delete_session(session)


def test_a_session_keeps_variables_and_directory(box: Box) -> None:
    folder = box.folder()
    session = box.commands.create_session()
    box.commands.run_in_session(session, f"export A=1; B=2; f() {{ echo f; }}; cd {folder}")
    done = told(box.commands.run_in_session(session, "echo $A$B; pwd; f"))
    assert done.stdout == f"12\n{folder}\nf\n"
    box.commands.delete_session(session)


@pytest.mark.parametrize(
    ("uid", "ids", "home"), [(None, "0:0", "/root"), (0, "0:0", "/root"), (4242, "4242:4242", None)]
)
def test_another_user_has_its_ids_and_a_home_it_can_write_to(
    box: Box, uid: int | None, ids: str, home: str | None
) -> None:
    script = 'echo "$(id -u):$(id -g)"; echo "$HOME"; touch ~/t && echo written'
    done = box.sh(script, uid=uid)
    lines = done.stdout.splitlines()
    assert lines[0] == ids
    assert home is None or lines[1] == home
    assert lines[2:] == ["written"], done


@pytest.mark.parametrize(
    "body",
    [
        {"command": "true", "uid": 4294967295},
        {"command": "true", "uid": -1},
        {"command": "true", "uid": 5_000_000},
        {"command": "true", "cwd": "/no/such"},
        {"command": "true", "cwd": "/no/such", "background": True},
        {"command": "true", "cwd": "/etc/passwd"},
    ],
)
def test_what_cannot_begin_is_an_error_and_no_stream(raw: httpx.Client, body: Any) -> None:
    answer = raw.post("/command", json=body)
    assert 400 <= answer.status_code < 600
    assert answer.status_code != 500
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["message"]


def test_nobody_waits_after_the_end(box: Box, raw: httpx.Client) -> None:
    took = []
    for _ in range(50):
        begun = time.monotonic()
        box.start("true")
        took.append(time.monotonic() - begun)
    assert sorted(took)[25] < 0.5
    # The end of the body is said as well, by its length or its last chunk.
    for command in ("true", "sleep 0.2"):
        for background in (True, False):
            body = {"command": command, "background": background}
            begun = time.monotonic()
            answer = raw.post("/command", json=body)
            assert time.monotonic() - begun < 1
            assert {"transfer-encoding", "content-length"} & set(answer.headers)
            assert answer.text.endswith("}\n\n")


def test_a_silent_command_shows_signs_of_life(box: Box, raw: httpx.Client) -> None:
    seen: list[tuple[str, float]] = []
    with raw.stream("POST", "/command", json={"command": "sleep 7; echo done"}) as answer:
        frames = (json.loads(line) for line in answer.iter_lines() if line)
        seen.extend((frame["type"], time.monotonic()) for frame in frames)
    kinds = [kind for kind, _ in seen]
    assert kinds.count("ping") >= 2, kinds
    gaps = [later[1] - before[1] for before, later in itertools.pairwise(seen)]
    assert max(gaps) < 15, "hops between may cut what is silent for longer"
    # The SDK passes over them.
    done = box.run("sleep 4; echo done")
    assert (done.text, done.exit_code, done.error) == ("done", 0, None)


def test_a_caller_that_goes_away_takes_its_command_along(box: Box, raw: httpx.Client) -> None:
    stays = box.start("sleep 301.75 & wait")
    for command in ("sleep 302.75 & wait", "setsid sleep 302.75 & sleep 302.75"):
        with raw.stream("POST", "/command", json={"command": command}) as answer:
            lines = answer.iter_lines()
            assert next(lines)
            until("it runs", lambda: box.sh("pgrep -fx 'sleep 302.75'").code == 0)
        begun = time.monotonic()
        until("it is gone", lambda: box.sh("pgrep -fx 'sleep 302.75'").code == 1)
        assert time.monotonic() - begun < 5
    assert box.commands.get_command_status(stays).running
    box.commands.interrupt(stays)


def test_streams_that_break_off_leave_nothing_open(box: Box, raw: httpx.Client) -> None:
    # The daemon is the first process; nobody may look into it, so its children are counted.
    for _ in range(100):
        with raw.stream("POST", "/command", json={"command": "sleep 603.5"}) as answer:
            assert next(answer.iter_lines())
    until("all are gone", lambda: box.sh("pgrep -fxc 'sleep 603.5'").stdout == "0\n")
    assert box.sh("echo next").stdout == "next\n"


def test_a_command_that_takes_all_memory_ends_alone_and_says_so(
    box: Box, raw: httpx.Client
) -> None:
    stays = box.start("sleep 304.5")
    done = box.run("tail /dev/zero")
    assert done.exit_code == 137
    status = raw.get(f"/command/status/{done.id}").json()
    assert status["out_of_memory"] is True, status
    assert "memory" in status["error"]
    assert box.commands.get_command_status(stays).running
    assert box.sh("echo next").stdout == "next\n"
    box.commands.interrupt(stays)


def test_hundreds_of_processes_run_at_once(box: Box) -> None:
    # A child is the shell for a moment before it is `sleep`.
    script = (
        "for i in $(seq 300); do sleep 305.5 & done; for try in $(seq 100); do "
        "n=$(pgrep -fxc 'sleep 305.5'); [ $n = 300 ] && break; sleep 0.05; done; "
        "echo $n; kill $(jobs -p)"
    )
    assert box.sh(script).stdout == "300\n"
