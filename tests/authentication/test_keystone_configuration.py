"""`[keystone_authtoken]`: mistakes show at start, names are known, and memcached is shared."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roost.api.authentication import check_strategy
from roost.api.authentication.keystone_checks import cache_seconds
from roost.configuration.settings import ConfigurationError, Settings, load_settings
from roost.configuration.unknown_names import unknown_names
from roost.reloading import Reloader
from roost.store.database import Database
from support.api_client import Configured, settings_for
from support.roost_command import roost
from support.stubs.identity_stub import IdentityStub
from support.stubs.memcached_stub import MemcachedStub


def strategy_error(configured: Configured, section: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        configured(section)
    return str(caught.value)


COMPLETE = {
    "auth_type": "password",
    "auth_url": "http://keystone.example/v3",
    "username": "placement",
    "password": "secret",
}


def section(**options: str | None) -> str:
    """`[keystone_authtoken]` with these options instead of the usual ones."""
    chosen = COMPLETE | options
    lines = [f"{name} = {value}" for name, value in chosen.items() if value is not None]
    return "[keystone_authtoken]\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"auth_type": None}, "needs auth_type in [keystone_authtoken]"),
        ({"auth_type": "pasword"}, "auth_type = pasword is no way to authenticate"),
        ({"auth_url": None}, "needs auth_url in [keystone_authtoken]"),
        ({"username": None}, "has no username"),
        ({"password": None}, "has no password"),
        ({"cafile": "/nowhere.pem"}, "The cafile of [keystone_authtoken], /nowhere.pem"),
        ({"token_cache_time": "soon"}, "token_cache_time in [keystone_authtoken]"),
        ({"http_connect_timeout": "x"}, "http_connect_timeout in [keystone_authtoken]"),
        ({"memcache_security_strategy": "MAC"}, "needs memcache_secret_key"),
        ({"password": "pa$word"}, "Write $$ for a dollar sign"),
        ({"auth_type": "$password"}, "Write $$ for a dollar sign"),
        (
            {"memcached_servers": "127.0.0.1:1", "memcache_sasl_enabled": "true"},
            "pip install python-binary-memcached",
        ),
    ],
)
def test_a_mistake_stops_the_start_and_is_named(
    configured: Configured, options: dict[str, str | None], said: str
) -> None:
    text = strategy_error(configured, section(**options))
    assert said in text
    assert "secret" not in text.replace("memcache_secret_key", "").replace("a secret", "")


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_without_the_package_the_error_says_what_to_install(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if (
            name.startswith(
                ("roost.api.authentication.keystone", "roost.api.authentication.token_v")
            )
            or name.partition(".")[0] == "keystonemiddleware"
        ):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "keystonemiddleware", None)
    assert "pip install 'roost[keystone]'" in strategy_error(configured, section())


def test_roost_serve_names_the_mistake_before_it_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.cli.serve.set_up_logging", lambda _settings: None)
    path = tmp_path / "placement.conf"
    path.write_text("[api]\nauth_strategy = keystone\n" + section(auth_url=None))
    outcome = roost("serve", "--config-file", str(path), "--db", f"sqlite:///{tmp_path}/r.db")
    assert outcome.status == 78
    assert "needs auth_url" in outcome.err


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_variables_of_the_environment_complete_the_file(
    database: Database,
    identity: IdentityStub,
    configured: Configured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OS_KEYSTONE_AUTHTOKEN__PASSWORD", "secret")
    identity.add("good", "admin")
    lines = identity.section.replace("password = secret\n", "")
    assert replace(configured(lines), token="good").get("/traits").status == 200


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_another_section_may_have_the_account(
    identity: IdentityStub, configured: Configured
) -> None:
    identity.add("good", "admin")
    account = identity.section.replace("[keystone_authtoken]", "[account]")
    api = configured(f"{account}[keystone_authtoken]\nauth_section = account\n")
    assert replace(api, token="good").get("/traits").status == 200


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_waits_are_bounded_where_the_operator_sets_none(
    database: Database, identity: IdentityStub, tmp_path: Path, configured: Configured
) -> None:
    def waits(extra: str) -> tuple[Any, Any]:
        settings = settings_for(
            database, tmp_path, f"[api]\nauth_strategy = keystone\n{identity.section}{extra}"
        )
        check_strategy(settings)
        group = settings.oslo.keystone_authtoken
        return group.http_connect_timeout, group.http_request_max_retries

    assert waits("") == (5, 1)
    assert waits("http_connect_timeout = 7\nhttp_request_max_retries = 4\n") == (7, 4)


# Reload.


ReloadLog = Callable[[str, str], str]


@pytest.fixture
def reload_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> ReloadLog:
    """Returns the log of a process that starts with one configuration and reads another."""
    # A real reload would replace the handlers of the test.
    monkeypatch.setattr("roost.reloading.replace_logging", lambda *_: None)
    path = tmp_path / "placement.conf"

    def read() -> Settings:
        return load_settings([str(path)])

    def reload(before: str, after: str) -> str:
        path.write_text(f"[api]\nauth_strategy = keystone\n{before}")
        at_start = read()
        check_strategy(at_start)
        reloader = Reloader(at_start, read, [])
        path.write_text(f"[api]\nauth_strategy = keystone\n{after}")
        with caplog.at_level("INFO"):
            assert reloader.reload_and_tell()
        return caplog.text

    return reload


def test_a_reload_names_changes_of_the_service_account_without_values(
    reload_log: ReloadLog,
) -> None:
    changed = section(password="geheim", region_name="two")
    log = reload_log(section(), changed)
    assert "restart: [keystone_authtoken]region_name, [keystone_authtoken]password\n" in log
    assert "geheim" not in log


def test_a_reload_names_changes_of_an_account_in_another_section(reload_log: ReloadLog) -> None:
    before = section().replace("[keystone_authtoken]", "[account]")
    after = before.replace("secret", "geheim")
    points = "[keystone_authtoken]\nauth_section = account\n"
    log = reload_log(before + points, after + points)
    assert "These changes need a restart: [account]password\n" in log


def test_a_reload_without_a_change_needs_no_restart(reload_log: ReloadLog) -> None:
    log = reload_log(section(), section())
    assert "The configuration was read again" in log
    assert "restart" not in log


# Names.


def names(tmp_path: Path, text: str, **environment: str) -> list[str]:
    path = tmp_path / "placement.conf"
    path.write_text(text)
    return unknown_names(load_settings([str(path)]), environment)


def test_names_of_the_middleware_and_of_each_way_to_log_in_are_known(tmp_path: Path) -> None:
    text = section(
        memcache_servers="a:1",
        auth_plugin="password",
        user_domain_name="Default",
        project_domain_id="default",
        tenant_name="service",
        service_type="placement",
        system_scope="all",
        auth_section="account",
    )
    assert names(tmp_path, text + "[account]\nusername = a\n") == []
    credential = {"auth_type": "v3applicationcredential", "application_credential_id": "1"}
    assert names(tmp_path, section(password=None, **credential)) == []


def test_a_misspelt_name_is_answered_with_the_nearest_one(tmp_path: Path) -> None:
    (said,) = names(tmp_path, section(www_authenticate_url="http://k"))
    assert "www_authenticate_url in [keystone_authtoken] is unknown" in said
    assert "Did you mean www_authenticate_uri?" in said
    (said,) = names(tmp_path, "", OS_KEYSTONE_AUTHTOKEN__PASSWRD="x")
    assert "Did you mean password?" in said


@pytest.mark.parametrize("text", ["", "auth_type = $nowhere\n", "auth_type = v3token\n"])
def test_names_are_checked_before_the_strategy_is_in_force(tmp_path: Path, text: str) -> None:
    lines = f"[api]\nauth_strategy = noauth2\n[keystone_authtoken]\n{text}"
    (said,) = names(tmp_path, f"{lines}www_authenticate_url = http://k\n")
    assert "Did you mean www_authenticate_uri?" in said
    assert names(tmp_path, f"{lines}auth_section = $nowhere\n") == []


# Caches.


@pytest.mark.parametrize(
    ("time", "servers", "expected"),
    [
        ("300", None, (300, -1)),
        ("300", "a:1", (30, 270)),
        ("-1", None, (-1, -1)),
        ("-1", "a:1", (-1, -1)),
        ("0", "a:1", (-1, -1)),
    ],
)
def test_the_caches_together_keep_a_token_for_the_configured_time(
    tmp_path: Path, time: str, servers: str | None, expected: tuple[int, int]
) -> None:
    path = tmp_path / "placement.conf"
    path.write_text(section(token_cache_time=time, memcached_servers=servers))
    assert cache_seconds(load_settings([str(path)]).oslo) == expected


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "protection", ["", "memcache_security_strategy = MAC\nmemcache_secret_key = hush\n"]
)
def test_workers_share_tokens_through_memcached(
    identity: IdentityStub, configured: Configured, protection: str
) -> None:
    identity.add("confidential", "admin")
    with MemcachedStub() as memcached:
        lines = f"{identity.section}memcached_servers = {memcached.address}\n{protection}"
        for _ in range(2):
            api = replace(configured(lines), token="confidential")
            assert [api.get("/traits").status for _ in range(2)] == [200, 200]
        assert identity.validations == 1
        assert memcached.seconds == [270]
        assert "confidential" not in "".join(memcached.kept)
