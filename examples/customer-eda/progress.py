"""What a person sees meanwhile: a line per stage, per tool call and per outcome."""

import sys
import time
from typing import TextIO

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

WIDTH = 96


class Progress:
    """Prints lines with the time since the start; colours only on a terminal."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = sys.stdout if out is None else out
        self.begun = time.monotonic()
        self.colours = self.out.isatty()

    def paint(self, code: str, text: str) -> str:
        """Text in a colour, where colours are shown."""
        return f"\033[{code}m{text}\033[0m" if self.colours else text

    def line(self, text: str) -> None:
        """One line with the time in front."""
        stamp = self.paint("2", f"{time.monotonic() - self.begun:6.1f} s")
        print(f"{stamp}  {text}", file=self.out, flush=True)

    def stage(self, name: str) -> None:
        """A stage begins."""
        self.line(self.paint("1;34", f"── {name}"))

    def failed(self, text: str) -> None:
        """Something went wrong."""
        self.line(self.paint("1;31", text))

    def message(self, message: BaseMessage) -> None:
        """A message of the agent's conversation."""
        if isinstance(message, AIMessage):
            if text := message.text.strip():
                self.line(clip(text))
            for call in message.tool_calls:
                self.line(
                    f"  {self.paint('36', '→')} {call['name']}  {clip(summary(call['args']))}"
                )
        elif isinstance(message, ToolMessage):
            code = message.artifact.get("exit_code") if isinstance(message.artifact, dict) else None
            good = message.status != "error" and code in (None, 0)
            mark = self.paint("32", "✓") if good else self.paint("31", "✗")
            lines = [line for line in message.text.splitlines() if line.strip()]
            self.line(f"  {mark} {message.name}  {clip(lines[0] if lines else '(no output)')}")


def summary(args: dict[str, object]) -> str:
    """The argument that tells most about a tool call."""
    for name in ("command", "file_path", "path", "pattern", "description"):
        if name in args:
            return str(args[name])
    return ", ".join(args)


def clip(text: str) -> str:
    """The first line, cut to the width of a screen; an ellipsis stands for what is left out."""
    whole = text.strip()
    first = whole.splitlines()[0] if whole else ""
    return first if first == whole and len(first) <= WIDTH else first[: WIDTH - 1] + "…"
