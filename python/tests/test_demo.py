"""The example around its analysis: stages, transcript, artifacts, account."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

import artifacts
import demo
import generate
import models
import pipeline
import progress
import replay
from artifacts import Artifacts
from local_sandbox import LocalSandbox
from paths import EXAMPLE
from stages import Record, Stage, StageFailed
from test_report import check

Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("matplotlib")


@pytest.fixture
def run(tmp_path: Path, cache: Path) -> Run:
    """Runs the demo in a local sandbox; gives its exit code and the account that it wrote."""

    def perform(
        csv: Path | None = None,
        live: bool = False,
        opened: Callable[[], LocalSandbox] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        out = tmp_path / "out"
        code = demo.run(
            csv,
            out,
            "local",
            live,
            opened or (lambda: LocalSandbox(cache)),
            root=f"{tmp_path}/work",
        )
        account: dict[str, Any] = json.loads((out / "run.json").read_text(encoding="utf-8"))
        return code, account

    return perform


def test_the_whole_demo_ends_in_a_checked_report(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, account = run()
    assert code == 0
    assert account["outcome"] == "complete"
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    check(report, generate.customers())
    named = {one["path"] for one in account["artifacts"]}
    assert named == {"report.md", "figures.json", *artifacts.charts_of(report)}
    assert len(artifacts.charts_of(report)) == 8
    assert [one["outcome"] for one in account["stages"]] == ["done"] * 5
    assert all(one["seconds"] >= 0 and one["inputs"] for one in account["stages"])
    assert account["tokens"]["replay"]["input_tokens"] > 0
    assert account["versions"]["deepagents"].startswith("0.7.")
    talk = json.loads((tmp_path / "out" / "transcript.json").read_text(encoding="utf-8"))
    assert {one["type"] for one in talk} == {"human", "ai", "tool"}
    shown = capsys.readouterr().out
    for words in ("── analysis", "→ execute", "✓ write_file", "report.md", "nothing was billed"):
        assert words in shown


def test_another_file_with_the_same_columns(run: Run, tmp_path: Path) -> None:
    csv = tmp_path / "our customers (new).csv"
    csv.write_text(generate.customers(40, 9))
    code, account = run(csv)
    assert (code, account["input"]["origin"]) == (0, str(csv))
    assert "`customers.csv`" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must start with the columns"),
        (b"a,b,c\n1,2,3\n", "found a, b, c"),
        (",".join(generate.COLUMNS).encode(), "no customer"),
        (b"\xff\xfe\x00", "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_analysed_is_refused_at_once(
    run: Run, tmp_path: Path, content: bytes, words: str
) -> None:
    csv = tmp_path / "x.csv"
    csv.write_bytes(content)
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.md").write_text("an old report")
    code, account = run(csv)
    assert (code, account["outcome"]) == (1, "failed")
    assert account["stages"][-1]["error_class"] == "bad_input"
    assert words in account["stages"][-1]["error"]
    assert not (out / "report.md").exists()


def test_a_missing_file_is_refused(run: Run, tmp_path: Path) -> None:
    code, account = run(tmp_path / "none.csv")
    assert (code, account["stages"][-1]["error_class"]) == (1, "bad_input")


class NoPandas(LocalSandbox):
    """An image without the libraries: the first look into the file fails."""

    def __init__(self, cache: Path) -> None:
        super().__init__(cache)
        self.env["PYTHONNOUSERSITE"] = "1"
        self.env["PYTHONPATH"] = str(cache / "shadow")
        (cache / "shadow").mkdir(exist_ok=True)
        (cache / "shadow" / "pandas.py").write_text("raise ImportError('no pandas here')")


def test_a_failed_step_stops_the_agent_and_the_run(
    run: Run, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[LocalSandbox] = []

    def opening() -> LocalSandbox:
        opened.append(NoPandas(cache))
        return opened[-1]

    code, account = run(opened=opening)
    stage = account["stages"][-1]
    assert (code, account["outcome"]) == (1, "failed")
    assert (stage["stage"], stage["error_class"]) == ("analysis", "analysis_failed")
    assert "no pandas here" in stage["error"]
    assert "'look'" in stage["error"]
    assert opened[0].killed
    assert not (tmp_path / "out" / "report.md").exists()
    talk = (tmp_path / "out" / "transcript.json").read_text()
    assert "no pandas here" in talk, "a failed conversation can be read as well"
    assert "✗ execute" in capsys.readouterr().out


def test_a_sandbox_that_does_not_open_is_told(run: Run) -> None:
    def refuse() -> LocalSandbox:
        raise RuntimeError("no namespaces")

    code, account = run(opened=refuse)
    assert (code, account["stages"][-1]["error_class"]) == (1, "no_sandbox")
    assert "no namespaces" in account["stages"][-1]["error"]


def test_live_without_a_key_says_which_keys(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in models.PROVIDERS:
        monkeypatch.delenv(provider.key, raising=False)
    code, account = run(live=True)
    assert code == 1
    assert "ANTHROPIC_API_KEY, GOOGLE_API_KEY, OPENAI_API_KEY" in account["error"]


def test_a_live_model_is_chosen_by_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in models.PROVIDERS:
        monkeypatch.delenv(provider.key, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not a real key")
    monkeypatch.setenv("MODEL", "claude-some-model")
    choice = models.live()
    assert (choice.mode, choice.name) == ("live", "anthropic:claude-some-model")
    assert "not a real key" not in repr(choice)


def answering(*contents: tuple[str, str, Any]) -> list[Any]:
    """A conversation in which the first turn's calls were answered so."""
    calls = [{"name": name, "args": {}, "id": "head"} for name, _, _ in contents]
    return [
        HumanMessage("go"),
        AIMessage("", tool_calls=calls),
        *[
            ToolMessage(text, name=name, tool_call_id="head", artifact=artifact)
            for name, text, artifact in contents
        ],
    ]


@pytest.mark.parametrize(
    ("name", "text", "artifact", "stops"),
    [
        ("execute", "fine\n\n[Command succeeded with exit code 0]", {"exit_code": 0}, False),
        ("execute", "fine\n\n[Command succeeded with exit code 0]", None, False),
        ("execute", "bad\n\n[Command failed with exit code 3]", {"exit_code": 3}, True),
        ("execute", "bad\n\n[Command failed with exit code 3]", None, True),
        ("execute", "[The sandbox could not do this: …]", {}, True),
        ("write_file", "Updated file /x", None, False),
        ("write_file", "Error: no space", None, True),
        ("read_file", "@@ lines 1-1 of 1 @@\nError bars", None, False),
    ],
)
def test_the_transcript_reacts_to_what_tools_answer(
    name: str, text: str, artifact: Any, stops: bool
) -> None:
    model = models.recorded({"work": "/w", "csv": "/w/c.csv", "out": "/w/r"}).model
    reply = model.invoke(answering((name, text, artifact)))
    assert (replay.STOPPED in reply.response_metadata) == stops
    assert bool(reply.tool_calls) != stops


def test_the_transcript_fits_its_files() -> None:
    model = models.recorded({"work": "/w", "csv": "/w/c.csv", "out": "/w/r"}).model
    assert isinstance(model, replay.ReplayModel)
    turns = model.transcript["turns"]
    calls = [call for turn in turns for call in turn.get("calls", [])]
    written = {call["args"]["content"]["file"] for call in calls if call["name"] == "write_file"}
    here = {f"analysis/{path.name}" for path in (EXAMPLE / "transcript/analysis").glob("*.py")}
    assert written == here
    assert len({call["id"] for call in calls}) == len(calls)
    first = model.invoke([HumanMessage("go")])
    assert first.tool_calls[0]["args"]["command"].endswith("head -n 4 /w/c.csv")
    assert first.usage_metadata is not None
    beyond = [HumanMessage("go"), *[AIMessage("x") for _ in turns]]
    assert replay.STOPPED in model.invoke(beyond).response_metadata


PNG = artifacts.PNG_SIGNATURE + b"\0" * artifacts.CHART_BYTES_MIN
SECTIONS = "# Summary\n# Data quality\n# Countries\n# Trends\n# Email domains\n"


@pytest.mark.parametrize(
    ("report", "charts", "problem"),
    [
        (SECTIONS, {f"{at}.png": PNG for at in range(5)}, None),
        (SECTIONS, {f"{at}.png": PNG for at in range(4)}, "shows 4 charts"),
        (SECTIONS, {f"{at}.png": PNG for at in range(4)} | {"e.png": b"GIF"}, "no usable PNG"),
        (SECTIONS, {f"{at}.png": PNG for at in range(4)} | {"e.png": PNG[:20]}, "no usable PNG"),
        (SECTIONS.replace("# Trends\n", ""), {}, "no section about time"),
        ("", {}, "no section about summary"),
    ],
)
def test_half_a_report_is_no_report(
    report: str, charts: dict[str, bytes], problem: str | None
) -> None:
    found = artifacts.problem(Artifacts(report, charts, {}))
    assert found is None if problem is None else problem in (found or "")


def test_charts_are_found_as_markdown_shows_them() -> None:
    text = "![a](x.png) ![b]( <y.PNG> ) ![c](x.png) [not](z.png)\n![](d/w.png 'title')"
    assert artifacts.charts_of(text) == ["x.png", "y.PNG", "d/w.png"]


def test_a_chart_that_the_report_shows_must_be_there(cache: Path, tmp_path: Path) -> None:
    box = LocalSandbox(cache)
    work = pipeline.Work.under(str(tmp_path), pipeline.Source("c.csv", b"", "x"))
    record = Record()
    with pytest.raises(StageFailed, match=r"report\.md: file_not_found"):
        record.perform(pipeline.fetch(work), box)
    box.upload_files([(f"{work.out}/report.md", b"![a](a.png)")])
    with pytest.raises(StageFailed, match=r"a\.png: file_not_found"):
        record.perform(pipeline.fetch(work), box)
    box.upload_files([(f"{work.out}/report.md", b"![a](../a.png)")])
    with pytest.raises(StageFailed, match="bare file names"):
        record.perform(pipeline.fetch(work), box)
    assert [one["error_class"] for one in record.stages] == ["report_incomplete"] * 3


def test_a_stage_gives_its_result_only_when_its_check_passes() -> None:
    def stage(check: Callable[[int], str | None]) -> Stage[int, int]:
        return Stage("double", "bad_double", lambda n: 2 * n, check, lambda n: {"n": n})

    record = Record()
    assert record.perform(stage(lambda _: None), 4) == 8
    with pytest.raises(StageFailed, match="odd") as caught:
        record.perform(stage(lambda _: "odd"), 4)
    assert (caught.value.stage, caught.value.error_class) == ("double", "bad_double")
    assert [one["outcome"] for one in record.stages] == ["done", "failed"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("", ""), ("a", "a"), ("a\nb", "a…"), ("x" * 96, "x" * 96), ("x" * 97, "x" * 95 + "…")],
)
def test_long_lines_are_cut_for_the_screen(text: str, shown: str) -> None:
    assert progress.clip(text) == shown
    out = io.StringIO()
    progress.Progress(out).line(progress.clip(text))
    assert "\033" not in out.getvalue()
