"""What a stage says when it cannot go on."""

from __future__ import annotations

import re

_OURS = re.compile(r"\b(?:PipelineError|SendFailed): (.+)")


class PipelineError(Exception):
    """A reason to stop that a person can act on; the command line prints it as one line and exits with 2."""


def one_line(error: BaseException) -> str:
    """What Spark's error comes down to: our own words where a task said them, else its first line."""
    text = str(error)
    if said := _OURS.search(text):
        return said[1].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
