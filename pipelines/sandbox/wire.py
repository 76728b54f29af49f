"""The messages between the sandbox, its zygote and a child before it is confined: one JSON object a line."""

from __future__ import annotations

import array
import json
import socket
from typing import Any

Message = dict[str, Any]

_REQUEST = b"r"
_GOODBYE = b"q"


def send(connection: socket.socket, message: Message) -> None:
    """Send one message."""
    connection.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")


class Lines:
    """Messages as they arrive on a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.rest = b""

    def receive(self) -> list[Message]:
        """Read what is there; blocks when nothing is.

        Raises:
            EOFError: the other side has closed.
        """
        chunk = self.connection.recv(1 << 16)
        if not chunk:
            raise EOFError
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        return [json.loads(line) for line in lines]

    def first(self) -> Message:
        """Block until one message is there; nothing may follow it.

        Raises:
            EOFError: the other side has closed.
        """
        while not (messages := self.receive()):
            pass
        return messages[0]


def send_descriptors(control: socket.socket, *descriptors: int) -> None:
    """Hand copies of open descriptors to the other side of ``control``."""
    rights = array.array("i", descriptors)
    control.sendmsg([_REQUEST], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


def send_goodbye(control: socket.socket) -> None:
    """Announce that ``control`` closes because its owner wants to, not because it has died."""
    control.send(_GOODBYE)


def receive_descriptors(control: socket.socket, count: int) -> list[int] | None:
    """Take ``count`` descriptors handed over; None at a goodbye.

    Raises:
        EOFError: the other side has died.
        OSError: they did not all fit into this process's table.
    """
    received = array.array("i")
    data, ancillary, _, _ = control.recvmsg(1, socket.CMSG_LEN(count * received.itemsize))
    if not data:
        raise EOFError
    if data == _GOODBYE:
        return None
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received.frombytes(content)
    if len(received) != count:
        raise OSError("too many open files")
    return list(received)
