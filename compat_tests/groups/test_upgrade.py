"""A group moves from the classic protocol to KIP-848, and back, one member at a time and under load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import ConsumerGroupType
from confluent_kafka.admin import AdminClient

from compat_tests import versions
from compat_tests.groups.clients import CLASSIC, CONFLUENT, CONFLUENT_848, JAVA, JAVA_848
from compat_tests.groups.crew import Feed, everything_arrives
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from compat_tests.groups.clients import Client
    from compat_tests.groups.conftest import MakeCrew
    from compat_tests.groups.crew import Crew

NAMES = ("first", "second", "third")


def type_of(crew: Crew) -> ConsumerGroupType:
    admin = AdminClient({"bootstrap.servers": crew.broker.bootstrap})
    return admin.describe_consumer_groups([crew.group])[crew.group].result(30).type


@pytest.mark.feature("groups: new protocol")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(CONFLUENT, CONFLUENT_848, marks=versions.CONFLUENT),
        pytest.param(JAVA, JAVA_848, marks=versions.JAVA_CLIENT),
        pytest.param(CONFLUENT_848, CONFLUENT, marks=[versions.CONFLUENT, pytest.mark.long]),
        pytest.param(JAVA_848, JAVA, marks=[versions.JAVA_CLIENT, pytest.mark.long]),
    ],
    ids=str,
)
def test_a_rolling_change_of_protocol_loses_nothing(crew: MakeCrew, old: Client, new: Client) -> None:
    crew(CONFLUENT_848)  # skips where the broker does not speak the new protocol
    group = crew(old)
    with Feed(group.broker.bootstrap, group.topic) as feed:
        members = [group.start(name) for name in NAMES]
        group.settle(*members)
        for name in NAMES:
            members.append(group.start(name, client=new))
            members.pop(0).leave()
            group.settle(*members)
    everything_arrives(group, feed)
    wanted = ConsumerGroupType.CLASSIC if new.protocol == CLASSIC else ConsumerGroupType.CONSUMER
    wait_until(lambda: type_of(group) == wanted, f"the group is of type {wanted}")
    for member in members:
        member.leave()
    group.assert_one_owner_at_a_time()
