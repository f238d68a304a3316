"""`roost check-config`: what is in force, and what is wrong with it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from roost.configuration.options import GROUPS
from roost.configuration.settings import load_settings
from roost.configuration.unknown_names import unknown_names
from support.roost_command import Outcome, roost
from support.stubs.identity_stub import IdentityStub

GOOD = """\
[DEFAULT]
log_file = /tmp/x.log

[api]
auth_strategy = noauth2
"""


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)


def check(directory: Path, text: str, *arguments: str, mode: int = 0o600) -> Outcome:
    file = directory / "placement.conf"
    file.write_text(text)
    file.chmod(mode)
    return roost("check-config", "--config-file", str(file), *arguments)


def concerns(outcome: Outcome) -> list[tuple[str, str, str]]:
    found: list[dict[str, str]] = outcome.json["concerns"]
    return [(one["kind"], one["severity"], one["message"]) for one in found]


def option(outcome: Outcome, group: str, name: str) -> dict[str, Any]:
    (found,) = [
        one for one in outcome.json["options"] if (one["group"], one["name"]) == (group, name)
    ]
    return dict(found)


def test_every_option_is_printed_with_value_and_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_PLACEMENT__MAX_ALLOCATION_CANDIDATES", "77")
    said = check(tmp_path, GOOD + "[placement_database]\n\nmax_retries =\n  3\n", "--json")
    names = {(one["group"], one["name"]) for one in said.json["options"]}
    assert names >= {(group, one.dest) for group, members in GROUPS.items() for one in members}
    file = f"{tmp_path}/placement.conf"
    assert option(said, "DEFAULT", "log_file")["origin"] == f"{file}:2"
    assert option(said, "api", "auth_strategy") == {
        "group": "api",
        "name": "auth_strategy",
        "value": "noauth2",
        "origin": f"{file}:5",
    }
    assert option(said, "placement_database", "max_retries")["origin"] == f"{file}:8"
    assert option(said, "roost", "idle_seconds")["origin"] == "default"
    candidates = option(said, "placement", "max_allocation_candidates")
    assert candidates["value"] == 77
    assert "OS_PLACEMENT__MAX_ALLOCATION_CANDIDATES" in candidates["origin"]


def test_the_last_of_several_files_is_the_origin(tmp_path: Path) -> None:
    later = tmp_path / "later.conf"
    later.write_text("[placement_database]\nmax_retries = 4\n")
    text = GOOD + "[placement_database]\nmax_retries = 3\n"
    said = check(tmp_path, text, "--config-file", str(later), "--json")
    found = option(said, "placement_database", "max_retries")
    assert (found["value"], found["origin"]) == (4, f"{later}:2")


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_secrets_are_hidden(tmp_path: Path, form: tuple[str, ...]) -> None:
    text = GOOD + (
        "[placement_database]\nconnection = mysql://me:geheim@h.example/p?ssl_key=geheim\n"
        "slave_connection = mysql://me:geheim@h.example/p\n"
        "[keystone_authtoken]\npassword = geheim\n"
    )
    said = check(tmp_path, text, *form)
    assert "h.example/p" in said.out
    assert "geheim" not in said.out + said.err


def test_the_options_of_keystone_are_listed_without_their_secrets(tmp_path: Path) -> None:
    said = check(
        tmp_path,
        KEYSTONE + "auth_type = password\nusername = placement\npassword = geheim\n"
        "auth_url = https://ann:geheim@k.example/v3\nmemcache_secret_key = geheim\n",
        "--json",
    )
    assert "geheim" not in said.out + said.err
    account = option(said, "keystone_authtoken", "username")
    assert (account["value"], account["origin"]) == ("placement", f"{tmp_path}/placement.conf:5")
    assert option(said, "keystone_authtoken", "password")["value"] == "***"
    assert option(said, "keystone_authtoken", "memcache_secret_key")["value"] == "***"
    assert option(said, "keystone_authtoken", "auth_url")["value"] == "https://***@k.example/v3"
    timeout = option(said, "keystone_authtoken", "http_connect_timeout")
    assert (timeout["value"], timeout["origin"]) == (5, "default")
    assert not [
        one for one in check(tmp_path, GOOD, "--json").json["options"] if "key" in one["group"]
    ]


@pytest.mark.parametrize(
    ("text", "kind", "severity", "words"),
    [
        ("[roost]\nmax_body_byte = 5000\n", "unknown", "warning", "Did you mean max_body_bytes?"),
        ("[workarounds]\noptimize_for_wide_provider_trees = true\n", "ignored", "note", "[workar"),
        ("[DEFAULT]\nauth_strategy = noauth2\n", "deprecated", "note", "[api]auth_strategy"),
        ("[api]\nauth_strategy = noauth2\n", "dangerous", "warning", "believes every client"),
        ("[DEFAULT]\ndebug = true\n", "dangerous", "warning", "[DEFAULT]debug"),
        ("[placement_database]\nsqlite_synchronous = false\n", "dangerous", "warning", "crashes"),
        ("[placement_database]\nconnection_debug = 99\n", "dangerous", "warning", "statement"),
        ("[placement]\nmax_allocation_candidates = -1\n", "dangerous", "warning", "millions"),
        ("[roost]\nidle_seconds = 999999\n", "dangerous", "warning", "idle_seconds = 999999"),
        ("[roost]\nmax_connections = 5\n", "dangerous", "warning", "max_connections = 5"),
        ("[cors]\nallowed_origin = *\n", "dangerous", "warning", "every web page"),
        (
            "[oslo_middleware]\nenable_proxy_headers_parsing = true\n",
            "dangerous",
            "warning",
            "X-Forwarded-* of [roost]trusted_proxies = 127.0.0.0/8, ::1, unix.",
        ),
        ("[oslo_policy]\npolicy_file = /nowhere.yaml\n", "dangerous", "warning", "/nowhere.yaml"),
        ("[placement]\nmax_allocation_candidates = x\n", "unusable", "failure", "cannot have"),
        ("[placement_database]\nconnection\n", "unusable", "failure", "line 2"),
    ],
)
def test_each_concern_is_named(
    tmp_path: Path, text: str, kind: str, severity: str, words: str
) -> None:
    found = concerns(check(tmp_path, text, "--json"))
    assert [one for one in found if one[:2] == (kind, severity) and words in one[2]], found


KEYSTONE = "[api]\nauth_strategy = keystone\n[keystone_authtoken]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("auth_url = https://k.example\n", "www_authenticate_uri is missing"),
        ("auth_url = http://k.example:5000\n", "auth_url begins with http"),
        ("insecure = true\n", "accepts any certificate"),
        ("[placement_database]\nconnection = sqlite:///x.db\n", "only one host"),
    ],
)
def test_dangers_of_a_keystone_deployment_are_named(tmp_path: Path, text: str, words: str) -> None:
    found = concerns(check(tmp_path, KEYSTONE + text, "--json"))
    assert [one for one in found if one[0] == "dangerous" and words in one[2]], found


def test_a_sound_keystone_deployment_has_no_danger(tmp_path: Path) -> None:
    text = KEYSTONE + (
        "www_authenticate_uri = https://k.example\nauth_url = https://k.example\npassword = x\n"
        "[placement_database]\nconnection = mysql://me:geheim@h.example/p\n"
    )
    found = concerns(check(tmp_path, text, "--json", mode=0o640))
    assert not [one for one in found if one[0] in ("dangerous", "unknown")], found


def test_a_file_with_a_password_that_all_users_can_read_is_named(tmp_path: Path) -> None:
    text = GOOD + "[placement_database]\nconnection = mysql://me:geheim@h.example/p\n"
    readable = [one[2] for one in concerns(check(tmp_path, text, "--json", mode=0o644))]
    assert [one for one in readable if "chmod o=" in one and "connection" in one]
    private = [one[2] for one in concerns(check(tmp_path, text, "--json", mode=0o640))]
    assert not [one for one in private if "chmod" in one]
    text = f"[something_else]\npassword = geheim\n{GOOD}"
    elsewhere = [one[2] for one in concerns(check(tmp_path, text, "--json", mode=0o644))]
    assert [one for one in elsewhere if "chmod o=" in one and "[something_else]password" in one]
    harmless = [one[2] for one in concerns(check(tmp_path, GOOD, "--json", mode=0o644))]
    assert not [one for one in harmless if "chmod" in one]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("'@'", "every caller with a token"),
        ("'role:member'", "every member of a project"),
        ("'role:admin'", None),
    ],
)
def test_a_policy_that_lets_strangers_write_is_named(
    tmp_path: Path, rule: str, words: str | None
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"'placement:allocations:update': {rule}\n")
    text = f"{GOOD}[oslo_policy]\npolicy_file = {policy}\n"
    found = [one[2] for one in concerns(check(tmp_path, text, "--json")) if "policy lets" in one[2]]
    if words is None:
        assert found == []
    else:
        (sentence,) = found
        assert words in sentence
        assert "placement:allocations:update." in sentence


def test_a_policy_that_cannot_be_used_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("'placement:usages': 'rule:nowhere'\n")
    said = check(tmp_path, f"{GOOD}[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\n", "--json")
    assert said.status == said.json["status"] == 3
    assert [one for one in concerns(said) if one[:2] == ("unusable", "failure")]


def test_a_query_that_cannot_be_used_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "queries").write_text("good = resources=VCPU:1\nbad = resources=VCPU\n")
    said = check(tmp_path, f"{GOOD}[roost]\nmetrics_queries = {tmp_path}/queries\n", "--json")
    assert said.status == said.json["status"] == 3
    (message,) = [one[2] for one in concerns(said) if one[:2] == ("unusable", "failure")]
    assert "queries, line 2: the query bad cannot be used" in message


def test_warnings_and_failures_have_the_status_of_findings(tmp_path: Path) -> None:
    assert check(tmp_path, GOOD).status == 3
    assert check(tmp_path, GOOD + "[oslo_policy]\nenforce_new_defaults = perhaps\n").status == 3
    assert check(tmp_path, "[api]\nauth_strategy = nonsense\n").status == 3


def test_notes_count_with_strict_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OS_WORKAROUNDS__OPTIMIZE_FOR_WIDE_PROVIDER_TREES", "true")
    assert roost("check-config").status == 0
    assert roost("check-config", "--strict").status == 3
    monkeypatch.delenv("OS_WORKAROUNDS__OPTIMIZE_FOR_WIDE_PROVIDER_TREES")
    assert roost("check-config", "--strict").status == 0


def test_connect_tries_the_database_and_changes_nothing(database_url: str, tmp_path: Path) -> None:
    roost("db", "sync", "--db", database_url)
    said = check(tmp_path, GOOD, "--json", "--connect", "--db", database_url)
    (found,) = [one for one in concerns(said) if one[0] == "connection"]
    assert found[1] == "ok"
    assert "schema is current" in found[2]
    assert option(said, "placement_database", "connection")["origin"] == "--db"


def test_connect_names_a_database_that_does_not_answer(tmp_path: Path) -> None:
    url = "postgresql://me:geheim@127.0.0.1:1/p"
    said = check(tmp_path, GOOD, "--json", "--connect", "--db", url)
    assert said.status == 3
    (found,) = [one for one in concerns(said) if one[0] == "connection"]
    assert found[1] == "failure"
    assert "127.0.0.1:1" in found[2]
    assert "geheim" not in said.out


SERVICE_TOKEN = "token of the service"


def keystone_concerns(directory: Path, section: str) -> list[tuple[str, str]]:
    """What `--connect` says about Keystone: severities and texts."""
    text = f"[api]\nauth_strategy = keystone\n{section}"
    db = f"sqlite:///{directory}/x.db"
    roost("db", "sync", "--db", db)
    said = check(directory, text, "--json", "--connect", "--db", db)
    assert "secret" not in said.out.replace("_secret", "") + said.err
    found = [one for one in concerns(said) if one[0] == "connection" and "schema" not in one[2]]
    assert said.status == 3 or "failure" not in [one[1] for one in found]
    return [one[1:] for one in found]


def test_connect_logs_in_to_keystone(tmp_path: Path) -> None:
    with IdentityStub() as identity:
        identity.add(SERVICE_TOKEN, "service")
        ((severity, text),) = keystone_concerns(tmp_path, identity.section)
        assert severity == "ok"
        assert f"Keystone at {identity.url}/v3 lets the service account placement log in" in text
        assert identity.requests["POST /v3/auth/tokens"] == 1
        assert identity.validations == 1


@pytest.mark.parametrize(
    ("change", "broken", "words"),
    [
        (("password = secret", "password = secreter"), None, "refuses the service account pla"),
        (("[keystone_authtoken]", "[keystone_authtoken]\nregion_name = two"), None, "endpoint"),
        (("[keystone_authtoken]", "[keystone_authtoken]\ninterface = public"), None, "endpoint"),
        (("", ""), 403, "does not let the service account placement"),
        (("", ""), 500, "Keystone cannot be used"),
        (("", ""), 404, "does not know the token"),
    ],
)
def test_connect_names_what_keystone_refuses(
    tmp_path: Path, change: tuple[str, str], broken: int | None, words: str
) -> None:
    with IdentityStub() as identity:
        identity.add(SERVICE_TOKEN, "service")
        identity.broken = broken
        ((severity, text),) = keystone_concerns(tmp_path, identity.section.replace(*change, 1))
    assert severity == "failure"
    assert words in text
    assert text[0].isupper()
    assert text.endswith(".")


def test_connect_warns_of_an_account_without_the_role_of_a_service(tmp_path: Path) -> None:
    with IdentityStub() as identity:
        identity.add(SERVICE_TOKEN, "member", "reader")
        _, (severity, text) = keystone_concerns(tmp_path, identity.section)
    assert severity == "warning"
    assert "has the roles member, reader only" in text


def test_connect_names_a_keystone_that_does_not_answer_without_its_password(tmp_path: Path) -> None:
    with IdentityStub() as identity:
        section = identity.section.replace("://", "://ann:secret@")
    ((severity, text),) = keystone_concerns(tmp_path, section)
    assert severity == "failure"
    assert text.startswith("Keystone does not answer: ")
    assert f"://***@127.0.0.1:{identity.port}" in text
    assert text.endswith("Check auth_url and the network.")


def test_connect_tries_no_keystone_without_auth_url(tmp_path: Path) -> None:
    with IdentityStub() as identity:
        section = (
            f"[keystone_authtoken]\nauth_type = password\nwww_authenticate_uri = {identity.url}\n"
        )
        assert keystone_concerns(tmp_path, section) == []
        assert not identity.requests


def test_the_text_has_the_form_of_a_file_with_each_origin(tmp_path: Path) -> None:
    said = check(tmp_path, GOOD)
    assert "[api]" in said.lines
    assert f"auth_strategy = noauth2    # {tmp_path}/placement.conf:5" in said.lines
    assert "idle_seconds = 75    # default" in said.lines
    assert "warning: dangerous: [api]auth_strategy = noauth2" in said.out


def test_the_sample_has_every_option_and_can_be_used_as_it_is(tmp_path: Path) -> None:
    said = roost("check-config", "--sample")
    assert said.status == 0
    for group, members in GROUPS.items():
        assert f"[{group}]" in said.lines
        for one in members:
            assert re.search(rf"^#{one.name} =", said.out, re.MULTILINE), one.name
    # With the comment signs gone, every name is known. A value such as <None> stays a comment.
    text = re.sub(r"^#(\w+ = (?!<).*)$", r"\1", said.out, flags=re.MULTILINE)
    file = tmp_path / "placement.conf"
    file.write_text(text)
    assert unknown_names(load_settings([str(file)]), {}) == []
    assert json.loads(check(tmp_path, text, "--json").out)["options"]


def test_the_sample_of_deploy_has_known_names_and_no_danger(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "deploy" / "placement.conf").read_text()
    found = concerns(check(tmp_path, text, "--json", mode=0o640))
    assert found == []
