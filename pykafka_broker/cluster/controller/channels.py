"""The way to the brokers: one queue each, in order, until the broker is gone."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pykafka_broker.cluster.controller.wire import from_wire, to_wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pykafka_broker.cluster.controller.requests import Request, Response
    from pykafka_broker.cluster.view import BrokerInfo

logger = logging.getLogger(__name__)

RETRY_BACKOFF_SECONDS = 0.1
"""As long as Kafka's controller waits before it sends a request again."""


class Channel(Protocol):
    """The way to one broker; `network.peer.Peer` is one."""

    async def call(
        self, request: object, *, newest: int | None = None, timeout_ms: float | None = None
    ) -> Any:
        """The answer to a message, or OSError if there is none; then it is sent again."""

    def close(self) -> None: ...


Connect: TypeAlias = "Callable[[BrokerInfo], Channel]"
Answered: TypeAlias = "Callable[[BrokerInfo, Request, Response], None]"


class BrokerQueue:
    """Requests to one registration of a broker. Owner: the Channels that made it."""

    def __init__(
        self,
        broker: BrokerInfo,
        channel: Channel,
        listener: str,
        answered: Answered,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.broker = broker
        self._channel = channel
        self._listener = listener
        self._answered = answered
        self._sleep = sleep
        self._requests: asyncio.Queue[Request] = asyncio.Queue()
        self.task = asyncio.get_running_loop().create_task(self._run())

    def put(self, request: Request) -> None:
        self._requests.put_nowait(request)

    def redirect(self, broker: BrokerInfo, channel: Channel) -> None:
        """The broker moved to another address; what is under way is sent again there."""
        self._channel.close()
        self.broker, self._channel = broker, channel

    def close(self) -> None:
        self.task.cancel()
        self._channel.close()

    async def _run(self) -> None:
        while True:
            request = await self._requests.get()
            wired = to_wire(request, self._listener)
            while (response := await self._try(request, wired.message, wired.newest)) is None:
                await self._sleep(RETRY_BACKOFF_SECONDS)
            self._answered(self.broker, request, response)

    async def _try(self, request: Request, message: object, newest: int) -> Response | None:
        kind = type(request).__name__
        try:
            return from_wire(request, await self._channel.call(message, newest=newest))
        except OSError as error:
            logger.info("%s did not reach broker %d yet: %s", kind, self.broker.id, error)
        except Exception:
            logger.exception("%s to broker %d failed", kind, self.broker.id)
        return None


class Channels:
    """Owner of the queues to all live brokers. A broker that comes back anew gets a new queue."""

    def __init__(
        self,
        connect: Connect,
        listener: str,
        answered: Answered,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._connect = connect
        self._listener = listener
        self._answered = answered
        self._sleep = sleep
        self._queues: dict[int, BrokerQueue] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def keep(self, brokers: Mapping[int, BrokerInfo]) -> None:
        """Opens the way to brokers that are new, and drops what was meant for those that are gone."""
        for broker_id, queue in list(self._queues.items()):
            now = brokers.get(broker_id)
            if now is None or now.epoch != queue.broker.epoch:
                self._drop(broker_id)
            elif now != queue.broker:
                queue.redirect(now, self._connect(now))
        for broker_id, broker in brokers.items():
            if broker_id not in self._queues:
                self._queues[broker_id] = BrokerQueue(
                    broker, self._connect(broker), self._listener, self._answered, self._sleep
                )

    def send(self, broker_id: int, request: Request) -> None:
        self._queues[broker_id].put(request)

    def drop_all(self) -> None:
        for broker_id in list(self._queues):
            self._drop(broker_id)

    async def close(self) -> None:
        self.drop_all()
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _drop(self, broker_id: int) -> None:
        queue = self._queues.pop(broker_id)
        queue.close()
        self._closing.add(queue.task)
        queue.task.add_done_callback(self._closing.discard)
