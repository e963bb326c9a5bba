"""Every record held against the definitions inside Apache Kafka's own group coordinator."""

from __future__ import annotations

import functools
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from compat_tests import provision
from pykafka_broker.coordinator import records
from pykafka_broker.protocol.types import parse_versions, spec_of
from tests.protocol.test_against_kafka_json import our_shape, their_shape

DECLARED = [
    cls for name, cls in vars(records).items() if isinstance(cls, type) and name.endswith(("Key", "Value"))
]
NAMES = {cls.__name__: cls for cls in DECLARED}


@functools.cache
def definitions(release: str) -> dict[str, dict[str, Any]]:
    with provision.or_skip():
        classpath = provision.kafka_classpath(release)
    found = {}
    jar = f"kafka-group-coordinator-{release}.jar"
    for path in classpath.split(":"):
        for archive in Path(path.removesuffix("*")).glob(jar) if path.endswith("*") else [Path(path)]:
            if archive.name == jar:
                found |= _read(archive)
    return found


def _read(archive: Path) -> dict[str, dict[str, Any]]:
    found = {}
    with zipfile.ZipFile(archive) as jar:
        for name in jar.namelist():
            if re.fullmatch(r"common/message/\w+\.json", name):
                text = jar.read(name).decode()
                text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
                definition = json.loads(text, object_hook=_with_null_spelled_out)
                found[definition["name"]] = definition
    return found


def _with_null_spelled_out(item: dict[str, Any]) -> dict[str, Any]:
    """Some of these files say null where those of the requests say "null". A tagged struct that is absent is
    None to us in any case."""
    if "default" in item and item["default"] is None and item["type"].startswith("[]"):
        return {**item, "default": "null"}
    return item


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_record_has_the_fields_kafka_4_gives_it(name: str) -> None:
    definition, cls = definitions("4.3.1")[name], NAMES[name]
    assert spec_of(cls).api_key == definition["apiKey"]
    assert spec_of(cls).versions == parse_versions(definition["validVersions"])
    for version in spec_of(cls).versions:
        assert our_shape(cls, version) == their_shape(definition, version), f"version {version}"
        assert (version in spec_of(cls).flexible) == (
            version in parse_versions(definition["flexibleVersions"])
        )


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_record_of_kafka_3_reads_the_same_but_for_what_came_later(name: str) -> None:
    definition = definitions("3.9.1").get(name)
    if definition is None:
        assert "RegularExpression" in name, "only these are younger than 3.9"
        return
    for version in parse_versions(definition["validVersions"]):
        if name.endswith("Key"):
            # Before 4.0 the type of a key was called its version.
            version = 0
            definition = {
                **definition,
                "fields": [{**field, "versions": "0"} for field in definition["fields"]],
            }
        ours = our_shape(NAMES[name], version)
        assert _untagged(ours) == _untagged(their_shape(definition, version)), f"version {version}"


def _untagged(shape: Any) -> Any:
    """Tagged fields can be added to a version at any time."""
    if isinstance(shape, list) and shape and isinstance(shape[0], tuple):
        return [(field[0], _untagged(field[1]), *field[2:]) for field in shape if field[3] is None]
    if isinstance(shape, list) and shape and shape[0] == "array":
        return ["array", _untagged(shape[1])]
    return shape
