"""What must not be shared with a forked child: connections, and locks that another thread holds."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Forgets(Protocol):
    """Something that can let go of what it inherited."""

    def forget(self) -> None:
        """Drops connections and locks, without a word to the other side."""


_known: weakref.WeakSet[Forgets] = weakref.WeakSet()


def remember(one: Forgets) -> None:
    """From now on `one.forget()` is called in every child after a fork."""
    _known.add(one)


def _in_child() -> None:
    for one in list(_known):
        one.forget()


os.register_at_fork(after_in_child=_in_child)


class Shared(Generic[Key, Value]):
    """One value for each key, made when it is first asked for, for all threads."""

    def __init__(self, make: Callable[[Key], Value]) -> None:
        self._make = make
        self._values: dict[Key, Value] = {}
        self._lock = threading.Lock()
        remember(self)

    def forget(self) -> None:
        """In a forked child: another thread may have held the lock."""
        self._lock = threading.Lock()

    def __call__(self, key: Key) -> Value:
        """The value of a key."""
        with self._lock:
            if key not in self._values:
                self._values[key] = self._make(key)
            return self._values[key]
