"""Changing the finalized levels of features."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, boolean, field, int8, int16, int32, message, string, struct


@struct
class FeatureUpdateKey:
    """A feature and its new level, 0 to take it away."""

    feature: str = field(string, "0+")
    max_version_level: int = field(int16, "0+")
    allow_downgrade: bool = field(boolean, "0")
    upgrade_type: int = field(int8, "1+", default=1)


@message(api_key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    """Features and the levels they shall have."""

    timeout_ms: int = field(int32, "0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = field(array(FeatureUpdateKey), "0+")
    validate_only: bool = field(boolean, "1+")


@struct
class UpdatableFeatureResult:
    """A feature and whether its level was changed."""

    feature: str = field(string, "0+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+")


@message(api_key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """Whether the levels were changed."""

    throttle_time_ms: int = field(int32, "0+")
    error_code: int = field(int16, "0+")
    error_message: str | None = field(string, "0+", nullable="0+")
    results: list[UpdatableFeatureResult] = field(array(UpdatableFeatureResult), "0-1")
