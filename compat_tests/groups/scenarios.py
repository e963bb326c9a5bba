"""What must hold for every client's groups; each test names the client and the size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.groups.crew import Feed, everything_arrives

if TYPE_CHECKING:
    from compat_tests.groups.crew import Crew, Program


def share(
    crew: Crew, feed: Feed, size: int, assignor: str | None = None, metadata: str | None = None
) -> dict[str, set[int]]:
    """A group of this size gives each member a part and all of them every record; who held what."""
    feed.send(240)
    program = crew.start(*names(size), assignor=assignor, metadata=metadata)
    owners = crew.settle(program)
    feed.send(240)
    everything_arrives(crew, feed)
    program.leave()
    crew.assert_one_owner_at_a_time()
    return owners


def live(crew: Crew, size: int) -> None:
    """One member of a group comes, leaves, comes again and is killed, comes again and falls silent for a
    while. The others take over each time, and records that are written all along are delivered."""
    with Feed(crew.broker.bootstrap, crew.topic) as feed:
        rest = [crew.start(*names(size - 1))] if size > 1 else []
        if rest:
            crew.settle(*rest)
        one = arrive(crew, rest)
        if crew.client.watched:
            with feed.held():
                everything_arrives(crew, feed)
                one.leave()
        else:
            one.leave()
        crew.settle(*rest)
        one = arrive(crew, rest)
        one.kill()
        crew.settle(*rest)
        one = arrive(crew, rest)
        if crew.client.wakes:
            one.freeze()
            crew.settle(*rest)
            one.thaw()
            crew.settle(*rest, one)
    everything_arrives(crew, feed)
    for program in (*rest, one):
        program.leave()
    crew.assert_one_owner_at_a_time()


def arrive(crew: Crew, rest: list[Program]) -> Program:
    """One member more, and the group settled around it."""
    one = crew.start("guest")
    crew.settle(*rest, one)
    return one


def names(count: int) -> list[str]:
    return [f"member-{n}" for n in range(count)]
