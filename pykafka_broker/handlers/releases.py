"""A broker in disguise: of what is served, only what one release of Apache Kafka offered is offered and accepted.

What releases advertised is a fact of history, kept in `release_table`; what is served is decided by the routes. The
disguise is where both hold, so nothing is promised that is not served. Up to 3.9 a release is shown as its brokers on
ZooKeeper were, from 4.0 on as those on KRaft.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pykafka_broker.handlers.release_table import APIS, FEATURES, RELEASES
from pykafka_broker.protocol.api import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pykafka_broker.handlers.services import Route

_TELLS_ITS_RANGE_SINCE = "2.4"
_FEATURES_SINCE = "2.7"
_PRODUCE_SHOWN_FROM_ZERO_SINCE = "4.0"


class UnknownRelease(Exception):
    """The message names the releases that are known."""


class Feature(NamedTuple):
    """A feature of the cluster: what is supported, and what is switched on (0: nothing)."""

    name: str
    lowest: int
    highest: int
    level: int


NEEDS = {
    "group.version": ApiKey.CONSUMER_GROUP_HEARTBEAT,
    "transaction.version": ApiKey.END_TXN,
    "share.version": ApiKey.SHARE_GROUP_HEARTBEAT,
    "streams.version": ApiKey.STREAMS_GROUP_HEARTBEAT,
}
"""A client that sees the feature goes on to use the API: without the one the other is not shown."""


@dataclass(frozen=True, slots=True)
class Release:
    """What brokers of one release offered."""

    name: str
    ranges: Mapping[int, tuple[int, int]]
    features: tuple[Feature, ...]

    @property
    def tells_its_range(self) -> bool:
        """Whether a client that asks with too new an ApiVersions is told which ones would do."""
        return self._since(_TELLS_ITS_RANGE_SINCE)

    @property
    def has_features(self) -> bool:
        return self._since(_FEATURES_SINCE)

    def routes(self, served: Sequence[Route]) -> tuple[Route, ...]:
        """The routes as this release would have them; those it did not know are gone."""
        return tuple(route for each in served if (route := self._route(each)) is not None)

    def _route(self, served: Route) -> Route | None:
        if served.api.key not in self.ranges:
            return None
        oldest, newest = self.ranges[served.api.key]
        shown = max(oldest, served.advertised_from)
        oldest, newest = max(oldest, served.oldest), min(newest, served.newest)
        if oldest > newest:
            return None
        if served.api.key == ApiKey.PRODUCE and self._since(_PRODUCE_SHOWN_FROM_ZERO_SINCE):
            shown = 0  # or librdkafka no longer compresses (KAFKA-18659)
        return dataclasses.replace(served, oldest=oldest, newest=newest, advertised_from=shown)

    def _since(self, release: str) -> bool:
        return RELEASES.index(self.name) >= RELEASES.index(release)


def release(name: str) -> Release:
    """The release of that name, "3.9" or with its patch "3.9.1"."""
    known = next((each for each in RELEASES if name == each or name.startswith(f"{each}.")), None)
    if known is None:
        raise UnknownRelease(f"release {name} is not known; known are {', '.join(RELEASES)}")
    ranges = {key: (value[0], value[1]) for key, row in APIS.items() if (value := _then(row, known))}
    features = tuple(Feature(name, *value) for name, row in FEATURES.items() if (value := _then(row, known)))
    return Release(known, ranges, features)


def _then(history: str, release: str) -> tuple[int, ...]:
    """What a row of the table says of a release: the last change up to it; empty where there was nothing."""
    found: tuple[int, ...] = ()
    for change in history.split(", "):
        since, _, value = change.partition(" ")
        if RELEASES.index(since) > RELEASES.index(release):
            break
        found = () if value == "-" else tuple(map(int, value.split("-")))
    return found
