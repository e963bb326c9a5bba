"""The command line, as Kafka's own: `pykafka-broker [server.properties] [--override key=value]...`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import signal
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafka_broker.broker import Broker
    from pykafka_broker.config import BrokerConfig

PROGRAM = "pykafka-broker"
_LARGEST_MEASURE = (32 << 20) - (64 << 10)
_STOPPED = 130
"""What programs say that Ctrl-C has stopped."""
_COLLECT_AFTER = (50_000, 20, 50)


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] == "dump-log":
        from pykafka_broker import dump_log

        parser = argparse.ArgumentParser(
            f"{PROGRAM} dump-log", description="Print the files of a log for people."
        )
        dump_log.add_arguments(parser)
        return dump_log.run(parser.parse_args(arguments[1:]))
    try:
        return _serve_command(arguments)
    except (KeyboardInterrupt, asyncio.CancelledError):
        print(f"{PROGRAM}: stopped before it had started", file=sys.stderr)
        return _STOPPED


def _serve_command(arguments: Sequence[str]) -> int:
    _seldom_collect_garbage()
    # Not imported before: making all the classes would take longer.
    from pykafka_broker.broker import StartError, new_event_loop
    from pykafka_broker.config import BrokerConfig, ConfigError

    parser = argparse.ArgumentParser(
        PROGRAM,
        description="A Kafka broker. Properties carry Apache Kafka's names and defaults.",
        epilog=f"`{PROGRAM} dump-log FILE...` prints the files of a log.",
    )
    parser.add_argument("properties", nargs="?", type=Path, help="a server.properties file")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set one property; may be repeated",
    )
    parser.add_argument(
        "--as-release",
        metavar="RELEASE",
        help="offer only what this release of Apache Kafka did, 3.9 for example",
    )
    parser.add_argument("--log-level", default="WARNING", choices=["DEBUG", "INFO", "WARNING", "ERROR"])
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {version(PROGRAM)}")
    options = parser.parse_args(arguments)
    logging.basicConfig(
        level=options.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        config = BrokerConfig.load(_properties(options.properties, options.override))
    except (ConfigError, OSError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    for warning in config.warnings:
        print(f"{PROGRAM}: warning: {warning}", file=sys.stderr)
    _allow_many_files()
    _keep_freed_memory()
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(config, options.as_release))
    except StartError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    return 0


def _properties(path: Path | None, overrides: Sequence[str]) -> dict[str, str]:
    from pykafka_broker.config import ConfigError, read_properties

    properties = read_properties(path) if path is not None else {}
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--override {override}: expected key=value")
        properties[key.strip()] = value
    return properties


async def _serve(config: BrokerConfig, as_release: str | None) -> None:
    from pykafka_broker.broker import Broker

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    me = asyncio.current_task()
    assert me is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, me.cancel)  # a start may take long, and be given up
    async with Broker(config, as_release=as_release) as broker:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        _welcome(broker)
        gc.freeze()  # what is there now stays until the end: there is nothing to look for in it
        await stop.wait()
        print("shutting down", flush=True)


def _welcome(broker: Broker) -> None:
    """A few lines for people; programs read the `listening on` lines."""
    print(f"{PROGRAM} {version(PROGRAM)}, broker {broker.broker_id} of cluster {broker.cluster_id}")
    for host, port in broker.bound:
        print(f"listening on {host}:{port}")
    print(f"data in {', '.join(str(path) for path in broker.log_dirs)}")
    print(f"first message:  echo hello | kcat -P -b {broker.bootstrap_servers} -t greetings", flush=True)


def _allow_many_files() -> None:
    """Every partition and connection holds a descriptor; take all the system grants."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _seldom_collect_garbage() -> None:
    """Next to nothing here is garbage in cycles, but the requests of one turn of the loop are more objects than a
    collection waits for by default: a quarter of the time of a commit went into finding that all of them are in use.
    """
    gc.set_threshold(*_COLLECT_AFTER)


def _keep_freed_memory() -> None:
    """Let glibc's allocator keep a few megabytes that were freed, instead of giving them back after every fetch.

    A fetch of several partitions holds several buffers of a megabyte. The allocator takes the largest block that was
    mapped and freed, up to 32 MiB, as the measure of what to keep; unless it has seen one, every fetch pays for
    fresh zeroed pages, which is seven times what the reading costs. Untouched, the block itself takes no memory.
    """
    bytearray(_LARGEST_MEASURE)
