"""`pykafka-pipeline`: one subcommand a stage. Progress goes to standard error, the summary to standard output.

Exit codes: 0 done, 1 the job ran and found something wrong, 2 it could not run, 130 stopped by hand.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from pykafka_broker.pipeline.errors import PipelineError, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

COULD_NOT_RUN = 2
STOPPED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; what it prints and its exit code are its interface."""
    arguments = parser().parse_args(argv)
    try:
        from pykafka_broker.pipeline import commands
        from pykafka_broker.pipeline.session import pipeline_session
    except ModuleNotFoundError as error:
        print(f"{error}: pip install 'pykafka-broker[spark]'", file=sys.stderr)
        return COULD_NOT_RUN
    settings = {"spark.log.level": "WARN"} | arguments.conf if arguments.verbose else arguments.conf
    print(f"starting Spark at {arguments.master}", file=sys.stderr, flush=True)
    try:
        with pipeline_session(arguments.master, arguments.jars, settings, verbose=arguments.verbose) as spark:
            return commands.run(spark, arguments)
    except (PipelineError, *commands.SPARK_ERRORS) as error:
        if arguments.verbose:
            raise
        print(f"pykafka-pipeline {arguments.stage}: {one_line(error)}", file=sys.stderr)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print(f"pykafka-pipeline {arguments.stage}: stopped", file=sys.stderr)
        return STOPPED


class _Pairs(argparse.Action):
    """Collects `name=value` into a dictionary."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        name, equals, value = str(values).partition("=")
        if not equals or not name:
            parser.error(f"{option_string} {values}: expected name=value")
        setattr(namespace, self.dest, {**getattr(namespace, self.dest), name: value})


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="pykafka-pipeline", description="Pipelines on Spark around a Kafka broker."
    )
    stages = top.add_subparsers(dest="stage", required=True, metavar="stage")
    _archive(
        stages.add_parser("archive", help="topics into Parquet, exactly once", parents=[_spark(), _kafka()])
    )
    _compact(
        stages.add_parser("compact", help="small files of an archive into large ones", parents=[_spark()])
    )
    _replay(stages.add_parser("replay", help="an archive back into topics", parents=[_spark(), _kafka()]))
    _audit(stages.add_parser("audit", help="an archive against the broker's disk", parents=[_spark()]))
    _aggregate(stages.add_parser("aggregate", help="SQL over topics", parents=[_spark(), _kafka()]))
    _retry(
        stages.add_parser(
            "retry", help="a handler, with retries and dead letters", parents=[_spark(), _kafka()]
        )
    )
    redrive = stages.add_parser(
        "redrive", help="dead letters back into their topic", parents=[_spark(), _kafka()]
    )
    redrive.add_argument("--topic", required=True, help="the topic whose dead letters go back")
    redrive.add_argument("--group", help="whose offsets say which went back already; <topic>-redrive")
    return top


def _spark() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    group = options.add_argument_group("Spark")
    group.add_argument("--master", default="local[*]", help="where to run; local[*]")
    group.add_argument(
        "--jars", help="the Kafka connector's jars, with commas; fetched through Ivy if not given"
    )
    group.add_argument("--conf", action=_Pairs, default={}, metavar="NAME=VALUE", help="a setting of Spark")
    group.add_argument("--verbose", action="store_true", help="show what Spark logs, and errors in full")
    return options


def _kafka() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    group = options.add_argument_group("Kafka")
    group.add_argument("--bootstrap", default="127.0.0.1:9092", help="the broker's address; 127.0.0.1:9092")
    group.add_argument(
        "--kafka",
        action=_Pairs,
        default={},
        metavar="NAME=VALUE",
        help="a setting of Spark's connector (Java client)",
    )
    group.add_argument(
        "--client",
        action=_Pairs,
        default={},
        metavar="NAME=VALUE",
        help="a setting of librdkafka, used for the rest",
    )
    return options


def _follow(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--follow", action="store_true", help="go on until stopped, instead of ending when done"
    )


def _archive(options: argparse.ArgumentParser) -> None:
    options.add_argument("--topic", action="append", required=True, help="may be given several times")
    options.add_argument(
        "--path", required=True, help="the archive: a directory, or a URL that Spark can write to"
    )
    options.add_argument(
        "--starting", choices=("earliest", "latest"), default="earliest", help="for new partitions"
    )
    options.add_argument("--json-schema", help="decode values into a column json: 'team string, minute int'")
    options.add_argument(
        "--on-bad-value", choices=("keep", "fail"), default="keep", help="for values that do not decode"
    )
    options.add_argument(
        "--allow-gaps", action="store_true", help="go on where records were deleted unarchived"
    )
    options.add_argument("--max-records", type=int, default=5_000_000, help="in one round; 5000000")
    _follow(options)


def _compact(options: argparse.ArgumentParser) -> None:
    options.add_argument("--path", required=True, help="the archive")
    options.add_argument("--target-mb", type=int, default=128, help="size of the files to make; 128")
    options.add_argument(
        "--keep-seconds", type=float, default=3600.0, help="replaced files stay this long; 3600"
    )


def _replay(options: argparse.ArgumentParser) -> None:
    options.add_argument("--path", required=True, help="the archive")
    options.add_argument("--topic", action="append", default=[], help="of the archive; all if none is given")
    options.add_argument(
        "--into", action=_Pairs, default={}, metavar="TOPIC=TARGET", help="send a topic elsewhere"
    )
    options.add_argument("--since", help="from this time on: 2024-05-01T12:00:00Z")
    options.add_argument("--until", help="before this time")
    options.add_argument("--first-offset", type=int, help="of every partition")
    options.add_argument("--end-offset", type=int, help="of every partition, not counted in")
    options.add_argument(
        "--speed", type=float, help="1: as it happened, 60: an hour a minute; as fast as possible"
    )
    options.add_argument("--create-topics", action="store_true", help="make the topics that are not there")


def _audit(options: argparse.ArgumentParser) -> None:
    options.add_argument("--path", required=True, help="the archive")
    options.add_argument("--log-dirs", required=True, help="the broker's log.dirs")
    options.add_argument("--topic", action="append", default=[], help="all of the archive's if none is given")


def _aggregate(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--topic", action="append", required=True, metavar="[VIEW=]TOPIC", help="a view for the SQL"
    )
    options.add_argument("--sql", required=True, help="the statement; @file reads it from a file")
    options.add_argument(
        "--schema", action=_Pairs, default={}, metavar="VIEW=COLUMNS", help="what a view's JSON values hold"
    )
    options.add_argument(
        "--event-time", default="timestamp", help="the column that tells the time; timestamp"
    )
    options.add_argument("--watermark", default="1 minute", help="how late a record may be; '1 minute'")
    options.add_argument("--mode", choices=("append", "update", "complete"), default="append")
    options.add_argument("--to-topic", help="results as JSON")
    options.add_argument("--to-parquet", help="results as files")
    options.add_argument("--key", help="the column that becomes the key of records")
    options.add_argument("--checkpoint", required=True, help="where positions and state are kept")
    options.add_argument("--starting", choices=("earliest", "latest"), default="earliest")
    options.add_argument(
        "--on-bad-value", choices=("skip", "fail"), default="skip", help="for values that do not decode"
    )
    _follow(options)


def _retry(options: argparse.ArgumentParser) -> None:
    options.add_argument("--topic", required=True)
    options.add_argument("--handler", required=True, metavar="MODULE:FUNCTION", help="raises when it fails")
    options.add_argument("--tiers", type=int, default=3, help="how often a record is tried again; 3")
    options.add_argument(
        "--first-delay", type=float, default=10.0, help="seconds before the second attempt; 10"
    )
    options.add_argument(
        "--factor", type=float, default=3.0, help="each delay is this many times the last; 3"
    )
    options.add_argument("--group", help="whose offsets are the job's positions; <topic>-retry")
    _follow(options)
