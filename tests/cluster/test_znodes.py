"""The bytes below were read from ZooKeeper under Apache Kafka 3.9.1."""

from __future__ import annotations

import uuid

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.znodes import (
    BrokerRegistration,
    Endpoint,
    PartitionState,
    ProducerIdBlock,
    TopicAssignment,
)

BROKER = (
    b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT","OTHER":"PLAINTEXT"},'
    b'"endpoints":["PLAINTEXT://127.0.0.1:29392","OTHER://127.0.0.1:29393"],"rack":"r1","jmx_port":-1,'
    b'"port":29392,"host":"127.0.0.1","version":5,"timestamp":"1794991141945"}'
)
TOPIC = (
    b'{"partitions":{"0":[1],"1":[1],"2":[1]},"topic_id":"CBlD2iUyQ0-oIjNGyvkhPA",'
    b'"adding_replicas":{},"removing_replicas":{},"version":3}'
)
STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
BLOCK = b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
CONFIG = b'{"version":1,"config":{"max.message.bytes":"1234","retention.ms":"1000"}}'


def test_broker_registration_is_kafkas():
    registration = BrokerRegistration.decode(1, BROKER)
    assert registration.endpoints[1] == Endpoint("OTHER", "127.0.0.1", 29393, "PLAINTEXT")
    assert registration.rack == "r1"
    assert registration.encode() == BROKER


def test_a_broker_without_a_plaintext_listener_has_no_legacy_address():
    registration = BrokerRegistration(1, (Endpoint("S", "::1", 9093, "SSL"),))
    data = registration.encode()
    assert b'"endpoints":["S://[::1]:9093"]' in data
    assert b'"port":-1,"host":null' in data
    assert b"rack" not in data
    assert BrokerRegistration.decode(1, data) == registration


def test_topic_assignment_is_kafkas():
    assert TopicAssignment.decode(TOPIC).replicas == {0: (1,), 1: (1,), 2: (1,)}
    assert TopicAssignment.decode(TOPIC).encode() == TOPIC


def test_partitions_are_ordered_by_number_and_not_by_text():
    data = TopicAssignment(uuid.uuid4(), dict.fromkeys(reversed(range(12)), (1,))).encode()
    assert list(TopicAssignment.decode(data).replicas) == list(range(12))


def test_partition_state_and_producer_block_and_configs_are_kafkas():
    assert PartitionState.decode(STATE).encode() == STATE
    assert ProducerIdBlock.decode(BLOCK).encode() == BLOCK
    assert znodes.encode_config(znodes.decode_config(CONFIG)) == CONFIG
    assert znodes.encode_config({}) == b'{"version":1,"config":{}}'


def test_the_small_nodes_are_kafkas():
    assert (
        znodes.encode_cluster_id("vFMvJGYNQP-1vkbVZ_ZJIQ") == b'{"version":"1","id":"vFMvJGYNQP-1vkbVZ_ZJIQ"}'
    )
    assert znodes.encode_controller(1, 1794991142186) == (
        b'{"version":2,"brokerid":1,"timestamp":"1794991142186","kraftControllerEpoch":-1}'
    )
    assert znodes.encode_feature({}) == b'{"features":{},"version":2,"status":1}'
    assert znodes.encode_config_change("brokers/<default>") == (
        b'{"version":2,"entity_path":"brokers/<default>"}'
    )


def test_uuids_print_as_kafka_prints_them():
    value = znodes.uuid_from_text("CBlD2iUyQ0-oIjNGyvkhPA")
    assert value.hex == "081943da2532434fa8223346caf9213c"
    assert znodes.uuid_to_text(value) == "CBlD2iUyQ0-oIjNGyvkhPA"
    assert znodes.uuid_to_text(uuid.UUID(int=0)) == "A" * 22
    assert all(not znodes.uuid_to_text(znodes.random_uuid()).startswith("-") for _ in range(500))


def test_a_recovering_leader_is_written_in_kafkas_order_of_keys():
    state = PartitionState(2, 7, (2,), 3, recovering=True)
    assert state.encode() == (
        b'{"controller_epoch":3,"leader":2,"version":1,"leader_recovery_state":1,"leader_epoch":7,"isr":[2]}'
    )
    assert PartitionState.decode(state.encode()) == state


def test_reassignments_asked_for_in_the_tree_are_read_back():
    wanted = {("orders", 0): (1, 2), ("orders", 1): (3,)}
    data = znodes.encode_reassignments(wanted)
    assert data == (
        b'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]},'
        b'{"topic":"orders","partition":1,"replicas":[3]}]}'
    )
    assert znodes.decode_reassignments(data) == wanted
    assert znodes.decode_partitions(data) == [("orders", 0), ("orders", 1)]


def test_a_notification_of_a_config_change_names_its_entity():
    assert znodes.decode_config_change(znodes.encode_config_change("topics/orders")) == "topics/orders"
    old_form = b'{"version":1,"entity_type":"topics","entity_name":"orders"}'
    assert znodes.decode_config_change(old_form) == "topics/orders"
