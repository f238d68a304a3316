"""Requests through a keystoneauth session, which finds the server and renews tokens.

keystoneauth is an extra of Roost: import this module only where it is used.
"""

from __future__ import annotations

import ssl
import sys
import time
from collections.abc import Iterator
from io import BytesIO

from keystoneauth1 import exceptions as keystone
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from requests import RequestException, Response
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError
from urllib3.response import BaseHTTPResponse

from roost.client.errors import (
    AnswerLost,
    NotConfigured,
    PlacementAPIConnectFailure,
    TransportFailed,
)
from roost.client.transport.http import (
    Timeouts,
    canonical_url,
    http_address,
    in_words,
    read_body,
    without_user,
)
from roost.client.transport.messages import (
    PlacementRequest,
    PlacementResponse,
    ServerAddress,
)
from roost.client.transport.retrying import RetryingTransport, RetryPolicy
from roost.model.text import without_user_info

SERVICE_TYPE = "placement"


class SessionTransport(RetryingTransport):
    """Talks to the `placement` service of a cloud, with a session or an adapter of keystoneauth.

    The arguments take precedence over the adapter. Without `timeout` the timeout of the session
    applies, and without that the default of `Timeouts`. Messages call the server `description`;
    its default is the endpoint or the identity service of the session.

    `close` closes the session only if `owns_session`.
    """

    def __init__(
        self,
        session_or_adapter: Session | Adapter,
        *,
        region_name: str | None = None,
        interface: str | list[str] | None = None,
        endpoint_override: str | None = None,
        timeout: Timeouts | float | None = None,
        global_request_id: str | None = None,
        retries: RetryPolicy | None = None,
        description: str | None = None,
        owns_session: bool = False,
    ) -> None:
        super().__init__(retries=retries, global_request_id=global_request_id)
        self._adapter = _placement_adapter(
            session_or_adapter, region_name, interface, endpoint_override
        )
        self._session = _session_below(self._adapter)
        given = self._session.timeout if timeout is None else timeout
        self._timeouts = Timeouts.of(given)
        self._description = description or _description(self._adapter, self._session)
        self._owns_session = owns_session

    def describe(self) -> str:
        """The endpoint, or the cloud whose catalog has the endpoint."""
        return self._description

    def address(self) -> ServerAddress:
        """The endpoint of the catalog, and the project of the token; asks for a token if needed."""
        outside = sys.exception()
        try:
            self._make_ready()
            endpoint = self._adapter.get_endpoint() or ""
            return ServerAddress(canonical_url(endpoint), self._adapter.get_project_id())
        except keystone.ClientException as error:
            raise self._not_ready(error, outside) from error

    def close(self) -> None:
        """Close the session, if the transport owns it."""
        if self._owns_session:
            self._session.session.close()

    def _attempt(self, request: PlacementRequest) -> PlacementResponse:
        # A caller may send while it handles another exception, which is no cause of a failure here.
        outside = sys.exception()
        until = time.monotonic() + self._timeouts.answer
        try:
            self._make_ready()
        except keystone.ClientException as error:
            raise self._not_ready(error, outside) from error
        try:
            answer = self._adapter.request(
                request.path,
                request.method,
                data=request.content(),
                headers=self._headers(request),
                timeout=(self._timeouts.connect, self._timeouts.read),
                raise_exc=False,
                redirect=False,
                # Retries of keystoneauth repeat claims as well.
                connect_retries=0,
                # The session would read an answer without bounds.
                stream=True,
                hooks={"response": lambda answer, **_: self._read(answer, until)},
            )
        except keystone.ClientException as error:
            raise self._failed(error, outside) from error
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return PlacementResponse(answer.status_code, headers, answer.content)

    def _read(self, answer: Response, until: float) -> None:
        """Read the body, before the session does."""
        raw: BaseHTTPResponse = answer.raw
        try:
            content = read_body(raw, self, until)
        except HTTPError as error:
            # The session turns it into an error of its own, as it does while it reads itself.
            raise RequestException(error) from error
        answer.raw = BytesIO(content)

    def _make_ready(self) -> None:
        """Get a token and the endpoint, if the session has none yet.

        The session would do that as part of the request. A failure of the identity service would
        then look like a failure of a request that was sent.
        """
        identity = getattr(self._adapter.auth or self._session.auth, "auth_url", None)
        if identity:
            http_address(identity)
        try:
            self._adapter.get_token()
        except keystone.MissingAuthPlugin:
            if self._adapter.endpoint_override is None:
                raise
        endpoint = self._adapter.get_endpoint()
        if not endpoint:
            raise keystone.EndpointNotFound
        http_address(endpoint)

    def _not_ready(
        self, error: keystone.ClientException, outside: BaseException | None
    ) -> TransportFailed | NotConfigured:
        """The error for a missing token or endpoint: the request was not sent."""
        causes = list(_causes(error, outside))
        if _any(causes, ssl.SSLCertVerificationError):
            return self._not_trusted(causes)
        if _any(causes, keystone.ConnectionError, keystone.HttpServerError):
            return PlacementAPIConnectFailure(
                f"the identity service of {self} did not answer",
                detail=_innermost(causes),
                request_id=_request_id(error),
            )
        return self._not_usable(error)

    def _failed(
        self, error: keystone.ClientException, outside: BaseException | None
    ) -> TransportFailed | NotConfigured:
        """The error for a request that failed under way."""
        if not isinstance(error, keystone.ConnectionError):
            # The session asks for a new token after a 401, and that request failed.
            return self._not_ready(error, outside)
        causes = list(_causes(error, outside))
        if _any(causes, ssl.SSLCertVerificationError):
            return self._not_trusted(causes)
        if _any(causes, ConnectTimeoutError, NewConnectionError):
            return PlacementAPIConnectFailure(
                f"no connection to {self} could be made", detail=_innermost(causes)
            )
        return AnswerLost(f"no whole answer came from {self}", detail=_innermost(causes))

    def _not_trusted(self, causes: list[BaseException]) -> NotConfigured:
        return NotConfigured(
            f"a certificate of {self} is not trusted; name the file of its certificate "
            "authority as CA file or as `cacert` in clouds.yaml",
            detail=_innermost(causes),
        )

    def _not_usable(self, error: keystone.ClientException) -> NotConfigured:
        if isinstance(error, keystone.EndpointNotFound):
            adapter = self._adapter
            return NotConfigured(
                f"{self} has no endpoint of service type {adapter.service_type!r} for region "
                f"{adapter.region_name or 'any'}, interface {adapter.interface or 'public'}; add "
                "one to the catalog, choose another region or interface, or give the URL",
                detail=without_user_info(str(error)),
            )
        return NotConfigured(
            f"{self} gave no token; check the credentials and the auth URL",
            status=error.http_status if isinstance(error, keystone.HttpError) else None,
            # The message has the auth URL as it is configured.
            detail=without_user_info(error.message or ""),
            request_id=_request_id(error),
        )


def _placement_adapter(
    given: Session | Adapter,
    region_name: str | None,
    interface: str | list[str] | None,
    endpoint_override: str | None,
) -> Adapter:
    """An adapter without version discovery, microversion and retries of keystoneauth."""
    base = given if isinstance(given, Adapter) else Adapter(given)
    return Adapter(
        session=base.session,
        auth=base.auth,
        service_type=base.service_type or SERVICE_TYPE,
        service_name=base.service_name,
        region_name=region_name or base.region_name,
        interface=interface or base.interface,
        endpoint_override=endpoint_override or base.endpoint_override,
        additional_headers=base.additional_headers,
        global_request_id=base.global_request_id,
    )


def _session_below(adapter: Adapter) -> Session:
    """The session of an adapter, which may be an adapter of another adapter."""
    below: Session | Adapter = adapter
    while isinstance(below, Adapter):
        below = below.session
    return below


def _description(adapter: Adapter, session: Session) -> str:
    auth = adapter.auth or session.auth
    for address in (adapter.endpoint_override, getattr(auth, "endpoint", None)):
        if address:
            return without_user(address)
    identity = getattr(auth, "auth_url", None)
    return f"the cloud of {without_user(identity)}" if identity else "a cloud without identity"


def _causes(error: BaseException, outside: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes, without the exception that the caller handles."""
    cause: BaseException | None = error
    while cause is not None and cause is not outside:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _any(causes: list[BaseException], *kinds: type[BaseException]) -> bool:
    return any(isinstance(cause, kinds) for cause in causes)


def _innermost(causes: list[BaseException]) -> str:
    """The text of the first cause; the later errors name objects of libraries."""
    return without_user_info(in_words(causes[-1]))


def _request_id(error: keystone.ClientException) -> str | None:
    request_id: str | None = getattr(error, "request_id", None)
    return request_id
