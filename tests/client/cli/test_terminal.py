"""Commands print control characters of foreign text as escapes."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from click.testing import CliRunner

from roost.cli.agent_events import TextEvents
from roost.cli.main import cli
from roost.store.checks.findings import Finding, Level
from support.client.live_providers import LiveProviders
from support.pty_command import PtyCommand
from support.roost_command import Outcome, roost
from support.stubs.four_provider_stub import FourProviderStub
from support.stubs.placement_stub import PlacementStub, Received, Reply
from support.waiting import SECONDS_MAX

# A window title, an 8-bit colour, right-to-left text, line breaks and markup of rich.
EVIL = "x\x1b]0;owned\x07\x9b31m\u202egnp\u2028[link=http://evil.example][bold]\nroost: ok"
SHOWN = r"x\x1b]0;owned\x07\x9b31m\u202egnp\u2028[link=http://evil.example][bold]\nroost: ok"


def assert_harmless(outcome: Outcome) -> None:
    for text in (outcome.out, outcome.err):
        assert all(character.isprintable() for character in text.replace("\n", ""))
    lines = (outcome.out + outcome.err).split("\n")
    assert not [line for line in lines if line.startswith("roost: ok")]


class EvilServer(FourProviderStub):
    """A small server with control characters in the names of providers, classes and traits."""

    def _answer(self, request: Received) -> Reply:
        if request.path.endswith("/inventories"):
            units = {"min_unit": 1, "max_unit": 3, "step_size": 1}
            inventories = {EVIL: {"total": 3, "reserved": 0, "allocation_ratio": 1.0, **units}}
            return Reply(body={"resource_provider_generation": 0, "inventories": inventories})
        if request.path.endswith("/usages"):
            return Reply(body={"resource_provider_generation": 0, "usages": {EVIL: 0}})
        if request.path.endswith("/traits"):
            return Reply(body={"resource_provider_generation": 0, "traits": [EVIL]})
        return super()._answer(request)

    def _body(self, name: str) -> dict[str, Any]:
        return super()._body(name) | {"name": name + EVIL}


@pytest.fixture
def evil(monkeypatch: pytest.MonkeyPatch) -> Any:
    with EvilServer() as server:
        monkeypatch.setenv("ROOST_URL", server.url)
        yield server


def test_a_drawing_has_escapes_for_control_characters(evil: EvilServer) -> None:
    shown = roost("tree", "show", "--details")
    assert shown.status == 0, shown.err
    assert_harmless(shown)
    assert f"a{SHOWN}  {evil.uuid('a')}" in shown.lines
    assert any(line.startswith(f"{SHOWN}  ") and line.endswith("0 of 3") for line in shown.lines)
    assert f"trait {SHOWN}" in shown.lines


def test_json_output_keeps_the_names(evil: EvilServer) -> None:
    shown = roost("tree", "show", "--json", "--url", evil.url)
    assert_harmless(shown)
    assert shown.json[0]["name"] == f"a{EVIL}"


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["yaml", "json"])
def test_an_exported_file_keeps_the_names(evil: EvilServer, options: tuple[str, ...]) -> None:
    exported = roost("tree", "export", "--url", evil.url, *options)
    assert exported.status == 0, exported.err
    assert_harmless(exported)
    providers = {
        provider["name"]: provider for provider in yaml.safe_load(exported.out)["providers"]
    }
    assert providers.keys() == {f"{name}{EVIL}" for name in "abc"}
    assert providers[f"a{EVIL}"]["traits"] == [EVIL]


def test_an_exported_file_escapes_only_names_with_control_characters() -> None:
    with FourProviderStub() as server, patch.object(FourProviderStub, "_body", _one_odd_body):
        exported = roost("tree", "export", "--url", server.url)
    assert "name: Gehäuse-a" in exported.out
    assert "\u202e" not in exported.out


def _one_odd_body(self: FourProviderStub, name: str) -> dict[str, Any]:
    shown = {"b": "Gehäuse-\u202eb"}.get(name, f"Gehäuse-{name}")
    return {
        "uuid": self.uuid(name),
        "name": shown,
        "generation": 0,
        "parent_provider_uuid": self.uuid("b") if name == "d" else None,
        "root_provider_uuid": self.uuid("b" if name == "d" else name),
    }


@pytest.mark.parametrize(
    "body",
    [{"errors": [{"detail": f"no: {EVIL}"}]}, None],
    ids=["an error", "no JSON at all"],
)
def test_an_error_of_a_server_has_escapes_for_control_characters(body: Any) -> None:
    def refuse(request: Received) -> Reply:
        return Reply(400, body=EVIL if body is None else body)

    with PlacementStub(otherwise=refuse) as server:
        failed = roost("tree", "show", "--url", server.url)
    assert failed.status == 1
    for character in "\x1b\x07\x9b\u202e\u2028":
        assert character not in failed.err
    assert "[bold]" in failed.err


@pytest.mark.parametrize(
    "text",
    [
        f"providers:\n  - name: a\n    {json.dumps(EVIL)}: 5\n",
        f"providers:\n  - name: a\n    traits: [{json.dumps(EVIL)}]\n",
        f"providers:\n  - name: a\n    parent: {json.dumps(EVIL)}\n",
        f"providers:\n  - name: a\n    uuid: {json.dumps(EVIL)}\n",
        f"providers:\n  - name: [{json.dumps(EVIL)}]\n",
        f"{json.dumps(EVIL)}: 1\n",
        f"providers:\n  - name: !<{'%1B%5D0;owned%07'}> a\n",
        'providers: []\nowner: "\\e[1mx"\n',
    ],
)
def test_problems_of_a_tree_file_have_escapes_for_control_characters(text: str) -> None:
    Path("tree\x1b[1m.yaml").write_text(text)
    failed = roost("tree", "diff", "-f", "tree\x1b[1m.yaml")
    assert failed.status == 1
    assert_harmless(failed)


def test_changes_of_a_tree_have_escapes_for_control_characters(
    live_providers: LiveProviders,
) -> None:
    name = live_providers.name("evil") + EVIL
    Path("tree.yaml").write_text(json.dumps({"providers": [{"name": name}]}))
    for command in (["diff"], ["apply"], ["apply", "--adopt"]):
        outcome = roost("tree", *command, "-f", "tree.yaml", "--owner", "tree")
        assert_harmless(outcome)
    Path("tree.yaml").write_text("providers: []")
    left = roost("tree", "diff", "-f", "tree.yaml")
    assert_harmless(left)
    assert live_providers.name("evil") + SHOWN in left.err
    pruned = roost("tree", "apply", "-f", "tree.yaml", "--prune")
    assert pruned.status == 0
    assert_harmless(pruned)


def test_output_of_the_agent_has_escapes_for_control_characters(
    live_providers: LiveProviders,
) -> None:
    name = live_providers.name("host") + EVIL
    Path("tree.yaml").write_text(json.dumps({"providers": [{"name": name}]}))
    driver = ("agent", "--driver", "file", "--option", "path=tree.yaml", "--name", name)
    for once in ("--dry-run", "--once"):
        outcome = roost(*driver, once)
        assert outcome.status == 0, outcome.err
        assert_harmless(outcome)
        assert live_providers.name("host") + SHOWN in outcome.out
    wrong = roost("agent", "--driver", EVIL, "--once")
    assert wrong.status == 78
    assert "\x1b" not in wrong.err


def test_log_lines_of_the_agent_have_escapes_for_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        raise ValueError(EVIL) from OSError(EVIL)
    except ValueError as error:
        trace = (type(error), error, error.__traceback__)
    for level, info in ((logging.WARNING, None), (logging.DEBUG, None), (logging.ERROR, trace)):
        TextEvents().log(logging.LogRecord("driver", level, "", 1, "device %s", (EVIL,), info))
    TextEvents().say("failed", f"the server said {EVIL}")
    printed = capsys.readouterr().err
    assert_harmless(Outcome(0, "", printed))
    assert "[bold]" in printed
    lines = printed.splitlines()
    assert lines[:2] == [f"device {SHOWN}", f"debug: device {SHOWN}"]
    assert f"ValueError: {SHOWN}" in lines
    assert f"OSError: {SHOWN}" in lines
    assert lines[-1] == f"roost: the server said {SHOWN}"


def test_findings_in_a_database_have_escapes_for_control_characters(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/roost.sqlite"
    assert CliRunner().invoke(cli, ["db", "sync", "--db", url]).exit_code == 0
    finding = Finding("roots", Level.FAILURE, "\x1b]0;x\x07[red]a", "[/]remove\\")
    with patch("roost.cli.server.db.check_database", lambda connection: (finding,)):
        outcome = CliRunner().invoke(cli, ["db", "check", "--db", url])
    assert outcome.exit_code == 3
    assert "\x1b" not in outcome.output
    assert "[red]a" in outcome.output
    assert "[/]remove\\" in outcome.output


def test_an_argument_that_is_not_utf_8_is_an_error_without_traceback(evil: EvilServer) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("roost")), "tree", "show", b"host\xff"],
        capture_output=True,
        check=False,
        timeout=SECONDS_MAX,
        env={**os.environ, "ROOST_URL": evil.url},
    )
    assert done.returncode == 1
    assert b"is not UTF-8" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_terminal_breaks_an_error_between_words_and_keeps_the_next_command_whole() -> None:
    with PtyCommand(
        "provider", "show", "x", "--url", "http://127.0.0.1:1", COLUMNS="40"
    ) as command:
        command.ended()
        shown = command.read_until(lambda text: b"Next: " in text).decode()
    *sentence, following = shown.replace("\x1b[1;31m", "").replace("\x1b[0m", "").splitlines()
    assert following == "Next: roost doctor --url http://127.0.0.1:1"
    assert len(sentence) > 3
    assert max(map(len, sentence)) <= 40
    whole = " ".join(line.strip() for line in sentence)
    assert whole.startswith(
        "roost: no connection to http://127.0.0.1:1 could be made (1 attempt): "
    )
