"""Where a server is: `http://host:port`, `host:port` or `unix:/path/to/socket`."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

PORT = 8080


@dataclass(frozen=True)
class Address:
    """A server's address and the key to it. The key does not show in a repr."""

    host: str = ""
    port: int = 0
    socket_path: str = ""
    api_key: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """The address as it can be written again, without the key."""
        if self.socket_path:
            return f"unix:{self.socket_path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def authority(self) -> str:
        """What the Host header says."""
        return "localhost" if self.socket_path else str(self).removeprefix("http://")


def parse(text: str, api_key: str | None = None) -> Address:
    """Reads an address; ValueError says what is wrong with it."""
    given = text.strip()
    if given.startswith("unix:"):
        path = given.removeprefix("unix:").removeprefix("//")
        if not path.startswith("/"):
            raise ValueError(f"the path of a socket must be absolute: {text!r}")
        return Address(socket_path=path, api_key=api_key)
    parts = urlsplit(given if "://" in given else f"http://{given}")
    if parts.scheme == "https":
        raise ValueError("https is not supported: reach a remote server through a tunnel")
    if parts.scheme != "http":
        raise ValueError(f"a server's address starts with http:// or unix:, not {text!r}")
    if parts.path.strip("/") or parts.query or parts.username:
        raise ValueError(f"a server's address is a host and a port, nothing more: {text!r}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None
    if not host:
        raise ValueError(f"no host in the address {text!r}")
    return Address(host=host, port=PORT if port is None else port, api_key=api_key)
