"""What tests of networks claim, in one place: that an attack works, and that it does not here."""

from __future__ import annotations

import uuid
from typing import Any

from network.internet import Internet
from network.places import Place, attempt


def policy(*rules: str, default: str = "deny") -> dict[str, Any]:
    """A policy of lines such as `allow example.com`."""
    split = [rule.split(" ", 1) for rule in rules]
    listed = [{"action": action, "target": target} for action, target in split]
    return {"defaultAction": default, "egress": listed}


def nonce() -> str:
    """A word that nobody said before."""
    return f"n{uuid.uuid4().hex[:20]}"


def works(place: Place, *words: str) -> dict[str, Any]:
    """The attempt is answered."""
    found = attempt(place, *words)
    assert found["outcome"] == "answered", f"{words}: {found}"
    return found


def fails(place: Place, *words: str) -> dict[str, Any]:
    """The attempt is refused, so that whoever made it knows; silence is no refusal."""
    found = attempt(place, *words)
    assert found["outcome"] == "refused", f"{words}: {found}"
    return found


def defended(internet: Internet, host: Place, cell: Place, to: str, *words: str) -> dict[str, Any]:
    """The attempt works on the host; in the sandbox it is refused, and nothing of it went to that
    address."""
    works(host, *words)
    return stopped(internet, cell, to, *words)


def stopped(internet: Internet, cell: Place, to: str, *words: str) -> dict[str, Any]:
    """The attempt is refused in the sandbox, and nothing of it went to that address."""
    mark = internet.mark()
    found = fails(cell, *words)
    sent = internet.packets(mark, to)
    assert not sent, f"{words}: {sent}"
    return found
