"""Which model drives the agent: the recorded transcript, or with LIVE=1 a provider's."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from replay import ReplayModel

TRANSCRIPT = Path(__file__).parent / "transcript"
RETRIES_MAX = 5
OUTPUT_TOKENS_MAX = 16_000


@dataclass(frozen=True)
class Provider:
    """A model provider: the variable with its key, the model, and the package that speaks to it."""

    key: str
    name: str
    model: str
    package: str
    module: str


PROVIDERS = [
    Provider(
        "ANTHROPIC_API_KEY",
        "anthropic",
        "claude-sonnet-4-6",
        "langchain-anthropic",
        "langchain_anthropic",
    ),
    Provider(
        "GOOGLE_API_KEY",
        "google_genai",
        "gemini-3.5-flash",
        "langchain-google-genai",
        "langchain_google_genai",
    ),
    Provider("OPENAI_API_KEY", "openai", "gpt-5.5", "langchain-openai", "langchain_openai"),
]


@dataclass(frozen=True)
class Choice:
    """The model with what run.json says about it."""

    model: BaseChatModel
    mode: str
    name: str


class NoModel(Exception):
    """LIVE was asked for, but no provider can be used."""


def live() -> Choice:
    """The first provider whose key is set; installs its package when it is missing."""
    provider = next((one for one in PROVIDERS if os.environ.get(one.key)), None)
    if provider is None:
        keys = ", ".join(one.key for one in PROVIDERS)
        raise NoModel(
            f"LIVE=1 needs one of {keys} in the environment; without LIVE the recorded "
            "transcript runs"
        )
    if importlib.util.find_spec(provider.module) is None:
        print(
            f"Installing {provider.package}, which is needed to reach {provider.name} …", flush=True
        )
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", provider.package], check=False
        )
        if done.returncode != 0:
            raise NoModel(
                f"pip could not install {provider.package} (exit code {done.returncode}); "
                "install it by hand"
            )
        importlib.invalidate_caches()
    name = os.environ.get("MODEL", provider.model)
    model = init_chat_model(
        name, model_provider=provider.name, max_tokens=OUTPUT_TOKENS_MAX, max_retries=RETRIES_MAX
    )  # fmt: skip
    return Choice(model, "live", f"{provider.name}:{name}")


def recorded(names: dict[str, str]) -> Choice:
    """The transcript that ships with the example, for these paths."""
    return Choice(
        ReplayModel(directory=TRANSCRIPT, names=names), "transcript", "recorded transcript"
    )
