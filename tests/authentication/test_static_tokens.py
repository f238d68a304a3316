"""`auth_strategy = tokens`: bearer tokens from a file, and the commands that keep the file."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from roost.api.authentication import tokens_file
from roost.api.authentication.tokens_file import (
    StaticToken,
    add_token,
    read_tokens_file,
    remove_tokens,
)
from roost.configuration.settings import ConfigurationError
from roost.store.database import Database
from support.api_client import Answer, ApiClient, in_process_client
from support.fifos import fifo_instead_of
from support.roost_command import Outcome, roost
from support.servers.live_server import LiveServer

REFUSAL = {
    "error": {
        "code": 401,
        "title": "Unauthorized",
        "message": "The request you have made requires authentication.",
    }
}
CREATE = ("create", "--user", "bob", "--project", "lab", "--role", "admin")
on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens.jsonl"


def create(file: Path, *more: str, role: str = "admin", user: str = "ann") -> str:
    """A token that `roost token create` makes."""
    outcome = roost(
        *("token", "create", "--user", user, "--project", "lab", "--role", role),
        *("--file", str(file), *more),
    )
    assert outcome.status == 0, outcome.err
    return outcome.out.strip()


def started(database: Database, directory: Path, file: Path) -> ApiClient:
    configuration = (
        "[api]\nauth_strategy = tokens\n"
        f"[oslo_policy]\npolicy_file = {directory / 'policy.yaml'}\n"
        f"[roost]\ntokens_file = {file}\n"
    )
    return in_process_client(database, directory, configuration)


def ask(api: ApiClient, token: str | None, path: str = "/traits", **headers: str) -> Answer:
    return replace(api, token=token).get(path, **headers)


def rewrite(file: Path, text: str) -> None:
    """Write a file with a later time, even if the clock of the file system is coarse."""
    before = file.stat().st_mtime_ns
    file.write_text(text)
    os.utime(file, ns=(before + 1_000_000_000,) * 2)


# Requests.


@on_sqlite
def test_a_token_is_accepted_in_both_headers(
    database: Database, tmp_path: Path, file: Path
) -> None:
    token = create(file)
    api = started(database, tmp_path, file)
    assert ask(api, token).status == 200
    assert ask(api, None, authorization=f"Bearer {token}").status == 200
    assert ask(api, None, authorization=f"bearer  {token} ").status == 200
    assert ask(api, None, authorization=f"Basic {token}").status == 401


@on_sqlite
def test_refusals_have_a_challenge_and_the_usual_json(
    database: Database, tmp_path: Path, file: Path
) -> None:
    create(file)
    api = started(database, tmp_path, file)
    for token, challenge in [
        (None, 'Bearer realm="roost"'),
        ("", 'Bearer realm="roost"'),
        ("roost_wrong", 'Bearer realm="roost", error="invalid_token"'),
        ("admin", 'Bearer realm="roost", error="invalid_token"'),
    ]:
        answer = ask(api, token)
        assert answer.status == 401
        assert answer.json == REFUSAL
        assert answer.headers["www-authenticate"] == challenge
    assert ask(api, None, "/").status == 200


@on_sqlite
def test_the_hash_of_a_token_is_no_token(database: Database, tmp_path: Path, file: Path) -> None:
    create(file)
    api = started(database, tmp_path, file)
    assert ask(api, json.loads(file.read_text())["sha256"]).status == 401


@on_sqlite
def test_roles_and_project_are_those_of_the_file(
    database: Database, tmp_path: Path, file: Path
) -> None:
    reader = create(file, role="reader")
    api = started(database, tmp_path, file)
    forged = {"x_roles": "admin", "x_project_id": "office", "openstack_system_scope": "all"}
    assert ask(api, reader, **forged).status == 403
    assert ask(api, reader, "/usages?project_id=lab", **forged).status == 200
    assert ask(api, reader, "/usages?project_id=office", **forged).status == 403


@on_sqlite
def test_new_and_revoked_tokens_count_at_the_next_request(
    database: Database, tmp_path: Path, file: Path
) -> None:
    first = create(file)
    api = started(database, tmp_path, file)
    second = create(file, user="bob")
    assert [ask(api, token).status for token in (first, second)] == [200, 200]
    listed = roost("token", "list", "--file", str(file), "--json").json
    (chosen,) = [one["id"] for one in listed if one["user"] == "ann"]
    assert roost("token", "revoke", chosen, "--file", str(file)).status == 0
    assert [ask(api, token).status for token in (first, second)] == [401, 200]


@on_sqlite
def test_an_expired_token_is_refused(database: Database, tmp_path: Path, file: Path) -> None:
    token = create(file, "--expires", "1h")
    api = started(database, tmp_path, file)
    assert ask(api, token).status == 200
    content = json.loads(file.read_text())
    past = datetime.now(UTC) - timedelta(seconds=1)
    rewrite(file, json.dumps(content | {"expires": past.isoformat()}))
    assert ask(api, token).status == 401


@on_sqlite
def test_a_line_that_breaks_later_lets_no_caller_in_and_is_named(
    database: Database, tmp_path: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = create(file), create(file, user="bob")
    api = started(database, tmp_path, file)
    lines = file.read_text().splitlines()
    rewrite(file, f"{lines[0][:-1]}\n{lines[1]}\n")
    assert [ask(api, token).status for token in (first, second)] == [401, 200]
    assert f"{file}, line 1, is not JSON" in caplog.text
    assert json.loads(lines[0])["sha256"] not in caplog.text


@on_sqlite
def test_without_its_file_the_service_answers_503(
    database: Database, tmp_path: Path, file: Path
) -> None:
    token = create(file)
    api = started(database, tmp_path, file)
    file.rename(tmp_path / "away")
    answer = ask(api, token)
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    assert ask(api, None).status == 401
    (tmp_path / "away").rename(file)
    assert ask(api, token).status == 200


@on_sqlite
def test_a_fifo_in_place_of_the_file_is_503_and_holds_no_request(
    database: Database, tmp_path: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = create(file)
    api = started(database, tmp_path, file)
    with fifo_instead_of(file):
        assert [ask(api, token).status for _ in range(2)] == [503, 503]
        assert f"{file} cannot be read: it is no regular file" in caplog.text
        for command in (("list",), ("revoke", "abc"), CREATE):
            outcome = roost("token", *command, "--file", str(file))
            assert outcome.status == 1, outcome
            assert "it is no regular file" in outcome.err
    assert ask(api, token).status == 200


# The start.

HASH = "a" * 64
GOOD = {"sha256": HASH, "user": "ann", "project": "lab", "roles": ["admin"]}


@on_sqlite
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("[" * 100_000, "is nested too deeply"),
        (GOOD | {"token": "x"}, "has the unknown field 'token'"),
        (GOOD | {"sha256": "A" * 64}, "has no sha256 of 64 hexadecimal digits"),
        (GOOD | {"sha256": "abc"}, "has no sha256 of 64 hexadecimal digits"),
        (GOOD | {"user": ""}, "has no user"),
        (GOOD | {"project": 7}, "has no project"),
        (GOOD | {"roles": "admin"}, "has no list of roles"),
        (GOOD | {"expires": "0001-01-01T00:00:00+23:59"}, "has a time in 'expires'"),
        (GOOD | {"created": "9999-12-31T23:59:59-23:59"}, "has a time in 'created'"),
        (GOOD | {"roles": [""]}, "has no list of roles"),
        (GOOD | {"expires": "soon"}, "has a time in 'expires' that is none"),
        (GOOD | {"expires": "2027-01-01T00:00:00"}, "has a time in 'expires' that is none"),
        (GOOD | {"expires": 5}, "has a time in 'expires' that is none"),
    ],
)
def test_a_faulty_line_stops_the_start_and_is_named(
    database: Database, tmp_path: Path, file: Path, line: Any, said: str
) -> None:
    text = line if isinstance(line, str) else json.dumps(line)
    file.write_text(f"# Ours\n\n{text}\n")
    with pytest.raises(ConfigurationError, match=r"tokens\.jsonl, line 3, ") as caught:
        started(database, tmp_path, file)
    assert said in str(caught.value)


@on_sqlite
def test_a_token_that_is_there_twice_stops_the_start(
    database: Database, tmp_path: Path, file: Path
) -> None:
    file.write_text(f"{json.dumps(GOOD)}\n{json.dumps(GOOD | {'roles': []})}\n")
    with pytest.raises(ConfigurationError, match="line 2, has the token of line 1 again"):
        started(database, tmp_path, file)


@on_sqlite
def test_a_missing_file_or_option_stops_the_start(
    database: Database, tmp_path: Path, file: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"tokens\.jsonl cannot be read"):
        started(database, tmp_path, file)
    with pytest.raises(ConfigurationError, match=r"needs \[roost\]tokens_file"):
        in_process_client(database, tmp_path, "[api]\nauth_strategy = tokens\n")


@on_sqlite
def test_a_file_that_every_user_can_change_stops_the_start(
    database: Database, tmp_path: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create(file)
    file.chmod(0o644)
    started(database, tmp_path, file)
    assert f"Every user can read the file of tokens {file}" in caplog.text
    file.chmod(0o646)
    with pytest.raises(ConfigurationError, match=r"Every user can write .* chmod 600"):
        started(database, tmp_path, file)


def test_roost_serve_accepts_tokens_at_any_address_and_commands_can_send_one(
    tmp_path: Path, file: Path
) -> None:
    token = create(file)
    configuration = f"[api]\nauth_strategy = tokens\n[roost]\ntokens_file = {file}\n"
    database = f"sqlite:///{tmp_path}/r.db"
    with LiveServer(database, tmp_path, 1, configuration, ("--host", "0.0.0.0")) as server:
        assert roost("tree", "show", "--url", server.url, "--token", token).status == 0
        refused = roost("tree", "show", "--url", server.url, "--token", "roost_wrong")
        assert refused.status != 0
        assert "401" in refused.err
        bearer = server.client().get("/traits", authorization=f"Bearer {token}", x_auth_token="")
        assert bearer.status == 200
        assert token not in server.log


# The commands.


def test_the_file_has_no_token_and_belongs_to_its_owner_alone(file: Path) -> None:
    token = create(file, "--expires", "90d", "--role", "reader")
    assert token.startswith("roost_")
    assert token not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = json.loads(file.read_text())
    assert content["roles"] == ["admin", "reader"]
    created, expires = (datetime.fromisoformat(content[name]) for name in ("created", "expires"))
    assert expires - created == timedelta(days=90)


def test_tokens_differ(file: Path) -> None:
    assert len({create(file) for _ in range(5)}) == 5
    assert len(file.read_text().splitlines()) == 5


def test_commands_at_the_same_time_lose_no_change(file: Path) -> None:
    """Each round creates one token and revokes another one, in two threads."""
    for number in range(60):
        revoked = StaticToken(f"{number:064x}", "ann", "lab", ("admin",))
        created = StaticToken(f"{number + 1000:064x}", "bob", "lab", ("admin",))
        add_token(str(file), revoked)
        with ThreadPoolExecutor(2) as pool:
            changes = [
                pool.submit(add_token, str(file), created),
                pool.submit(remove_tokens, str(file), [revoked.hash]),
            ]
        for change in changes:
            change.result()
    kept = {token.hash for token in read_tokens_file(str(file)).tokens}
    assert kept == {f"{number + 1000:064x}" for number in range(60)}
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_a_command_does_not_wait_without_end_for_its_turn(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(file)
    monkeypatch.setattr(tokens_file, "WAIT_SECONDS", 0.05)
    with open(file) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ConfigurationError, match="locked by another process"):
            remove_tokens(str(file), [])


def test_the_mode_and_the_comments_of_a_file_stay(file: Path) -> None:
    create(file)
    file.write_text("# Keys of the lab\n" + file.read_text())
    file.chmod(0o640)
    create(file, user="bob")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert file.read_text().startswith("# Keys of the lab\n")
    (first, _) = roost("token", "list", "--file", str(file), "--json").json
    assert roost("token", "revoke", first["id"], "--file", str(file)).status == 0
    assert file.read_text().startswith("# Keys of the lab\n")
    assert "bob" in file.read_text()
    assert "ann" not in file.read_text()


def test_a_dry_run_writes_nothing_and_shows_no_token(file: Path) -> None:
    shown = create(file, "--dry-run")
    assert not file.exists()
    assert "roost_" not in shown
    create(file)
    before = file.read_text()
    (one,) = roost("token", "list", "--file", str(file), "--json").json
    outcome = roost("token", "revoke", one["id"], "--file", str(file), "--dry-run")
    assert "Would revoke" in outcome.out
    assert file.read_text() == before


def test_json_has_what_a_script_needs(file: Path) -> None:
    made = json.loads(create(file, "--json"))
    assert made["token"].startswith("roost_")
    assert made["file"] == str(file)
    (listed,) = roost("token", "list", "--file", str(file), "--json").json
    assert listed["id"] == made["id"]
    assert "token" not in listed


def test_the_list_is_a_table(file: Path) -> None:
    create(file, "--expires", "1h")
    shown = roost("token", "list", "--file", str(file)).out
    assert "ann" in shown
    assert "lab" in shown
    assert "roost_" not in shown


def test_a_list_names_faulty_lines_and_ends_with_an_error(file: Path) -> None:
    create(file)
    file.write_text(file.read_text() + "{\n")
    outcome = roost("token", "list", "--file", str(file))
    assert outcome.status == 1
    assert "ann" in outcome.out
    assert f"{file}, line 2, is not JSON" in outcome.err


def refused(*arguments: str) -> str:
    outcome: Outcome = roost("token", *arguments)
    assert outcome.status != 0
    assert "Traceback" not in outcome.err
    return outcome.err


def test_mistakes_are_named(file: Path, tmp_path: Path) -> None:
    one = ("--user", "ann", "--project", "lab", "--role", "admin")
    assert "12h, 90d or 52w" in refused("create", *one, "--file", str(file), "--expires", "soon")
    assert "--user must be" in refused("create", *one, "--file", str(file), "--user", "a\nb")
    nowhere = str(tmp_path / "nowhere" / "file")
    assert "cannot be written" in refused("create", *one, "--file", nowhere)
    assert "cannot be read" in refused("list", "--file", str(file))
    create(file)
    assert "No tokens of" in refused("revoke", "ffff", "--file", str(file))
    assert "No tokens of" in refused("revoke", "", "--file", str(file))


def test_the_configuration_names_the_file(file: Path, tmp_path: Path) -> None:
    conf = tmp_path / "placement.conf"
    conf.write_text(f"[api]\nauth_strategy = tokens\n[roost]\ntokens_file = {file}\n")
    one = ("--user", "ann", "--project", "lab", "--role", "admin")
    assert roost("token", "create", *one, "--config-file", str(conf)).status == 0
    assert "ann" in roost("token", "list", "--config-file", str(conf)).out
    conf.write_text("[api]\nauth_strategy = noauth2\n")
    assert "Give --file" in refused("list", "--config-file", str(conf))
