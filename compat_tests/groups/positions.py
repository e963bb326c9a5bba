"""What groups have committed, as an outsider sees it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from kafka.admin import KafkaAdminClient
from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError

from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from kafka.structs import OffsetAndMetadata

    from compat_tests.groups.crew import Crew, Feed

LOADING = (NotCoordinatorError, CoordinatorNotAvailableError, CoordinatorLoadInProgressError)


class Position(NamedTuple):
    offset: int
    metadata: str


Positions = dict[tuple[str, int], Position]
"""Topic and partition to what was committed there."""


def committed(bootstrap: str, *groups: str) -> dict[str, Positions]:
    """Every position of each group; waits for a coordinator that is still loading.

    Asked by kafka-python: confluent-kafka 2.16 reads metadata beyond its end.
    """
    found: dict[str, dict[object, OffsetAndMetadata]] = {}
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:

        def told() -> bool:
            nonlocal found
            try:
                found = admin.list_group_offsets(dict.fromkeys(groups))
            except LOADING:
                return False
            return True

        wait_until(told, "the coordinator has loaded")
    return {
        group: {
            (place.topic, place.partition): Position(at.offset, at.metadata) for place, at in kept.items()
        }
        for group, kept in found.items()
    }


def all_committed(*readers: tuple[Crew, Feed]) -> dict[str, Positions]:
    """Wait until each group has committed all that its feed sent; the positions by group."""
    wanted = {crew.group: ends(crew, feed) for crew, feed in readers}
    bootstrap = readers[0][0].broker.bootstrap
    found: dict[str, Positions] = {}

    def behind() -> list[str]:
        nonlocal found
        found = committed(bootstrap, *wanted)
        offsets = {group: {p: at.offset for p, at in kept.items()} for group, kept in found.items()}
        return [group for group in wanted if offsets[group] != wanted[group]]

    try:
        wait_until(lambda: not behind(), "all is committed")
    except AssertionError:
        complaints = "\n".join(crew.complaints() for crew, _ in readers if crew.group in behind())
        raise AssertionError(f"never committed all: {behind()}\n{found}\n{complaints}") from None
    return found


def ends(crew: Crew, feed: Feed) -> dict[tuple[str, int], int]:
    """The position after the last record of each partition."""
    positions: dict[tuple[str, int], int] = {}
    for partition, offset in feed.acknowledged:
        place = (crew.topic, partition)
        positions[place] = max(positions.get(place, 0), offset + 1)
    return positions
