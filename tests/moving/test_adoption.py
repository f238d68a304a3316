"""A database goes from the reference to Roost, back, and to Roost again."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from roost.cli.main import cli
from roost.store.database import Database, DatabaseOptions
from support.moving.sample_cloud import change_sample_cloud, make_sample_cloud
from support.moving.shared_database import MakeApi
from support.moving.whole_answers import whole_answers
from support.requirements import reference_environment
from support.servers.live_server import ReferenceServer

pytestmark = pytest.mark.slow


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["db", *arguments])


@pytest.fixture
def reference(database_url: str, tmp_path: Path) -> ReferenceServer:
    directory = tmp_path / "reference"
    directory.mkdir()
    return ReferenceServer(reference_environment(), directory, database_url)


def test_both_services_answer_the_same_whichever_has_written_last(
    database_url: str, reference: ReferenceServer, make_api: MakeApi
) -> None:
    with reference:
        make_sample_cloud(reference.client())
        written = whole_answers(reference.client())
        reference.kill()

        verdict = json.loads(run("check", "--json", "--db", database_url).output)
        assert verdict["adoptable"] is True
        assert "roost db sync" in verdict["verdict"]
        planned = run("sync", "--dry-run", "--db", database_url)
        assert "roost_changes" in planned.output
        assert run("version", "--json", "--db", database_url).output == (
            '{"state": "older", "placement": "a082b8bb98d0", "roost": null}\n'
        )
        assert run("sync", "--db", database_url).exit_code == 0

        with closing(Database(DatabaseOptions(url=database_url))) as database:
            roost = make_api(database)
            assert whole_answers(roost) == written
            change_sample_cloud(roost)
            make_sample_cloud(roost, "second ")
            changed = whole_answers(roost)

        reference.start()
        assert whole_answers(reference.client()) == changed
        change_sample_cloud(reference.client(), "second ")
        changed_again = whole_answers(reference.client())
        reference.kill()

        with closing(Database(DatabaseOptions(url=database_url))) as database:
            assert whole_answers(make_api(database)) == changed_again
        assert run("check", "--db", database_url).exit_code in (0, 3)
