"""The controller of a broker that is a cluster by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafka_broker.cluster.controller.state import ControllerSettings, ControllerState

if TYPE_CHECKING:
    from pykafka_broker.cluster.controller import events
    from pykafka_broker.cluster.current_view import CurrentView


class LoneController:
    """Judges as any controller does, of elections and reassignments. There is nothing to carry out: every partition
    has this broker for its only replica and its leader, so whatever is not refused is already so."""

    def __init__(self, broker_id: int, metadata: CurrentView) -> None:
        self._settings = ControllerSettings(broker_id)
        self._metadata = metadata

    async def submit(
        self, event: events.ElectLeaders | events.AlterReassignments | events.ListReassignments
    ) -> Any:
        """The outcome, as `planner.plan` names it."""
        from pykafka_broker.cluster.controller import planner  # hardly ever asked for: no part of the start

        return planner.plan(ControllerState(self._metadata.view), event, self._settings).outcome
