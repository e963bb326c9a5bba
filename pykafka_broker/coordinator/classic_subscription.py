"""The little a broker reads of what consumers tell each other: the topics they are subscribed to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.codec import decode
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.protocol.types import array, field, int16, message, string

if TYPE_CHECKING:
    from collections.abc import Iterable


@message(api_key=-1, versions="0", flexible="none")
class _Subscription:
    """What every version of a consumer's subscription begins with."""

    version: int = field(int16, "0")
    topics: list[str] = field(array(string), "0")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all of these together; None if one of them cannot be read."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            topics.update(decode(_Subscription, 0, memoryview(subscription)).topics)
    except MalformedError:
        return None
    return frozenset(topics)
