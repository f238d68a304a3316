"""A record belongs to one server: that of another one is refused, and nothing is mixed."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path

import pytest

from roost.client.errors import RecordsOfAnotherServer, ResourceProviderRetrievalFailed
from roost.client.ownership.declarative_reporter import DeclarativeReporter, Report
from roost.client.ownership.known_server import KnownServer, rebind, records_of_server
from roost.client.ownership.record import RecordedServer
from roost.client.ownership.store import FileOwnershipStore
from roost.client.ownership.tree_application import TreeApplication, tree_declarations, withdrawals
from roost.client.placement import Placement
from roost.client.reporting.reporter import Reporter
from roost.client.transport import PlacementRequest, PlacementResponse, ServerAddress
from roost.model.trees.declaration import Declaration
from roost.testing import FakePlacement
from roost.testing.faults import error_answer, json_answer
from support.client.declarations import declaration, declared

IDENTITY = "0b6aa1a8-93d5-4d3c-9a5c-3a1c1f9b9a50"
ANOTHER = "0b6aa1a8-93d5-4d3c-9a5c-3a1c1f9b9a51"
PRODUCTION, LAB = "http://placement.example", "http://lab.example"
HOST = "5a1cbbc0-7f0e-4b6c-9a53-000000000001"


class Server:
    """A fake server with an address, and with an identity if it is Roost."""

    def __init__(
        self,
        url: str | None = PRODUCTION,
        identity: str | None = None,
        project: str | None = None,
        fake: FakePlacement | None = None,
    ) -> None:
        self.fake = FakePlacement() if fake is None else fake
        self._address = None if url is None else ServerAddress(url, project)
        self.identity = identity
        self.failure: PlacementResponse | None = None
        self.asked = 0
        self.writes: list[str] = []

    def address(self) -> ServerAddress | None:
        return self._address

    def send(self, request: PlacementRequest) -> PlacementResponse:
        if request.path != "/roost/server":
            if request.method != "GET":
                self.writes.append(str(request))
            return self.fake.send(request)
        self.asked += 1
        if self.failure is not None:
            return self.failure
        if self.identity is None:
            return error_answer(404, "The resource could not be found.")
        return json_answer({"identity": self.identity})

    def close(self) -> None:
        self.fake.close()


def copy_of(server: Server, url: str = LAB, identity: str | None = None) -> Server:
    """A server that shows the providers of another one, such as a lab."""
    return Server(url, identity or server.identity, fake=server.fake)


class Owner:
    """An owner with records in files; each report is that of a new process."""

    def __init__(self, records: Path) -> None:
        self.records = records

    @property
    def store(self) -> FileOwnershipStore:
        return FileOwnershipStore("rack", self.records)

    def declare(self, server: Server, *classes: str) -> Report:
        reporter = DeclarativeReporter(Reporter(server), "rack", self.store)
        return reporter.declare(tree(classes), "host", HOST)

    def body(self) -> dict[str, object]:
        (path,) = (self.records / "rack").glob("*.json")
        found: dict[str, object] = json.loads(path.read_text())
        return found


def tree(classes: Iterable[str]) -> Declaration:
    return declaration(declared("host", inventories={name: {"total": 1} for name in classes}))


def classes_of(server: Server) -> set[str]:
    return set(server.fake.tree("host").data("host").inventory)


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


# -- another server


@pytest.mark.parametrize("identity", [IDENTITY, None], ids=["roost", "other"])
def test_a_copy_of_the_server_is_refused_and_the_server_keeps_its_records(
    owner: Owner, identity: str | None
) -> None:
    production = Server(PRODUCTION, identity)
    owner.declare(production, "VCPU", "VGPU")
    lab = copy_of(production)
    with pytest.raises(RecordsOfAnotherServer) as caught:
        owner.declare(lab, "VCPU")
    assert PRODUCTION in str(caught.value)
    command = f"roost owner rebind rack --from {PRODUCTION} --url {LAB} --records {owner.records}"
    assert str(caught.value).endswith(f"Next: {command}")
    assert lab.writes == []
    # What the file no longer declares goes, on the server that has it.
    owner.declare(production, "VCPU")
    assert classes_of(production) == {"VCPU"}


def test_a_preview_of_another_server_is_refused_as_well(owner: Owner) -> None:
    production = Server(PRODUCTION, IDENTITY)
    owner.declare(production, "VCPU")
    reporter = DeclarativeReporter(Reporter(copy_of(production)), "rack", owner.store)
    with pytest.raises(RecordsOfAnotherServer):
        reporter.preview(tree(["VCPU"]), "host", HOST)


@pytest.mark.parametrize(
    ("recorded", "present", "words"),
    [
        ((PRODUCTION, IDENTITY), (LAB, IDENTITY), "the same identity"),
        ((PRODUCTION, IDENTITY), (PRODUCTION, ANOTHER), "Another server answers at the same"),
        ((PRODUCTION, IDENTITY), (LAB, ANOTHER), "If it is the same server"),
        ((PRODUCTION, None), (LAB, IDENTITY), "If it is the same server"),
        ((None, IDENTITY), (None, ANOTHER), f"--from {IDENTITY}"),
    ],
)
def test_the_refusal_says_what_differs(
    owner: Owner,
    recorded: tuple[str | None, str | None],
    present: tuple[str | None, str | None],
    words: str,
) -> None:
    owner.declare(Server(*recorded), "VCPU")
    with pytest.raises(RecordsOfAnotherServer) as caught:
        owner.declare(Server(*present), "VCPU")
    assert words in str(caught.value)


@pytest.mark.parametrize(("identity", "is_refused"), [(None, True), (IDENTITY, False)])
def test_the_project_counts_if_there_is_no_identity(
    owner: Owner, identity: str | None, is_refused: bool
) -> None:
    owner.declare(Server(PRODUCTION, identity, "one"), "VCPU")
    if is_refused:
        with pytest.raises(RecordsOfAnotherServer, match=r"project one.*project two"):
            owner.declare(Server(PRODUCTION, identity, "two"), "VCPU")
    else:
        owner.declare(Server(PRODUCTION, identity, "two"), "VCPU")


# -- the same server


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((PRODUCTION, IDENTITY), (PRODUCTION, IDENTITY)),
        # The reference becomes Roost, or an older version of Roost takes over for a while.
        ((PRODUCTION, None), (PRODUCTION, IDENTITY)),
        ((PRODUCTION, IDENTITY), (PRODUCTION, None)),
        # A transport of a program may not know an address.
        ((PRODUCTION, IDENTITY), (None, IDENTITY)),
        ((None, None), (PRODUCTION, IDENTITY)),
    ],
)
def test_the_same_server_goes_on_and_what_is_known_of_it_is_kept(
    owner: Owner, first: tuple[str | None, str | None], second: tuple[str | None, str | None]
) -> None:
    server = Server(*first)
    owner.declare(server, "VCPU", "VGPU")
    again = Server(*second, fake=server.fake)
    owner.declare(again, "VCPU")
    assert classes_of(again) == {"VCPU"}
    url, identity = (one or other for one, other in zip(second, first, strict=True))
    assert owner.body()["server"] == {"identity": identity, "url": url, "project_id": None}


def test_a_record_of_an_older_version_is_taken_over_once_with_a_line(
    owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    production = Server(PRODUCTION, IDENTITY)
    owner.declare(production, "VCPU", "VGPU")
    (path,) = (owner.records / "rack").glob("*.json")
    old = owner.body()
    del old["server"]
    path.write_text(json.dumps(old))
    caplog.set_level(logging.WARNING)
    owner.declare(production, "VCPU", "VGPU")
    (line,) = caplog.messages
    assert f"now {PRODUCTION}" in line
    caplog.clear()
    owner.declare(production, "VCPU")
    assert caplog.messages == []
    with pytest.raises(RecordsOfAnotherServer):
        owner.declare(copy_of(production), "VCPU")


def test_a_server_that_tells_nothing_about_itself_binds_nothing(
    owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    owner.declare(Server(None), "VCPU")
    owner.declare(Server(None), "VCPU")
    assert "server" not in owner.body()
    assert caplog.messages == []


# -- the question for the identity


def test_the_identity_is_asked_for_once_in_a_process(owner: Owner) -> None:
    server = Server(PRODUCTION, IDENTITY)
    reporter = DeclarativeReporter(Reporter(server), "rack", owner.store)
    for classes in (["VCPU"], ["VCPU", "VGPU"], []):
        reporter.declare(tree(classes), "host", HOST)
        reporter.preview(tree(["VCPU"]), "host", HOST)
    assert server.asked == 1
    many = declaration(*(declared(f"host-{number}") for number in range(20)))
    server.asked = 0
    application = TreeApplication(server, "rack", owner.store, jobs=4)
    assert all(
        done.error is None for done in application.apply(tree_declarations(Placement(server), many))
    )
    assert server.asked == 1


@pytest.mark.parametrize("status", [401, 500, 503])
def test_a_server_that_cannot_tell_its_identity_now_is_asked_again(status: int) -> None:
    server = Server(None, IDENTITY)
    server.failure = error_answer(status)
    known = KnownServer(Placement(server))
    with pytest.raises(ResourceProviderRetrievalFailed):
        known.get()
    server.failure = None
    assert known.get() == RecordedServer(IDENTITY)


@pytest.mark.parametrize(
    "answer",
    [
        json_answer({"identity": None}),
        json_answer([]),
        json_answer({"identity": 7}),
        PlacementResponse(200, content=b"<html>"),
        error_answer(403),
        error_answer(405),
    ],
)
def test_any_other_answer_is_that_of_a_server_without_identity(answer: PlacementResponse) -> None:
    server = FakePlacement()
    server.faults.answer("GET /roost/server", answer)
    assert KnownServer(Placement(server)).get() == RecordedServer()


# -- several trees


def test_trees_of_another_server_are_not_withdrawn(owner: Owner) -> None:
    production = Server(PRODUCTION, IDENTITY)
    owner.declare(production, "VCPU")
    placement = Placement(production)
    assert [
        tree.root_uuid for tree in withdrawals(placement, owner.store, [], KnownServer(placement))
    ] == [HOST]
    lab = Placement(copy_of(production))
    assert list(withdrawals(lab, owner.store, [], KnownServer(lab))) == []


def test_a_host_of_the_same_name_on_another_server_is_a_new_host(owner: Owner) -> None:
    production = Server(PRODUCTION, IDENTITY)
    owner.declare(production, "VCPU")
    elsewhere = Server(LAB, ANOTHER)
    reporter = DeclarativeReporter(Reporter(elsewhere), "rack", owner.store)
    reporter.declare(tree(["VCPU"]), "host")
    assert classes_of(elsewhere) == {"VCPU"}
    assert len(owner.store.trees()) == 2


# -- rebinding


def test_rebound_records_belong_to_the_new_server(owner: Owner) -> None:
    production = Server(PRODUCTION, IDENTITY)
    owner.declare(production, "VCPU", "VGPU")
    moved = copy_of(production)
    store = owner.store
    rebind(store, records_of_server(store, f"{PRODUCTION}/"), KnownServer(Placement(moved)).get())
    owner.declare(moved, "VCPU")
    assert classes_of(moved) == {"VCPU"}
    with pytest.raises(RecordsOfAnotherServer):
        owner.declare(production, "VCPU")
