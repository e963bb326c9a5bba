"""The scenarios. Each names the feature it proves and is played by every library that has it."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest

from compat_tests.conftest import create_topic
from compat_tests.features.libraries import LIBRARIES
from compat_tests.features.peer import Peer, Record, Refused
from compat_tests.samples import BEGIN_MS, BIG
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compat_tests.conftest import MakeTopic
    from compat_tests.features.libraries import Library
    from compat_tests.servers import Server

MANY = 1000
PLAIN = tuple(
    Record(b"value-%d" % n, b"key-%d" % n, timestamp=BEGIN_MS + n * 1000, offset=n) for n in range(10)
)


def proves(*features: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The test shows these features; it is run with each library that has all of them."""
    able = [library.param() for library in LIBRARIES if all(map(library.can, features))]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        with_libraries = pytest.mark.parametrize("library", able, indirect=True, scope="session")
        return pytest.mark.feature(*features)(with_libraries(test))

    return decorate


def refused(peer: Peer, saying: str, word: str, **what: object) -> None:
    """The library must say no, in words like these."""
    with pytest.raises(Refused) as caught:
        peer.do(word, **what)
    assert re.search(saying, str(caught.value), re.IGNORECASE), caught.value


@proves("connect and negotiate")
def test_a_client_finds_the_broker_and_every_partition(peer: Peer, topic: MakeTopic) -> None:
    name = topic(partitions=3)
    assert peer.produce(name, Record(b"here", partition=2)) == [0]
    assert [record.value for record in peer.consume(name, 1, partitions=(2,))] == [b"here"]


@proves("admin: cluster")
def test_the_cluster_describes_itself(peer: Peer, broker: Server) -> None:
    assert peer.do("cluster")["brokers"] == [broker.bootstrap]


@proves("admin: topics")
def test_topics_are_created_listed_and_deleted(peer: Peer, fresh_name: str) -> None:
    peer.do("create", topic=fresh_name, count=3, configs={})
    wait_until(lambda: peer.do("topics")["topics"].get(fresh_name) == 3, "the topic is listed")
    peer.do("delete", topic=fresh_name)
    wait_until(lambda: fresh_name not in peer.do("topics")["topics"], "the topic is gone")


@proves("admin: partitions")
def test_partitions_are_added(peer: Peer, topic: MakeTopic) -> None:
    name = topic(partitions=2)
    peer.do("grow", topic=name, count=5)
    wait_until(lambda: peer.do("topics")["topics"].get(name) == 5, "there are five")


@proves("admin: configs")
def test_configs_are_described_and_altered(peer: Peer, topic: MakeTopic) -> None:
    name = topic(retention_ms=100_000)
    assert peer.do("configs", topic=name)["configs"]["retention.ms"] == "100000"
    peer.do("alter", topic=name, configs={"retention.ms": "200000"})
    wait_until(lambda: peer.do("configs", topic=name)["configs"]["retention.ms"] == "200000", "it changed")


@proves("admin: delete records")
def test_deleted_records_are_gone_and_the_rest_stays(peer: Peer, topic: MakeTopic) -> None:
    name = topic()
    peer.produce(name, *PLAIN)
    peer.do("trim", topic=name, partition=0, offset=4)
    assert peer.consume(name, 6) == list(PLAIN[4:])


@proves("admin: groups")
def test_groups_are_listed_and_deleted(peer: Peer, topic: MakeTopic, fresh_name: str) -> None:
    peer.do("commit", group=fresh_name, topic=topic(), partition=0, offset=0, note="")
    wait_until(lambda: fresh_name in peer.do("groups")["groups"], "the group is listed")
    peer.do("forget", group=fresh_name)
    wait_until(lambda: fresh_name not in peer.do("groups")["groups"], "the group is gone")


@pytest.mark.feature("produce: acks")
@pytest.mark.parametrize(
    ("library", "acks"),
    [library.param(acks) for library in LIBRARIES for acks in library.acks],
    indirect=["library"],
    scope="session",
)
def test_every_level_of_acknowledgement_stores_all(peer: Peer, topic: MakeTopic, acks: str) -> None:
    name = topic()
    peer.produce(name, *PLAIN, acks=acks)
    assert peer.consume(name, len(PLAIN)) == peer.returned(PLAIN)


@proves("produce: idempotence")
def test_an_idempotent_producer_stores_all_once(peer: Peer, topic: MakeTopic) -> None:
    name = topic()
    for record in PLAIN:
        assert peer.produce(name, record, idempotent=True) == [record.offset]
    assert peer.consume(name, len(PLAIN)) == list(PLAIN)


@pytest.mark.feature("produce: codecs")
@pytest.mark.parametrize(
    ("library", "codec"),
    [library.param(codec) for library in LIBRARIES for codec in library.codecs],
    indirect=["library"],
    scope="session",
)
def test_records_come_back_in_every_codec(peer: Peer, topic: MakeTopic, codec: str) -> None:
    name = topic()
    sent = [record._replace(value=b"compress me " * 500, offset=n) for n, record in enumerate(PLAIN)]
    assert peer.produce(name, *sent, codec=codec) == [record.offset for record in sent]
    assert peer.consume(name, len(sent)) == peer.returned(sent)


@proves("produce: headers")
def test_headers_come_back(peer: Peer, topic: MakeTopic) -> None:
    name = topic()
    headers = (("trace", b"1"), ("žluťoučký", "kůň".encode()), ("empty", b""))
    peer.produce(name, Record(b"value", b"key", headers, BEGIN_MS))
    assert peer.consume(name, 1) == [Record(b"value", b"key", headers, BEGIN_MS, offset=0)]


@proves("produce: timestamps")
def test_the_clients_time_is_kept_unless_the_topic_wants_the_brokers(peer: Peer, topic: MakeTopic) -> None:
    kept, stamped = topic(), topic(message_timestamp_type="LogAppendTime")
    peer.produce(kept, *PLAIN)
    assert [record.timestamp for record in peer.consume(kept, len(PLAIN))] == [r.timestamp for r in PLAIN]
    before = int(time.time() * 1000)
    peer.produce(stamped, *PLAIN)
    for record in peer.consume(stamped, len(PLAIN)):
        assert before <= record.timestamp <= time.time() * 1000


@proves("empty and null values")
def test_empty_and_null_are_not_the_same(peer: Peer, topic: MakeTopic) -> None:
    name = topic()
    shapes = [(b"v", None), (b"v", b""), (b"", b"k"), (None, b"k")]
    peer.produce(name, *(Record(value, key, timestamp=BEGIN_MS) for value, key in shapes))
    assert [(record.value, record.key) for record in peer.consume(name, len(shapes))] == shapes


@proves("big messages")
def test_a_record_of_900_kb_passes(peer: Peer, topic: MakeTopic) -> None:
    name = topic()
    peer.produce(name, Record(BIG, timestamp=BEGIN_MS))
    peer.produce(name, Record(BIG[::-1], timestamp=BEGIN_MS))
    assert [record.value for record in peer.consume(name, 2)] == [BIG, BIG[::-1]]


@proves("consume assigned")
def test_assigned_partitions_are_read_each_in_order(peer: Peer, topic: MakeTopic) -> None:
    name = topic(partitions=4)
    peer.produce(name, *(record._replace(partition=partition) for record in PLAIN for partition in range(4)))
    got = peer.consume(name, 20, partitions=(1, 3))
    for partition in (1, 3):
        wanted = peer.returned(record._replace(partition=partition) for record in PLAIN)
        assert [record for record in got if record.partition == partition] == wanted


@proves("seek by offset")
def test_a_reader_starts_where_it_is_told(peer: Peer, topic: MakeTopic) -> None:
    name = topic()
    peer.produce(name, *PLAIN)
    assert peer.consume(name, 3, offset=7) == peer.returned(PLAIN[7:])


@proves("seek by timestamp")
def test_offsets_are_found_by_time(peer: Peer, topic: MakeTopic) -> None:
    name = topic()
    for record in PLAIN:
        peer.produce(name, record)

    def offset_at(ms: int) -> int:
        return peer.do("offset_at", topic=name, partition=0, timestamp=BEGIN_MS + ms)["offset"]

    assert [offset_at(ms) for ms in (-5, 0, 3001, 9000)] == [0, 0, 4, 9]


@proves("commit and fetch offsets")
def test_a_committed_position_is_found_again(peer: Peer, topic: MakeTopic, fresh_name: str) -> None:
    name = topic(partitions=2)
    place = {"group": fresh_name, "topic": name, "partition": 1}
    assert peer.do("committed", **place)["offset"] < 0
    for offset in (5, 3):
        peer.do("commit", **place, offset=offset, note="seen ✓")
        assert peer.do("committed", **place)["offset"] == offset


@proves("errors: unknown topic")
def test_an_unknown_topic_is_told(peer: Peer) -> None:
    words = r"unknown.?topic|does not (exist|host)"
    if peer.library.can("admin: topics"):
        refused(peer, words, "delete", topic="nobody-made-this")
    else:
        refused(peer, words, "offset_at", topic="nobody-made-this", partition=0, timestamp=BEGIN_MS)


@proves("errors: too large")
def test_a_message_over_the_topics_limit_is_refused(peer: Peer, topic: MakeTopic) -> None:
    name = topic(max_message_bytes=1000)
    words = r"too.?large|larger than|size.?limit|max.?message"
    records = [Record(b"x" * 2000, timestamp=BEGIN_MS).packed()]
    settings = {"acks": "all", "codec": "none", "idempotent": False}
    refused(peer, words, "produce", topic=name, records=records, **settings)
    assert peer.produce(name, PLAIN[0]) == [0]


@proves("errors: refused")
def test_an_impossible_topic_is_refused(peer: Peer, topic: MakeTopic, fresh_name: str) -> None:
    refused(peer, r"exist", "create", topic=topic(), count=1, configs={})
    refused(peer, r"invalid|illegal|topic.?exception", "create", topic="no spaces", count=1, configs={})
    wrong = {"retention.ms": "soon"}
    refused(peer, r"invalid.?config|configuration", "create", topic=fresh_name, count=1, configs=wrong)


@proves("restart and reconnect")
def test_a_client_carries_on_when_the_broker_comes_back(
    library: Library, mortal_broker: Server, fresh_name: str, tmp_path: Path
) -> None:
    if not mortal_broker.alive:  # an earlier client's story ended badly
        mortal_broker.start()
    name = create_topic(mortal_broker.bootstrap, fresh_name)
    with Peer(library, mortal_broker.bootstrap, tmp_path / "errors") as peer:
        assert peer.produce(name, PLAIN[0]) == [0]
        mortal_broker.stop()
        mortal_broker.start()
        assert peer.produce(name, PLAIN[1]) == [1]
        mortal_broker.kill()
        mortal_broker.start()
        assert peer.produce(name, PLAIN[2]) == [2]
        assert peer.consume(name, 3) == peer.returned(PLAIN[:3])


@pytest.fixture(scope="session")
def wide_topic(broker: Server) -> str:
    """A topic of 1,000 partitions; everybody adds one record to each."""
    return create_topic(broker.bootstrap, "a-thousand-partitions", MANY)


@pytest.mark.long
@proves("1,000 partitions")
def test_a_thousand_partitions_are_written_and_read(peer: Peer, wide_topic: str, fresh_name: str) -> None:
    mine = fresh_name.encode()
    offsets = peer.produce(wide_topic, *(Record(mine, partition=p, timestamp=BEGIN_MS) for p in range(MANY)))
    first = min(offsets)
    count = sum(offset + 1 - first for offset in offsets)
    got = peer.consume(wide_topic, count, partitions=tuple(range(MANY)), offset=first)
    assert sorted((r.partition, r.offset) for r in got if r.value == mine) == list(enumerate(offsets))
