from __future__ import annotations

import asyncio
import time

import pytest

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.metadata import Metadata
from pykafka_broker.cluster.producer_ids import ProducerIds
from pykafka_broker.cluster.store import NodeExists
from pykafka_broker.cluster.topics import MorePartitions, NewTopic, TopicRules
from pykafka_broker.cluster.view import load_view
from pykafka_broker.cluster.znodes import BrokerRegistration, Endpoint
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

RULES = TopicRules(1, 1, lambda config: None)
BROKER = BrokerRegistration(1, (Endpoint("PLAINTEXT", "127.0.0.1", 9092),), rack="r1")

ON_SQLITE = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


@pytest.fixture
async def metadata(store, clock):
    opened = await Metadata.open(store, clock, RULES, BROKER)
    yield opened
    await opened.close()


async def paths(store, root="/"):
    found = []
    for name in await store.children(root):
        path = f"/{name}" if root == "/" else f"{root}/{name}"
        found += [path, *await paths(store, path)]
    return sorted(found)


async def test_a_fresh_tree_is_that_of_kafka_39(store, metadata):
    """The list was read from ZooKeeper after Apache Kafka 3.9.1 had started on it."""
    assert await paths(store) == [
        "/admin", "/admin/delete_topics", "/brokers", "/brokers/ids", "/brokers/ids/1", "/brokers/seqid",
        "/brokers/topics", "/cluster", "/cluster/id", "/config", "/config/brokers", "/config/changes",
        "/config/clients", "/config/ips", "/config/topics", "/config/users", "/consumers", "/controller",
        "/controller_epoch", "/feature", "/isr_change_notification", "/latest_producer_id_block",
        "/log_dir_event_notification",
    ]  # fmt: skip
    assert (await store.get("/controller_epoch")).data == b"1"
    assert (await store.get("/controller_epoch")).version == 1


async def test_the_broker_is_registered_and_controls(metadata, store):
    view = metadata.view
    assert metadata.is_controller
    assert (view.controller_id, view.controller_epoch, len(view.cluster_id)) == (1, 1, 22)
    assert view.brokers[1].endpoints == {"PLAINTEXT": ("127.0.0.1", 9092)}
    assert view.brokers[1].epoch == (await store.get("/brokers/ids/1")).czxid
    assert (await store.get("/brokers/ids/1")).ephemeral_owner != 0


async def test_a_restart_keeps_the_cluster_and_bumps_the_epochs(open_store, clock):
    views = []
    for _ in range(2):
        store = await open_store()
        metadata = await Metadata.open(store, clock, RULES, BROKER)
        await metadata.create_topics([NewTopic("kept", 3, config={"retention.ms": "7"})])
        views.append(metadata.view)
        await store.close()
    first, second = views
    assert second.cluster_id == first.cluster_id
    assert second.topics == first.topics
    assert (first.controller_epoch, second.controller_epoch) == (1, 2)
    assert second.brokers[1].epoch > first.brokers[1].epoch


async def test_every_change_leaves_a_view_equal_to_what_the_store_holds(metadata, store):
    await metadata.create_topics([NewTopic("a", 2), NewTopic("b", config={"x": "1"}), NewTopic("c")])
    await metadata.create_partitions([MorePartitions("a", 5)])
    await metadata.alter_topic_configs({"b": lambda now: {**now, "y": "2"}})
    await metadata.alter_broker_configs({None: lambda now: {"k": "v"}, 1: lambda now: {"k": "w"}})
    await metadata.delete_topics(["c"])
    assert await load_view(store) == metadata.view
    assert not await store.exists("/config/topics/c")
    assert metadata.view.partition("a", 4).leader == 1
    assert metadata.view.partition("a", 5) is None


async def test_good_wishes_are_granted_beside_bad_ones(metadata):
    outcome = await metadata.create_topics(
        [
            NewTopic("good"),
            NewTopic("bad name"),
            NewTopic("twice"),
            NewTopic("twice"),
            NewTopic("x.y"),
            NewTopic("x_y"),
        ]
    )
    codes = {name: r.code if isinstance(r, KafkaError) else None for name, r in outcome.items()}
    assert codes == {
        "good": None,
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "twice": ErrorCode.INVALID_REQUEST,
        "x.y": None,
        "x_y": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert set(metadata.view.topics) == {"good", "x.y"}


async def test_validating_only_changes_nothing(metadata, store):
    before, tree = metadata.view, await paths(store)
    outcome = await metadata.create_topics([NewTopic("t", 4)], validate_only=True)
    assert len(outcome["t"].partitions) == 4
    assert metadata.view is before
    assert await paths(store) == tree


async def test_listeners_hear_of_each_change_once_it_is_the_view(metadata, caplog):
    heard = []
    metadata.on_change(lambda old, new: 1 / 0)
    stop = metadata.on_change(
        lambda old, new: heard.append((set(old.topics), set(new.topics), metadata.view is new))
    )
    await metadata.create_topics([NewTopic("a")])
    await metadata.create_topics([NewTopic("a")])
    await metadata.delete_topics(["a"])
    stop()
    await metadata.create_topics([NewTopic("b")])
    assert heard == [(set(), {"a"}, True), ({"a"}, set(), True)]
    assert "a listener failed" in caplog.text


async def test_simultaneous_changes_do_not_lose_each_other(metadata):
    await metadata.create_topics([NewTopic("t")])
    await asyncio.gather(
        *(metadata.alter_topic_configs({"t": lambda now, i=i: {**now, f"k{i}": "v"}}) for i in range(10)),
        *(metadata.create_topics([NewTopic(f"t{i}")]) for i in range(10)),
    )
    assert len(metadata.view.topics["t"].config) == 10
    assert len(metadata.view.topics) == 11


async def test_a_caller_that_goes_away_leaves_view_and_store_in_agreement(metadata, store):
    caller = asyncio.create_task(metadata.create_topics([NewTopic("t")]))
    await asyncio.sleep(0)  # one turn of the loop: the change is under way
    assert metadata._running
    caller.cancel()
    await metadata.close()
    assert "t" in metadata.view.topics
    assert await load_view(store) == metadata.view


async def test_a_controller_that_was_replaced_can_change_nothing_more(metadata, store):
    await store.set(znodes.CONTROLLER_EPOCH, b"2")
    with pytest.raises(KafkaError) as info:
        await metadata.create_topics([NewTopic("t")])
    assert info.value.code == ErrorCode.NOT_CONTROLLER
    assert not metadata.is_controller
    assert not await store.exists("/brokers/topics/t")
    outcome = await metadata.create_topics([NewTopic("t")])
    assert outcome["t"].code == ErrorCode.NOT_CONTROLLER


async def test_a_second_broker_joins_and_leaves_control_where_it_is(metadata, store, clock):
    other = await Metadata.open(store, clock, RULES)
    await other.register(BrokerRegistration(2, (Endpoint("PLAINTEXT", "h", 1),)))
    assert not other.is_controller
    assert (other.view.controller_id, set(other.view.brokers)) == (1, {1, 2})
    with pytest.raises(NodeExists):
        await other.register(BROKER)


async def test_a_deletion_an_earlier_controller_left_is_finished(open_store, clock):
    store = await open_store()
    metadata = await Metadata.open(store, clock, RULES, BROKER)
    await metadata.create_topics([NewTopic("doomed")])
    await store.create("/admin/delete_topics/doomed")
    await store.close()
    store = await open_store()
    metadata = await Metadata.open(store, clock, RULES, BROKER)
    assert "doomed" not in metadata.view.topics
    assert await store.children("/admin/delete_topics") == []


@ON_SQLITE  # where time is driven by hand
async def test_old_config_notifications_are_forgotten(metadata, store, clock):
    await metadata.create_topics([NewTopic("t")])
    await metadata.alter_topic_configs({"t": lambda now: {"a": "1"}})
    clock.advance(16 * 60 * 1000)
    await metadata.alter_topic_configs({"t": lambda now: {"a": "2"}})
    assert await store.children("/config/changes") == ["config_change_0000000001"]


@ON_SQLITE  # ZooKeeper does not take so much at once
async def test_thousands_of_partitions_are_made_read_and_deleted_at_once(metadata, store):
    """The bound is generous for a busy machine; it catches a cost that grows with the square."""
    began = time.monotonic()
    await metadata.create_topics([NewTopic("big", 5000)])
    assert len((await load_view(store)).topics["big"].partitions) == 5000
    await metadata.delete_topics(["big"])
    assert time.monotonic() - began < 5


async def test_producer_ids_never_repeat_whoever_asks(metadata, store):
    one, two = ProducerIds(store, 1), ProducerIds(store, 2)
    ids = await asyncio.gather(*(source.next() for source in (one, two) for _ in range(1500)))
    assert len(set(ids)) == 3000
    assert (await store.get("/latest_producer_id_block")).data.endswith(
        b'"block_start":"3000","block_end":"3999"}'
    )
    assert await ProducerIds(store, 1).next() == 4000


async def test_running_out_of_producer_ids_is_an_error_and_not_a_wrap(metadata, store):
    last = znodes.ProducerIdBlock(1, 2**63 - 1000, 2**63 - 1)
    await store.set(znodes.PRODUCER_ID_BLOCK, last.encode())
    with pytest.raises(KafkaError, match="exhausted"):
        await ProducerIds(store, 1).next()
