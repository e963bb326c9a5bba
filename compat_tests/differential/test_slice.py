"""A slice of the differential run for every day: a tour through all versions and a few stories, against 4.3.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.differential.run import Comparison
from compat_tests.provision import or_skip

if TYPE_CHECKING:
    from pathlib import Path

TOUR = 0
STORIES = range(TOUR, 6)


async def test_ours_answers_a_tour_and_a_few_stories_as_apache_kafka_does(tmp_path: Path) -> None:
    with or_skip():
        comparison = Comparison(tmp_path, "4.3.1")
        async with comparison:
            for number in STORIES:
                found = await comparison.tell(number)
                assert not found, "\n".join(
                    f"story {number}: {each}\n  {each.step.request}" for each in found
                )
    assert not comparison.never_asked()
