"""How commands and programs find the server that they are to talk to."""

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

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from openstack.config.cloud_region import CloudRegion
    from openstack.config.loader import OpenStackConfig

DEFAULT_URL = "http://127.0.0.1:8778"
DEFAULT_TOKEN = "admin"
"""An administrator to a server without configuration, which listens to its own machine only."""

# These say which cloud and where it is described; they do not describe one.
_SELECTORS = frozenset(
    {"OS_CLOUD", "OS_CLOUD_NAME", "OS_CLIENT_CONFIG_FILE", "OS_CLIENT_SECURE_FILE"}
)
# The SDK leaves these to test runners as well.
_FOREIGN = ("OS_TEST", "OS_STD", "OS_LOG")


@dataclass(frozen=True, slots=True)
class _Manner:
    """How to talk, wherever that is."""

    ca_file: str | None
    insecure: bool
    timeout: Timeouts | float | None
    global_request_id: str | None
    retries: RetryPolicy | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Which of the endpoints in a catalog is meant, as far as that was said."""

    region: str | None
    interface: str | None


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
    """A transport to the server that is meant. Nothing is sent yet; close it when done.

    The first of these that is given decides: `url`; `cloud`, a name in clouds.yaml; `token`,
    which goes to `ROOST_URL` or the last of these; `ROOST_URL`; `OS_CLOUD`; the variables
    `OS_AUTH_URL` and so on; the server that `roost serve` starts without configuration.
    """
    manner = _Manner(ca_file, insecure, timeout, global_request_id, retries)
    place = _Place(region, interface)
    given = {name: value for name, value in environ.items() if value}
    if cloud is not None:
        _refuse_beside("cloud", "clouds.yaml describes the whole cloud", url=url, token=token)
        return _to_cloud(cloud, place, given, manner)
    if url is None and token is None and "ROOST_URL" not in given:
        if "OS_CLOUD" in given:
            return _to_cloud(given["OS_CLOUD"], _place_named(place, given), given, manner)
        if _describe_a_cloud(given):
            return _to_described_cloud(_place_named(place, given), given, manner)
    _refuse_beside("URL", "it stands for one endpoint", region=region, interface=interface)
    address = given.get("ROOST_URL", DEFAULT_URL) if url is None else url
    return _to_url(address, token, given, manner)


def _refuse_beside(what: str, reason: str, **others: str | None) -> None:
    for name, value in others.items():
        if value is not None:
            raise NotConfigured(f"{what} and {name} cannot be given together: {reason}")


def _to_url(
    url: str, token: str | None, environ: Mapping[str, str], manner: _Manner
) -> HttpTransport:
    if token is None:
        token = environ.get("ROOST_TOKEN", DEFAULT_TOKEN if is_loopback(url) else None)
    return HttpTransport(
        url,
        token,
        timeout=manner.timeout,
        ca_file=manner.ca_file,
        insecure=manner.insecure,
        global_request_id=manner.global_request_id,
        retries=manner.retries,
    )


def is_loopback(url: str) -> bool:
    """Whether the URL is of this very machine, so that no stranger gets what is sent there.

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


def _place_named(place: _Place, environ: Mapping[str, str]) -> _Place:
    """The place, and what the environment says of it where nothing else was said."""
    return _Place(
        place.region or environ.get("OS_REGION_NAME"),
        place.interface or environ.get("OS_INTERFACE"),
    )


def _describe_a_cloud(environ: Mapping[str, str]) -> bool:
    return (
        "OS_AUTH_URL" in environ
        or "OS_AUTH_TYPE" in environ
        or ("OS_TOKEN" in environ and "OS_ENDPOINT" in environ)
    )


def _to_described_cloud(
    place: _Place, environ: Mapping[str, str], manner: _Manner
) -> RetryingTransport:
    """To the cloud that the variables `OS_AUTH_URL`, `OS_USERNAME` and so on describe."""
    what = "the cloud of the OS_* variables"
    with _explained(what):
        config = _configuration(load_yaml_config=False)
        adapter = _adapter(config.get_one(**_settings(environ) | _wanted(place)), place)
    return _through(adapter, what, manner)


def _settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """The variables as the SDK names what they say.

    The SDK could read them itself, but only those of its own process. Names with two underscores
    are those of a placement server's options.
    """
    settings = {
        name.removeprefix("OS_").lower(): value
        for name, value in environ.items()
        if name.startswith("OS_")
        and not name.startswith(_FOREIGN)
        and name not in _SELECTORS
        and "__" not in name
    }
    if "token" in settings:
        # The SDK would take a password for granted.
        settings.setdefault("auth_type", "admin_token" if "endpoint" in settings else "token")
    return settings


def _to_cloud(
    name: str, place: _Place, environ: Mapping[str, str], manner: _Manner
) -> RetryingTransport:
    """To a cloud that stands in clouds.yaml."""
    what = f"the cloud {name!r}"
    with _explained(what):
        # The libraries of OpenStack are an extra, here and in the functions below.
        from openstack.config import loader  # noqa: PLC0415

        config_files = _with_override(loader.CONFIG_FILES, environ.get("OS_CLIENT_CONFIG_FILE"))
        secure_files = _with_override(loader.SECURE_FILES, environ.get("OS_CLIENT_SECURE_FILE"))
        _check_first(config_files)
        _check_first(secure_files)
        config = _configuration(config_files=config_files, secure_files=secure_files)
        _check_name(name, config)
        adapter = _adapter(config.get_one(cloud=name, **_wanted(place)), place)
    return _through(adapter, what, manner)


def _with_override(files: Sequence[str], override: str | None) -> list[str]:
    return [*([override] if override else []), *files]


def _check_first(files: Sequence[str]) -> None:
    """Look into the file that will be used: the SDK passes over one that it cannot parse."""
    for name in files:
        try:
            content = yaml.safe_load(Path(name).read_text(encoding="utf-8"))
        except OSError:
            continue
        except (yaml.YAMLError, ValueError) as error:
            raise NotConfigured(f"{name} is not valid YAML{_line(error)}; mend it") from error
        if not isinstance(content, dict) or not isinstance(content.get("clouds"), dict):
            raise NotConfigured(f"{name} must have `clouds:` with the clouds by name below it")
        return


def _line(error: Exception) -> str:
    """Where in a file the trouble is. What stands there may be a secret."""
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f" in line {mark.line + 1}"


def _check_name(name: str, config: OpenStackConfig) -> None:
    if config.config_filename is None and config.secure_config_filename is None:
        raise NotConfigured(
            f"there is no clouds.yaml that could say what the cloud {name!r} is; write "
            "~/.config/openstack/clouds.yaml, or give the URL of the server instead of a cloud"
        )
    clouds = config.cloud_config["clouds"]
    file = config.config_filename or config.secure_config_filename
    if name not in clouds:
        known = ", ".join(sorted(map(str, clouds))) or "none"
        raise NotConfigured(f"the cloud {name!r} is not in {file}, which has: {known}")
    if not isinstance(clouds[name], dict):
        raise NotConfigured(f"the cloud {name!r} in {file} is empty; say at least `auth:`")


def _configuration(**options: Any) -> OpenStackConfig:
    from openstack.config.loader import OpenStackConfig  # noqa: PLC0415

    return OpenStackConfig(load_envvars=False, app_name="roost", app_version=__version__, **options)


def _wanted(place: _Place) -> dict[str, Any]:
    wanted = {"region_name": place.region, "interface": place.interface}
    return {name: value for name, value in wanted.items() if value is not None}


def _adapter(found: CloudRegion, place: _Place) -> Adapter:
    from keystoneauth1.adapter import Adapter  # noqa: PLC0415

    return Adapter(
        found.get_session(),
        service_type=found.get_service_type("placement"),
        service_name=found.get_service_name("placement"),
        region_name=place.region or found.get_region_name("placement"),
        interface=place.interface or found.get_interface("placement"),
        endpoint_override=found.get_endpoint("placement"),
    )


def _through(adapter: Adapter, description: str, manner: _Manner) -> RetryingTransport:
    from roost.client.transport.session import SessionTransport  # noqa: PLC0415

    session = adapter.session
    if manner.insecure or manner.ca_file is not None:
        trusting(manner.ca_file, manner.insecure)
        session.verify = False if manner.insecure else manner.ca_file
    # The session's own holds when it asks for a token; without one that might take for ever.
    timeouts = Timeouts.of(session.timeout if manner.timeout is None else manner.timeout)
    session.timeout = timeouts.read
    return SessionTransport(
        adapter,
        timeout=timeouts,
        global_request_id=manner.global_request_id,
        retries=manner.retries,
        description=description,
        owns_session=True,
    )


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turns whatever the SDK has to say about a configuration into one kind of error.

    It does not look at what it is given, so that a wrong type in clouds.yaml makes it stumble.
    """
    try:
        from keystoneauth1.exceptions import ClientException  # noqa: PLC0415
        from openstack.exceptions import ConfigException  # noqa: PLC0415
    except ImportError as error:
        raise NotConfigured(
            f"{what} can be reached with the libraries of OpenStack only; install them by "
            "pip install 'roost[openstack]', or give the URL of the server"
        ) from error
    stumbles = (AttributeError, LookupError, TypeError, ValueError)
    try:
        yield
    except (ConfigException, ClientException, *stumbles) as error:
        raise NotConfigured(
            f"{what} cannot be used as it is described", detail=str(error)
        ) from error
