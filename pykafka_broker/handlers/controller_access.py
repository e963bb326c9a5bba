"""The controller, for handlers of what only the controller answers, and answers by partition grouped by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafka_broker.cluster.controller.loop import Controller
    from pykafka_broker.handlers.services import Services

T = TypeVar("T")


def controller(services: Services) -> Controller:
    """This broker's candidate. Its routes are served in a cluster only."""
    return services.in_cluster.controller


def by_topic(results: Mapping[tuple[str, int], T]) -> dict[str, dict[int, T]]:
    grouped: dict[str, dict[int, T]] = {}
    for (topic, index), result in results.items():
        grouped.setdefault(topic, {})[index] = result
    return grouped
