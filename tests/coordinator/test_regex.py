"""Regular expressions over topic names: RE2's syntax, RE2's refusals, and no way to make them slow."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from compat_tests import provision
from pykafka_broker.coordinator.regex import TopicRegex
from pykafka_broker.coordinator.regex_syntax import InvalidRegex

NAMES = (
    *(
        "foo",
        "FOO",
        "foobar",
        "foo-12",
        "FOO-12",
        "a",
        "b",
        "c",
        "ab",
        "abc",
        "aaa",
        "aa",
        "a.b",
        "a-b",
        "foo.bar",
    ),
    *(
        "_",
        "-",
        ".",
        "12",
        "a1",
        "A",
        "k",
        "x",
        "xx",
        "bar",
        "topic-12.eu",
        "12-a_1",
        "foo_bar",
        "aababc",
        "e",
    ),
)
EXPRESSIONS = (
    *(
        r"foo.*",
        r"^foo$",
        r"a|b|",
        r"(a|b)*c",
        r"(?i)FOO-\d+",
        r"(?i:f)oo",
        r"(?-i)foo",
        r"(?P<n>foo)bar",
        r"(?<n>a)",
    ),
    *(
        r"[]a]+",
        r"[a-]+",
        r"[a-c-e]+",
        r"[[:alpha:]]+",
        r"[[:^alpha:]]+",
        r"[\d_]+",
        r"\pL+",
        r"\p{Lu}+",
        r"\PL",
    ),
    *(
        r"\Afoo\z",
        r"\bfoo\b",
        r"foo\b.*",
        r"foo\B.*",
        r"\Qa.b\E",
        r"a+?",
        r"a{2}",
        r"a{2,}",
        r"a{2,3}",
        r"a{,3}",
    ),
    *(
        r"a{x}",
        r"(|a)*",
        r"()*",
        r"^*",
        r"\x61",
        r"\x{61}",
        r"\141",
        r"foo\.bar",
        r"(?s).*",
        r"(?i)[^a-c]+",
        r"{2}",
    ),
    *(
        r"topic-[0-9]{1,3}(\.eu|\.us)?",
        r".*.*.*.*x",
        r"(a*)*b",
        r"\é",
        r"a||b",
        r"(?i-s:A)",
        r"(?im)FOO",
        r"(a{100}){11}",
    ),
)
REFUSED = (
    *(
        r"(a)\1",
        r"(?=foo)",
        r"(?!foo).*",
        r"(?<=a)b",
        r"(?<!a)b",
        r"(?>a)",
        r"(?#x)a",
        r"(?x)a",
        r"(?P=n)",
        r"(?-)",
    ),
    *(
        r"[z-a]",
        r"[[:foo:]]",
        r"[\b]",
        r"\p{Foo}",
        r"\C",
        r"\Z",
        r"a**",
        r"a???",
        r"a{3,2}",
        r"a{1001}",
        r"a{2}{3}",
    ),
    *(
        r"*a",
        r"+",
        r"|*",
        r"(",
        r")",
        r"[a",
        "\\",
        r"\q",
        r"\x{110000}",
        r"(?<n>a)(?<n>b)",
        r"(?P<>a)",
        r"(?i)*",
    ),
)
PIECES = [*"ab|*+?()[]^$.\\d-1x", "{2}", "{1,2}", "(?:", "(?i)", r"\b", r"\w", "[a-c]", r"\Q", r"\E"]


def ours(expression: str) -> str:
    try:
        regex = TopicRegex(expression)
    except InvalidRegex:
        return "refused"
    return "".join("01"[regex.matches(name)] for name in NAMES)


def test_expressions_are_matched_and_refused_as_by_kafkas_own_library() -> None:
    rng = random.Random(848)
    noise = ["".join(rng.choices(PIECES, k=rng.randint(1, 9))) for _ in range(3000)]
    expressions = [*EXPRESSIONS, *REFUSED, *noise]
    with provision.or_skip():
        classpath, java = provision.kafka_classpath("4.3.1"), provision.java()
    program = Path(__file__).with_name("MatchInJava.java")
    answers = subprocess.run(
        [str(java), "-cp", classpath, str(program)],
        input="\n".join("\t".join([expression, *NAMES]) for expression in expressions),
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    ).stdout.splitlines()
    assert {e: ours(e) for e in expressions} == dict(zip(expressions, answers, strict=True))


@pytest.mark.parametrize("expression", REFUSED)
def test_what_re2_cannot_do_is_refused(expression: str) -> None:
    with pytest.raises(InvalidRegex):
        TopicRegex(expression)


def test_the_whole_name_must_match() -> None:
    regex = TopicRegex("foo")
    assert regex.matches("foo")
    assert not regex.matches("foobar")
    assert not regex.matches("afoo")


@pytest.mark.parametrize(
    "expression", ["(a*)*b", "(a|aa)+b", "(.*)(.*)(.*)(.*)(.*)b", "(a?){249}a{249}b", "(a|a){500}b"]
)
def test_expressions_that_make_others_stall_take_no_time(expression: str) -> None:
    regex = TopicRegex(expression)
    start = time.perf_counter()
    assert not regex.matches("a" * 249)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("expression", ["(a{1000}){1000}", "(" * 500 + ")" * 500])
def test_expressions_out_of_all_proportion_are_refused(expression: str) -> None:
    with pytest.raises(InvalidRegex):
        TopicRegex(expression)


def test_ten_thousand_names_are_matched_quickly() -> None:
    regex = TopicRegex(r"orders-\d+\.(eu|us)")
    start = time.perf_counter()
    assert sum(regex.matches(f"orders-{n}.eu") for n in range(10_000)) == 10_000
    assert time.perf_counter() - start < 2
