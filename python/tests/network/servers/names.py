"""A resolver that knows the names of the atlas and notes every question."""

from __future__ import annotations

import asyncio
import collections
import ssl
import struct
from functools import partial

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from network import atlas
from network.servers import datagrams
from network.servers.log import Log

CHAIN_MAX = 8


class Resolver:
    def __init__(self, log: Log) -> None:
        self.log = log
        self.asked: collections.Counter[tuple[str, str]] = collections.Counter()

    def answer(self, question: bytes, by: str, at: str) -> bytes:
        """The answer to a message, which came this way to this address."""
        query = dns.message.from_wire(question)
        made = dns.message.make_response(query, recursion_available=True)
        asked = query.question[0]
        kind = dns.rdatatype.to_text(asked.rdtype)
        written = asked.name.to_text(omit_final_dot=True)
        self.log("dns", name=written.lower(), written=written, type=kind, by=by, at=at)
        name, exists = written.lower(), False
        for _ in range(CHAIN_MAX):
            records = self.records(name, kind)
            exists = exists or bool(records)
            alias = [value for rtype, value in records if rtype == "CNAME"]
            shown = "CNAME" if alias else kind
            values = [value for rtype, value in records if rtype == shown]
            if values:
                owner = asked.name if name == written.lower() else f"{name}."
                found = dns.rrset.from_text(owner, atlas.TTL_S, "IN", shown, *values)
                made.answer.append(found)
            if not alias or kind == "CNAME":
                break
            name = alias[0].rstrip(".")
        if not exists:
            made.set_rcode(dns.rcode.NXDOMAIN)
        return made.to_wire(max_size=1232 if by == "udp" else 65535)

    def records(self, name: str, kind: str) -> atlas.Records:
        if name.endswith(atlas.REBINDING):
            self.asked[name, kind] += 1
            if self.asked[name, kind] == 1:
                return [("A", atlas.BLIND[0]), ("AAAA", atlas.BLIND[1])]
            return list(atlas.REBOUND_TO.items())
        if name.endswith(atlas.TUNNEL):
            return [("A", atlas.OTHER[0]), ("AAAA", atlas.OTHER[1]), ("TXT", '"the way back"')]
        return atlas.ZONE.get(name, [])


async def serve(log: Log, secure: ssl.SSLContext) -> Resolver:
    """Answers at the host's resolver and at the one for everybody; there by TLS as well."""
    resolver = Resolver(log)

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, by: str) -> None:
        at = writer.get_extra_info("sockname")[0]
        try:
            while True:
                length = struct.unpack("!H", await reader.readexactly(2))[0]
                answer = resolver.answer(await reader.readexactly(length), by, at)
                writer.write(struct.pack("!H", len(answer)) + answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    for address in (atlas.RESOLVER, *atlas.PUBLIC_DNS):
        datagrams.serve(address, atlas.DNS_PORT, partial(resolver.answer, by="udp", at=address))
        await asyncio.start_server(
            lambda reader, writer: stream(reader, writer, "tcp"), address, atlas.DNS_PORT
        )
    for address in atlas.PUBLIC_DNS:
        await asyncio.start_server(
            lambda reader, writer: stream(reader, writer, "dot"),
            address,
            atlas.DOT_PORT,
            ssl=secure,
        )
    return resolver
