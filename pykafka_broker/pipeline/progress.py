"""How a stage tells a person how far it has come."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[str], None]


def silent(_: str) -> None:
    """For callers that want no words."""


def counted(number: int, what: str) -> str:
    """`1 record`, `12,000 records`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
