"""Which transactions cleaning comes past: whether a batch was aborted, and whether a marker has outlived its data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafka_broker.protocol.records.control import EndTxnMarker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafka_broker.log.txn_index import AbortedTxn
    from pykafka_broker.protocol.records.batch import BatchHeader
    from pykafka_broker.protocol.records.control import ControlRecord


class CleanedTransactions:
    """Owner of the transactions that are open at the place cleaning has come to; batches are shown to it in log order.

    `retained` collects the aborted transactions that keep their markers: the transaction index of what was cleaned."""

    __slots__ = ("_aborted", "_coming", "_committed", "_seen", "retained")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._coming = sorted(aborted, key=lambda txn: txn.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTxn] = {}  # by producer id, as are the other two
        self._seen: set[int] = set()  # of those, the ones with a batch that is still there
        self._committed: set[int] = set()
        self.retained: list[AbortedTxn] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch of data belongs to an aborted transaction, and so may go."""
        self._come_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._seen.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def is_spent(self, header: BatchHeader, control: ControlRecord | None) -> bool:
        """Whether a control batch has nothing left to say: no batch of its transaction was met, or (with `control`
        None) it was emptied before."""
        self._come_to(header.last_offset)
        producer_id = header.producer_id
        if control is None:
            return True
        if not isinstance(control, EndTxnMarker):
            return False
        if control.commit:
            met = producer_id in self._committed
            self._committed.discard(producer_id)
            return not met
        txn = self._aborted.pop(producer_id, None)
        if txn is None or producer_id not in self._seen:
            return True
        self._seen.discard(producer_id)
        self.retained.append(txn)
        return False

    def _come_to(self, offset: int) -> None:
        while self._coming and self._coming[-1].first_offset <= offset:
            txn = self._coming.pop()
            self._aborted.setdefault(txn.producer_id, txn)
