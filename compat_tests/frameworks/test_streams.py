"""Kafka Streams, at least once: counting and joining, on topics it makes for itself, through stops and deaths."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from compat_tests.frameworks.topics import Reader, Said, bounds, configs, wait_for_commit, write
from compat_tests.servers import wait_until

if TYPE_CHECKING:
    from compat_tests.conftest import MakeBroker
    from compat_tests.frameworks.conftest import MakeApplication
    from compat_tests.frameworks.streams import Application

NEWEST, OLDER = "4.3.1", "3.9.1"
WORDS = ("der", "mond", "ist", "aufgegangen", "die", "goldnen", "sternlein", "prangen")
ONE_DAY_MS = 24 * 60 * 60 * 1000
"""Windowed changelogs are kept for the windows, and this longer."""


def named(*versions: str, long: bool) -> list:
    marks = [pytest.mark.long] if long else []
    return [pytest.param(v, marks=[pytest.mark.client("Kafka Streams", v), *marks]) for v in versions]


BOTH = pytest.mark.parametrize("version", named(NEWEST, OLDER, long=True))
NEWEST_ALWAYS = pytest.mark.parametrize("version", [*named(NEWEST, long=False), *named(OLDER, long=True)])


def lines(count: int, seed: int) -> list[str]:
    chosen = random.Random(seed)
    return [" ".join(chosen.choices(WORDS, k=5)) for _ in range(count)]


def counted(*texts: list[str]) -> dict[str, str]:
    found = Counter(word for text in texts for line in text for word in line.split())
    return {word: str(count) for word, count in found.items()}


def tell(app: Application, text: list[str]) -> None:
    """Lines without a key, over all partitions."""
    said = [Said(None, line, partition=number % 2) for number, line in enumerate(text)]
    write(app.broker.bootstrap, app.inputs[0], said)


def lately() -> int:
    """A timestamp some minutes ago: what is much older is deleted by retention before it is read."""
    return int(time.time() * 1000) - 600_000


def settled(app: Application) -> None:
    """All that was written is counted, and committed as such."""
    read = [*app.inputs, app.internal("by-word-repartition")]
    wait_for_commit(app.broker.bootstrap, app.name, *read)


def at_least(found: dict[str | None, str | None], wanted: dict[str, str]) -> bool:
    return all(int(found.get(word) or 0) >= int(count) for word, count in wanted.items())


@pytest.mark.feature("streams: word count", "streams: killed and replaced")
@NEWEST_ALWAYS
def test_words_are_counted_and_a_killed_instance_is_replaced_from_the_changelog(
    application: MakeApplication, version: str
) -> None:
    app = application(version, "word-count")
    before, during, after = lines(200, 1), lines(2000, 2), lines(100, 3)
    with Reader(app.broker.bootstrap, app.output) as reader:
        tell(app, before)
        first = app.start(member="the-one")
        reader.wait(lambda: reader.latest() == counted(before), "the words are counted")
        settled(app)
        tell(app, during)
        first.kill()
        tell(app, after)
        second = app.start(member="the-one")  # on a new disk: it has the counts from the broker or not at all
        everything = counted(before, during, after)
        reader.wait(lambda: at_least(reader.latest(), everything), "nothing is lost")
        settled(app)
        # What was committed before the kill is not counted again.
        again = counted(before, during, during, after)
        assert at_least(again, reader.latest())
    restored = [line.split() for line in second.lines("restored counts")]
    assert sum(int(count) for *_, count in restored) > 0
    second.finish()


@pytest.mark.feature("streams: stopped and started")
@BOTH
@pytest.mark.parametrize("disk", ["kept", None], ids=["with-its-disk", "on-a-new-disk"])
def test_a_stopped_instance_goes_on_exactly_where_it_was(
    application: MakeApplication, version: str, disk: str | None
) -> None:
    app = application(version, "word-count")
    rounds = [lines(300, seed) for seed in (4, 5, 6)]
    told: list[list[str]] = []
    with Reader(app.broker.bootstrap, app.output) as reader:
        for text in rounds:
            tell(app, text)
            told.append(text)
            instance = app.start(disk)
            reader.wait(lambda: reader.latest() == counted(*told), "the words are counted")
            instance.finish()
    # Not one update was lost or made twice.
    assert len(reader.records) == 5 * 900


@pytest.mark.feature("streams: instances share the work")
@BOTH
def test_instances_share_the_tasks_and_take_over_from_one_that_was_killed(
    application: MakeApplication, version: str
) -> None:
    app = application(version, "word-count")
    all_tasks = ["0_0", "0_1", "1_0", "1_1"]
    with Reader(app.broker.bootstrap, app.output) as reader:
        tell(app, before := lines(300, 7))
        one = app.start()
        reader.wait(lambda: reader.latest() == counted(before), "one instance counts alone")
        another = app.start()

        def shared() -> bool:
            mine, theirs = one.ask("tasks").split(), another.ask("tasks").split()
            return len(mine) == len(theirs) == 2 and sorted(mine + theirs) == all_tasks

        wait_until(shared, "each has two tasks", 90)
        tell(app, during := lines(300, 8))
        reader.wait(lambda: reader.latest() == counted(before, during), "both count")
        settled(app)
        one.kill()
        tell(app, after := lines(300, 9))
        wait_until(lambda: another.ask("tasks").split() == all_tasks, "it takes over the tasks", 90)
        reader.wait(lambda: reader.latest() == counted(before, during, after), "the rest is counted")
        another.finish()


@pytest.mark.feature("streams: broker killed and restarted")
@BOTH
def test_an_instance_goes_on_when_the_broker_was_killed_and_is_back(
    application: MakeApplication, own_broker: MakeBroker, version: str
) -> None:
    broker = own_broker(group_initial_rebalance_delay_ms=0)
    app = application(version, "word-count", on=broker)
    before, during, after = lines(300, 11), lines(3000, 12), lines(300, 13)
    with Reader(broker.bootstrap, app.output) as reader:
        tell(app, before)
        instance = app.start()
        reader.wait(lambda: reader.latest() == counted(before), "the words are counted")
        tell(app, during)
        broker.kill()
        broker.start()
        tell(app, after)
        reader.wait(lambda: at_least(reader.latest(), counted(before, during, after)), "nothing is lost")
        settled(app)
        # A request that was answered by nobody is sent again; what it had brought is not counted twice.
        assert at_least(counted(before, during, during, after), reader.latest())
        instance.finish()


@pytest.mark.feature("streams: internal topics")
@BOTH
def test_internal_topics_are_as_streams_made_them_and_what_was_counted_is_purged(
    application: MakeApplication, version: str
) -> None:
    app = application(version, "word-count")
    repartition, changelog = app.internal("by-word-repartition"), app.internal("counts-changelog")
    bootstrap = app.broker.bootstrap
    with Reader(bootstrap, app.output) as reader:
        tell(app, text := lines(500, 10))
        instance = app.start()
        reader.wait(lambda: reader.latest() == counted(text), "the words are counted")
    settled(app)
    wait_until(
        lambda: all(begin == end for begin, end in bounds(bootstrap, repartition).values()),
        "DeleteRecords moves the beginning of the repartition topic to what was counted",
        60,
    )
    assert len(bounds(bootstrap, repartition)) == len(bounds(bootstrap, changelog)) == 2
    assert all(begin == 0 for begin, _ in bounds(bootstrap, changelog).values())
    made = configs(bootstrap, repartition)
    assert made["cleanup.policy"] == "delete"
    assert made["retention.ms"] == "-1"
    assert made["segment.bytes"] == "52428800"
    assert made["message.timestamp.type"] == "CreateTime"
    kept = configs(bootstrap, changelog)
    assert kept["cleanup.policy"] == "compact"
    assert kept["message.timestamp.type"] == "CreateTime"
    instance.finish()


@pytest.mark.feature("streams: stream-table join")
@BOTH
def test_each_order_is_joined_with_what_the_table_says_at_the_time(
    application: MakeApplication, version: str
) -> None:
    app = application(version, "table-join", inputs=2)
    orders, users = app.inputs
    bootstrap, start = app.broker.bootstrap, lately()
    write(
        bootstrap,
        users,
        [
            Said("u1", "anna", start + 1000),
            Said("u2", "bert", start + 1000),
            Said("u3", "cleo", start + 1000),
        ],
    )
    write(bootstrap, orders, [Said(f"u{n}", f"tea{n}", start + 2000) for n in (1, 2, 3, 4)])
    with Reader(bootstrap, app.output) as reader:
        first = app.start(member="the-one")
        joined = {"u1": "tea1 by anna", "u2": "tea2 by bert", "u3": "tea3 by cleo", "u4": "tea4 by null"}
        reader.wait(lambda: reader.latest() == joined, "orders are joined")
        write(
            bootstrap,
            users,
            [
                Said("u1", "antonia", start + 3000),
                Said("u2", None, start + 3000),
                Said("u4", "doro", start + 3000),
            ],
        )
        wait_for_commit(bootstrap, app.name, users, orders)
        first.kill()
        app.start(member="the-one")
        write(bootstrap, orders, [Said(f"u{n}", f"jam{n}", start + 4000) for n in (1, 2, 3, 4)])
        later = {"u1": "jam1 by antonia", "u2": "jam2 by null", "u3": "jam3 by cleo", "u4": "jam4 by doro"}
        reader.wait(lambda: reader.latest() == later, "orders are joined with the table as it was kept")


@pytest.mark.feature("streams: windowed join")
@BOTH
def test_views_are_joined_with_the_clicks_of_their_window(application: MakeApplication, version: str) -> None:
    app = application(version, "windowed-join", inputs=2, partitions=1)
    views, clicks = app.inputs
    bootstrap = app.broker.bootstrap
    start = lately()
    write(
        bootstrap,
        views,
        [Said("a", "v1", start), Said("b", "v2", start + 1000), Said("c", "v3", start + 2000)],
    )
    write(
        bootstrap,
        clicks,
        [
            Said("a", "c1", start + 3000),
            Said("a", "c2", start + 4000),
            Said("b", "c3", start + 11_000),  # the last moment
            Said("c", "c4", start + 12_001),  # a moment too late
        ],
    )
    with Reader(bootstrap, app.output) as reader:
        first = app.start(member="the-one")
        in_time = [("a", "v1+c1"), ("a", "v1+c2"), ("b", "v2+c3")]
        reader.wait(lambda: all(pair in reader.pull() for pair in in_time), "what is near is joined")
        wait_for_commit(bootstrap, app.name, views, clicks)
        first.kill()
        app.start(member="the-one")
        # A later view closes the window of the one that met nobody, and meets a click of before the kill.
        write(bootstrap, views, [Said("b", "v4", start + 21_000), Said("a", "v5", start + 30_000)])
        wanted = {*in_time, ("c", "v3+null"), ("b", "v4+c3")}
        reader.wait(lambda: wanted <= set(reader.pull()), "windows live on in their changelogs")
        assert set(reader.pull()) == wanted
    stores = ("pairs-this-join-store", "pairs-outer-other-join-store", "pairs-left-shared-join-store")
    kept = [configs(bootstrap, app.internal(f"{store}-changelog")) for store in stores]
    assert [config["cleanup.policy"] for config in kept] == ["delete", "delete", "compact"]
    assert all(int(config["retention.ms"]) > ONE_DAY_MS for config in kept[:2])


@pytest.mark.feature("streams: word count", "streams: internal topics")
@BOTH
def test_words_of_each_minute_live_in_a_changelog_that_compacts_and_deletes(
    application: MakeApplication, version: str
) -> None:
    app = application(version, "windowed-count", partitions=1)
    bootstrap, minute = app.broker.bootstrap, 60_000
    start = lately() // minute * minute
    write(bootstrap, app.inputs[0], [Said(None, "mond mond stern", start + n * minute) for n in range(3)])
    with Reader(bootstrap, app.output) as reader:
        first = app.start(member="the-one")
        minutes = {
            f"{word}@{start + n * minute}": count
            for n in range(3)
            for word, count in (("mond", "2"), ("stern", "1"))
        }
        reader.wait(lambda: reader.latest() == minutes, "words are counted by the minute")
        wait_for_commit(bootstrap, app.name, app.inputs[0], app.internal("by-word-repartition"))
        first.kill()
        app.start(member="the-one")
        write(bootstrap, app.inputs[0], [Said(None, "mond", start + minute + 1)])
        later = minutes | {f"mond@{start + minute}": "3"}
        reader.wait(lambda: reader.latest() == later, "a count of an earlier minute goes on")
    kept = configs(bootstrap, app.internal("by-minute-changelog"))
    assert sorted(kept["cleanup.policy"].split(",")) == ["compact", "delete"]
    assert int(kept["retention.ms"]) > ONE_DAY_MS
