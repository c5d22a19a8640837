"""Stages with a contract: inputs, a success check, a failure class. One that fails ends the run."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

Given = TypeVar("Given")
Result = TypeVar("Result")


class StageFailed(Exception):
    """A stage that did not meet its contract; `error_class` is what an operator decides by."""

    def __init__(self, stage: str, error_class: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage
        self.error_class = error_class


@dataclass(frozen=True)
class Stage(Generic[Given, Result]):
    """One step of the run.

    `work` turns the given input into a result; `check` says what is wrong with it, or None.
    Whatever `work` raises and whatever `check` finds is reported under `failure`.
    """

    name: str
    failure: str
    work: Callable[[Given], Result]
    check: Callable[[Result], str | None]
    inputs: Callable[[Given], dict[str, Any]]


@dataclass
class Record:
    """What run.json will say; kept up to date so that a failed run leaves an account as well."""

    facts: dict[str, Any] = field(default_factory=dict)
    stages: list[dict[str, Any]] = field(default_factory=list)

    def perform(self, stage: Stage[Given, Result], given: Given) -> Result:
        """Runs a stage and writes down how it went; only a result that passes comes back."""
        entry: dict[str, Any] = {"stage": stage.name, "inputs": stage.inputs(given)}
        self.stages.append(entry)
        begun = time.monotonic()
        cause: Exception | None = None
        try:
            result = stage.work(given)
            problem = stage.check(result)
        except StageFailed as failed:
            problem, cause = str(failed), failed
        except Exception as raised:  # noqa: BLE001 - becomes the account of the failure
            problem, cause = f"{type(raised).__name__}: {raised}", raised
        finally:
            entry["seconds"] = round(time.monotonic() - begun, 3)
        if problem is None:
            entry["outcome"] = "done"
            return result
        entry |= {"outcome": "failed", "error_class": stage.failure, "error": problem}
        raise StageFailed(stage.name, stage.failure, problem) from cause

    def write(self, path: Path) -> None:
        """Writes the record as JSON."""
        document = {**self.facts, "stages": self.stages}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
