"""Every declaration held against the definitions inside the kafka-clients jars of two releases.

3.9.1 is the last release with the oldest versions, 4.4.0 the newest; what we declare is the union of both.
"""

from __future__ import annotations

import functools
import json
import re
import zipfile
from typing import Any

import pytest

from compat_tests import provision
from pykafka_broker.protocol.api import APIS, ApiKey
from pykafka_broker.protocol.types import ZERO_UUID, Array, Scalar, Sized, parse_versions, spec_of

from .strategies import MESSAGES

RELEASES = ("3.9.1", "4.4.0")


@functools.cache
def definitions(release: str) -> dict[str, dict[str, Any]]:
    """By message name, the JSON of a release; comments are no part of JSON and go."""
    with provision.or_skip():
        path = provision.jar("org.apache.kafka", "kafka-clients", release)
    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"common/message/\w+\.json", name):
                text = archive.read(name).decode()
                definition = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
                found[definition["name"]] = definition
    return found


def versions_of(definition: dict[str, Any]) -> range:
    return parse_versions(definition["validVersions"])


# A field as (name, type, nullable, tag, default), where a struct's type is the list of its own fields.
Shape = list[tuple[Any, ...]]


def their_shape(definition: dict[str, Any], version: int) -> Shape:
    common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
    return _their_fields(definition["fields"], common, version)


def _their_fields(fields: list[dict[str, Any]], common: dict[str, Any], version: int) -> Shape:
    shape = []
    for field in fields:
        if version not in parse_versions(field["versions"]):
            continue
        is_array = field["type"].startswith("[]")
        base = field["type"].removeprefix("[]")
        struct = field.get("fields") or common.get(base)
        described = _their_fields(struct, common, version) if struct else base
        tagged = version in parse_versions(field.get("taggedVersions", "none"))
        shape.append(
            (
                _snake_case(field["name"]),
                ["array", described] if is_array else described,
                version in parse_versions(field.get("nullableVersions", "none")),
                field["tag"] if tagged else None,
                _their_default(field, is_array, base, struct is not None),
            )
        )
    return shape


def _their_default(field: dict[str, Any], is_array: bool, base: str, is_struct: bool) -> object:
    default = field.get("default")
    if default == "null" or base == "records":
        return None
    if is_array:
        return []
    if is_struct:
        return "struct"
    if base == "string":
        return default or ""
    if base == "bool":
        return str(default).lower() == "true"
    if base in ("bytes", "uuid"):
        return {"bytes": b"", "uuid": ZERO_UUID}[base]
    return int(str(default or 0), 0)


def our_shape(cls: type[Any], version: int) -> Shape:
    return [
        (
            field.name,
            _our_type(field.type, version),
            version in field.nullable,
            field.tag if version in field.tagged else None,
            _our_default(field),
        )
        for field in spec_of(cls).fields
        if version in field.versions
    ]


def _our_type(wire_type: Any, version: int) -> object:
    if isinstance(wire_type, Array):
        return ["array", _our_type(wire_type.element, version)]
    return wire_type.name if isinstance(wire_type, Scalar | Sized) else our_shape(wire_type, version)


def _our_default(field: Any) -> object:
    if isinstance(field.type, type):
        # A tagged struct that is absent is None to us, and a struct of defaults to Kafka.
        absent_is_default = field.default is None and field.tag is not None
        return "struct" if absent_is_default or field.default is not None else None
    return field.default


def _snake_case(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_fields_of_every_version_are_those_of_the_release(cls: type[Any], release: str) -> None:
    definition = definitions(release)[cls.__name__]
    assert spec_of(cls).api_key == definition["apiKey"]
    for version in versions_of(definition):
        assert our_shape(cls, version) == their_shape(definition, version), f"version {version}"


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_versions_are_the_union_of_both_releases(cls: type[Any]) -> None:
    older, newer = (definitions(release)[cls.__name__] for release in RELEASES)
    both = {*versions_of(older), *versions_of(newer)}
    assert {*spec_of(cls).versions} == both
    # What 4.x no longer speaks it still names, without versions and fields.
    for definition in (release for release in (older, newer) if versions_of(release)):
        flexible = parse_versions(definition["flexibleVersions"])
        for version in both:
            assert (version in spec_of(cls).flexible) == (version in flexible), f"version {version}"


def test_every_api_of_either_release_has_its_key() -> None:
    theirs = {
        (definition["apiKey"], _snake_case(name.removesuffix("Request")).upper())
        for release in RELEASES
        for name, definition in definitions(release).items()
        if definition["type"] == "request"
    }
    # ListConfigResources was called otherwise in 3.9.
    theirs.discard((74, "LIST_CLIENT_METRICS_RESOURCES"))
    assert {(key.value, key.name) for key in ApiKey} == theirs


def test_request_and_response_of_an_api_agree_on_versions() -> None:
    for api in APIS.values():
        assert spec_of(api.response).versions == api.versions
        assert spec_of(api.response).flexible == api.flexible
        assert spec_of(api.request).api_key == spec_of(api.response).api_key == api.key
