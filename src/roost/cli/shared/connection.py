"""The options of commands that talk to a placement server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from roost.cli.shared.parameters import NumberRange, gathering
from roost.client.contexts import ServerContext, default_path, read_contexts
from roost.client.errors import (
    NotConfigured,
    PlacementAPIConnectFailure,
    PlacementError,
    TransportFailed,
    UnreadableAnswer,
)
from roost.client.questions import Questions
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.client.transport.connecting import FoundCloud, connect, find_cloud, names_a_server
from roost.client.transport.http import NO_TLS, Timeouts
from roost.client.transport.messages import WEB_PAGE
from roost.client.transport.retrying import RetryingTransport, RetryPolicy
from roost.model.text import OwnLines, with_next

_CONNECT_ADVICE = (
    "Is the server running, and is this its address ({option}, ROOST_URL, --os-cloud, OS_CLOUD)?"
)
# A second server on this machine would be wrong on a controller, so none is advised.
_NAMING_ADVICE = (
    "No server is named. Name one: {option} URL, --os-cloud NAME, or ROOST_URL or OS_CLOUD in the "
    "environment, or `roost context add`."
)
# A proxy or another server may send these as answers to any request.
_STATUSES_OF_ANY_REQUEST = (401, 403, 500, 502, 503, 504)
# A placement server says more about a provider or a trait that it does not have.
_NO_SUCH_PATH = "The resource could not be found."


class CommandRetryPolicy(RetryPolicy):
    """Sends a request again, but fails at once if no connection can be made.

    An operator waits at the terminal for the answer, and the agent repeats whole reports.
    """

    def delay(
        self,
        request: PlacementRequest,
        result: PlacementResponse | TransportFailed,
        attempts: int,
        elapsed: float,
    ) -> float | None:
        """The seconds to wait before the next attempt; `None` if the result is final."""
        if isinstance(result, PlacementAPIConnectFailure):
            return None
        return super().delay(request, result, attempts, elapsed)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The address of the server, the credentials and the timeout from the command line.

    `None` leaves a value to the environment, to clouds.yaml or to the defaults.
    """

    url: str | None
    token: str | None
    cloud: str | None
    region: str | None
    ca_file: str | None
    insecure: bool
    timeout: float | None
    token_file: Path | None = None
    context: str | None = None
    # The option that names the address.
    url_option: str = "--url"
    # A service does not depend on what an operator chooses for commands.
    uses_contexts: bool = True

    @contextmanager
    def open(self, *, repeats: int = RetryPolicy().repeats) -> Iterator[RetryingTransport]:
        """A transport, which is closed when the context ends; it repeats lost requests so often."""
        with self.resolved()._opened(repeats) as transport:
            yield transport

    def resolved(self) -> ConnectionSettings:
        """The settings with those of the context in force, if a context names the server."""
        if not self.uses_contexts:
            return self
        if self.context is not None:
            for option, value in ((self.url_option, self.url), ("--os-cloud", self.cloud)):
                if value is not None:
                    raise NotConfigured(
                        f"--context and {option} are given, and both name a server: leave one out"
                    )
        elif self.url is not None or self.cloud is not None:
            return self
        environ = {name: value for name, value in os.environ.items() if value}
        name = self.context or environ.get("ROOST_CONTEXT")
        has_token = self.token is not None or self.token_file is not None
        if self.context is None and "ROOST_URL" in environ:
            return self
        # A token never goes to a cloud that the environment describes.
        if name is None and not has_token and names_a_server(environ):
            return self
        file = read_contexts(default_path())
        name = name or file.current
        return self if name is None else self._of_context(name, file.named(name), has_token)

    def _of_context(self, name: str, context: ServerContext, has_token: bool) -> ConnectionSettings:
        """The settings of a context; those of options come first."""
        if context.cloud is not None and has_token:
            raise NotConfigured(
                f"The context {name} is a cloud, which has its own credentials: leave the token out"
            )
        kept = None if context.token_file is None else Path(context.token_file)
        return replace(
            self,
            context=None,
            url=context.url,
            cloud=context.cloud,
            token=self.token if has_token else context.token,
            token_file=self.token_file if has_token else kept,
            region=self.region or context.region,
            ca_file=self.ca_file or context.cacert,
            insecure=self.insecure or context.insecure,
        )

    @contextmanager
    def _opened(self, repeats: int) -> Iterator[RetryingTransport]:
        transport = connect(
            url=self.url,
            token=self._given_token(),
            cloud=self.cloud,
            region=self.region,
            ca_file=self.ca_file,
            insecure=self.insecure,
            timeout=self._timeouts,
            retries=CommandRetryPolicy(repeats),
        )
        try:
            yield transport
        except PlacementAPIConnectFailure as error:
            raise PlacementAPIConnectFailure(self._not_connected(error, transport)) from error
        except TransportFailed as error:
            raise type(error)(with_next(str(error), self._doctor)) from error
        except PlacementError as error:
            if _may_be_elsewhere(error):
                has_lines = isinstance(error.message, OwnLines)
                error.message = f"{transport}: {error.message}"
                # An error of several lines has its own advice.
                if has_lines:
                    error.message = OwnLines(error.message)
                else:
                    error.next_command = self._doctor_after(error, transport)
            raise
        finally:
            transport.close()

    def _given_token(self) -> str | None:
        """The token of the option, or of the file; `None` leaves it to the environment."""
        if self.token_file is None:
            return self.token
        if self.token is not None:
            raise NotConfigured("--token and --token-file are given: leave one of them out")
        try:
            return self.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise NotConfigured(
                f"The token file {self.token_file} cannot be read: {reason}; name a file that has "
                "the token and nothing else"
            ) from None

    def _not_connected(
        self, error: PlacementAPIConnectFailure, transport: RetryingTransport
    ) -> str:
        """Why there is no connection, and the next command."""
        if NO_TLS in (error.detail or ""):
            # The server is there, and only the beginning of its address is wrong.
            address = str(transport).replace("https://", "http://")
            return with_next(str(error), f"roost doctor --url {address}")
        advice, following = (
            (_CONNECT_ADVICE, self._doctor)
            if self._names_a_server
            else (_NAMING_ADVICE, "roost doctor --url http://HOST:8778")
        )
        return with_next(f"{error}. {advice.format(option=self.url_option)}", following)

    @property
    def cloud_settings(self) -> CloudSettings:
        """The cloud that the server belongs to; the server itself may have another address."""
        chosen = self.resolved()
        return CloudSettings(chosen.cloud, chosen.region, chosen.ca_file, chosen.insecure)

    @property
    def _names_a_server(self) -> bool:
        """Whether an option or a variable names the server; a token belongs to an address."""
        if self.url is not None or self.cloud is not None or os.environ.get("ROOST_URL"):
            return True
        return self.token is None and names_a_server(os.environ)

    def _doctor_after(self, error: PlacementError, transport: RetryingTransport) -> str:
        """The command that looks at this server, with another token if the token was refused."""
        if error.status in (401, 403) and str(transport).startswith("http"):
            return f"roost doctor --url {transport} --token TOKEN"
        return self._doctor

    @property
    def _doctor(self) -> str:
        """The command that looks at this server."""
        if self.url is not None:
            return f"roost doctor --url {self.url}"
        return f"roost doctor --os-cloud {self.cloud}" if self.cloud is not None else "roost doctor"

    @property
    def _timeouts(self) -> Timeouts | None:
        """The timeouts; `None` leaves them to the cloud, or to the defaults of the transport."""
        if self.timeout is None:
            return None
        return Timeouts(min(self.timeout, Timeouts().connect), self.timeout)


@dataclass(frozen=True, slots=True)
class CloudSettings:
    """The cloud of OpenStack whose other services a command asks."""

    cloud: str | None
    region: str | None
    ca_file: str | None
    insecure: bool

    def find(self) -> FoundCloud:
        """The cloud, by its name or from the environment."""
        return find_cloud(
            cloud=self.cloud, region=self.region, ca_file=self.ca_file, insecure=self.insecure
        )


def complete_contexts(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of contexts, with their servers as help."""
    del ctx, param
    try:
        names = sorted(read_contexts(default_path()).contexts)
    except (PlacementError, OSError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def variable_before_contexts(environ: Mapping[str, str]) -> str | None:
    """The variable that names a server before the context in use does; `None` without one."""
    names = ("ROOST_URL", "ROOST_CONTEXT", "OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE", "OS_ENDPOINT")
    return next((name for name in names if environ.get(name)), None)


def _may_be_elsewhere(error: PlacementError) -> bool:
    """Whether the error may come from a wrong address, so that the operator must see it."""
    return (
        error.status in _STATUSES_OF_ANY_REQUEST
        or (error.status == 404 and (error.detail or "").strip() == _NO_SUCH_PATH)
        or isinstance(error, UnreadableAnswer)
        or (error.detail or "").startswith(WEB_PAGE)
    )


_URL = click.option(
    "--url",
    metavar="URL",
    help="Address of the placement server. [default: $ROOST_URL, the cloud of $OS_CLOUD or "
    "$OS_AUTH_URL, the context in use, or http://127.0.0.1:8778]",
)
_SOURCE_URL = click.option(
    "--from-url",
    "url",
    metavar="URL",
    help="Address of the placement server to read. [default: the cloud of --os-cloud, $OS_CLOUD or "
    "$OS_AUTH_URL]",
)
_CLOUD_OPTIONS = (
    click.option(
        "--os-cloud",
        "cloud",
        metavar="NAME",
        help="Find the server in this cloud of clouds.yaml, instead of by its address.",
    ),
    click.option(
        "--os-region",
        "region",
        metavar="NAME",
        help="Region of that cloud. [default: that of clouds.yaml]",
    ),
    click.option(
        "--cacert",
        "ca_file",
        metavar="FILE",
        help="Certificate authorities to trust, as PEM. [default: those of the system]",
    ),
    click.option("--insecure", is_flag=True, help="Do not check the server's certificate."),
)
_OPTIONS = (
    click.option(
        "--token",
        metavar="TOKEN",
        help="Token to send to that address. Every user of this machine sees it in the list of "
        "processes: better use $ROOST_TOKEN or --token-file. [default: $ROOST_TOKEN, or `admin` if "
        "the server is on this machine]",
    ),
    click.option(
        "--token-file",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="File with the token to send to that address, instead of --token.",
    ),
    *_CLOUD_OPTIONS,
    click.option(
        "--timeout",
        metavar="SECONDS",
        type=NumberRange(0.1, 3600),
        help="How long to wait for the next bytes of an answer. [default: the cloud's api_timeout, "
        "or 60]",
    ),
)


_CONTEXT = click.option(
    "--context",
    metavar="NAME",
    shell_complete=complete_contexts,
    help="Find the server in this context of `roost context`. [default: $ROOST_CONTEXT, or the one "
    "that is used]",
)
_FIXED = {"uses_contexts": True}


connection_options = gathering(
    "connection", ConnectionSettings, _URL, _CONTEXT, *_OPTIONS, url_option="--url", **_FIXED
)
"""Adds the options to a command, which gets them as one argument `connection`."""

cloud_options = gathering("openstack", CloudSettings, *_CLOUD_OPTIONS)
"""The options of a command that asks other services of a cloud, as one argument `openstack`."""

source_options = gathering(
    "connection",
    ConnectionSettings,
    _SOURCE_URL,
    _CONTEXT,
    *_OPTIONS,
    url_option="--from-url",
    **_FIXED,
)
"""The same options for a command that reads a server in order to write elsewhere."""


page_options = gathering(
    "connection",
    ConnectionSettings,
    click.option(
        "--server",
        "--url",
        "url",
        metavar="URL",
        help="Address of the placement server. [default: $ROOST_URL, the cloud of $OS_CLOUD or "
        "$OS_AUTH_URL, the context in use, or http://127.0.0.1:8778]",
    ),
    _CONTEXT,
    *_OPTIONS,
    url_option="--server",
    **_FIXED,
)
"""The same options for a command that stands in front of a server."""


service_options = gathering(
    "connection",
    ConnectionSettings,
    _URL,
    *_OPTIONS,
    url_option="--url",
    context=None,
    uses_contexts=False,
)
"""The same options for a service, which knows no contexts."""


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets the open server as the argument `server`."""

    @wraps(command)
    def with_server(*, connection: ConnectionSettings, **arguments: Any) -> Any:
        with connection.open() as transport:
            return command(server=Questions(transport), **arguments)

    return connection_options(with_server)
