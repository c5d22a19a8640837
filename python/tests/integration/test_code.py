"""The unmodified OpenSandbox code interpreter 1.1.1 runs code against our server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from importlib import metadata
from typing import Any

import httpx
import pytest
from code_interpreter import CodeInterpreterSync, SupportedLanguage
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.execd import OutputMessage
from opensandbox.models.execd_sync import ExecutionHandlersSync
from opensandbox.sync import SandboxSync

from live_server import LiveServer

IMAGE = "opensandbox/code-interpreter:v1.1.0"
ENTRYPOINT = ["/opt/code-interpreter/code-interpreter.sh"]
PYTHON = SupportedLanguage.PYTHON


@pytest.fixture(scope="module")
def sandbox(server: LiveServer, data_science: str) -> Iterator[SandboxSync]:
    assert data_science, "the image that the well-known name stands for"
    config = ConnectionConfigSync(domain=server.domain, api_key=server.api_key)
    made = SandboxSync.create(
        IMAGE, entrypoint=ENTRYPOINT, timeout=timedelta(minutes=10), connection_config=config
    )
    yield made
    made.kill()
    made.close()


@pytest.fixture(scope="module")
def interpreter(sandbox: SandboxSync) -> Iterator[Any]:
    begun = time.monotonic()
    made = CodeInterpreterSync.create(sandbox)
    took = time.monotonic() - begun
    yield made
    made.close()
    assert took < 5, f"the client waited {took:.1f} s for a Jupyter server"


@pytest.fixture
def context(interpreter: Any) -> Iterator[Any]:
    made = interpreter.codes.create_context(PYTHON)
    yield made
    interpreter.codes.delete_context(made.id)


def texts(messages: list[OutputMessage]) -> str:
    return "".join(one.text for one in messages)


def bundles(server: LiveServer, sandbox: SandboxSync, code: str) -> list[dict[str, str]]:
    """The results of a cell with all their forms, of which the SDK keeps only the text."""
    endpoint = sandbox.get_endpoint(44772)
    answer = httpx.post(
        f"http://{endpoint.endpoint}/code",
        headers=endpoint.headers,
        json={"code": code, "context": {"language": PYTHON}},
        timeout=60,
    )
    frames = (httpx.Response(200, content=line).json() for line in answer.iter_lines() if line)
    return [frame["results"] for frame in frames if frame["type"] == "result"]


def test_it_is_the_published_package() -> None:
    assert metadata.version("opensandbox-code-interpreter") == "1.1.1"


def test_variables_stay_and_results_are_told(interpreter: Any, context: Any) -> None:
    first = interpreter.codes.run("x = 2 + 2\nprint('hi')\nx", context=context)
    assert first.id == context.id
    assert [one.text for one in first.result] == ["4"]
    assert texts(first.logs.stdout) == "hi\n"
    assert first.execution_count == 1
    assert first.complete is not None
    assert first.error is None
    assert interpreter.codes.run("x * 10", context=context).result[0].text == "40"


def test_errors_come_with_their_traceback(interpreter: Any, context: Any) -> None:
    done = interpreter.codes.run("def f():\n    return missing\nf()", context=context)
    assert done.error is not None
    assert (done.error.name, done.error.value) == (
        "NameError",
        "name 'missing' is not defined",
    )
    assert any("return" in line for line in done.error.traceback)
    assert done.complete is None


@pytest.mark.parametrize(
    "code",
    ["input('x')", "import getpass; getpass.getpass()", "import pdb; pdb.set_trace()"],
)
def test_nobody_is_asked_for_input(interpreter: Any, context: Any, code: str) -> None:
    begun = time.monotonic()
    done = interpreter.codes.run(code, context=context)
    assert time.monotonic() - begun < 10
    assert done.error.name == "StdinNotImplementedError"
    assert interpreter.codes.run("1 + 1", context=context).result[0].text == "2"


def test_a_breakpoint_holds_nobody_up(interpreter: Any, context: Any) -> None:
    begun = time.monotonic()
    done = interpreter.codes.run("x = 1\nbreakpoint()\nx = 2", context=context)
    assert time.monotonic() - begun < 10
    assert done.complete is not None or done.error is not None
    assert interpreter.codes.run("1 + 1", context=context).result[0].text == "2"


def test_charts_and_tables_come_in_all_their_forms(
    server: LiveServer, sandbox: SandboxSync, interpreter: Any
) -> None:
    assert interpreter
    plot = "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, {0}])\n"
    pictures = []
    for number, end in [(2, "plt.show()"), (9, "fig")]:
        found = bundles(server, sandbox, plot.format(number) + end)
        assert [sorted(one) for one in found] == [["image/png", "text", "text/plain"]]
        pictures.append(found[0]["image/png"])
    assert pictures[0] != pictures[1]
    (table,) = bundles(server, sandbox, "import pandas as pd\npd.DataFrame({'a': [1]})")
    assert "<table" in table["text/html"]
    assert table["text"] == table["text/plain"]
    vega = "from IPython.display import display\ndisplay({'application/json': {'a': 1}}, raw=True)"
    assert bundles(server, sandbox, vega) == [{"application/json": '{"a":1}'}]


def test_much_output_is_complete_and_in_order(interpreter: Any, context: Any) -> None:
    done = interpreter.codes.run("print('x' * 2_000_000)", context=context)
    assert texts(done.logs.stdout) == "x" * 2_000_000 + "\n"
    loop = "import sys\nfor i in range(100_000): print(i, file=[sys.stdout, sys.stderr][i % 2])"
    done = interpreter.codes.run(loop, context=context)
    assert texts(done.logs.stdout).split() == [str(i) for i in range(0, 100_000, 2)]
    assert texts(done.logs.stderr).split() == [str(i) for i in range(1, 100_000, 2)]


def test_an_interrupt_keeps_the_variables(interpreter: Any, context: Any) -> None:
    interpreter.codes.run("kept = 7", context=context)
    done: list[Any] = []
    prints = threading.Event()
    handlers = ExecutionHandlersSync(on_stdout=lambda _: prints.set())
    code = "print('begun', flush=True)\nwhile True: pass"

    def run() -> None:
        done.append(interpreter.codes.run(code, context=context, handlers=handlers))

    runs = threading.Thread(target=run)
    runs.start()
    assert prints.wait(10)
    busy = interpreter.codes.run("0", context=context)
    assert "session is busy" in busy.error.value
    begun = time.monotonic()
    interpreter.codes.interrupt(context.id)
    runs.join(10)
    assert time.monotonic() - begun < 3
    assert done[0].error.name == "KeyboardInterrupt"
    assert interpreter.codes.run("kept", context=context).result[0].text == "7"
    with pytest.raises(SandboxApiException):
        interpreter.codes.interrupt("no_such_id")


def test_a_kernel_that_dies_says_so_and_comes_back(interpreter: Any, context: Any) -> None:
    other = interpreter.codes.create_context(PYTHON)
    interpreter.codes.run("other = 1", context=other)
    greedy = "x = [bytearray(256 << 20) for _ in range(1000)]"
    begun = time.monotonic()
    done = interpreter.codes.run(greedy, context=context)
    assert time.monotonic() - begun < 60
    assert done.error is not None
    assert done.error.name in {"KernelDied", "MemoryError"}
    if done.error.name == "KernelDied":
        assert "out of memory" in done.error.value
        again = interpreter.codes.run("1 + 1", context=context)
        assert again.result[0].text == "2"
        assert "new one" in texts(again.logs.stderr)
    assert interpreter.codes.run("other", context=other).result[0].text == "1"
    interpreter.codes.delete_context(other.id)


def test_contexts_do_not_wait_for_each_other(interpreter: Any) -> None:
    contexts = [interpreter.codes.create_context(PYTHON) for _ in range(2)]
    for one in contexts:
        interpreter.codes.run("import time", context=one)
    begun = time.monotonic()
    sleep = "time.sleep(1.0)"
    runs = [
        threading.Thread(target=interpreter.codes.run, args=(sleep,), kwargs={"context": one})
        for one in contexts
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert time.monotonic() - begun < 1.9
    listed = {one.id for one in interpreter.codes.list_contexts(PYTHON)}
    assert listed >= {one.id for one in contexts}
    assert interpreter.codes.list_contexts(SupportedLanguage.GO) == []
    assert interpreter.codes.get_context(contexts[0].id).language == PYTHON
    for one in contexts:
        interpreter.codes.delete_context(one.id)
        with pytest.raises(SandboxApiException):
            interpreter.codes.get_context(one.id)


def test_no_completion_is_lost(interpreter: Any, context: Any) -> None:
    for number in range(200):
        begun = time.monotonic()
        done = interpreter.codes.run(f"print({number})\n{number}", context=context)
        assert time.monotonic() - begun < 5
        assert [one.text for one in done.result] == [str(number)]
        assert texts(done.logs.stdout) == f"{number}\n"


def test_bash_keeps_its_state_too(interpreter: Any) -> None:
    bash = SupportedLanguage.BASH
    assert interpreter.codes.run("cd /tmp; x=5", language=bash).error is None
    done = interpreter.codes.run('echo "$x $PWD"', language=bash)
    assert texts(done.logs.stdout).strip() == "5 /tmp"
    done = interpreter.codes.run("(exit 3)", language=bash)
    assert done.error.value == "3"
    interpreter.codes.delete_contexts(bash)
    assert interpreter.codes.list_contexts(bash) == []


def test_a_language_that_the_image_lacks_is_refused_with_what_it_has(interpreter: Any) -> None:
    with pytest.raises(SandboxApiException, match="bash, python"):
        interpreter.codes.create_context("cobol")


@pytest.fixture(scope="module")
def languages(server: LiveServer, data_science: str) -> Iterator[Any]:
    """An interpreter with kernels for more languages, on top of the other image."""
    assert data_science
    server.build_image("code-interpreter")
    config = ConnectionConfigSync(domain=server.domain, api_key=server.api_key)
    with SandboxSync.create(
        IMAGE, entrypoint=ENTRYPOINT, timeout=timedelta(minutes=10), connection_config=config
    ) as made:
        interpreter = CodeInterpreterSync.create(made)
        yield interpreter
        interpreter.close()
        made.kill()


@pytest.mark.parametrize(
    ("language", "code", "text", "printed"),
    [
        ("javascript", "let x = 2 + 2; console.log('hi'); x", "4", "hi\n"),
        ("typescript", "const y: number = 40; console.log('hi'); y", "40", "hi\n"),
        ("python", "print('hi'); 4", "4", "hi\n"),
    ],
)
def test_other_languages_run_too(
    languages: Any, language: str, code: str, text: str, printed: str
) -> None:
    done = languages.codes.run(code, language=language)
    assert done.error is None
    assert [one.text for one in done.result] == [text]
    assert texts(done.logs.stdout) == printed
    assert languages.codes.run("missing", language=language).error is not None
    assert [one.language for one in languages.codes.list_contexts(language)] == [language]
