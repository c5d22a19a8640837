"""What users of other sandboxes reported about background commands and their logs, tried on this
one with the unmodified OpenSandbox SDK 1.1.1: directly and through the server's proxy."""

from __future__ import annotations

import httpx
import pytest
from opensandbox.exceptions import SandboxApiException

from conformance.world import until
from integration.sandboxes import Box
from live_server import LiveServer


def test_a_log_without_news_is_empty_and_its_cursor_stays(box: Box) -> None:
    folder = box.folder()
    command = box.start(f"echo x; until [ -e {folder}/go ]; do sleep 0.05; done; echo y")
    until("the first line", lambda: box.log(command).content)
    log = box.log(command)
    assert (log.content, log.cursor) == ("x\n", 2)
    for _ in range(5):
        assert (box.log(command, 2).content, box.log(command, 2).cursor) == ("", 2)
    far = box.log(command, 10_000_000)
    assert (far.content, far.cursor) == ("", 2)
    box.files.write_file(f"{folder}/go", "")
    box.ended(command)
    assert box.log(command, far.cursor).content == "y\n"


@pytest.mark.parametrize("cursor", ["-1", "abc", "1.5", "99999999999999999999"])
def test_a_cursor_that_is_none_is_refused(box: Box, raw: httpx.Client, cursor: str) -> None:
    command = box.start("echo x")
    answer = raw.get(f"/command/{command}/logs", params={"cursor": cursor})
    assert answer.status_code == 400
    assert answer.json()["code"] == "INVALID_REQUEST_BODY"


def test_a_new_client_finds_a_command_by_its_id(box: Box, server: LiveServer) -> None:
    command = box.start("echo x; sleep 400")
    until("it has printed", lambda: box.log(command).content)
    again = box.sdk.connect(box.sdk.id, connection_config=box.config)
    assert again.commands.get_command_status(command).running
    assert again.commands.get_background_command_logs(command).content == "x\n"
    again.commands.interrupt(command)
    again.close()
    assert box.ended(command).exit_code == 143
    with pytest.raises(SandboxApiException) as caught:
        box.commands.get_command_status("0" * 32)
    assert caught.value.status_code == 404


def test_a_background_command_that_fails_says_so(box: Box) -> None:
    status = box.ended(box.start("echo x; exit 7"))
    assert (status.exit_code, status.running) == (7, False)
    assert "7" in status.error
    status = box.ended(box.start("exec /no/such/program"))
    assert status.exit_code == 127
    with pytest.raises(SandboxApiException) as caught:
        box.start("true", working_directory="/no/such")
    assert caught.value.status_code == 400
