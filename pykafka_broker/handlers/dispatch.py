"""From a frame to a reply: read the header, find the route, decode, handle, frame the response."""

from __future__ import annotations

from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from pykafka_broker.handlers import api_versions
from pykafka_broker.handlers.services import Call, Route, Services, error_code, error_text
from pykafka_broker.network.connection import InLine, ProtocolViolation
from pykafka_broker.protocol.api import ApiKey, RequestHeader, frame_response, read_request_header
from pykafka_broker.protocol.codec import decode
from pykafka_broker.protocol.errors import MalformedError
from pykafka_broker.turn import Soon

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from pykafka_broker.network.connection import Client, Reply
    from pykafka_broker.protocol.types import Buffer


_API_KEY: Final = 2
"""Bytes at the start of every request."""


class Dispatcher:
    """Handed to the network as its dispatch function."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._routes: Mapping[int, Route] = {route.api.key: route for route in services.served}

    def __call__(self, client: Client, frame: memoryview) -> list[Buffer] | Soon | InLine | Reply | None:
        try:
            header, body = read_request_header(frame)
            route = self._routes.get(header.api_key)
            if route is None:
                raise ProtocolViolation(f"unknown api key {header.api_key}")
            version = header.api_version
            if not route.oldest <= version <= route.newest:
                return self._unsupported(header)
            request = decode(route.api.request, version, frame, body)
        except MalformedError as error:
            raise ProtocolViolation(f"malformed request: {error}") from error
        call = Call(client, header.client_id, version)
        try:
            response = route.handler(self._services, call, request)
        except ProtocolViolation:
            raise
        except Exception as error:  # noqa: BLE001 -- a broker outlives any bug of one handler
            response = _failure(route, error)
        if type(response) is CoroutineType:
            later = self._later(route, header, response)
            return InLine(later, bytes(frame[:_API_KEY])) if route.in_line else later
        if type(response) is Soon:
            response.frame = partial(_framed, header)
            return response
        return None if response is None else _framed(header, response)

    async def _later(
        self, route: Route, header: RequestHeader, pending: Coroutine[Any, Any, Any]
    ) -> list[Buffer] | None:
        try:
            response = await pending
        except ProtocolViolation:
            raise
        except Exception as error:  # noqa: BLE001 -- as above
            response = _failure(route, error)
        return None if response is None else _framed(header, response)

    def _unsupported(self, header: RequestHeader) -> list[Buffer]:
        """Kafka answers an unknown ApiVersions version so that the client can step down, and hangs up on all others."""
        if header.api_key != ApiKey.API_VERSIONS:
            raise ProtocolViolation(f"unsupported version {header.api_version} of api key {header.api_key}")
        response = api_versions.unsupported_version(self._services)
        return frame_response(header.api_key, 0, header.correlation_id, response)


def _framed(header: RequestHeader, response: Any) -> list[Buffer]:
    try:
        return frame_response(header.api_key, header.api_version, header.correlation_id, response)
    except Exception as error:
        code = error_code(error)
        raise ProtocolViolation(f"{type(response).__name__} cannot be written: {code.name}") from error


def _failure(route: Route, error: Exception) -> Any:
    """A request that failed as a whole: its response's own error code, or a closed connection where it has none."""
    code = error_code(error)
    response = route.api.response()
    if not hasattr(response, "error_code"):
        raise ProtocolViolation(f"{route.api.request.__name__} failed: {code.name}") from error
    response.error_code = code
    if hasattr(response, "error_message"):
        response.error_message = error_text(error)
    return response
