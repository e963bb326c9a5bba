"""What every release of Apache Kafka advertised, read out of its own jars: `python -m compat_tests.releases`.

Writes `pykafka_broker/handlers/release_table.py`, which `--as-release` works from. A program asks the ApiKeys and the
features of each release by reflection; that is what its broker derives its answer from, too. Brokers are asked for as
they were run: on ZooKeeper up to 3.9, where their jars can tell the two apart, and on KRaft from 4.0 on.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from compat_tests import provision
from pykafka_broker.protocol.api import ApiKey

RELEASES = {
    "0.9": "0.9.0.1",
    "0.10.0": "0.10.0.1",
    "0.10.1": "0.10.1.1",
    "0.10.2": "0.10.2.2",
    "0.11": "0.11.0.3",
    "1.0": "1.0.2",
    "1.1": "1.1.1",
    "2.0": "2.0.1",
    "2.1": "2.1.1",
    "2.2": "2.2.2",
    "2.3": "2.3.1",
    "2.4": "2.4.1",
    "2.5": "2.5.1",
    "2.6": "2.6.3",
    "2.7": "2.7.2",
    "2.8": "2.8.2",
    "3.0": "3.0.2",
    "3.1": "3.1.2",
    "3.2": "3.2.3",
    "3.3": "3.3.2",
    "3.4": "3.4.1",
    "3.5": "3.5.2",
    "3.6": "3.6.2",
    "3.7": "3.7.2",
    "3.8": "3.8.1",
    "3.9": "3.9.1",
    "4.0": "4.0.1",
    "4.1": "4.1.1",
    "4.2": "4.2.0",
    "4.3": "4.3.1",
    "4.4": "4.4.0",
}
"""A release, and the jars that are asked about it."""

PROGRAM = Path(__file__).parent / "harness" / "releases"
TABLE = Path(__file__).parent.parent / "pykafka_broker" / "handlers" / "release_table.py"
ONLY_WITH_A_RECEIVER = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
"""Advertised only by brokers that were given a plugin for them, which as they come they have not."""

NOT_YET = "0"
"""The highest version of a feature that is still under work; brokers do not show it."""

OF_THE_QUORUM = "kraft.version"
"""Switched on only where a cluster was formatted with voters that may change, which is not how most are."""

_HEAD = '''"""What releases of Apache Kafka advertised; made by `python -m compat_tests.releases`, not by hand."""

from __future__ import annotations

# ruff: noqa: E501, SIM905 -- a row is the whole history of an API

'''


@dataclass(frozen=True, slots=True)
class Advertised:
    """What one release offers: versions by API, and (lowest, highest, switched on) by feature."""

    apis: dict[int, tuple[int, int]]
    features: dict[str, tuple[int, int, int]]


def advertised(version: str) -> Advertised:
    """Ask the jars of a release."""
    libraries = Path(provision.kafka_classpath("4.3.1")).parent
    classpath = [provision.java_program(PROGRAM).partition(":")[0]]
    classpath.append(str(provision.jar("org.apache.kafka", "kafka-clients", version)))
    if int(version.split(".")[0]) >= 4:
        try:
            classpath.append(str(provision.jar("org.apache.kafka", "kafka-server-common", version)))
        except provision.Unavailable as reason:
            print(f"no features of {version}: {reason}", file=sys.stderr)
    classpath += map(str, sorted(libraries.glob("slf4j-api-*.jar")))
    command = [str(provision.java()), "-cp", ":".join(classpath), "Advertised"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in told.splitlines()]
    return Advertised(
        {
            int(row[1]): (int(row[2]), int(row[3]))
            for row in rows
            if row[0] == "api" and int(row[1]) not in ONLY_WITH_A_RECEIVER
        },
        {row[1]: _levels(row) for row in rows if row[0] == "feature" and row[3] != NOT_YET},
    )


def _levels(row: list[str]) -> tuple[int, int, int]:
    return int(row[2]), int(row[3]), 0 if row[1] == OF_THE_QUORUM else int(row[4])


def table(found: dict[str, Advertised]) -> str:
    """The text of the module: the history of each API as the releases in which it changed."""
    text = _HEAD + f'RELEASES = "{" ".join(found)}".split()\n\n'
    text += "APIS = {\n"
    for key in sorted({key for release in found.values() for key in release.apis}):
        history = _history({name: release.apis.get(key) for name, release in found.items()})
        text += f'    {key}: "{history}",  # {ApiKey(key).name}\n'
    text += '}\n"""Versions by API: "release oldest-newest" wherever they changed, "-" where the API went away."""\n\n'
    text += "FEATURES = {\n"
    for name in sorted({name for release in found.values() for name in release.features}):
        history = _history({of: release.features.get(name) for of, release in found.items()})
        text += f'    "{name}": "{history}",\n'
    text += '}\n"""Features: "release lowest-highest-switched on" wherever they changed."""\n'
    return text


def _history(values: dict[str, tuple[int, ...] | None]) -> str:
    changes = []
    before: tuple[int, ...] | None = None
    for release, value in values.items():
        if value != before:
            changes.append(f"{release} {'-'.join(map(str, value)) if value else '-'}")
        before = value
    return ", ".join(changes)


def main() -> None:
    TABLE.write_text(table({name: advertised(version) for name, version in RELEASES.items()}))


if __name__ == "__main__":
    main()
