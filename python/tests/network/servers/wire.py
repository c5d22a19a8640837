"""Sees every packet that comes in over a wire, whatever is done with it."""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading

from network.servers.log import Log

ETH_P_ALL = 3
PACKET_OUTGOING = 4
ROOM_BYTES = 16 << 20
SO_RCVBUFFORCE = 33
# Discovery of neighbours and routers, and of who listens to what.
ICMP6_OF_THE_WIRE = {130, 131, 132, 133, 134, 135, 136, 137, 143}
NAMES = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6", 132: "sctp"}
SYN_ACK, SYN = 0x12, 0x02
DISCARD_PORT = 9


def watch(log: Log, device: str) -> None:
    """Notes what comes in, from a thread of its own until the process ends."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES)
    wire.bind((device, ETH_P_ALL))
    threading.Thread(target=_watch, args=(log, wire), daemon=True).start()


def _watch(log: Log, wire: socket.socket) -> None:
    while True:
        packet, origin = wire.recvfrom(256)
        if origin[2] != PACKET_OUTGOING:
            _note(log, packet)


def _note(log: Log, packet: bytes) -> None:
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        protocol, rest = packet[9], packet[(packet[0] & 15) * 4 :]
        source, to = (str(ipaddress.IPv4Address(packet[at : at + 4])) for at in (12, 16))
    elif version == 6 and len(packet) >= 40:
        protocol, rest = packet[6], packet[40:]
        source, to = (str(ipaddress.IPv6Address(packet[at : at + 16])) for at in (8, 24))
    else:
        return
    # A hop-by-hop header stands before reports about groups, which are of the wire.
    if (protocol == 58 and rest and rest[0] in ICMP6_OF_THE_WIRE) or protocol in (0, 2):
        return
    if protocol == 6 and (len(rest) < 14 or rest[13] & SYN_ACK != SYN):
        return
    port = None
    if protocol in (6, 17, 132) and len(rest) >= 4:
        port = struct.unpack("!H", rest[2:4])[0]
    if (protocol, port) == (17, DISCARD_PORT):
        log("settled")
        return
    name = NAMES.get(protocol, str(protocol))
    log("packet", protocol=name, source=source, to=to, port=port)
