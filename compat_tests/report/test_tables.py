"""The report tells the truth about the runs it was given."""

from __future__ import annotations

from compat_tests.report.__main__ import BEGIN, END, between_markers
from compat_tests.report.features import areas_of
from compat_tests.report.results import FAILED, PASSED, SKIPPED, ClientName, Result, Run
from compat_tests.report.tables import Card, document, summary

FRANZ = ClientName("franz-go", "1.22")
TRANSACTIONS = 24


def run(against: str, *outcomes: tuple[str, str], served: tuple[int, ...] = ()) -> Run:
    results = [Result(f"test-{n}", FRANZ, (f,), outcome) for n, (f, outcome) in enumerate(outcomes)]
    return Run(against, results, dict.fromkeys(served, (0, 1)))


def row(text: str, heading: str) -> str:
    """The line of the client in the table under a heading."""
    return next(line for line in text.partition(heading)[2].splitlines() if line.startswith("| franz-go"))


def test_one_failure_fails_the_cell_and_a_failure_that_kafka_shares_is_seen() -> None:
    ours = run("ours", ("produce: acks", PASSED), ("produce: acks", FAILED), ("big messages", FAILED))
    kafka = run("kafka-4.3.1", ("produce: acks", PASSED), ("big messages", FAILED))
    told = document(Card([ours, kafka], {}))
    assert (
        row(told, "## Producing")
        == "| franz-go 1.22 | ✗ / ✓ | · / · | · / · | · / · | · / · | · / · | ✗ / ✗ |"
    )
    assert "| `test-1` | pykafka-broker, Apache Kafka 4.3.1 |" in told
    apply = sum(len(area.features) for area in areas_of(FRANZ.name))
    assert f"| franz-go 1.22 | 0 of {apply} | 1 of {apply} |" in summary(Card([ours, kafka], {}))


def test_what_a_client_or_a_broker_cannot_do_is_not_applicable_and_what_nobody_tried_is_not_hidden() -> None:
    ours = run("ours", ("groups: new protocol", PASSED))
    kafka = run("kafka-3.9.1", ("groups: new protocol", SKIPPED))
    told = document(Card([ours, kafka], {"franz-go 1.22": {"groups: static members": "for a reason"}}))
    assert row(told, "## Groups") == "| franz-go 1.22 | · / · | n/a / n/a | ✓ / n/a | · / · |"
    assert "| groups: static members | franz-go 1.22 | for a reason |" in told


def test_a_framework_has_a_table_of_its_own_and_no_row_among_the_libraries() -> None:
    streams = ClientName("Kafka Streams", "4.3")
    counted = Result("test-streams", streams, ("streams: word count",), PASSED)
    ours = Run("ours", [*run("ours", ("produce: acks", PASSED)).results, counted])
    told = document(Card([ours], {}))
    assert [line for line in told.splitlines() if line.startswith("| Kafka Streams 4.3")] == [
        "| Kafka Streams 4.3 | ✓ |" + " · |" * (len(areas_of("Kafka Streams")[0].features) - 1)
    ]
    assert "franz-go" not in told.partition("## Kafka Streams")[2].partition("##")[0]


def test_what_is_not_yet_served_is_read_from_what_the_brokers_advertised() -> None:
    told = document(Card([run("ours"), run("kafka-4.3.1", served=(TRANSACTIONS,))], {}))
    assert "| transactions | not yet served | served, no test here |" in told


def test_the_table_replaces_only_what_stands_between_the_markers() -> None:
    assert between_markers(f"a\n{BEGIN}\nold\n{END}\nb\n", "new\n") == f"a\n{BEGIN}\nnew\n{END}\nb\n"
    assert between_markers("no markers\n", "new\n") == "no markers\n"
