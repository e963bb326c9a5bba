"""ApiVersions 0-5. What is advertised is what is in the table of routes, nothing else.

A version newer than ours is answered in the form of version 0 with UNSUPPORTED_VERSION and the ranges, so that the
client can step down. A bad client name is INVALID_REQUEST, as in Kafka.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pykafka_broker.handlers.releases import NEEDS, Feature
from pykafka_broker.protocol.api import ApiKey
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from pykafka_broker.handlers.services import Call, Services

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_NAMED_SINCE = 3
_ADDRESSED_SINCE = 5
_ZERO_MINIMUM_SINCE = 4


_OUR_FEATURES = (Feature("group.version", 0, 1, 1),)
_NO_FEATURES_EPOCH = -1


def handle(services: Services, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.version >= _NAMED_SINCE and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if call.version >= _ADDRESSED_SINCE and _wrong_broker(services, request):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    features = _features(services)
    knows_features = services.release is None or services.release.has_features
    return ApiVersionsResponse(
        api_keys=_ranges(services),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, lowest, highest, _ in features
            if lowest > 0 or call.version >= _ZERO_MINIMUM_SINCE  # older clients take a 0 for an error
        ],
        finalized_features_epoch=0 if knows_features else _NO_FEATURES_EPOCH,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, _, _, level in features
            if level > 0
        ],
    )


def unsupported_version(services: Services) -> ApiVersionsResponse:
    if services.release is not None and not services.release.tells_its_range:
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    own = [key for key in _ranges(services) if key.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


def _features(services: Services) -> list[Feature]:
    """Features whose API is served, of the release that is shown or our own."""
    known = _OUR_FEATURES if services.release is None else services.release.features
    served = {route.api.key for route in services.served}
    return [feature for feature in known if NEEDS.get(feature.name) in {None, *served}]


def _ranges(services: Services) -> list[ApiVersion]:
    return [
        ApiVersion(api_key=route.api.key, min_version=route.advertised_from, max_version=route.newest)
        for route in services.served
    ]


def _wrong_broker(services: Services, request: ApiVersionsRequest) -> bool:
    """The client says whom it means to reach; another cluster or node answering at the address sends it back."""
    cluster_id = services.metadata.view.cluster_id
    return (request.cluster_id is not None and request.cluster_id != cluster_id) or (
        request.node_id not in (-1, services.broker_id)
    )
