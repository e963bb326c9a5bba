"""Types, validators and printing of configuration values, as Apache Kafka reads and words them."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Protocol, TypeAlias

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None

LONG_MAX: Final = 2**63 - 1
INT_MAX: Final = 2**31 - 1

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class ConfigError(ValueError):
    """A property that cannot be served; the text is one line and names the property."""


class InvalidValueError(ValueError):
    """A value that does not fit its property; the text is worded as Kafka words it."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {name}: {reason}")


class ConfigType(enum.IntEnum):
    """Kafka's property types, numbered as DescribeConfigs numbers them."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(enum.Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


_WIDTHS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


class Validator(Protocol):
    def check(self, name: str, value: Value) -> None:
        """Raise InvalidValueError unless `value` may stand for the property `name`."""


@dataclass(frozen=True, slots=True)
class Range:
    low: int
    high: int | None = None

    def check(self, name: str, value: Value) -> None:
        if not isinstance(value, int | float):
            return
        if value < self.low:
            raise InvalidValueError(name, show(value), f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            raise InvalidValueError(name, show(value), f"Value must be no more than {self.high}")


@dataclass(frozen=True, slots=True)
class GzipLevel:
    """1 to 9, or -1 for the codec's own default: the one range in Kafka with a hole in it."""

    def check(self, name: str, value: Value) -> None:
        if value != -1 and not (isinstance(value, int) and 1 <= value <= 9):
            raise InvalidValueError(name, value, "Value must be between 1 and 9 or equal to -1")


@dataclass(frozen=True, slots=True)
class OneOf:
    """Every string of the value, one or a list of them, is among `choices`."""

    choices: tuple[str, ...]

    def check(self, name: str, value: Value) -> None:
        for item in value if isinstance(value, tuple) else (value,):
            if item not in self.choices:
                raise InvalidValueError(name, item, f"String must be one of: {', '.join(self.choices)}")


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """`*` alone, or partition:broker pairs."""

    def check(self, name: str, value: Value) -> None:
        if not isinstance(value, tuple) or value == ("*",):
            return
        if not all(re.fullmatch(r"[0-9]+:[0-9]+", item) for item in value):
            shown = f"[{', '.join(value)}]"
            form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
            raise InvalidValueError(
                name,
                shown,
                f"{name} must be the literal '*' or a list of replicas in the following format: {form}",
            )


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One property: what it is called, what it may hold, what it holds when nobody says, what it is for."""

    name: str
    type: ConfigType
    default: str | None
    validator: Validator | None = None
    importance: Importance = Importance.MEDIUM
    doc: str = ""
    effect: bool = True
    internal: bool = False  # Kafka hides it from DescribeConfigs
    retired: bool = False  # Kafka 3.9 knows it, 4.x does not

    def parse(self, text: str | None) -> Value:
        """The typed value of `text`; raises InvalidValueError in Kafka's words."""
        value = None if text is None else _parse(self.name, self.type, text)
        if self.validator is not None and value is not None:
            self.validator.check(self.name, value)
        return value

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD


def _parse(name: str, kind: ConfigType, text: str) -> Value:
    if kind is ConfigType.PASSWORD:
        return text
    text = text.strip()
    if kind is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise InvalidValueError(name, text, "Expected value to be either true or false")
        return text.lower() == "true"
    if kind is ConfigType.LIST:
        return tuple(item.strip() for item in text.split(",")) if text else ()
    if kind is ConfigType.DOUBLE:
        if not _DECIMAL.fullmatch(text):
            raise InvalidValueError(name, text, "Not a number of type DOUBLE")
        return float(text)
    if kind in _WIDTHS:
        limit = 1 << (_WIDTHS[kind] - 1)
        if not _WHOLE.fullmatch(text) or len(text) > 20 or not -limit <= int(text) < limit:
            raise InvalidValueError(name, text, f"Not a number of type {kind.name}")
        return int(text)
    return text


def show(value: Value) -> str | None:
    """The text Kafka's DescribeConfigs gives for a value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _show_double(value)
    return None if value is None else str(value)


def _show_double(value: float) -> str:
    """Java's Double.toString: plain from 0.001 to ten million, else digits and a power of ten."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    number = Decimal(repr(value)).normalize()
    sign, digits, _ = number.as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{number.adjusted()}"
