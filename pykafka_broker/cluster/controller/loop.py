"""The controller at work: wins the election, reacts to one event at a time, commits, and tells the brokers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pykafka_broker.cluster import znodes
from pykafka_broker.cluster.controller import events
from pykafka_broker.cluster.controller.channels import Channels
from pykafka_broker.cluster.controller.commit import ControllerMoved, commit
from pykafka_broker.cluster.controller.observer import TreeObserver
from pykafka_broker.cluster.controller.office import claim, give_up
from pykafka_broker.cluster.controller.planner import plan
from pykafka_broker.cluster.controller.requests import LeaderAndIsr, StopReplica
from pykafka_broker.cluster.controller.state import ControllerState
from pykafka_broker.cluster.store import SessionExpired, SessionState, StoreClosed, StoreError
from pykafka_broker.cluster.view import NO_CONTROLLER, ClusterView
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pykafka_broker.clock import Clock
    from pykafka_broker.cluster.controller.channels import Connect
    from pykafka_broker.cluster.controller.office import Claim
    from pykafka_broker.cluster.controller.requests import Request, Response
    from pykafka_broker.cluster.controller.state import ControllerSettings
    from pykafka_broker.cluster.store import Store, Unwatch
    from pykafka_broker.cluster.view import BrokerInfo

logger = logging.getLogger(__name__)
Job: TypeAlias = "Callable[[], Awaitable[None]]"

_FIRST_BALANCE_SECONDS = 5.0
_BACKOFF_SECONDS = 0.1


class Controller:
    """A candidate on every broker, active on one. Owner of the ControllerState, and of all changes to partitions.

    Everything happens in one task, one job at a time. A job of the tree says only that something changed; what,
    is read when its turn comes, so a hundred changes may be one job.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: ControllerSettings,
        connect: Connect,
        on_change: Callable[[ControllerState], None] = lambda _: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`on_change` is called with each state after it was committed, while active."""
        self._store = store
        self._clock = clock
        self._settings = settings
        self._on_change = on_change
        self._sleep = sleep
        self._state = ControllerState(ClusterView(""))
        self._claim: Claim | None = None
        self._controller_id = NO_CONTROLLER
        self._jobs: asyncio.Queue[tuple[str | None, Job]] = asyncio.Queue()
        self._queued: set[str] = set()
        self._waiting: set[asyncio.Future[Any]] = set()
        self._channels = Channels(connect, settings.inter_broker_listener, self._answered, sleep)
        self._observer = TreeObserver(store, self._changed)
        self._unwatch: list[Unwatch] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_active(self) -> bool:
        return self._claim is not None

    @property
    def controller_id(self) -> int:
        """Whoever holds the office as far as known here, -1 for nobody."""
        return self._controller_id

    @property
    def state(self) -> ControllerState:
        """As last committed; of use only while active."""
        return self._state

    async def start(self) -> None:
        """Becomes a candidate. The broker should be registered by then, so that it can lead partitions."""
        self._unwatch.append(self._store.on_session(self._session_changed))
        self._unwatch.append(await self._store.watch_data(znodes.CONTROLLER, self._changed))
        self._changed(znodes.CONTROLLER)
        self._tasks.append(asyncio.get_running_loop().create_task(self._work()))
        if self._settings.auto_leader_rebalance_enable:
            self._tasks.append(asyncio.get_running_loop().create_task(self._balance_now_and_then()))

    async def close(self) -> None:
        """Stops at once. The office is left with the session, which belongs to the caller."""
        for unwatch in self._unwatch:
            unwatch()
        self._unwatch.clear()
        self._resign()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._channels.close()

    async def submit(self, event: events.Event) -> Any:
        """The outcome of a request, committed: see `planner.plan`. KafkaError NOT_CONTROLLER if not active."""
        if self._claim is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.add(answer)
        answer.add_done_callback(self._waiting.discard)
        self._put(None, partial(self._serve, event, answer))
        return await answer

    # The queue

    def _put(self, key: str | None, job: Job) -> None:
        if key is None or key not in self._queued:
            if key is not None:
                self._queued.add(key)
            self._jobs.put_nowait((key, job))

    def _changed(self, path: str) -> None:
        self._put(path, self._look_at_office if path == znodes.CONTROLLER else partial(self._observe, path))

    async def _work(self) -> None:
        while True:
            key, job = await self._jobs.get()
            if key is not None:
                self._queued.discard(key)
            if self._claim is None and key != znodes.CONTROLLER:
                continue
            try:
                await job()
            except ControllerMoved:
                logger.info("another controller was elected")
                self._resign_and_look()
            except SessionExpired:
                self._resign()  # and looks again when there is a new session
            except StoreClosed:
                self._resign()
                return
            except StoreError as error:
                logger.warning("the tree is not what it was thought to be, it is read again: %s", error)
                await self._recover()
            except Exception:
                logger.exception("the controller met what it did not expect, it reads the tree again")
                await self._recover()

    async def _recover(self) -> None:
        """Starts over from the tree; if not even that can be done, somebody else shall try."""
        await self._sleep(_BACKOFF_SECONDS)
        held = self._claim
        if held is None:
            self._changed(znodes.CONTROLLER)
            return
        try:
            await self._read_everything()
        except ControllerMoved:
            self._resign_and_look()
        except (SessionExpired, StoreClosed):
            self._resign()
        except StoreError as error:
            logger.warning("the tree could not be read and settled, it is tried again: %s", error)
            self._put("recover", self._recover)
        except Exception:
            logger.exception("the controller cannot settle the tree, it resigns")
            self._resign_and_look()
            with contextlib.suppress(StoreError):
                await give_up(self._store, held)

    # The office

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._resign()
        elif state is SessionState.CONNECTED:
            self._changed(znodes.CONTROLLER)

    async def _look_at_office(self) -> None:
        """The node of the controller may have come, gone or changed hands."""
        node = (await self._store.get_many([znodes.CONTROLLER]))[0]
        self._controller_id = NO_CONTROLLER if node is None else znodes.decode_controller(node.data)
        ours = node is not None and node.ephemeral_owner == self._store.session_id
        if self._claim is not None and ours:
            return
        self._resign()
        if node is not None and not ours:
            return
        held = await claim(self._store, self._settings.broker_id, self._clock.wall_ms())
        if held is None:
            self._changed(znodes.CONTROLLER)
            return
        logger.info("broker %d is the controller, in epoch %d", self._settings.broker_id, held.epoch)
        self._claim = held
        self._controller_id = self._settings.broker_id
        await self._read_everything()

    def _resign(self) -> None:
        self._claim = None
        self._observer.close()
        self._channels.drop_all()
        for answer in list(self._waiting):
            if not answer.done():
                answer.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER))

    def _resign_and_look(self) -> None:
        self._resign()
        self._changed(znodes.CONTROLLER)

    # Reacting

    async def _react(self, event: events.Event) -> Any:
        held = self._claim
        if held is None:
            raise ControllerMoved
        planned = plan(self._state, event, self._settings)
        await commit(self._store, held.epoch_version, planned)
        if self._claim is not held:
            raise ControllerMoved
        old, self._state = self._state, planned.state
        self._observer.forget_topics(old.view.topics.keys() - planned.state.view.topics.keys())
        self._channels.keep(planned.state.view.brokers)
        for broker_id, request in planned.requests:
            self._channels.send(broker_id, request)
        self._on_change(planned.state)
        return planned.outcome

    async def _serve(self, event: events.Event, answer: asyncio.Future[Any]) -> None:
        """A request whose commit failed is judged anew on what the tree holds then, once."""
        if answer.done():
            return
        try:
            try:
                outcome = await self._react(event)
            except StoreError as error:
                if isinstance(error, SessionExpired | StoreClosed):
                    raise
                logger.warning("the tree is not what it was thought to be, it is read again: %s", error)
                await self._read_everything()
                outcome = await self._react(event)
        except KafkaError as error:
            _fail(answer, error)
        except (ControllerMoved, SessionExpired, StoreClosed):
            _fail(answer, KafkaError(ErrorCode.NOT_CONTROLLER))
            raise
        except Exception:
            _fail(answer, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            raise
        else:
            if not answer.done():
                answer.set_result(outcome)

    def _answered(self, broker: BrokerInfo, request: Request, response: Response) -> None:
        if response.error is not ErrorCode.NONE:
            logger.warning(
                "broker %d answered %s with %s", broker.id, type(request).__name__, response.error.name
            )  # fmt: skip
        if isinstance(request, LeaderAndIsr):
            event: events.Event = events.LeaderAndIsrAnswered(broker.id, broker.epoch, response)
        elif isinstance(request, StopReplica) and response.partitions:
            event = events.StopReplicaAnswered(broker.id, broker.epoch, response)
        else:
            return
        self._put(None, partial(self._react_to_answer, event))

    async def _react_to_answer(self, event: events.Event) -> None:
        await self._react(event)

    async def _balance_now_and_then(self) -> None:
        while True:
            held = self._claim
            await self._sleep(
                _FIRST_BALANCE_SECONDS
                if held is None
                else self._settings.leader_imbalance_check_interval_seconds
            )
            if self._claim is not None:
                self._put("balance", partial(self._react_to_answer, events.BalanceLeaders()))

    async def _read_everything(self) -> None:
        await self._react(await self._observer.everything())

    async def _observe(self, path: str) -> None:
        for event in await self._observer.read(path, self._state):
            await self._react(event)


def _fail(answer: asyncio.Future[Any], error: KafkaError) -> None:
    if not answer.done():
        answer.set_exception(error)
