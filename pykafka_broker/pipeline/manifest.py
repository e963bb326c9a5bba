"""What belongs to an archive: a row of numbered commits, each put in place whole.

A commit adds files, removes files, or both, and says up to which offsets the archive now reaches: data and position
change in one step, so a writer that dies leaves either all of its round or nothing. Readers see the files of the
commits they found; compaction adds and removes in one commit, so nobody sees a record twice or not at all.

Every hundredth commit is followed by a summary of all so far (`<number>.state`), so that an old archive opens as
quickly as a young one. A summary that is missing or damaged costs time and nothing else.

Layout: `_commits/<number>.json`, and data as `topic=<name>/date=<yyyy-mm-dd>/<file>.parquet`.
"""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pykafka_broker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pykafka_broker.pipeline.storage import Storage
    from pykafka_broker.pipeline.topics import Place, Range

COMMITS = "_commits"
_SUMMARY = ".state"
STAGING = "_staging"
SUMMARY_EVERY = 100
FORGET_SECONDS = 7 * 86_400.0
"""How long a summary remembers a file that was replaced."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One step of an archive."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    ranges: tuple[tuple[str, int, int, int], ...] = ()
    """Topic, partition, first offset and end of what was read from the broker."""
    gaps: tuple[tuple[str, int, int, int], ...] = ()
    """In the same form: what was gone before it could be archived, and accepted as lost."""
    json_schema: str | None = None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class State:
    """An archive after its last commit."""

    commits: int = 0
    files: frozenset[str] = frozenset()
    covered: Mapping[Place, Range] = field(default_factory=dict)
    gaps: tuple[tuple[str, int, int, int], ...] = ()
    json_schema: str | None = None
    removed_at: Mapping[str, float] = field(default_factory=dict)

    def after(self, commit: Commit) -> State:
        covered = dict(self.covered)
        for topic, number, first, end in commit.ranges:
            place = (topic, number)
            covered[place] = (covered[place][0] if place in covered else first, end)
        return State(
            commits=self.commits + 1,
            files=self.files - set(commit.removed) | set(commit.added),
            covered=covered,
            gaps=self.gaps + commit.gaps,
            json_schema=commit.json_schema or self.json_schema,
            removed_at=dict(self.removed_at) | dict.fromkeys(commit.removed, commit.at),
        )

    @property
    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self.covered})


@dataclass(frozen=True, slots=True)
class Manifest:
    """The commits of the archive in a directory."""

    storage: Storage

    def load(self, *, must_exist: bool = False) -> State:
        """The archive as it is now. PipelineError names a commit that is damaged or missing."""
        found = [file.name for file in self.storage.files(COMMITS)]
        names = [name for name in found if name.endswith(".json")]
        state = self._summarised([name for name in found if name.endswith(_SUMMARY)])
        for name in names:
            if name < self._name(state.commits):
                continue
            if name != self._name(state.commits):
                raise PipelineError(
                    f"archive {self.storage.root}: commit {self._name(state.commits)} is missing, later ones are there"
                )
            state = state.after(self._read(name))
        if must_exist and not names:
            raise PipelineError(f"{self.storage.root}: no archive here")
        return state

    def commit(self, commit: Commit, after: State) -> State:
        """Make it so. PipelineError if somebody else committed records of the same partitions meanwhile."""
        state, stamped = after, Commit(**{**asdict(commit), "at": commit.at or time.time()})
        while not self.storage.create(self._name(state.commits), json.dumps(asdict(stamped), indent=1)):
            state = self.load()
            moved = [
                place
                for place in commit_places(commit)
                if state.covered.get(place) != after.covered.get(place)
            ]
            if moved or not set(commit.removed) <= state.files:
                raise PipelineError(
                    f"archive {self.storage.root}: another job is writing to it; this round was not kept"
                )
        state = state.after(stamped)
        if state.commits % SUMMARY_EVERY == 0:
            self.storage.create(self._name(state.commits, _SUMMARY), _summary(state))
        return state

    def check_files(self, state: State, wanted: Iterable[str]) -> None:
        """PipelineError unless all these files of the archive are there."""
        there = {found.name for found in self.storage.files()}
        if missing := sorted(set(wanted) - there):
            raise PipelineError(
                f"archive {self.storage.root} has a hole: {len(missing)} of its {len(state.files)} files are missing,"
                f" the first is {missing[0]}"
            )

    def _read(self, name: str) -> Commit:
        try:
            found: dict[str, Any] = json.loads(self.storage.read(name))
            tuples = {key: tuple(map(tuple, found[key])) for key in ("ranges", "gaps")}
            lists = {key: tuple(found[key]) for key in ("added", "removed")}
            return Commit(**{**found, **tuples, **lists})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise PipelineError(f"archive {self.storage.root}: commit {name} is damaged: {error}") from error

    def _summarised(self, names: list[str]) -> State:
        """The newest summary that reads well; the empty archive if there is none."""
        for name in sorted(names, reverse=True):
            with contextlib.suppress(ValueError, TypeError, KeyError):
                return _parse_summary(self.storage.read(name))
        return State()

    @staticmethod
    def _name(number: int, suffix: str = ".json") -> str:
        return f"{COMMITS}/{number:020d}{suffix}"


def _summary(state: State) -> str:
    forgotten = time.time() - FORGET_SECONDS
    return json.dumps(
        {
            "commits": state.commits,
            "files": sorted(state.files),
            "covered": [[*place, *offsets] for place, offsets in state.covered.items()],
            "gaps": state.gaps,
            "json_schema": state.json_schema,
            "removed_at": {name: at for name, at in state.removed_at.items() if at > forgotten},
        }
    )


def _parse_summary(text: str) -> State:
    found = json.loads(text)
    return State(
        commits=found["commits"],
        files=frozenset(found["files"]),
        covered={(topic, number): (first, end) for topic, number, first, end in found["covered"]},
        gaps=tuple(map(tuple, found["gaps"])),
        json_schema=found["json_schema"],
        removed_at=found["removed_at"],
    )


def commit_places(commit: Commit) -> list[Place]:
    return [(topic, number) for topic, number, _, _ in commit.ranges]
