"""An authority of the internet's own, and TLS that has a certificate for every name."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme

NOBODY = "nobody.example"


class Authority:
    """Makes certificates for names as they are asked for."""

    def __init__(self, public: Path) -> None:
        self.own = trustme.CA()
        self.own.cert_pem.write_to_path(public)
        self.made: dict[str, ssl.SSLContext] = {}

    def context(self, name: str) -> ssl.SSLContext:
        """What a server shows to whoever asks for this name."""
        if name not in self.made:
            made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            made.minimum_version = ssl.TLSVersion.TLSv1_2
            self.own.issue_cert(name).configure_cert(made)
            made.set_alpn_protocols(["h2", "http/1.1"])
            self.made[name] = made
        return self.made[name]

    def server(self) -> ssl.SSLContext:
        """A server of all names; which one was asked for is in `asked_for`."""
        made = self.context(NOBODY)
        made.sni_callback = self._choose
        return made

    def _choose(
        self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext
    ) -> None:
        setattr(connection, "asked_for", name)  # noqa: B010
        if name:
            connection.context = self.context(name.lower().rstrip("."))


def asked_for(connection: ssl.SSLObject | None) -> str | None:
    """The name by which a client asked for its server in the clear."""
    return getattr(connection, "asked_for", None)
