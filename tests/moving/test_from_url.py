"""`roost import --from-url`: copies of live servers, of Roost and of the reference."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from roost.client.reading.survey import Survey, SurveyFailed
from roost.client.transport import PlacementRequest, PlacementResponse, Transport
from roost.client.transport.http import HttpTransport
from roost.client.versions import ServerTooOld
from roost.moving import server_copy
from roost.moving.server_copy import copy_server
from roost.moving.survey_file import SurveyFile
from roost.store.database import Database, DatabaseOptions
from support.api_client import ApiClient
from support.moving.sample_cloud import change_sample_cloud, claim, make_sample_cloud, send
from support.moving.shared_database import MakeApi
from support.moving.whole_answers import whole_answers
from support.requirements import reference_environment
from support.roost_command import Outcome, roost
from support.servers.live_server import LiveServer, ReferenceServer
from support.worlds.notation import provider_uuid

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def _sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], LiveServer]]:
    """Starts a server with the sample cloud, once for all tests of the module."""
    servers: dict[str, LiveServer] = {}
    with ExitStack() as stack:

        def start(name: str) -> LiveServer:
            if name not in servers:
                directory = tmp_path_factory.mktemp(name)
                made = (
                    LiveServer(f"sqlite:///{directory}/roost.sqlite", directory, workers=1)
                    if name == "roost"
                    else ReferenceServer(reference_environment(), directory)
                )
                servers[name] = stack.enter_context(made)
                make_sample_cloud(servers[name].client())
            return servers[name]

        yield start


@pytest.fixture(params=["roost", "reference"])
def source(request: pytest.FixtureRequest, _sources: Callable[[str], LiveServer]) -> LiveServer:
    name: str = request.param
    return _sources(name)


@pytest.fixture
def roost_source(_sources: Callable[[str], LiveServer]) -> LiveServer:
    return _sources("roost")


def copy(source: LiveServer, url: str, work: Path, *options: str) -> Outcome:
    return roost(
        "import",
        *("--from-url", source.url, "--token", "admin"),
        *("--db", url, "--work-dir", str(work), *options),
    )


def bodies(answers: dict[str, Any]) -> Any:
    """Without times, which are those of the copy, and with the traits of both libraries."""
    return {
        path: answer[:2]
        for path, answer in answers.items()
        if path not in ("/traits", "/resource_classes")
    }


# An import into databases of other kinds is that of an export.
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_copy_answers_as_its_source(
    source: LiveServer, database_url: str, make_api: MakeApi, tmp_path: Path
) -> None:
    done = copy(source, database_url, tmp_path / "work", "--json")
    assert done.status == 0, done.err
    assert "1.39" in done.err
    assert json.loads(done.out)["tables"]["resource_providers"]["rows"] == 9
    with closing(Database(DatabaseOptions(url=database_url))) as database:
        api = make_api(database)
        assert bodies(whole_answers(api)) == bodies(whole_answers(source.client()))
        change_sample_cloud(api)
    assert not (tmp_path / "work").exists()
    again = copy(source, database_url, tmp_path / "work")
    assert again.status == 1
    assert "empty" in again.err


class Scripted(Transport):
    """A transport that acts before chosen requests, or answers them itself."""

    def __init__(self, url: str) -> None:
        self._inner = HttpTransport(url, "admin")
        self.before: dict[str, Callable[[], None]] = {}
        self.asked: list[str] = []
        self.newest = ""

    def send(self, request: PlacementRequest) -> PlacementResponse:
        self.asked.append(request.path)
        action = self.before.pop(request.path, None)
        if action is not None:
            action()
        answer = self._inner.send(request)
        if request.path == "/" and self.newest:
            body = {"versions": [{"max_version": self.newest}]}
            return PlacementResponse(200, {}, json.dumps(body).encode())
        return answer

    def close(self) -> None:
        self._inner.close()


@pytest.fixture
def transport(roost_source: LiveServer) -> Iterator[Scripted]:
    with closing(Scripted(roost_source.url)) as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SurveyFile]:
    with closing(SurveyFile(tmp_path / "survey.sqlite")) as made:
        yield made


def held(file: SurveyFile) -> dict[str, Any]:
    return {uuid: consumer.allocations for uuid, consumer in file.consumers()}


def held_by(api: ApiClient, file: SurveyFile) -> dict[str, Any]:
    """What the server says of all consumers that the copy or its providers know."""
    found = {}
    for provider in api.get("/resource_providers").json["resource_providers"]:
        path = f"/resource_providers/{provider['uuid']}/allocations"
        for consumer in api.get(path).json["allocations"]:
            answer = api.get(f"/allocations/{consumer}").json["allocations"]
            found[consumer] = {uuid: its["resources"] for uuid, its in answer.items()}
    return found


def test_changes_meanwhile_are_read_again(
    roost_source: LiveServer, transport: Scripted, file: SurveyFile
) -> None:
    api = roost_source.client()
    new, old = provider_uuid("claimed meanwhile"), provider_uuid("released meanwhile")
    claim(api, "released meanwhile", "numa 1", "INSTANCE")
    # A claim changes the generation of its provider; a release changes none.
    transport.before["/resource_classes"] = lambda: claim(
        api, "claimed meanwhile", "numa 2", "INSTANCE"
    )
    transport.before["/usages?project_id=a+project"] = lambda: send(
        api, "DELETE", f"/allocations/{old}"
    )
    copied = copy_server(Survey(transport), file, 4)
    assert copied.rounds > 2
    assert new in held(file)
    assert old not in held(file)
    assert held(file) == held_by(api, file)
    send(api, "DELETE", f"/allocations/{new}")


def test_a_copy_goes_on_with_what_was_read(transport: Scripted, file: SurveyFile) -> None:
    copy_server(Survey(transport), file, 4)
    transport.asked.clear()
    copied = copy_server(Survey(transport), file, 4)
    assert copied.rounds == 1
    assert not [path for path in transport.asked if path.endswith("/inventories")]


def test_a_later_run_reads_consumers_again_whose_owner_or_type_has_changed(
    roost_source: LiveServer, transport: Scripted, file: SurveyFile
) -> None:
    api = roost_source.client()
    uuid = provider_uuid("changes hands")
    claim(api, "changes hands", "numa 1", "INSTANCE")
    copy_server(Survey(transport), file, 4)
    found = send(api, "GET", f"/allocations/{uuid}")
    changed = found | {"user_id": "another user", "consumer_type": "MIGRATION"}
    send(api, "PUT", f"/allocations/{uuid}", changed)
    copy_server(Survey(transport), file, 4)
    consumer = dict(file.consumers())[uuid]
    assert (consumer.user, consumer.type, consumer.generation) == ("another user", "MIGRATION", 2)
    send(api, "DELETE", f"/allocations/{uuid}")


def test_a_later_run_reads_aggregates_that_an_old_client_has_set(
    roost_source: LiveServer, transport: Scripted, file: SurveyFile
) -> None:
    api = roost_source.client()
    uuid = provider_uuid("late")
    copy_server(Survey(transport), file, 4)
    path = f"/resource_providers/{uuid}/aggregates"
    aggregate = provider_uuid("an aggregate")
    # Version 1.1 changes no generation.
    send(api.at("1.1"), "PUT", path, [aggregate])
    copy_server(Survey(transport), file, 4)
    assert file.provider(uuid).aggregates == [aggregate]
    send(api.at("1.1"), "PUT", path, [])


def test_a_work_directory_belongs_to_one_server(file: SurveyFile) -> None:
    for _ in range(2):
        file.require_server("http://one.example")
    with pytest.raises(SurveyFailed, match="--work-dir"):
        file.require_server("http://another.example")


def test_a_server_that_changes_all_the_time_is_refused(
    roost_source: LiveServer,
    transport: Scripted,
    file: SurveyFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_copy, "ROUNDS_MAX", 3)
    api = roost_source.client()
    number = iter(range(100))

    def change() -> None:
        send(api, "PUT", f"/resource_providers/{provider_uuid('disks')}/aggregates", body())
        next(number)
        transport.before["/resource_providers"] = change

    def body() -> Any:
        path = f"/resource_providers/{provider_uuid('disks')}"
        found = api.get(f"{path}/aggregates").json
        return {name: found[name] for name in ("aggregates", "resource_provider_generation")}

    transport.before["/resource_providers"] = change
    with pytest.raises(SurveyFailed, match="faster"):
        copy_server(Survey(transport), file, 4)


@pytest.mark.parametrize(
    ("newest", "losses"),
    [("1.39", 0), ("1.37", 1), ("1.27", 2), ("1.17", 3), ("2.0", 0)],
)
def test_an_older_server_is_read_and_what_it_lacks_is_told(
    transport: Scripted, file: SurveyFile, newest: str, losses: int
) -> None:
    transport.newest = newest
    survey = Survey(transport)
    assert len(survey.losses) == losses
    copied = copy_server(survey, file, 4)
    assert len(copied.providers) == 9
    consumer = dict(file.consumers())[provider_uuid("consumer 1")]
    assert consumer.type == ("INSTANCE" if losses == 0 else None)
    assert consumer.project == "a project"


def test_a_server_without_trees_is_refused(transport: Scripted) -> None:
    transport.newest = "1.13"
    with pytest.raises(ServerTooOld, match=r"1\.14"):
        Survey(transport)


def test_an_interrupted_copy_continues(
    roost_source: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, work = f"sqlite:///{tmp_path}/new.sqlite", tmp_path / "work"

    def interrupted(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("roost.cli.server.moving.write_copy", interrupted)
        assert copy(roost_source, url, work).status == 130
    with monkeypatch.context() as patched:
        patched.setattr("roost.moving.importing._verify", interrupted)
        assert copy(roost_source, url, work).status == 130
    with monkeypatch.context() as patched:
        # The third attempt needs no request.
        patched.setattr("roost.cli.server.moving.Survey", interrupted)
        assert copy(roost_source, url, work).status == 0


def test_a_dry_run_reads_the_server_only(roost_source: LiveServer, tmp_path: Path) -> None:
    target = tmp_path / "new.sqlite"
    outcome = copy(roost_source, f"sqlite:///{target}", tmp_path / "work", "--dry-run", "--json")
    assert outcome.status == 0
    assert outcome.json["tables"]["resource_providers"]["rows"] == 9
    assert not target.exists()
    assert (tmp_path / "work" / "cloud.jsonl").exists()
