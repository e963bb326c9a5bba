"""One broker under comparison: requests go out with its own ids, answers come back as plain trees."""

from __future__ import annotations

import asyncio
import dataclasses
import struct
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from compat_tests.differential.batches import described
from compat_tests.differential.symbols import KIND_OF_FIELD, OF_ZOOKEEPER, ZERO_UUID, Symbols
from pykafka_broker.protocol.api import APIS, ApiKey, RequestHeader, frame_request, read_response_header
from pykafka_broker.protocol.codec import decode
from pykafka_broker.protocol.errors import MalformedError

CLOSED = "the connection was closed"
SILENCE = "no answer"
NO_ANSWER_DUE = "no answer is due"
PATIENCE = 20
_UNKNOWN_ID = {None, "", 0, -1, ZERO_UUID}
_ABOUT = (
    "name",
    "topic",
    "group_id",
    "resource_name",
    "key",
    "partition_index",
    "partition",
    "index",
    "api_key",
)
_ALL_DIFFER = {
    "throttle_time_ms": 0,
    "port": "PORT",
    "cluster_id": "CLUSTER",
    "finalized_features_epoch": 0,
    "log_dir": "DIR",
    "total_bytes": 0,
    "usable_bytes": 0,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a story. Ids the brokers hand out are placeholders."""

    key: ApiKey
    version: int
    request: Any

    @property
    def unanswered(self) -> bool:
        return self.key is ApiKey.PRODUCE and self.request.acks == 0


class Side:
    """One broker, its connection, and the names of what it handed out in the story under way."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._link: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.symbols = Symbols()
        self._prefix = ""
        self._internal = False

    def begin(self, prefix: str) -> None:
        """A new story, whose topics and groups all begin with the prefix."""
        self.symbols = Symbols()
        self._prefix = prefix

    async def ask(self, step: Step) -> Any:
        """The answer as a tree of dicts, lists and values that can be compared with the other side's."""
        answer = await self.exchange(step.key, step.version, self.symbols.fill(step.request))
        self._internal = False
        return answer if isinstance(answer, str) else self._tree(answer, step)

    async def exchange(self, key: ApiKey, version: int, request: Any) -> Any:
        """The response as it is, or a word on why there is none."""
        if self._link is None:
            host, _, port = self._bootstrap.rpartition(":")
            self._link = await asyncio.open_connection(host, int(port))
        reader, writer = self._link
        try:
            writer.writelines(map(bytes, frame_request(RequestHeader(key, version, 7, "differ"), request)))
            await writer.drain()
            if key is ApiKey.PRODUCE and request.acks == 0:
                # A broker that could not append says so by hanging up, which the next answer shows.
                writer.write(struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 7, 0))
                await asyncio.wait_for(self._frame(reader), PATIENCE)
                return NO_ANSWER_DUE
            frame = await asyncio.wait_for(self._frame(reader), PATIENCE)
        except TimeoutError:
            await self.close()
            return SILENCE
        except (OSError, asyncio.IncompleteReadError):
            await self.close()
            return CLOSED
        return _read(key, version, frame)

    @staticmethod
    async def _frame(reader: asyncio.StreamReader) -> memoryview:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        return memoryview(await reader.readexactly(size))

    async def close(self) -> None:
        if self._link is not None:
            self._link[1].close()
            self._link = None

    def _tree(self, value: Any, step: Step, name: str = "") -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            if name == "topics":
                self._internal = str(getattr(value, "name", "")).startswith("__")
            if self._internal and hasattr(value, "topic_id"):  # or stories would write to it, or delete it
                value = dataclasses.replace(value, topic_id=ZERO_UUID)
            return {
                f.name: self._tree(getattr(value, f.name), step, f.name) for f in dataclasses.fields(value)
            }
        if name == "partition_size" and self._internal:
            return 0  # coordinators write the same at other moments
        if isinstance(value, list):
            # Named in an order that both sides share, so that ids are numbered alike.
            mine = [each for each in value if not self._foreign(each)]
            return _merged([self._tree(each, step, name) for each in sorted(mine, key=self._place)])
        if name in _ALL_DIFFER:
            return _ALL_DIFFER[name]
        if name == "records":
            return described(value, self.symbols)
        if name == "log_append_time_ms":
            return "TIME" if value > 0 else value
        if name in KIND_OF_FIELD and value not in _UNKNOWN_ID and not _ours_to_choose(value):
            return self.symbols.name(KIND_OF_FIELD[name], value)
        if isinstance(value, str):
            return self.symbols.rename(value.replace(self._prefix, "~"))
        if isinstance(value, memoryview | bytearray):
            return bytes(value)
        return str(value) if isinstance(value, UUID) else value

    def _place(self, item: Any) -> tuple[Any, ...]:
        """What an element of a list is about, to order it by."""
        if not dataclasses.is_dataclass(item):
            return (repr(item),)
        handed_out = [
            self.symbols.place(kind, getattr(item, name, None)) for name, kind in KIND_OF_FIELD.items()
        ]
        return (*(repr(getattr(item, each, "")) for each in _ABOUT), *handed_out, repr(item))

    def _foreign(self, item: Any) -> bool:
        """What other stories left behind, or the group that Kafka 3.9 keeps elsewhere, is not even named."""
        told = (getattr(item, each, None) for each in ("name", "topic", "group_id"))
        return any(
            isinstance(each, str)
            and (each == self._prefix + OF_ZOOKEEPER or _is_of_another(each, self._prefix))
            for each in told
        )


def _is_of_another(name: str, prefix: str) -> bool:
    return name.startswith("story") and not name.startswith(prefix)


def _merged(items: list[Any]) -> list[Any]:
    """Partitions of one topic under one topic: Kafka may name it several times in one answer."""
    if not items or not isinstance(items[0], dict) or "partitions" not in items[0]:
        return items
    by_topic: dict[str, Any] = {}
    for item in items:
        rest = repr({name: value for name, value in item.items() if name != "partitions"})
        known = by_topic.setdefault(rest, {**item, "partitions": []})
        known["partitions"] = sorted([*known["partitions"], *(item["partitions"] or ())], key=repr)
    return list(by_topic.values())


def _ours_to_choose(value: Any) -> bool:
    """Short member ids are those the generator made up itself."""
    return isinstance(value, str) and len(value) < 20


def _read(key: ApiKey, version: int, frame: memoryview) -> Any:
    response = APIS[key].response
    if key is ApiKey.API_VERSIONS and version > 0:
        told = struct.unpack_from(">h", frame, 4)[0]
        if told == 35:
            return decode(response, 0, frame, 4)
    if version not in APIS[key].versions:
        return f"an answer to version {version}, which nobody knows"
    try:
        _, start = read_response_header(key, version, frame)
        return decode(response, version, frame, start)
    except MalformedError as error:
        return f"cannot be read: {error}"
