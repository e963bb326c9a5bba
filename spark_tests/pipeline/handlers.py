"""Handlers the retry tests name on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykafka_broker.pipeline.retry import Attempt


class Refused(Exception):
    """What a handler raises when a record cannot be dealt with."""


def picky(attempt: Attempt) -> None:
    """Succeeds at once, at the third attempt, or never, as the value asks."""
    if attempt.value == b"never" or (attempt.value == b"third" and attempt.number < 3):
        raise Refused(f"attempt {attempt.number} of {attempt.value!r}")
