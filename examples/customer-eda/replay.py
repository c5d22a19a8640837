"""A chat model that replays a transcript: its words are fixed, its tool calls are made for real.

It reacts to what the tools answer. When a command fails or a tool reports an error, it does not go
on as if nothing had happened: it says what failed and ends the conversation.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

STOPPED = "stopped"


def trouble(message: ToolMessage) -> str | None:
    """What went wrong in a tool call, or None: an error, or an exit code other than 0."""
    text = message.text
    if message.status == "error":
        return text
    artifact = message.artifact if isinstance(message.artifact, dict) else {}
    code = artifact.get("exit_code")
    if code is None and (
        found := re.search(r"\[Command (?:failed|succeeded) with exit code (-?\d+)\]\s*$", text)
    ):
        code = int(found.group(1))
    if message.name == "execute":
        return None if code == 0 else f"exit code {'unknown' if code is None else code}\n{text}"
    return text if text.startswith("Error") else None


def output_of(messages: Sequence[BaseMessage], call_id: str) -> str:
    """What a tool answered to a call of the transcript, without the status line."""
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id == call_id:
            return re.sub(
                r"\n*\[Command (succeeded|failed) with exit code -?\d+\]\s*$", "", message.text
            ).strip()
    return ""


class ReplayModel(BaseChatModel):
    """Answers turn by turn from a transcript directory.

    `turns.json` holds the turns; a value `{"file": "name"}` in a tool call's arguments stands for
    the content of that file beside it. In texts `{name}` stands for one of `names`, and
    `{result:call}` for what a call answered. Which turn is due follows from the conversation alone,
    so that one which was interrupted can be taken up again.
    """

    directory: Path
    names: dict[str, str]

    @property
    def _llm_type(self) -> str:
        return "replay"

    @property
    def transcript(self) -> dict[str, Any]:
        """The transcript as stored."""
        loaded: dict[str, Any] = json.loads(
            (self.directory / "turns.json").read_text(encoding="utf-8")
        )
        return loaded

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model itself: which tools it calls is recorded, whatever it is offered."""
        return self

    def fill(self, value: Any, messages: Sequence[BaseMessage]) -> Any:
        """A recorded value with names, results and file contents put in."""
        if isinstance(value, dict) and set(value) == {"file"}:
            return (self.directory / value["file"]).read_text(encoding="utf-8")
        if isinstance(value, dict):
            return {key: self.fill(part, messages) for key, part in value.items()}
        if not isinstance(value, str):
            return value

        def insert(found: re.Match[str]) -> str:
            kind, _, call = found.group(1).partition(":")
            return (
                output_of(messages, call)
                if kind == "result"
                else self.names.get(kind, found.group(0))
            )

        return re.sub(r"\{([a-z]+(?::[a-z0-9-]+)?)\}", insert, value)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        turns = self.transcript["turns"]
        spoken = [at for at, message in enumerate(messages) if isinstance(message, AIMessage)]
        latest = messages[spoken[-1] + 1 :] if spoken else []
        for message in latest:
            if isinstance(message, ToolMessage) and (problem := trouble(message)):
                text = f"I stop here: the step {message.tool_call_id!r} failed.\n\n{problem}"
                return self.answer(
                    AIMessage(text, response_metadata={STOPPED: message.tool_call_id})
                )
        if len(spoken) >= len(turns):
            text = "I stop here: the transcript has no further turn for this conversation."
            return self.answer(AIMessage(text, response_metadata={STOPPED: "transcript"}))
        turn = turns[len(spoken)]
        calls = [
            {
                "name": call["name"],
                "args": self.fill(call["args"], messages),
                "id": call["id"],
                "type": "tool_call",
            }
            for call in turn.get("calls", [])
        ]
        usage = {
            **turn["usage"],
            "total_tokens": turn["usage"]["input_tokens"] + turn["usage"]["output_tokens"],
        }
        return self.answer(
            AIMessage(self.fill(turn["say"], messages), tool_calls=calls, usage_metadata=usage)
        )

    @staticmethod
    def answer(message: AIMessage) -> ChatResult:
        """A message in the shape that the framework expects."""
        message.response_metadata["model_name"] = "replay"
        return ChatResult(generations=[ChatGeneration(message=message)])
