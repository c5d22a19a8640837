"""A network namespace of its own, whose sockets are handed out to whoever asks for them."""

import fcntl
import os
import socket
import struct
import subprocess
import sys

SIOCSIFFLAGS = 0x8914
IFF_UP = 1
IPV6_TRANSPARENT = 75


def bound(kind: socket.SocketKind, address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, kind)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # As the launcher has it: answers go out from whichever address was asked.
        made.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    if kind == socket.SOCK_STREAM:
        made.listen(8192)
    return made


def connected(kind: socket.SocketKind, address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, kind)
    made.settimeout(30)
    made.connect((address, port))
    made.settimeout(None)
    return made


def sockets(words: list[str]) -> list[socket.socket]:
    """The sockets that a request asks for."""
    match words:
        case ["listen", address, port]:
            return [bound(socket.SOCK_STREAM, address, int(port))]
        case ["bind", address, port]:
            return [bound(socket.SOCK_DGRAM, address, int(port))]
        case ["connect", address, port]:
            return [connected(socket.SOCK_STREAM, address, int(port))]
        case ["udp", address, port]:
            return [connected(socket.SOCK_DGRAM, address, int(port))]
    return []


def serve(control: socket.socket) -> None:
    """Answers requests until whoever asks is gone."""
    program = None
    while True:
        request, given, _, _ = socket.recv_fds(control, 512, 2)
        words = request.decode().split()
        if not words:
            return
        made: list[socket.socket] = []
        answer = "0"
        try:
            match words:
                case ["run", path]:
                    handover, listen = map(str, given)
                    arguments = [path, "--handover", handover, "--listen", listen]
                    program = subprocess.Popen(arguments, pass_fds=given, stdin=subprocess.DEVNULL)
                    answer = str(program.pid)
                case ["wait"] if program is not None:
                    answer = str(program.wait(30))
                case _:
                    made = sockets(words)
        except OSError as error:
            answer = str(-(error.errno or 1))
        for number in given:
            os.close(number)
        socket.send_fds(control, [answer.encode()], [one.fileno() for one in made])
        for one in made:
            one.close()


def main() -> None:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))
    for words in sys.argv[1:]:
        subprocess.run(["ip", *words.split()], check=True)
    serve(socket.socket(fileno=0))


main()
