"""The commands of docs/moving.md, executed in their order."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path

import pytest

from roost.store.database import Database, DatabaseOptions
from roost.store.migrations.schema import inspect_schema, prepare_schema
from support.code_blocks import code_blocks
from support.moving.sample_cloud import make_sample_cloud
from support.moving.whole_answers import whole_answers
from support.roost_command import Outcome, roost
from support.servers.live_server import LiveServer
from support.store.schemas import make_older

PAGE = Path(__file__).parents[2] / "docs" / "moving.md"
# What the operator's machine has and this one lacks.
OTHERS = ("pip install ", "systemctl ")


@pytest.fixture
def commands(tmp_path: Path) -> list[str]:
    """The lines of the page that begin with `roost`, with the places of this test."""
    old = f"sqlite:///{tmp_path}/placement.sqlite"
    (tmp_path / "placement.conf").write_text(
        "[api]\nauth_strategy = noauth2\n[oslo_policy]\nenforce_new_defaults = false\n"
        f"[placement_database]\nconnection = {old}\n"
    )
    places = {
        "/etc/placement/placement.conf": str(tmp_path / "placement.conf"),
        "mysql://roost:secret@db.example/placement": old,
        "cloud.jsonl.gz": str(tmp_path / "cloud.jsonl.gz"),
        '"$TOKEN"': f"admin --work-dir {tmp_path}/work",
    }
    found = []
    for block in code_blocks(PAGE, "sh"):
        for line in block.text.splitlines():
            assert line.startswith(("roost ", *OTHERS)), line
            for place, here in places.items():
                line = line.replace(place, here)  # noqa: PLW2901
            if line.startswith("roost "):
                found.append(line)
    with closing(Database(DatabaseOptions(url=old))) as database:
        make_older(database, "a082b8bb98d0")
    return found


def run(line: str) -> Outcome:
    return roost(*shlex.split(line)[1:])


def test_the_commands_of_the_page_work_in_their_order(commands: list[str], tmp_path: Path) -> None:
    configured, check, dry_run, sync, serve, export, import_, copy, *about_triggers = commands
    install, status, remove = about_triggers
    with closing(
        Database(DatabaseOptions(url=f"sqlite:///{tmp_path}/placement.sqlite"))
    ) as database:
        understood = run(configured)
        # One warning comes from this test: its file admits every client.
        assert understood.status == 3
        assert "Set keystone." in understood.lines[-1]
        checked = run(check)
        # One warning is normal: the tables of Roost are missing.
        assert checked.status == 3
        assert checked.lines[-1].startswith("Roost can adopt this database in place.")
        assert "would run" in run(dry_run).out
        assert inspect_schema(database).roost_revision is None
        assert run(sync).status == 0
        assert inspect_schema(database).roost_revision is not None

        options = tuple(shlex.split(serve)[2:])
        assert options == (
            *("--config-file", str(tmp_path / "placement.conf")),
            *("--host", "0.0.0.0"),
        )
        database.close()
        with LiveServer(database.options.url, tmp_path, workers=1, options=options[:2]) as server:
            make_sample_cloud(server.client())
            answers = whole_answers(server.client())
            for line, name in ((export, ""), (import_, "imported"), (copy, "copied")):
                target = f"sqlite:///{tmp_path}/{name}.sqlite"
                line = line.replace(  # noqa: PLW2901
                    "postgresql://roost:secret@new.example/placement", target
                ).replace("https://old.example/placement", server.url)
                done = run(line)
                assert done.status == 0, done.err
        with closing(
            Database(DatabaseOptions(url=f"sqlite:///{tmp_path}/imported.sqlite"))
        ) as imported:
            prepare_schema(imported, upgrade=False)
        assert len(answers) > 50
        for line in (install, status, remove):
            assert run(line).status == 0
        assert run(status).status == 3


def test_the_page_names_every_line_of_the_losses() -> None:
    from roost.client.reading.survey import _LOSSES  # noqa: PLC0415

    for (major, minor), _ in _LOSSES:
        assert f"| {major}.{minor} |" in PAGE.read_text()
