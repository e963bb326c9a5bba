"""Differences that are meant, each with its reason. Everything else is a mistake of ours until shown otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compat_tests.differential.agreement import OPERATIONS
from compat_tests.differential.symbols import ZERO_UUID
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.differential.sides import Step


@dataclass(frozen=True, slots=True)
class Difference:
    """One place in which two answers differ."""

    step: Step
    path: str
    ours: Any
    theirs: Any
    release: str

    def __str__(self) -> str:
        return f"{self.step.key.name} v{self.step.version} {self.path}: ours {self.ours!r}, theirs {self.theirs!r}"


@dataclass(frozen=True, slots=True)
class Meant:
    """A kind of difference, and why it stays."""

    reason: str
    is_it: Callable[[Difference], bool]


RETIRED = (
    "[message.downconversion.enable]",
    "[message.format.version]",
    "[message.timestamp.difference.max.ms]",
)


def _all_among(ours: Any, theirs: Any) -> bool:
    return isinstance(ours, list) and isinstance(theirs, list) and all(each in theirs for each in ours)


CREATION_IS_ASKED_FOR_SINCE = 4
CREATE_TOPICS_OF_KAFKA_4 = 2
UNLIKELY_MOVES = (ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
TOPICS_OF_THE_CONTROLLER = {
    (ApiKey.ELECT_LEADERS, "replica_election_results"): "partition_result",
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, "responses"): "partitions",
}
NO_OPERATIONS = -(2**31)
NOT_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
NOTHING_YET = (
    ("topics[].partitions", []),
    ("topics[].topic_id", str(ZERO_UUID)),
    ("topics[].topic_authorized_operations", NO_OPERATIONS),
)


def _another_named_first(it: Difference) -> bool:
    """In the versions of CreateTopics that Kafka 4 no longer speaks: in the others it is asked, too."""
    return (
        it.release.startswith("3")
        and it.step.key is ApiKey.CREATE_TOPICS
        and it.step.version < CREATE_TOPICS_OF_KAFKA_4
        and it.path == "topics[].error_code"
        and bool(it.ours and it.theirs)
    )


def _judged_by_4(it: Difference) -> bool:
    """What is missing is said first, and so is what is not meant; nothing to say of a topic is said, too."""
    if not it.release.startswith("3"):
        return False
    if it.step.key is ApiKey.ELECT_LEADERS and it.path.endswith("error_code"):
        return (it.ours, it.theirs) == (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR)
    if it.step.key is ApiKey.ALTER_PARTITION_REASSIGNMENTS and it.path.endswith("error_code"):
        return it.ours == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and it.theirs in UNLIKELY_MOVES
    partitions = TOPICS_OF_THE_CONTROLLER.get((it.step.key, it.path))
    return partitions is not None and [each for each in it.ours if each[partitions]] == it.theirs


def _found_at_once(it: Difference) -> bool:
    """A topic that Metadata made, there at once; Kafka makes it and says that there is none, or none to lead it."""
    request = it.step.request
    if it.step.key is not ApiKey.METADATA or request.topics is None:
        return False
    if not (it.step.version < CREATION_IS_ASKED_FOR_SINCE or request.allow_auto_topic_creation):
        return False
    if it.path == "topics[].error_code":
        return it.ours == ErrorCode.NONE and it.theirs in NOT_YET
    return (it.path, it.theirs) in NOTHING_YET


def _said_twice(it: Difference) -> bool:
    return (
        it.release.startswith("3")
        and it.step.key in {ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS}
        and it.path in {"topics", "responses"}
        and isinstance(it.ours, list)
        and len(it.ours) < len(it.theirs)
        and all(each in it.ours for each in it.theirs)
    )


def _groups_without_anything(it: Difference) -> bool:
    """Groups that 3.9 has forgotten, as it does with all that have neither members nor offsets when a topic goes."""
    if not (it.release.startswith("3") and it.step.key is ApiKey.LIST_GROUPS and it.path == "groups"):
        return False
    more = [group for group in it.ours if group not in it.theirs]
    return len(more) + len(it.theirs) == len(it.ours) and all(
        group["group_state"] in {"", "Empty"} for group in more
    )


MEANT: tuple[Meant, ...] = (
    Meant(
        "whether and how an error is told in words is ours to choose; the codes are compared",
        lambda it: it.path.endswith("error_message"),
    ),
    Meant(
        "of several things wrong with a new topic that is named first which Kafka 4 names first; 3.9 has another order",
        _another_named_first,
    ),
    Meant(
        "elections and reassignments are answered as by Kafka 4 in corners where 3.9 differs", _judged_by_4
    ),
    Meant(
        "batches are checked as a whole: which record is at fault is not told",
        lambda it: it.path.endswith("record_errors") and it.ours == [],
    ),
    Meant(
        "Kafka has an error it did not foresee where a member that was given an id comes back as a static one",
        lambda it: (
            it.step.key is ApiKey.JOIN_GROUP
            and it.step.request.group_instance_id is not None
            and ((it.path, it.theirs) == ("member_id", "") or (it.ours, it.theirs) == (25, -1))
        ),
    ),
    Meant(
        "in version 0 Kafka 3.9 no longer says which configs are defaults; older releases did, and so does ours",
        lambda it: it.step.version == 0 and it.path.endswith(".is_default") and it.ours is True,
    ),
    Meant(
        "the configs of topics are those of Kafka 4: what 3.9 had for old message formats is gone",
        lambda it: it.release.startswith("3") and it.path.endswith(RETIRED) and it.ours == "not there",
    ),
    Meant("a topic that is named twice is answered once, as by Kafka 4; 3.9 said it twice", _said_twice),
    Meant(
        "groups without members and offsets outlive topics, as in Kafka 4; 3.9 forgets all of them when one is deleted",
        _groups_without_anything,
    ),
    Meant(
        "an operation on configs that does not exist fails the whole request, as in Kafka 4; in 3.9 its resource alone",
        lambda it: (
            it.release.startswith("3")
            and it.step.key is ApiKey.INCREMENTAL_ALTER_CONFIGS
            and (it.path, it.ours) == ("responses[].error_code", ErrorCode.UNKNOWN_SERVER_ERROR)
            and any(
                config.config_operation not in OPERATIONS
                for resource in it.step.request.resources
                for config in resource.configs
            )
        ),
    ),
    Meant(
        "messages of an old format take more room than the batch they were in: Kafka cuts what does not fit in that",
        lambda it: it.path.endswith(".messages") and it.ours[: len(it.theirs)] == it.theirs,
    ),
    Meant("configs are documented in our own words", lambda it: it.path.endswith(".documentation")),
    Meant("a topic that is made by asking for it is there at once, not the next time", _found_at_once),
    Meant(
        "some APIs of Apache Kafka are not served yet; what is served is offered in the same versions",
        lambda it: (
            it.step.key is ApiKey.API_VERSIONS and it.path == "api_keys" and _all_among(it.ours, it.theirs)
        ),
    ),
    Meant(
        "features of APIs that are not served yet are not shown",
        lambda it: (
            it.step.key is ApiKey.API_VERSIONS
            and it.path.endswith("features")
            and _all_among(it.ours, it.theirs)
        ),
    ),
    Meant(
        "with eligible leader replicas, KRaft writes min.insync.replicas down as a setting of the cluster",
        lambda it: "[min.insync.replicas]." in it.path and not it.path.endswith("].value"),
    ),
)


NOT_SERVED = {
    ("3.9.1", ApiKey.CONSUMER_GROUP_HEARTBEAT): "on ZooKeeper it is shown and always refused",
    ("3.9.1", ApiKey.CONSUMER_GROUP_DESCRIBE): "on ZooKeeper it is shown and always refused",
}
"""What a release offers and does not serve."""

NOT_TRIED = (
    "transactions: not served yet",
    "the same resource twice in AlterConfigs: Kafka never answers it",
    "a producer id without an epoch: Kafka forgets what it knew of the producer",
    "Fetch of fewer than no bytes: Kafka fails in a way it did not foresee",
    "commits with too long a note to a group that is not there: Kafka has an empty group then, ours none",
    "Produce without records for a partition: Kafka never answers it",
    "Fetch at an isolation level that does not exist: Kafka opens the session, then fails in a way it did not foresee",
    "Fetch as a follower: followers are compared by the tests of clusters",
    "Fetch of two partitions of a topic with a zero id, or of one in a session: Kafka has an error it did not foresee",
    "DescribeTopicPartitions of a topic without a name: Kafka fails in a way it did not foresee",
    "offsets committed in version 0 and read in later ones: Kafka 3.9 keeps them in ZooKeeper, ours with all others",
    "a topic named twice in DeleteTopics 0: Kafka 3.9 deletes it; in later versions 4 refuses it, and so does ours",
    "operations on configs that do not exist beside others: which is met first depends on hash tables in Kafka",
    "two new topics in one request whose names collide ('.' and '_'): Kafka 4 makes both, 3.9 and ours only the first",
    "OffsetFetch of no group at all: Kafka 3.9 never answers it",
    "OffsetFetch at an epoch by a member without an id: Kafka fails in a way it did not foresee",
    "Metadata of a topic with neither name nor id: Kafka fails in a way it did not foresee",
    "the same partition twice in a request: which of the two counts depends on hash tables in Kafka",
    "batches that cannot be taken apart together with others: in Kafka they take the others down with them",
    "regular expressions in consumer groups that are valid: resolved in the background, compared elsewhere",
)
"""Kinds of requests that are not generated, and why."""


def reason(difference: Difference) -> str | None:
    return next((meant.reason for meant in MEANT if meant.is_it(difference)), None)
