"""The controller, for handlers of what only the controller answers, and answers by partition grouped by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pykafka_broker.cluster.controller.alone import LoneController

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pykafka_broker.cluster.controller.loop import Controller
    from pykafka_broker.handlers.services import Services

T = TypeVar("T")


def controller(services: Services) -> Controller:
    """This broker's candidate, for requests that are served in a cluster only."""
    return services.in_cluster.controller


def judge(services: Services) -> Controller | LoneController:
    """Who decides on elections and reassignments: this broker's candidate, or itself where it is alone."""
    if services.cluster is None:
        return LoneController(services.broker_id, services.metadata)
    return services.cluster.controller


def by_topic(results: Mapping[tuple[str, int], T], topics: Iterable[str] = ()) -> dict[str, dict[int, T]]:
    """`topics` are there in any case, also those of which nothing was asked."""
    grouped: dict[str, dict[int, T]] = {topic: {} for topic in topics}
    for (topic, index), result in results.items():
        grouped.setdefault(topic, {})[index] = result
    return grouped
