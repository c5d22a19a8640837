"""A chat model that makes the tool calls that a test tells it to make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

ToolCall = tuple[str, dict[str, Any]]


class ScriptedModel(BaseChatModel):
    """Makes the calls of one turn after the other; `before` is told each turn as it begins."""

    turns: list[list[ToolCall]]
    before: Callable[[int], None] = lambda _: None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedModel:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        turn = sum(isinstance(message, AIMessage) for message in messages)
        self.before(turn)
        calls = self.turns[turn] if turn < len(self.turns) else []
        message = AIMessage(
            "" if calls else "done",
            tool_calls=[
                {"name": name, "args": args, "id": f"t{turn}c{at}", "type": "tool_call"}
                for at, (name, args) in enumerate(calls)
            ],
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def answers(messages: Sequence[BaseMessage]) -> dict[str, ToolMessage]:
    """What the tools answered, by the id of the call."""
    return {one.tool_call_id: one for one in messages if isinstance(one, ToolMessage)}
