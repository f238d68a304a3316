"""How commands and programs find the placement server."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from roost import __version__
from roost.client.errors import NotConfigured
from roost.client.transport.http import HttpTransport, Timeouts, server_url, trusting
from roost.client.transport.retrying import RetryingTransport, RetryPolicy
from roost.model.text import without_user_info

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session
    from openstack.config.cloud_region import CloudRegion
    from openstack.config.loader import OpenStackConfig

DEFAULT_URL = "http://127.0.0.1:8778"
DEFAULT_TOKEN = "admin"
"""The token of an administrator on a server without configuration.

Such a server listens on its own machine only.
"""

# These variables select a cloud and its files. They do not describe a cloud.
_SELECTORS = frozenset(
    {"OS_CLOUD", "OS_CLOUD_NAME", "OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE"}
)
# The SDK skips these variables of test runners, too.
_OTHER_PROGRAMS = ("OS_TEST", "OS_STD", "OS_LOG")


@dataclass(frozen=True, slots=True)
class _TransportOptions:
    """The options of a transport, whatever its server is."""

    ca_file: str | None
    insecure: bool
    timeout: Timeouts | float | None
    global_request_id: str | None
    retries: RetryPolicy | None


@dataclass(frozen=True, slots=True)
class _EndpointFilter:
    """The region and the interface that choose among the endpoints of a catalog."""

    region: str | None
    interface: str | None


@dataclass(frozen=True, slots=True)
class FoundCloud:
    """A cloud as openstacksdk describes it."""

    # The cloud in the words of an error.
    description: str
    region: CloudRegion
    endpoint: _EndpointFilter


def connect(
    *,
    url: str | None = None,
    token: str | None = None,
    cloud: str | None = None,
    region: str | None = None,
    interface: str | None = None,
    ca_file: str | None = None,
    insecure: bool = False,
    timeout: Timeouts | float | None = None,
    global_request_id: str | None = None,
    retries: RetryPolicy | None = None,
    environ: Mapping[str, str] = os.environ,
) -> RetryingTransport:
    """A transport to the placement server, which sends nothing yet. The caller closes it.

    The first of these that is given decides: `url`; `cloud`, a name in clouds.yaml; `token`,
    which goes to `ROOST_URL` or to the default; `ROOST_URL`; `OS_CLOUD`; `OS_AUTH_URL` and the
    variables beside it; the default, which is the server of `roost serve` on this machine.
    """
    options = _TransportOptions(ca_file, insecure, timeout, global_request_id, retries)
    endpoint = _EndpointFilter(region, interface)
    given = {name: value for name, value in environ.items() if value}
    if cloud is not None:
        _refuse_beside("cloud", "clouds.yaml describes the whole cloud", url=url, token=token)
        return _transport_to(_named_cloud(cloud, endpoint, given), options)
    if url is None and token is None and "ROOST_URL" not in given:
        found = _cloud_of_environment(endpoint, given)
        if found is not None:
            return _transport_to(found, options)
    _refuse_beside("URL", "it stands for one endpoint", region=region, interface=interface)
    address = given.get("ROOST_URL", DEFAULT_URL) if url is None else url
    return _to_url(address, token, given, options)


def find_cloud(
    *,
    cloud: str | None = None,
    region: str | None = None,
    ca_file: str | None = None,
    insecure: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> FoundCloud:
    """A cloud of clouds.yaml, or that of the environment, for questions to its other services."""
    endpoint = _EndpointFilter(region, None)
    given = {name: value for name, value in environ.items() if value}
    if cloud is not None:
        found: FoundCloud | None = _named_cloud(cloud, endpoint, given)
    else:
        found = _cloud_of_environment(endpoint, given)
    if found is None:
        raise NotConfigured(
            "No cloud of OpenStack is named. Name one: --os-cloud NAME, or OS_CLOUD or OS_AUTH_URL "
            "in the environment"
        )
    with _explained(found.description):
        session = found.region.get_session()
    _trust(session, ca_file, insecure=insecure)
    # Without a timeout a session may wait for ever.
    session.timeout = session.timeout or Timeouts().read
    return found


def _refuse_beside(what: str, reason: str, **arguments: str | None) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise NotConfigured(f"{what} and {name} cannot be given together: {reason}")


def _to_url(
    url: str, token: str | None, environ: Mapping[str, str], options: _TransportOptions
) -> HttpTransport:
    if token is None:
        token = environ.get("ROOST_TOKEN", DEFAULT_TOKEN if is_loopback(url) else None)
    return HttpTransport(
        url,
        token,
        timeout=options.timeout,
        ca_file=options.ca_file,
        insecure=options.insecure,
        global_request_id=options.global_request_id,
        retries=options.retries,
    )


def is_loopback(url: str) -> bool:
    """Whether the URL is an address of this machine, so that a token stays on it.

    >>> is_loopback("http://localhost:8778"), is_loopback("http://[::1]/placement")
    (True, True)
    >>> is_loopback("http://127.0.0.1.example.org"), is_loopback("http://10.0.0.1")
    (False, False)
    """
    host = urlsplit(server_url(url)).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _with_environment(endpoint: _EndpointFilter, environ: Mapping[str, str]) -> _EndpointFilter:
    """The filter, with the environment for a region or an interface that is not given."""
    return _EndpointFilter(
        endpoint.region or environ.get("OS_REGION_NAME"),
        endpoint.interface or environ.get("OS_INTERFACE"),
    )


def names_a_server(environ: Mapping[str, str]) -> bool:
    """Whether the environment names a server, by its address or as a cloud."""
    given = {name: value for name, value in environ.items() if value}
    return "ROOST_URL" in given or "OS_CLOUD" in given or _describe_a_cloud(given)


def _describe_a_cloud(environ: Mapping[str, str]) -> bool:
    return (
        "OS_AUTH_URL" in environ
        or "OS_AUTH_TYPE" in environ
        or ("OS_TOKEN" in environ and "OS_ENDPOINT" in environ)
    )


def _cloud_of_environment(
    endpoint: _EndpointFilter, environ: Mapping[str, str]
) -> FoundCloud | None:
    """The cloud of `OS_CLOUD`, or the one that `OS_AUTH_URL` and so on describe, if any."""
    chosen = _with_environment(endpoint, environ)
    if "OS_CLOUD" in environ:
        return _named_cloud(environ["OS_CLOUD"], chosen, environ)
    if not _describe_a_cloud(environ):
        return None
    what = "the cloud of the OS_* variables"
    with _explained(what):
        config = _configuration(load_yaml_config=False)
        found = config.get_one(**_settings(environ) | _sdk_filter(chosen))
    return FoundCloud(what, found, chosen)


def _settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """The `OS_*` variables under the names that the SDK gives their values.

    The SDK reads only the environment of its own process. Names with two underscores are options
    of a placement server.
    """
    settings = {
        name.removeprefix("OS_").lower(): value
        for name, value in environ.items()
        if name.startswith("OS_")
        and not name.startswith(_OTHER_PROGRAMS)
        and name not in _SELECTORS
        and "__" not in name
    }
    if "token" in settings:
        # Without `auth_type` the SDK expects a password.
        settings.setdefault("auth_type", "admin_token" if "endpoint" in settings else "token")
    return settings


def _named_cloud(name: str, endpoint: _EndpointFilter, environ: Mapping[str, str]) -> FoundCloud:
    """A cloud of clouds.yaml."""
    what = f"the cloud {name!r}"
    with _explained(what):
        # The libraries of OpenStack are an extra, so each function imports them itself.
        from openstack.config import loader  # noqa: PLC0415

        config_files = _with_override(loader.CONFIG_FILES, environ.get("OS_CLIENT_CONFIG_FILE"))
        secure_files = _with_override(loader.SECURE_FILES, environ.get("OS_CLIENT_SECURE_FILE"))
        _check_first(config_files)
        _check_first(secure_files)
        config = _configuration(config_files=config_files, secure_files=secure_files)
        _check_name(name, config)
        found = config.get_one(cloud=name, **_sdk_filter(endpoint))
    return FoundCloud(what, found, endpoint)


def _transport_to(cloud: FoundCloud, options: _TransportOptions) -> RetryingTransport:
    """A transport to the placement server of a cloud."""
    with _explained(cloud.description):
        adapter = _adapter(cloud.region, cloud.endpoint)
    return _session_transport(adapter, cloud.description, options)


def _with_override(files: Sequence[str], override: str | None) -> list[str]:
    return [*([override] if override else []), *files]


def _check_first(files: Sequence[str]) -> None:
    """Check the first file that exists: the SDK skips a file that it cannot parse."""
    for name in files:
        try:
            content = yaml.safe_load(Path(name).read_text(encoding="utf-8"))
        except OSError:
            continue
        except (yaml.YAMLError, ValueError) as error:
            raise NotConfigured(f"{name} is not valid YAML{_line(error)}; correct it") from error
        if not isinstance(content, dict) or not isinstance(content.get("clouds"), dict):
            raise NotConfigured(f"{name} must have `clouds:` with the clouds by name below it")
        return


def _line(error: Exception) -> str:
    """The line of a YAML error, without its text: the text may be a secret."""
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f" in line {mark.line + 1}"


def _check_name(name: str, config: OpenStackConfig) -> None:
    if config.config_filename is None and config.secure_config_filename is None:
        raise NotConfigured(
            f"there is no clouds.yaml that describes the cloud {name!r}; write "
            "~/.config/openstack/clouds.yaml, or give the URL of the server instead of a cloud"
        )
    clouds = config.cloud_config["clouds"]
    file = config.config_filename or config.secure_config_filename
    if name not in clouds:
        known = ", ".join(sorted(map(str, clouds))) or "none"
        raise NotConfigured(f"the cloud {name!r} is not in {file}, which has: {known}")
    if not isinstance(clouds[name], dict):
        raise NotConfigured(f"the cloud {name!r} in {file} is empty; give it at least `auth:`")


def _configuration(**options: Any) -> OpenStackConfig:
    # openstacksdk is an extra.
    from openstack.config.loader import OpenStackConfig  # noqa: PLC0415

    return OpenStackConfig(load_envvars=False, app_name="roost", app_version=__version__, **options)


def _sdk_filter(endpoint: _EndpointFilter) -> dict[str, Any]:
    wanted = {"region_name": endpoint.region, "interface": endpoint.interface}
    return {name: value for name, value in wanted.items() if value is not None}


def _adapter(found: CloudRegion, endpoint: _EndpointFilter) -> Adapter:
    # keystoneauth1 is an extra.
    from keystoneauth1.adapter import Adapter  # noqa: PLC0415

    return Adapter(
        found.get_session(),
        service_type=found.get_service_type("placement"),
        service_name=found.get_service_name("placement"),
        region_name=endpoint.region or found.get_region_name("placement"),
        interface=endpoint.interface or found.get_interface("placement"),
        endpoint_override=found.get_endpoint("placement"),
    )


def _session_transport(
    adapter: Adapter, description: str, options: _TransportOptions
) -> RetryingTransport:
    # This module imports keystoneauth1, which is an extra.
    from roost.client.transport.session import SessionTransport  # noqa: PLC0415

    session = adapter.session
    _trust(session, options.ca_file, insecure=options.insecure)
    # The session uses its own timeout for a token. Without a timeout it may wait for ever.
    timeouts = Timeouts.of(session.timeout if options.timeout is None else options.timeout)
    session.timeout = timeouts.read
    return SessionTransport(
        adapter,
        timeout=timeouts,
        global_request_id=options.global_request_id,
        retries=options.retries,
        description=description,
        owns_session=True,
    )


def _trust(session: Session, ca_file: str | None, *, insecure: bool) -> None:
    """Let a session trust other authorities than the cloud says, if a caller names some."""
    if insecure or ca_file is not None:
        trusting(ca_file, insecure)
        session.verify = False if insecure else ca_file


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn the errors of the SDK about a configuration into `NotConfigured`.

    The SDK does not check types, so a wrong type in clouds.yaml raises any of `type_errors`.
    """
    try:
        # Both libraries are an extra.
        from keystoneauth1.exceptions import ClientException  # noqa: PLC0415
        from openstack.exceptions import ConfigException  # noqa: PLC0415
    except ImportError as error:
        raise NotConfigured(
            f"{what} needs the libraries of OpenStack; install them with "
            "pip install 'roost[openstack]', or give the URL of the server"
        ) from error
    type_errors = (AttributeError, LookupError, TypeError, ValueError)
    try:
        yield
    except (ConfigException, ClientException, *type_errors) as error:
        raise NotConfigured(
            f"{what} cannot be used; correct its description",
            detail=without_user_info(str(error)),
        ) from error
