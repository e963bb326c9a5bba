"""A second release of Apache Kafka beside the one that ours is compared with."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from compat_tests.differential.batches import Batches
from compat_tests.differential.sides import Step
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.messages.produce import ProduceRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compat_tests.differential.brokers import Offer
    from compat_tests.differential.sides import Side

READ_ONLY = {ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FETCH}
NOTHING = "it was not asked"


class Witness:
    """Is told the same story, in the nearest version it speaks. Lost where that cannot be: what it then answers says
    nothing any more. Owner of what it knows of the story under way."""

    def __init__(self, side: Side, offered: Offer, release: str) -> None:
        self.side = side
        self.release = release
        self._offered = offered
        self.is_lost = False
        self.answered = False
        self._agreed = False

    def begin(self, prefix: str) -> None:
        self.side.begin(prefix)
        self.is_lost = self.answered = self._agreed = False

    def is_of_use(self, step: Step) -> bool:
        """Whether the story may go on: what ours and the other release know may differ only before a witness."""
        return not self._agreed or (not self.is_lost and self._speaks(step.key, step.version))

    def cannot_say(self, cells: Iterable[tuple[ApiKey, int]]) -> list[tuple[ApiKey, int]]:
        return [cell for cell in cells if not self._speaks(*cell)]

    def _speaks(self, key: ApiKey, version: int) -> bool:
        span = self._offered.get(key)
        return span is not None and span[0] <= version <= span[1]

    def agreed(self) -> None:
        """It answered as ours did, and not as the other release."""
        self._agreed = True

    async def ask(self, step: Step) -> Any:
        self.answered = False
        if self.is_lost:
            return NOTHING
        span = self._offered.get(step.key)
        if self._speaks(step.key, step.version):
            self.answered = True
            return await self.side.ask(step)
        if span is None:
            self.is_lost = True
        elif step.key not in READ_ONLY and not (step.key is ApiKey.OFFSET_COMMIT and step.version == 0):
            # So that it knows what the others know; of what it answers to another request nothing follows.
            await self.side.ask(
                Step(step.key, min(max(step.version, span[0]), span[1]), _of_today(step.request))
            )
        return NOTHING


def _of_today(request: Any) -> Any:
    """The request with its records in a format of today."""
    if not isinstance(request, ProduceRequest):
        return request
    made = copy.deepcopy(request)
    for topic in made.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, Batches):
                data.records = data.records.of_today()
    return made
