"""A wrong configuration gets one sentence, with the fix and without secrets."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from roost.configuration.settings import load_settings
from roost.configuration.unknown_names import unknown_names
from support.fifos import fifo_instead_of
from support.roost_command import Outcome, roost


def sync(tmp_path: Path, content: str | bytes) -> Outcome:
    """`roost db sync` with a configuration file of this content."""
    file = tmp_path / "placement.conf"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return roost("db", "sync", "--config-file", str(file), "--db", f"sqlite:///{tmp_path}/x.db")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe\0", ("UTF-8",)),
        ("max_retries = secret\n", ("no group", "line 1")),
        ("[placement_database]\n  connection = secret\n", ("continuation", "line 2")),
        ("[placement_database]\nconnection secret\n", ("'='", "line 2")),
        ("[placement_database\nconnection = secret\n", ("must end with ]", "line 1")),
        ("[placement_database]\nconnection = mysql://u:my$secret@h/d\n", ("connection", "$$")),
        ("[placement_database]\nconnection = mysql://u:my$secret.x@h/d\n", ("connection", "$$")),
        ("[placement_database]\nmax_pool_size = -1\n", ("max_pool_size",)),
        ("[placement_database]\nmax_overflow = -2\n", ("max_overflow",)),
        ("[placement_database]\npool_timeout = -1\n", ("pool_timeout",)),
        ("[placement_database]\nretry_interval = -1\n", ("retry_interval",)),
        ("[placement_database]\nmax_retries = -2\n", ("max_retries",)),
        ("[placement_database]\nconnection_recycle_time = -2\n", ("connection_recycle_time",)),
        ("[cors]\nmax_age = long\n", ("max_age", "[cors]")),
        ("[DEFAULT]\ndebug = maybe\n", ("debug", "[DEFAULT]", "maybe")),
        ("[DEFAULT]\nuse_json = maybe\n", ("use_json", "[DEFAULT]", "maybe")),
        (
            "[oslo_policy]\nenforce_new_defaults = perhaps\n",
            ("enforce_new_defaults", "[oslo_policy]"),
        ),
    ],
)
def test_an_unusable_line_or_option_is_named(
    tmp_path: Path, content: str | bytes, words: tuple[str, ...]
) -> None:
    refused = sync(tmp_path, content)
    assert refused.status == 1
    assert refused.err.startswith("roost: ")
    assert refused.err.count("\n") == 1
    for word in words:
        assert word in refused.err
    assert "secret" not in refused.err
    assert not (tmp_path / "x.db").exists()


def test_a_service_that_cannot_start_leaves_the_signals_as_they_were(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    assert roost("serve", "--config-file", f"{tmp_path}/nothing.conf").status != 0
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before


def test_a_directory_is_no_configuration_file(tmp_path: Path) -> None:
    refused = roost("db", "version", "--config-file", str(tmp_path))
    assert refused.status == 1
    assert "directory" in refused.err


@pytest.mark.parametrize("special", ["placement.conf", "log.conf"])
def test_no_command_waits_for_a_fifo_in_place_of_a_configuration_file(
    tmp_path: Path, special: str
) -> None:
    log = tmp_path / "log.conf"
    log.touch()
    file = tmp_path / "placement.conf"
    file.write_text(f"[DEFAULT]\nlog_config_append = {log}\n[api]\nauth_strategy = noauth2\n")
    with fifo_instead_of(tmp_path / special):
        refused = roost("serve", "--config-file", str(file), "--db", f"sqlite:///{tmp_path}/x.db")
    assert refused.status == 78
    assert "it is no regular file" in refused.err
    assert special in refused.err


def test_the_null_device_is_an_empty_configuration_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    assert roost("db", "sync", "--config-file", "/dev/null", "--db", url).status == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "[placement_databse]\nconnection = secret\n",
            ("[placement_databse]", "[placement_database]"),
        ),
        ("[database]\nconnection = secret\n", ("[database]", "[placement_database]")),
        ("[default]\ndebug = secret\n", ("[default]", "[DEFAULT]")),
        ("[something_else]\nx = secret\n", ("[something_else]",)),
        ("[placement_database]\nconection = secret\n", ("conection", "Did you mean connection?")),
        ("[placement_database]\nmax-retries = 3\n", ("max-retries", "Did you mean max_retries?")),
        ("[placement]\nauth_strategy = noauth2\n", ("auth_strategy", "belongs to [api]")),
        ("[DEFAULT]\ndebgu = secret\n", ("debgu", "Did you mean debug?")),
        ("[oslo_policy]\npolicy_fil = secret\n", ("Did you mean policy_file?",)),
        ("[roost]\nmax_body_byte = 1\n", ("Did you mean max_body_bytes?",)),
        ("[api]\nauth_strategy = noauth2\nauth_strategy = noauth2\n", ("2 times",)),
    ],
)
def test_misspelt_names_are_reported_with_the_right_name(
    tmp_path: Path, content: str, words: tuple[str, ...]
) -> None:
    done = sync(tmp_path, content)
    assert done.status == 0
    (warning,) = done.err.splitlines()
    assert warning.startswith(f"roost: warning: {tmp_path}/placement.conf: ")
    for word in words:
        assert word in warning
    assert "secret" not in warning


def test_options_of_the_reference_give_no_warning(tmp_path: Path) -> None:
    groups = (
        "[DEFAULT]\ndebug = false\nlogfile = /tmp/x.log\nlog_dir = /tmp\nuse_syslog = false\n",
        "state_path = /x\ndefault_log_levels = a=INFO\nauth_strategy = noauth2\n",
        "[API]\nauth_strategy = noauth2\n",
        "[placement_database]\nslave_connection = x\nconnection_trace = false\n",
        "[keystone_authtoken]\nwww_authenticate_uri = x\n[profiler]\nenabled = false\n",
        "[oslo_middleware]\nmax_request_body_size = 1\nenable_proxy_headers_parsing = true\n",
        "[oslo_policy]\npolicy_dirs = a\npolicy_dirs = b\n[oslo_messaging_rabbit]\nssl = true\n",
        "[workarounds]\noptimize_for_wide_provider_trees = true\n[healthcheck]\npath = /h\n",
    )
    done = sync(tmp_path, "".join(groups))
    assert done.status == 0
    assert "roost: warning" not in done.err


def test_misspelt_variables_are_named() -> None:
    environment = {
        "OS_PLACEMENT_DATABSE__CONNECTION": "secret",
        "OS_API__AUTH_STRATGY": "secret",
        "OS_API__AUTH_STRATEGY": "noauth2",
        "OS_DEFAULT__DEBUG": "true",
        # Variables of other programs.
        "OS_DATABASE__CONNECTION": "secret",
        "OS_AUTH_URL": "secret",
    }
    variable, group = unknown_names(load_settings(["/dev/null"]), environment)
    assert variable.startswith("The variable OS_API__AUTH_STRATGY ")
    assert "Did you mean auth_strategy?" in variable
    assert group.startswith("The variable OS_PLACEMENT_DATABSE__CONNECTION ")
    assert "Did you mean [placement_database]?" in group


@pytest.mark.parametrize("option", ["charset=nonsense", "cursorclass=x", "ssl_ca=/nowhere/ca.pem"])
@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
def test_an_option_that_the_driver_refuses_is_named(database_url: str, option: str) -> None:
    joint = "&" if "?" in database_url else "?"
    refused = roost("db", "version", "--db", f"{database_url}{joint}{option}")
    assert refused.status == 1
    assert option.partition("=")[0] in refused.err
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize("host", ["", "a" * 70, "nowhere.invalid"])
def test_an_unknown_host_is_refused_with_the_name_of_its_option(
    tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.cli.serve.set_up_logging", lambda _settings: None)
    refused = roost(
        *("serve", "--host", host, "--allow-clients-without-authentication"),
        *("--db", f"sqlite:///{tmp_path}/x.db"),
    )
    assert refused.status == 1
    assert "--host" in refused.err
