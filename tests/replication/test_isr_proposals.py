"""What leaders propose reaches the controller: batched, until it is answered, and not after it is out of date."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from pykafka_broker.network.peer import PeerError
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    AlterPartitionTopicResult,
)
from pykafka_broker.replication.isr_proposals import IsrProposals
from pykafka_broker.replication.replica_state import Accepted, Proposal
from tests.replication.mini_cluster import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

import pytest

TOPIC = uuid4()


class Leading:
    """A partition as far as proposals go."""

    def __init__(self, index: int) -> None:
        self.topic, self.topic_id, self.index = "topic", TOPIC, index
        self.replica_state = SimpleNamespace(pending=None)
        self.answers: list[Any] = []
        self.again: Callable[[], None] | None = None

    def proposal(self, *isr: int) -> Proposal:
        made = Proposal(isr, leader_epoch=4, partition_epoch=8)
        self.replica_state.pending = made
        return made

    def isr_answered(self, proposal: Proposal, answer: Any) -> None:
        self.answers.append(answer)
        if self.again is not None:
            self.again()


class Controller:
    """Answers as it is told to."""

    def __init__(self) -> None:
        self.asked: list[AlterPartitionRequest] = []
        self.fail: list[Any] = []
        self.refusals: dict[int, ErrorCode] = {}
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def call(self, request: Any, *, newest: int | None = None, timeout_ms: float | None = None) -> Any:
        self.asked.append(request)
        await self.may_answer.wait()
        if self.fail:
            failure = self.fail.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return AlterPartitionResponse(error_code=failure)
        topics = [
            AlterPartitionTopicResult(
                topic_id=topic.topic_id,
                partitions=[self._result(wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
        return AlterPartitionResponse(topics=topics)

    def _result(self, wanted: Any) -> AlterPartitionResult:
        return AlterPartitionResult(
            partition_index=wanted.partition_index,
            error_code=self.refusals.get(wanted.partition_index, ErrorCode.NONE),
            leader_epoch=wanted.leader_epoch,
            isr=wanted.new_isr,
            partition_epoch=wanted.partition_epoch + 1,
        )

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
async def controller() -> Controller:
    return Controller()


@pytest.fixture
async def proposals(controller: Controller) -> AsyncIterator[Any]:
    made = IsrProposals(1, lambda: 77, lambda: controller)
    made.start()
    yield made
    await made.close()


def indexes(request: AlterPartitionRequest) -> list[tuple[UUID, int]]:
    return [(topic.topic_id, p.partition_index) for topic in request.topics for p in topic.partitions]


async def test_an_accepted_isr_comes_back_with_its_epoch(controller: Controller, proposals: Any) -> None:
    leading = Leading(0)
    proposals.propose(leading, leading.proposal(1, 2))
    await eventually(lambda: bool(leading.answers))
    assert leading.answers == [Accepted((1, 2), 4, 9)]
    (request,) = controller.asked
    assert (request.broker_id, request.broker_epoch) == (1, 77)
    (wanted,) = request.topics[0].partitions
    assert [member.broker_id for member in wanted.new_isr_with_epochs] == wanted.new_isr == [1, 2]


async def test_what_comes_while_one_request_is_under_way_goes_together_into_the_next(
    controller: Controller, proposals: Any
) -> None:
    leaders = [Leading(n) for n in range(4)]
    controller.may_answer.clear()
    proposals.propose(leaders[0], leaders[0].proposal(1))
    await eventually(lambda: len(controller.asked) == 1)
    for leading in leaders[1:]:
        proposals.propose(leading, leading.proposal(1))
    controller.may_answer.set()
    await eventually(lambda: all(leading.answers for leading in leaders))
    assert [len(indexes(request)) for request in controller.asked] == [1, 3]


async def test_no_answer_and_a_refusal_to_talk_are_asked_again(
    controller: Controller, proposals: Any
) -> None:
    leading = Leading(0)
    controller.fail = [PeerError("gone"), ErrorCode.STALE_BROKER_EPOCH]
    proposals.propose(leading, leading.proposal(1))
    await eventually(lambda: bool(leading.answers))
    assert len(controller.asked) == 3


async def test_a_proposal_out_of_date_is_not_sent_again(controller: Controller, proposals: Any) -> None:
    old, other = Leading(0), Leading(1)
    controller.fail = [PeerError("gone")]
    proposals.propose(old, old.proposal(1))
    await eventually(lambda: len(controller.asked) == 1)
    old.replica_state.pending = None  # the controller has spoken by itself
    proposals.propose(other, other.proposal(1))
    await eventually(lambda: bool(other.answers))
    assert indexes(controller.asked[-1]) == [(TOPIC, 1)]
    assert not old.answers


async def test_each_partition_gets_its_own_answer_and_a_missing_one_counts_as_unknown(
    controller: Controller, proposals: Any
) -> None:
    first, second = Leading(0), Leading(1)
    controller.refusals[1] = ErrorCode.INELIGIBLE_REPLICA
    proposals.propose(first, first.proposal(1))
    proposals.propose(second, second.proposal(1))
    await eventually(lambda: bool(first.answers and second.answers))
    assert isinstance(first.answers[0], Accepted)
    assert second.answers == [ErrorCode.INELIGIBLE_REPLICA]


async def test_what_is_proposed_again_at_once_is_paced(controller: Controller, proposals: Any) -> None:
    leading = Leading(0)
    controller.refusals[0] = ErrorCode.UNKNOWN_SERVER_ERROR
    leading.again = lambda: proposals.propose(leading, leading.replica_state.pending)
    proposals.propose(leading, leading.proposal(1))
    await eventually(lambda: len(leading.answers) >= 2)
    assert len(leading.answers) <= 3


async def test_without_a_controller_it_waits_for_one(controller: Controller) -> None:
    known: list[Controller] = []
    proposals = IsrProposals(1, lambda: 1, lambda: known[0] if known else None)
    proposals.start()
    leading: Any = Leading(0)
    proposals.propose(leading, leading.proposal(1))
    await asyncio.sleep(0)
    known.append(controller)
    await eventually(lambda: bool(leading.answers))
    await proposals.close()
