"""What one broker tells clients of a topic, asked itself and nobody else."""

from __future__ import annotations

import io
import socket
import struct
from typing import TYPE_CHECKING

from compat_tests.wire import framed, header, string

if TYPE_CHECKING:
    from compat_tests.servers import Server

METADATA = 3


def leaders_told_by(server: Server, topic: str) -> dict[int, int]:
    """The leader of each partition by Metadata 0; empty if the broker knows no such topic or is away."""
    question = framed(header(METADATA, 0) + struct.pack(">i", 1) + string(topic))
    try:
        with socket.create_connection((server.host, server.port), 5) as link, link.makefile("rb") as answers:
            link.sendall(question)
            size = struct.unpack(">i", answers.read(4))[0]
            answer = io.BytesIO(answers.read(size)[4:])
    except (OSError, struct.error):
        return {}

    def number(kind: str) -> int:
        return struct.unpack(f">{kind}", answer.read(struct.calcsize(kind)))[0]

    for _ in range(number("i")):  # brokers: id, host, port
        number("i"), answer.read(number("h")), number("i")
    found: dict[int, int] = {}
    for _ in range(number("i")):  # topics: error, name, partitions
        number("h"), answer.read(number("h"))
        for _ in range(number("i")):  # partitions: error, number, leader, replicas, ISR
            number("h")
            partition = number("i")
            found[partition] = number("i")
            answer.read(4 * number("i")), answer.read(4 * number("i"))
    return found
