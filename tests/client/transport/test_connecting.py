"""How `connect` finds the server, which token it sends there, and its errors."""

from __future__ import annotations

import base64
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from roost.client.errors import AnswerLost, NotConfigured, PlacementAPIConnectFailure
from roost.client.transport import PlacementRequest
from roost.client.transport.connecting import connect
from roost.client.transport.http import HttpTransport
from roost.client.transport.retrying import RetryPolicy
from roost.client.transport.session import SessionTransport
from support.stubs.keystone_stub import KeystoneStub
from support.stubs.placement_stub import PlacementStub, Silence, make_certificates

# The SDK deprecates its own default configuration; Python shows that in tests only.
pytestmark = pytest.mark.filterwarnings("ignore:Support for InfluxDB:PendingDeprecationWarning")

GET = PlacementRequest("GET", "/usages")


@pytest.fixture
def stub() -> Iterator[PlacementStub]:
    with PlacementStub() as running:
        yield running


@pytest.fixture
def cloud() -> Iterator[KeystoneStub]:
    with KeystoneStub() as running:
        yield running


class CloudsFile:
    """A clouds.yaml and the environment with its path."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "clouds.yaml"
        self.secure = directory / "secure.yaml"
        # Without this file the SDK would read the secrets of this machine.
        self.secure.write_text("clouds: {}")
        self.environ = {
            "OS_CLIENT_CONFIG_FILE": str(self.path),
            "OS_CLIENT_SECURE_FILE": str(self.secure),
        }

    def write(self, **clouds: Any) -> dict[str, str]:
        self.path.write_text(yaml.safe_dump({"clouds": clouds}))
        return self.environ


@pytest.fixture
def clouds(tmp_path: Path) -> CloudsFile:
    return CloudsFile(tmp_path)


def token_sent(stub: PlacementStub, environ: dict[str, str], **options: Any) -> str | None:
    with connect(environ=environ, **options) as transport:
        assert transport.send(GET).ok
    return stub.received[-1].headers.get("x-auth-token")


def where(environ: dict[str, str], **options: Any) -> str:
    with connect(environ=environ, **options) as transport:
        return str(transport)


FIXED = {"auth_type": "admin_token", "auth": {"endpoint": "http://placement", "token": "t"}}


def test_arguments_take_precedence_over_the_environment(clouds: CloudsFile) -> None:
    environ = clouds.write(one=FIXED, two=FIXED)
    environ |= {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": "http://placement"}
    described = "the cloud of the OS_* variables"
    assert where(environ) == described
    assert where(environ | {"OS_CLOUD": "one"}) == "the cloud 'one'"
    environ |= {"OS_CLOUD": "one", "ROOST_URL": "http://roost"}
    assert where(environ) == "http://roost"
    assert where(environ, token="t") == "http://roost"
    assert where(environ, cloud="two") == "the cloud 'two'"
    assert where(environ, url="http://given") == "http://given"


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"ROOST_URL": "", "OS_CLOUD": "", "OS_AUTH_URL": ""},
        {"OS_REGION_NAME": "x", "OS_PLACEMENT_CONFIG_DIR": "/etc/placement"},
        {"OS_PLACEMENT_DATABASE__CONNECTION": "sqlite:///x", "OS_TOKEN": "t"},
    ],
)
def test_the_default_is_the_server_of_this_machine(environ: dict[str, str]) -> None:
    assert where(environ) == "http://127.0.0.1:8778"


def test_only_this_machine_gets_the_token_of_the_administrator(
    stub: PlacementStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert token_sent(stub, {}, url=stub.url) == "admin"
    assert token_sent(stub, {"ROOST_URL": stub.url}) == "admin"
    monkeypatch.setattr("roost.client.transport.connecting.is_loopback", lambda _: False)
    assert token_sent(stub, {}, url=stub.url) is None


def test_a_token_comes_from_the_argument_or_else_from_the_environment(stub: PlacementStub) -> None:
    environ = {"ROOST_URL": stub.url, "ROOST_TOKEN": "environment"}
    assert token_sent(stub, environ) == "environment"
    assert token_sent(stub, environ, token="argument") == "argument"
    assert token_sent(stub, {"ROOST_TOKEN": "environment"}, url=stub.url) == "environment"


def test_connect_reaches_a_cloud_without_identity_service(
    stub: PlacementStub, clouds: CloudsFile
) -> None:
    environ = clouds.write(
        none={"auth_type": "none", "auth": {"endpoint": stub.url}},
        fixed={"auth_type": "admin_token", "auth": {"endpoint": stub.url, "token": "fixed"}},
        basic={
            "auth_type": "http_basic",
            "auth": {"endpoint": stub.url, "username": "u", "password": "p"},
        },
    )
    assert token_sent(stub, environ, cloud="none") == "notused"
    assert token_sent(stub, environ, cloud="fixed") == "fixed"
    assert token_sent(stub, environ, cloud="basic") is None
    expected = base64.b64encode(b"u:p").decode()
    assert stub.received[-1].headers["authorization"] == f"Basic {expected}"


def test_connect_reaches_a_cloud_with_identity_service(
    cloud: KeystoneStub, clouds: CloudsFile
) -> None:
    cloud.regions = ["one", "two"]
    environ = clouds.write(mine={"auth": cloud.credentials, "region_name": "two"})
    assert token_sent(cloud, environ, cloud="mine") == "token-1"
    with connect(cloud="mine", interface="internal", environ=environ) as transport:
        assert transport.send(GET).json["path"] == "/placement/internal/usages"
    with (
        connect(environ=environ | {"OS_CLOUD": "mine", "OS_INTERFACE": "admin"}) as transport,
        pytest.raises(NotConfigured, match="interface admin"),
    ):
        transport.send(GET)


def test_a_given_region_or_interface_takes_precedence_over_the_cloud(
    cloud: KeystoneStub, clouds: CloudsFile
) -> None:
    entry = {"auth": cloud.credentials, "placement_interface": "admin"}
    environ = clouds.write(mine=entry) | {"OS_CLOUD": "mine"}
    with connect(interface="internal", environ=environ) as transport:
        assert transport.send(GET).json["path"] == "/placement/internal/usages"
    with (
        connect(environ=environ | {"OS_REGION_NAME": "elsewhere"}) as transport,
        pytest.raises(NotConfigured, match="region elsewhere, interface admin"),
    ):
        transport.send(GET)


def test_secrets_may_be_in_secure_yaml(stub: PlacementStub, clouds: CloudsFile) -> None:
    environ = clouds.write(one={"auth_type": "admin_token", "auth": {"endpoint": stub.url}})
    clouds.secure.write_text("clouds: {one: {auth: {token: secret}}}")
    assert token_sent(stub, environ, cloud="one") == "secret"
    clouds.secure.write_text("clouds: {one: {auth: {token: secret")
    with pytest.raises(NotConfigured, match=r"secure\.yaml is not valid YAML"):
        connect(cloud="one", environ=environ)


def test_a_clouds_file_may_override_the_endpoint(cloud: KeystoneStub, clouds: CloudsFile) -> None:
    override = f"{cloud.url}/placement/override"
    environ = clouds.write(
        mine={"auth": cloud.credentials, "placement_endpoint_override": override}
    )
    with connect(cloud="mine", environ=environ) as transport:
        assert transport.send(GET).json["path"] == "/placement/override/usages"


def test_the_variables_of_openstack_describe_a_cloud(
    cloud: KeystoneStub, stub: PlacementStub
) -> None:
    names = {f"OS_{name.upper()}": value for name, value in cloud.credentials.items()}
    assert token_sent(cloud, names | {"OS_INTERFACE": "internal"}) == "token-1"
    assert cloud.received[-1].path == "/placement/internal/usages"
    assert token_sent(stub, {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": stub.url}) == "notused"
    assert token_sent(stub, {"OS_TOKEN": "fixed", "OS_ENDPOINT": stub.url}) == "fixed"


def test_variables_of_a_placement_server_describe_no_cloud(stub: PlacementStub) -> None:
    environ = {
        "OS_AUTH_TYPE": "none",
        "OS_ENDPOINT": stub.url,
        "OS_PLACEMENT_DATABASE__CONNECTION": "mysql://user:{secret@host/placement",
    }
    assert token_sent(stub, environ) == "notused"


def test_a_given_environment_replaces_that_of_the_process(
    stub: PlacementStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_TOKEN", "of this process")
    assert token_sent(stub, {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": stub.url}) == "notused"
    monkeypatch.setenv("OS_ENDPOINT", "http://placement")
    with connect() as transport:
        assert str(transport) == "the cloud of the OS_* variables"


@pytest.mark.parametrize("missing", ["openstack", "openstack.exceptions", "keystoneauth1"])
def test_urls_work_without_the_libraries_of_openstack(
    clouds: CloudsFile, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name in list(sys.modules):
        if name == missing or name.startswith(f"{missing}."):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, missing, None)
    assert where({}) == "http://127.0.0.1:8778"
    for environ in (clouds.write(one=FIXED) | {"OS_CLOUD": "one"}, {"OS_AUTH_URL": "http://x"}):
        with pytest.raises(NotConfigured, match=r"pip install 'roost\[openstack\]'"):
            connect(environ=environ)


def test_an_error_about_an_unknown_cloud_lists_the_known_clouds(clouds: CloudsFile) -> None:
    environ = clouds.write(one=FIXED, two=FIXED)
    with pytest.raises(NotConfigured, match=r"'three' is not in .*clouds\.yaml.*: one, two"):
        connect(cloud="three", environ=environ)


def test_an_error_about_a_missing_clouds_file_suggests_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openstack.config.loader.CONFIG_FILES", [str(tmp_path / "clouds.yaml")])
    monkeypatch.setattr("openstack.config.loader.SECURE_FILES", [])
    with pytest.raises(NotConfigured, match=r"no clouds\.yaml.*'one'.*give the URL"):
        connect(cloud="one", environ={})


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ("clouds:\n  one:\n    password: secret\n   auth: {", r"not valid YAML in line 4"),
        ("clouds: \x00secret", "not valid YAML"),
        ("", "must have `clouds:`"),
        ("- one", "must have `clouds:`"),
        ("clouds: [one]", "must have `clouds:`"),
        ("clouds: {one: }", "'one' in .* is empty"),
        ("clouds: {one: {auth: 5}}", "'one' cannot be used"),
        ("clouds: {one: {auth: {username: u}}}", "auth_url"),
        ("clouds: {one: {auth_type: magic}}", "magic"),
        ("clouds: {one: {auth_type: none, api_timeout: soon}}", "soon"),
        ("clouds: {one: {auth_type: none, regions: [east, west]}}", "Valid choices are east,west"),
    ],
)
def test_an_error_explains_a_wrong_clouds_file_without_its_secrets(
    clouds: CloudsFile, content: str, hint: str
) -> None:
    clouds.path.write_text(content)
    with pytest.raises(NotConfigured, match=hint) as caught:
        connect(cloud="one", region="north", environ=clouds.environ)
    assert "secret" not in str(caught.value)


def test_an_error_explains_wrong_variables() -> None:
    with pytest.raises(NotConfigured, match=r"OS_\* variables.*magic"):
        connect(environ={"OS_AUTH_TYPE": "magic"})
    with pytest.raises(NotConfigured, match=r"OS_\* variables.*auth_url"):
        connect(environ={"OS_AUTH_TYPE": "password"})


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"url": "http://given", "cloud": "one"}, "cloud and url"),
        ({"token": "secret", "cloud": "one"}, "cloud and token"),
        ({"url": "http://given", "region": "east"}, "URL and region"),
        ({"interface": "internal"}, "URL and interface"),
        ({"url": ""}, "begin with http://"),
        ({"url": "localhost:8778"}, "begin with http://"),
    ],
)
def test_arguments_that_exclude_each_other_are_refused(options: dict[str, Any], hint: str) -> None:
    with pytest.raises(NotConfigured, match=hint) as caught:
        connect(environ={}, **options)
    assert "secret" not in str(caught.value)


def test_the_options_for_certificates_apply_to_clouds(clouds: CloudsFile, tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    with PlacementStub(tls=certificates.server) as stub:
        environ = clouds.write(
            one={"auth_type": "none", "auth": {"endpoint": stub.url}, "cacert": "/nowhere"}
        )
        with connect(cloud="one", ca_file=certificates.authority, environ=environ) as transport:
            assert transport.send(GET).ok
        with (
            connect(cloud="one", insecure=True, environ=environ) as transport,
            pytest.warns(urllib3.exceptions.InsecureRequestWarning),
        ):
            assert transport.send(GET).ok
    with pytest.raises(NotConfigured, match=r"none\.pem cannot be used"):
        connect(cloud="one", ca_file=str(tmp_path / "none.pem"), environ=environ)


def test_a_given_timeout_takes_precedence_over_that_of_the_cloud(clouds: CloudsFile) -> None:
    over = threading.Event()
    with PlacementStub(Silence(over), Silence(over)) as stub:
        entry = {"auth_type": "none", "auth": {"endpoint": stub.url}}
        environ = clouds.write(hasty=entry | {"api_timeout": 0.05}, patient=entry)
        for transport in (
            connect(cloud="hasty", environ=environ),
            connect(cloud="patient", timeout=0.05, environ=environ),
        ):
            with transport, pytest.raises(AnswerLost, match="timed out"):
                transport.send(PlacementRequest("POST", "/allocations", {}))
        over.set()


def test_the_timeout_applies_to_the_identity_service(
    clouds: CloudsFile,
) -> None:
    over = threading.Event()
    with KeystoneStub(Silence(over)) as cloud:
        environ = clouds.write(one={"auth_type": "v3password", "auth": cloud.credentials})
        once = RetryPolicy(repeats=0)
        with (
            connect(cloud="one", timeout=0.05, retries=once, environ=environ) as transport,
            pytest.raises(PlacementAPIConnectFailure, match="timed out"),
        ):
            transport.send(GET)
        over.set()


def test_close_closes_the_connections(stub: PlacementStub) -> None:
    for environ in ({"ROOST_URL": stub.url}, {"OS_TOKEN": "t", "OS_ENDPOINT": stub.url}):
        with connect(environ=environ) as transport:
            transport.send(GET)
        assert stub.all_hung_up()


def test_a_url_and_a_cloud_have_different_transports(clouds: CloudsFile) -> None:
    with connect(environ={}) as transport:
        assert isinstance(transport, HttpTransport)
    with connect(cloud="one", environ=clouds.write(one=FIXED)) as transport:
        assert isinstance(transport, SessionTransport)
