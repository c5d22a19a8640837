"""Which server to talk to: the nearest word wins, and without one the user's own is used."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from barchan import private
from barchan._address import Address, parse
from barchan.errors import BarchanError


def configured(server: str | None, api_key: str | None) -> Address | None:
    """The server named by arguments, by BARCHAN_SERVER or in the user's settings; or None."""
    key = api_key or os.environ.get("BARCHAN_API_KEY") or None
    address = server or os.environ.get("BARCHAN_SERVER") or None
    if address is None:
        settings = user_settings()
        address, key = settings.get("server"), key or settings.get("api_key")
    if address is None:
        return None
    try:
        return parse(address, key)
    except ValueError as error:
        raise BarchanError(str(error), code="BAD_ADDRESS") from None


def user_settings() -> dict[str, str]:
    """What `client.toml` in the user's configuration folder says, which the program reads too."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    path = Path(base).expanduser() / "barchan" / "client.toml"
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BarchanError(f"cannot read the settings in {path}: {error}") from None
    return {name: value for name, value in found.items() if isinstance(value, str)}


def find(server: str | None = None, api_key: str | None = None) -> Address:
    """The configured server, or the user's private one, which is started if need be."""
    address = configured(server, api_key)
    return address if address is not None else private.ensure()
