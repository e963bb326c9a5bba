"""Which APIs and versions a broker serves: the first exchange on a connection."""

from __future__ import annotations

from pykafka_broker.protocol.types import array, boolean, field, int16, int32, int64, message, string, struct


@message(api_key=18, versions="0-5", flexible="3+")
class ApiVersionsRequest:
    """Asks what is served, and says which client asks."""

    client_software_name: str = field(string, "3+")
    client_software_version: str = field(string, "3+")
    cluster_id: str | None = field(string, "5+", nullable="5+", default=None)
    node_id: int = field(int32, "5+", default=-1)


@struct
class ApiVersion:
    """One API and the versions of it that are served."""

    api_key: int = field(int16, "0+")
    min_version: int = field(int16, "0+")
    max_version: int = field(int16, "0+")


@struct
class SupportedFeatureKey:
    """A feature the broker can do."""

    name: str = field(string, "3+")
    min_version: int = field(int16, "3+")
    max_version: int = field(int16, "3+")


@struct
class FinalizedFeatureKey:
    """A feature that is switched on in the whole cluster."""

    name: str = field(string, "3+")
    max_version_level: int = field(int16, "3+")
    min_version_level: int = field(int16, "3+")


@message(api_key=18, versions="0-5", flexible="3+")
class ApiVersionsResponse:
    """What is served. Its header is always version 0, whatever its own version."""

    error_code: int = field(int16, "0+")
    api_keys: list[ApiVersion] = field(array(ApiVersion), "0+")
    throttle_time_ms: int = field(int32, "1+")
    supported_features: list[SupportedFeatureKey] = field(array(SupportedFeatureKey), "3+", tag=0)
    finalized_features_epoch: int = field(int64, "3+", tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = field(array(FinalizedFeatureKey), "3+", tag=2)
    zk_migration_ready: bool = field(boolean, "3+", tag=3)
