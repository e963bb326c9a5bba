"""Operations of the port as ZooKeeper's requests, and its answers and refusals as the port's."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, assert_never

from kazoo import exceptions
from kazoo.protocol import serialization as wire
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from pykafka_broker.cluster.store import (
    BadVersion,
    Check,
    ConnectionLost,
    Create,
    Delete,
    NoChildrenForEphemerals,
    Node,
    NodeExists,
    NoNode,
    NotAuthorized,
    NotEmpty,
    SessionExpired,
    SetData,
    StoreError,
    TooLarge,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pykafka_broker.cluster.store import Op, Result

Request: TypeAlias = Any
"""One of kazoo's request tuples, or our own MultiRead: it knows its type and how to be (de)serialized."""
Unanswered = (exceptions.ConnectionLoss, exceptions.SessionExpiredError)
"""What a request ends with when the connection or the session ended before its answer came."""

MAX_REQUEST_BYTES = 0xFFFFF
"""ZooKeeper's jute.maxbuffer, unless raised: a larger request costs the connection."""
MAX_PATHS_PER_READ = 1000

_EPHEMERAL, _SEQUENCE = 1, 2
_OP_OVERHEAD = 128
_INT = struct.Struct("!i")

# Kafka shows everything to everybody but these, which may hold secrets.
_SENSITIVE = ("/config/users", "/config/brokers", "/delegation_token")

_REFUSALS: dict[type[exceptions.KazooException], tuple[type[StoreError], str]] = {
    exceptions.NoNodeError: (NoNode, "node does not exist"),
    exceptions.NodeExistsError: (NodeExists, "node already exists"),
    exceptions.BadVersionError: (BadVersion, "not the version expected"),
    exceptions.NotEmptyError: (NotEmpty, "node has children"),
    exceptions.NoChildrenForEphemeralsError: (NoChildrenForEphemerals, "parent is ephemeral"),
    exceptions.NoAuthError: (NotAuthorized, "not authorized"),
    exceptions.ConnectionLoss: (ConnectionLost, "the connection to ZooKeeper broke"),
    exceptions.SessionExpiredError: (SessionExpired, "the ZooKeeper session expired"),
}


def refusal(error: Exception, path: str, op_index: int | None = None) -> StoreError:
    """The port's error for kazoo's."""
    kind, detail = _REFUSALS.get(type(error), (StoreError, f"ZooKeeper refused: {error!r}"))
    return kind(path, detail, op_index)


class Chroot:
    """The part of ZooKeeper's tree that is ours: paths with and without the prefix, and who may do what."""

    def __init__(self, prefix: str, set_acl: bool) -> None:
        self.prefix = prefix
        self._set_acl = set_acl

    def full(self, path: str) -> str:
        return (self.prefix or path) if path == "/" else self.prefix + path

    def within(self, full: str) -> str:
        return full[len(self.prefix) :] or "/"

    def acl(self, path: str) -> list[Any]:
        """As Kafka does with zookeeper.set.acl: all to its own login, reading to everybody but of secrets."""
        if not self._set_acl:
            return list(OPEN_ACL_UNSAFE)
        secret = path.startswith(_SENSITIVE)
        return list(CREATOR_ALL_ACL) if secret else [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]

    def missing(self) -> list[Op]:
        """How to create the prefix itself, one node after the other, where a path is relative to the top."""
        names = self.prefix.split("/")[1:]
        return [Create("/" + "/".join(names[: depth + 1])) for depth in range(len(names))]


def change_request(ops: Sequence[Op], chroot: Chroot) -> Request:
    """All operations in one request; TooLarge if ZooKeeper would drop the connection over it."""
    for index, op in enumerate(ops):
        if op.path == "/" and isinstance(op, Create | Delete):
            refused = NodeExists if isinstance(op, Create) else NotEmpty
            raise refused("/", "the root is always there", index)
    request = wire.Transaction([_sub_request(op, chroot) for op in ops])
    most = sum(_OP_OVERHEAD + 4 * len(op.path) + len(getattr(op, "data", b"")) for op in ops)
    if most > MAX_REQUEST_BYTES and (size := len(request.serialize())) > MAX_REQUEST_BYTES:
        raise TooLarge(ops[0].path, f"{len(ops)} operations of {size} bytes are too many for one request")
    return request


def _sub_request(op: Op, chroot: Chroot) -> Request:
    path = chroot.full(op.path)
    match op:
        case Create():
            flags = _EPHEMERAL * op.ephemeral | _SEQUENCE * op.sequence
            # Kafka's nodes without data have none at all, rather than none of length.
            return wire.Create(path, op.data or None, chroot.acl(op.path), flags)
        case SetData():
            return wire.SetData(path, op.data or None, op.version)
        case Delete():
            return wire.Delete(path, op.version)
        case Check():
            return wire.CheckVersion(path, op.version)
        case _:
            assert_never(op)


def change_results(ops: Sequence[Op], answers: Sequence[Any], chroot: Chroot) -> list[Result]:
    """What each operation answers; raises the refusal of the one that ended them all."""
    results: list[Result] = []
    for index, (op, answer) in enumerate(zip(ops, answers, strict=True)):
        match answer:
            case exceptions.RolledBackError() | exceptions.RuntimeInconsistency():
                continue  # fine by itself, undone or never tried for another's sake
            case exceptions.KazooException():
                raise refusal(answer, op.path, index)
            case str():
                results.append(chroot.within(answer))
            case wire.ZnodeStat():
                results.append(int(answer.version))
            case _:
                results.append(None)
    return results


def node_of(data: bytes | None, stat: Any) -> Node:
    return Node(
        data or b"", stat.version, stat.cversion, stat.czxid, stat.mzxid, stat.ctime, stat.mtime,
        stat.ephemeralOwner,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MultiRead:
    """Data of many nodes in one request (ZooKeeper 3.6), which kazoo does not know of itself."""

    paths: tuple[str, ...]
    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        parts = bytearray()
        for path in self.paths:
            parts += wire.MultiHeader(wire.GetData.type, False, -1).serialize()
            parts += wire.GetData(path, None).serialize()
        return bytes(parts + wire.MultiHeader(-1, True, -1).serialize())

    @classmethod
    def deserialize(cls, answer: bytes, offset: int) -> list[tuple[bytes | None, Any] | Exception]:
        """Data and stat of each, or why there is none."""
        return list(_read_answers(answer, offset))


def _read_answers(answer: bytes, offset: int) -> Iterator[tuple[bytes | None, Any] | Exception]:
    while True:
        header, offset = wire.MultiHeader.deserialize(answer, offset)
        if header.done:
            return
        if header.type == wire.GetData.type:
            data, offset = wire.read_buffer(answer, offset)
            yield data, wire.ZnodeStat._make(wire.stat_struct.unpack_from(answer, offset))
            offset += wire.stat_struct.size
        else:
            yield exceptions.EXCEPTIONS[_INT.unpack_from(answer, offset)[0]]()
            offset += _INT.size
