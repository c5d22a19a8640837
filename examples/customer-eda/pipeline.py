"""The stages of the run, from a customer file to a checked report."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends.sandbox import BaseSandbox
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.messages import BaseMessage

import artifacts
import generate
from artifacts import Artifacts
from models import Choice
from progress import Progress
from replay import STOPPED
from stages import Stage

SYSTEM_PROMPT = """\
You are a data analyst who writes Python and works in a sandbox with a shell and a file system.
You explore data before you conclude, compute every figure you report, and draw clear charts with
seaborn. When a command fails, find out why and repair it; never report a result that you did not
compute."""

TASK = """\
Do a deep exploratory analysis of the customer file {csv} and write a report for a colleague.

Write it as Markdown to {out}/report.md with these sections: a summary with key takeaways;
structure and integrity (rows, columns, types, missing values, duplicates, distinct ids); geography
(countries, continents by pycountry and pycountry-convert with a written fallback for territories,
the top 15 countries); time (months, years, weekdays); domains (top-level domains of e-mail
addresses and websites, distinct domains, their overlap).

Illustrate it with at least five charts as PNG files in {out}, shown in the report by their bare
file names. Check your work before you finish: every chart must exist and every figure must come
from the data. There is no network."""

RECURSION_MAX = 200


@dataclass(frozen=True)
class Source:
    """The customer file of a run."""

    name: str
    content: bytes
    origin: str

    @property
    def sha256(self) -> str:
        """Checksum of the content."""
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True)
class Work:
    """Where things are inside the sandbox."""

    root: str
    csv: str
    out: str

    @classmethod
    def under(cls, root: str, source: Source) -> "Work":
        """The usual places under a working directory."""
        return cls(root=root, csv=f"{root}/{source.name}", out=f"{root}/report")

    def names(self) -> dict[str, str]:
        """The places by name, as texts refer to them."""
        return {"work": self.root, "csv": self.csv, "out": self.out}


@dataclass(frozen=True)
class Conversation:
    """What the agent and its tools said, and what it took."""

    messages: list[BaseMessage]
    tokens: dict[str, dict[str, int]]


def take(path: Path | None) -> Source:
    """The given file, or a generated one."""
    if path is None:
        return Source("customers-1000.csv", generate.customers().encode("utf-8"), "generated")
    name = path.name if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", path.name) else "customers.csv"
    return Source(name, path.read_bytes(), str(path))


def source_problem(source: Source) -> str | None:
    """Why a file cannot be analysed, or None."""
    try:
        lines = source.content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        return f"{source.origin} is not UTF-8 text: {error}"
    header = [name.strip().strip('"') for name in lines[0].split(",")] if lines else []
    if header != generate.COLUMNS:
        return (
            f"{source.origin} must start with the columns {', '.join(generate.COLUMNS)}; found "
            f"{', '.join(header)}"
        )
    return None if len(lines) > 1 else f"{source.origin} has a header line but no customer"


SOURCE = Stage[Path | None, Source](
    name="customer file",
    failure="bad_input",
    work=take,
    check=source_problem,
    inputs=lambda path: {"file": str(path) if path else "generated"},
)


def sandbox(image: str) -> Stage[Callable[[], BaseSandbox], BaseSandbox]:
    """Opens the sandbox; it must answer a command."""
    return Stage(
        name="sandbox",
        failure="no_sandbox",
        work=lambda open_backend: open_backend(),
        check=lambda backend: (
            None if (probe := backend.execute("true")).exit_code == 0 else probe.output
        ),
        inputs=lambda _: {"image": image},
    )


def upload(work: Work) -> Stage[tuple[BaseSandbox, Source], str]:
    """Puts the file into the sandbox; it must arrive byte for byte."""

    def put(given: tuple[BaseSandbox, Source]) -> str:
        backend, source = given
        answer = backend.upload_files([(work.csv, source.content)])[0]
        if answer.error:
            return f"{work.csv}: {answer.error}"
        back = backend.download_files([work.csv])[0]
        return (
            ""
            if back.content == source.content
            else f"{work.csv} came back changed: {back.error or 'other bytes'}"
        )

    return Stage(
        name="upload",
        failure="upload_failed",
        work=put,
        check=lambda trouble: trouble or None,
        inputs=lambda given: {
            "path": work.csv,
            "bytes": len(given[1].content),
            "sha256": given[1].sha256,
        },
    )


def analyse(
    work: Work, choice: Choice, progress: Progress, said: list[BaseMessage]
) -> Stage[BaseSandbox, Conversation]:
    """Lets the agent do the job; it must come to an end of its own accord.

    `said` receives the messages as they come, so that a failed conversation can be read as well.
    """

    def run(backend: BaseSandbox) -> Conversation:
        agent = create_deep_agent(model=choice.model, backend=backend, system_prompt=SYSTEM_PROMPT)
        usage = UsageMetadataCallbackHandler()
        task = TASK.format(csv=work.csv, out=work.out)
        for state in agent.stream(
            {"messages": [{"role": "user", "content": task}]},
            stream_mode="values",
            config={"callbacks": [usage], "recursion_limit": RECURSION_MAX},
        ):
            for message in state["messages"][len(said) :]:
                progress.message(message)
                said.append(message)
        return Conversation(
            said, {name: dict_of(counts) for name, counts in usage.usage_metadata.items()}
        )

    def check(conversation: Conversation) -> str | None:
        last = conversation.messages[-1] if conversation.messages else None
        if last is None or last.type != "ai":
            return "the conversation did not end with a word of the model"
        return last.text if STOPPED in last.response_metadata else None

    return Stage(
        name="analysis",
        failure="analysis_failed",
        work=run,
        check=check,
        inputs=lambda backend: {"sandbox": backend.id, "model": choice.name},
    )


def dict_of(counts: Any) -> dict[str, int]:
    """Token counts as plain numbers."""
    return {
        key: int(counts.get(key, 0)) for key in ("input_tokens", "output_tokens", "total_tokens")
    }


def fetch(work: Work) -> Stage[BaseSandbox, Artifacts]:
    """Brings report and charts back; nothing that the report shows may be missing."""

    def get(backend: BaseSandbox) -> Artifacts:
        first = backend.download_files([f"{work.out}/report.md"])[0]
        if first.content is None:
            raise FileNotFoundError(f"{work.out}/report.md: {first.error}")
        report = first.content.decode("utf-8")
        names = artifacts.charts_of(report)
        strange = [name for name in names if "/" in name]
        if strange:
            raise ValueError(
                f"charts must be shown by their bare file names, not {', '.join(strange)}"
            )
        answers = backend.download_files(
            [f"{work.out}/{name}" for name in [*names, "figures.json"]]
        )
        missing = [f"{one.path}: {one.error}" for one in answers[:-1] if one.content is None]
        if missing:
            raise FileNotFoundError("; ".join(missing))
        charts = {
            name: one.content
            for name, one in zip(names, answers, strict=False)
            if one.content is not None
        }
        figures = answers[-1].content
        return Artifacts(report, charts, {"figures.json": figures} if figures is not None else {})

    return Stage(
        name="report and charts",
        failure="report_incomplete",
        work=get,
        check=artifacts.problem,
        inputs=lambda _: {"directory": work.out},
    )
