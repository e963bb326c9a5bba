"""One turn of the event loop: what all who came in it have in common is done once, at its end."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafka_broker.protocol.types import Buffer

log = logging.getLogger(__name__)


class Turn:
    """Owner of what is put off to the end of the present turn; its owner is a coordinator."""

    def __init__(self) -> None:
        self._work: list[Callable[[], None]] = []
        self._then: list[Callable[[], None]] = []
        self._ends = False

    def put_off(self, work: Callable[[], None]) -> None:
        """Does it when everything that is ready now has been looked at."""
        self._work.append(work)
        self._end_soon()

    def afterwards(self, call: Callable[[], None]) -> None:
        """Calls back when the work that is put off by now has been done."""
        self._then.append(call)
        self._end_soon()

    def _end_soon(self) -> None:
        if not self._ends:
            self._ends = True
            asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        self._ends = False
        work, self._work = self._work, []
        then, self._then = self._then, []
        _run(work)
        _run(then)


def _run(calls: list[Callable[[], None]]) -> None:
    """All of them: they are of different people."""
    for call in calls:
        try:
            call()
        except Exception:
            log.exception("unexpected failure at the end of a turn")


class Soon:
    """A response that is there when the turn ends; None stands for one that cannot be given. Nobody has to wait for it
    in a task of his own."""

    __slots__ = ("frame", "response", "turn")

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.response: Any = None
        self.frame: Callable[[Any], list[Buffer]] | None = None
        """Makes of the response what is sent."""

    async def there(self) -> Any:
        """The response, for those who do have a task."""
        ended = asyncio.Event()
        self.turn.afterwards(ended.set)
        await ended.wait()
        if self.response is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return self.response
