"""A .properties text is read as Java reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pykafka_broker.config import ConfigError, parse_properties, read_properties

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb=2", {"a": "1", "b": "2"}),
        ("a:1\nb 2\nc\t=\t3", {"a": "1", "b": "2", "c": "3"}),
        ("# note\n! note\n\n   \n  a = 1", {"a": "1"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
        ("a=one,\\\n    two", {"a": "one,two"}),
        ("a=ends with a backslash\\\\\nb=2", {"a": "ends with a backslash\\", "b": "2"}),
        ("a=x\\\n# not a comment here", {"a": "x# not a comment here"}),
        ("a\\ b\\=c=1", {"a b=c": "1"}),
        ("a=\\u00e9\\t\\n\\q", {"a": "\u00e9\t\nq"}),
        ("a=1 # part of the value", {"a": "1 # part of the value"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a\nb=", {"a": "", "b": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a=last line\\", {"a": "last line"}),
        ("", {}),
    ],
)
def test_text_becomes_keys_and_values(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_file_may_be_written_as_java_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    for encoding in ("utf-8", "iso-8859-1"):
        file.write_bytes("# d\u00e9but\nbroker.rack=r\u00e9seau\n".encode(encoding))
        assert read_properties(file) == {"broker.rack": "r\u00e9seau"}


def test_an_escape_that_is_none_is_an_error() -> None:
    with pytest.raises(ConfigError, match="uxxxx"):
        parse_properties(r"a=\u00zz")
