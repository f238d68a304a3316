"""`roost context`: names for servers, and which server a command talks to."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.roost_command import Outcome, roost
from support.stubs.word_stub import WordStub

SECRET = "geheim-4711"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "roost" / "contexts.yaml"


@pytest.fixture
def lab() -> Iterator[WordStub]:
    with WordStub("-lab") as stub:
        yield stub


@pytest.fixture
def other() -> Iterator[WordStub]:
    with WordStub("-other") as stub:
        yield stub


def add(name: str, stub: WordStub, *options: str) -> Outcome:
    made = roost("context", "add", name, "--url", stub.url, *options)
    assert made.status == 0, made.err
    return made


def server_of(*options: str) -> str:
    """The server that a command talks to, by the names of its providers."""
    listed = roost("provider", "list", "-o", "name", *options)
    assert listed.status == 0, listed.err
    return listed.lines[0].rpartition("-")[2]


def token_sent(stub: WordStub) -> str:
    return stub.received[-1].headers["x-auth-token"]


def test_the_context_in_use_names_the_server_and_its_token(lab: WordStub, other: WordStub) -> None:
    add("lab", lab, "--token", SECRET, "--use")
    add("other", other)
    assert server_of() == "lab"
    assert token_sent(lab) == SECRET
    assert roost("context", "use", "other").lines == ["other: used"]
    assert server_of() == "other"
    assert server_of("--context", "lab") == "lab"


def test_an_option_beats_a_variable_and_a_variable_beats_the_context_in_use(
    lab: WordStub, other: WordStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("lab", lab, "--use")
    add("other", other)
    monkeypatch.setenv("ROOST_CONTEXT", "other")
    assert server_of() == "other"
    assert server_of("--context", "lab") == "lab"
    assert server_of("--url", lab.url) == "lab"
    monkeypatch.setenv("ROOST_URL", lab.url)
    assert server_of() == "lab"
    assert server_of("--context", "other") == "other"
    used = roost("context", "use", "other")
    assert "ROOST_URL is set, and comes before it" in used.err


def test_a_token_of_an_option_beats_that_of_the_context(lab: WordStub) -> None:
    add("lab", lab, "--token", SECRET, "--use")
    assert server_of("--token", "mine") == "lab"
    assert token_sent(lab) == "mine"


def test_a_token_comes_from_a_file_or_from_standard_input(lab: WordStub, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    add("lab", lab, "--token-file", "token", "--use")
    assert server_of() == "lab"
    assert token_sent(lab) == SECRET
    words = ("context", "add", "typed", "--url", lab.url, "--token", "-")
    assert roost(*words, stdin="typed-token\n").status == 0
    assert server_of("--context", "typed") == "lab"
    assert token_sent(lab) == "typed-token"


def test_the_file_is_for_its_owner_only(lab: WordStub, file: Path) -> None:
    add("lab", lab, "--token", SECRET, "--use")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert list(file.parent.iterdir()) == [file]
    file.chmod(0o640)
    for words in (("provider", "list"), ("context", "list"), ("context", "use", "lab")):
        refused = roost(*words)
        assert refused.status == 1
        assert "other users may read it" in refused.err
        assert f"Next: chmod 600 {file}" in refused.err


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "csv", "name"])
def test_no_command_prints_a_token(lab: WordStub, form: str) -> None:
    printed = [add("lab", lab, "--token", SECRET, "--use", "-o", form)]
    printed += [roost("context", *words, "-o", form) for words in (["list"], ["show"])]
    for outcome in printed:
        assert outcome.status == 0, outcome.err
        assert SECRET not in outcome.out + outcome.err
    assert "lab" in printed[-1].out


def test_a_dry_run_writes_nothing(lab: WordStub, file: Path) -> None:
    planned = add("lab", lab, "--dry-run")
    assert planned.lines == ["lab: would be added"]
    assert not file.exists()


def test_a_name_is_taken_once_unless_it_is_replaced(lab: WordStub, other: WordStub) -> None:
    add("lab", lab, "--use")
    refused = roost("context", "add", "lab", "--url", other.url)
    assert refused.status == 1
    assert "There is a context lab already." in refused.err
    assert server_of() == "lab"
    add("lab", other, "--replace")
    assert server_of() == "other"


def test_a_removed_context_is_gone_with_its_token(lab: WordStub, file: Path) -> None:
    add("lab", lab, "--token", SECRET, "--use")
    assert roost("context", "remove", "lab").lines == ["lab: removed"]
    assert SECRET not in file.read_text()
    assert roost("context", "list", "--json").json == []
    assert roost("context", "show").status == 1


def test_an_unknown_context_is_answered_with_names_near_it(lab: WordStub) -> None:
    add("production", lab)
    for words in (("provider", "list", "--context", "prod"), ("context", "use", "prodution")):
        refused = roost(*words)
        assert refused.status == 1
        assert "Near it: production." in refused.err
        assert "Next: roost context list" in refused.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "a URL or a cloud"),
        (["--url", "http://a", "--cloud", "b"], "a URL or a cloud"),
        (["--cloud", "b", "--token", "c"], "a cloud has its own credentials"),
        (["--url", "http://a", "--token", "c", "--token-file", "d"], "a token or a file with one"),
        (["--url", "http://a", "--region", "east"], "a region belongs to a cloud"),
    ],
)
def test_a_context_that_contradicts_itself_is_refused(options: list[str], sentence: str) -> None:
    refused = roost("context", "add", "lab", *options)
    assert refused.status == 1
    assert sentence in refused.err


def test_a_context_and_an_address_contradict_each_other(lab: WordStub) -> None:
    add("lab", lab)
    refused = roost("provider", "list", "--context", "lab", "--url", lab.url)
    assert refused.status == 1
    assert "--context and --url are given" in refused.err


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "- a",
        "contexts: [a]",
        "current: 5",
        "contexts: {lab: }",
        "contexts: {lab: {url: 5}}",
        f"contexts: {{lab: {{url: 'http://a', tokn: {SECRET}}}}}",
        f"contexts: {{lab: {{url: 'http://a', token: [{SECRET}}}}}",
    ],
)
def test_a_damaged_file_is_named_without_its_text(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o600)
    refused = roost("context", "list")
    assert refused.status == 1
    assert str(file) in refused.err
    assert SECRET not in refused.err


def test_a_fifo_holds_no_command(file: Path) -> None:
    file.parent.mkdir(parents=True)
    os.mkfifo(file, 0o600)
    assert "is no file" in roost("context", "list").err


@pytest.mark.filterwarnings("ignore:Support for InfluxDB")
def test_a_cloud_of_clouds_yaml_is_a_context(
    lab: WordStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = f"{{endpoint: '{lab.url}', token: {SECRET}}}"
    clouds = f"clouds: {{mine: {{auth_type: admin_token, auth: {auth}}}}}"
    (tmp_path / "clouds.yaml").write_text(clouds)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    assert roost("context", "add", "cloud", "--cloud", "mine", "--use").status == 0
    assert server_of() == "lab"
    assert token_sent(lab) == SECRET
    refused = roost("provider", "list", "--token", "x")
    assert "leave the token out" in refused.err
