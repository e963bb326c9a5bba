"""The view in force: who may look at it, who is told of changes, and who has to be ready before anybody sees one."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from pykafka_broker.cluster.view import ClusterView

T = TypeVar("T")
Listener: TypeAlias = "Callable[[ClusterView, ClusterView], None]"
Preparation: TypeAlias = "Callable[[ClusterView, ClusterView], Awaitable[None]]"

logger = logging.getLogger(__name__)


class CurrentView:
    """Owner of the current ClusterView; only its heirs replace it, one change at a time, holding `_changing`."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._listeners: list[Listener] = []
        self._preparations: list[Preparation] = []
        self._changing = asyncio.Lock()
        self._running: set[asyncio.Task[object]] = set()

    @property
    def view(self) -> ClusterView:
        return self._view

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Calls back with (old view, new view) after each change; the answer ends the subscription."""
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)

    def before_change(self, prepare: Preparation) -> None:
        """Awaits `prepare(old view, new view)` after a change is committed and before anybody sees it."""
        self._preparations.append(prepare)

    async def close(self) -> None:
        """Waits for changes under way. The store, and with it the registration, belongs to the caller."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _publish(self, view: ClusterView) -> None:
        """The change is committed: one listener's mistake must not hide it from the others."""
        old = self._view
        for prepare in self._preparations:
            try:
                await prepare(old, view)
            except Exception:
                logger.exception("a metadata change could not be prepared for")
        self._view = view
        for listener in tuple(self._listeners):
            try:
                listener(old, view)
            except Exception:
                logger.exception("a listener failed on a metadata change")

    async def _undisturbed(self, work: Coroutine[object, object, T]) -> T:
        """Runs to its end even if the caller goes away: what the store committed, the view must show."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)
