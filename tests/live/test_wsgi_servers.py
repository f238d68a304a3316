"""Roost behind uwsgi, gunicorn and mod_wsgi: several processes, a prefix, and a reload."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pytest

from roost.model.identifiers import new_uuid
from support.api_client import ApiClient
from support.servers.wsgi_servers import PREFIX, SERVERS, UwsgiServer, WsgiServer, require
from support.waiting import SECONDS_MAX, wait_until

pytestmark = pytest.mark.slow

CHILDREN = 70


@pytest.fixture(scope="module", params=SERVERS, ids=lambda server: server.__name__)
def server(request: pytest.FixtureRequest) -> Iterator[WsgiServer]:
    kind: type[WsgiServer] = request.param
    require(kind)
    # Other users cannot pass the directories of pytest, and Apache works as another user.
    with TemporaryDirectory(prefix="roost-") as directory, kind(Path(directory)) as made:
        assert isinstance(made, WsgiServer)
        # A chain of reloads of uwsgi leaves out a process that has not loaded the application yet.
        wait_until(lambda: both_answer(made), lambda: made.log)
        yield made
        # SIGTERM ends each of them in order.
        assert made.stop() == 0


def both_answer(server: WsgiServer) -> bool:
    """Whether each of the two processes has answered a request; asks once more."""
    assert server.client().get(f"{PREFIX}/").status == 200
    return (
        sum(f" {id_} INFO placement.requestlog" in server.log for id_ in server.answering_ids())
        == 2
    )


def make_provider(client: ApiClient, name: str, parent: str | None = None) -> str:
    uuid = new_uuid()
    body = {"name": name, "uuid": uuid, "parent_provider_uuid": parent}
    assert client.post(f"{PREFIX}/resource_providers", body).status == 200
    return uuid


def test_the_service_answers_below_the_prefix_and_knows_it(server: WsgiServer) -> None:
    client = server.client()
    assert client.get(f"{PREFIX}/").json["versions"][0]["max_version"] == "1.39"
    made = client.post(f"{PREFIX}/resource_providers", {"name": "below the prefix"})
    assert made.status == 200
    path = f"{PREFIX}/resource_providers/{made.json['uuid']}"
    assert made.headers["location"].endswith(path)
    assert made.json["links"][0]["href"] == path
    assert client.get(f"{path}?x", accept="text/plain").status == 406


def test_two_processes_answer_and_neither_is_stale(server: WsgiServer) -> None:
    assert len(server.answering_ids()) == 2

    def write_and_read(number: int) -> bool:
        # Each request has a connection of its own, so any process may get it.
        make_provider(server.client(), name := f"host-{number}-{new_uuid()}")
        found = server.client().get(f"{PREFIX}/resource_providers?name={name}").json
        return len(found["resource_providers"]) == 1

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write_and_read, range(40)))


def test_a_long_answer_arrives_whole(server: WsgiServer) -> None:
    client = server.client()
    root = make_provider(client, f"root-{new_uuid()}")

    def make_child(number: int) -> None:
        mine = server.client()
        uuid = make_provider(mine, f"{root}-{number}", root)
        body = {
            "resource_provider_generation": 0,
            "inventories": {"VCPU": {"total": 8}, "PCPU": {"total": 8}},
        }
        path = f"{PREFIX}/resource_providers/{uuid}/inventories"
        assert mine.put(path, body).status == 200

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make_child, range(CHILDREN)))
    query = f"resources1=VCPU:1&resources2=PCPU:1&group_policy=none&in_tree1={root}"
    answer = client.get(f"{PREFIX}/allocation_candidates?{query}")
    # The server sends answers with more than 4,000 candidates in pieces.
    assert "content-length" not in answer.headers
    assert len(answer.json["allocation_requests"]) == CHILDREN**2


def test_a_body_in_chunks_is_read_where_the_server_gives_it(server: WsgiServer) -> None:
    name = f"chunks {new_uuid()}"
    first, second = '{"name": ', f'"{name}"}}'
    request = (
        f"POST {PREFIX}/resource_providers HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: admin\r\n"
        "OpenStack-API-Version: placement 1.39\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
        f"{len(first):x}\r\n{first}\r\n{len(second):x}\r\n{second}\r\n0\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX) as connection:
        connection.sendall(request.encode())
        status = int(connection.recv(4096).split()[1])
    # uwsgi gives no application the body; Roost then refuses the request, and writes nothing.
    assert status == (400 if isinstance(server, UwsgiServer) else 200)
    found = server.client().get(f"{PREFIX}/resource_providers?name={quote(name)}").json
    assert len(found["resource_providers"]) == (status == 200)


def test_a_reload_takes_the_new_configuration_and_loses_no_request(server: WsgiServer) -> None:
    (server.directory / "other.yaml").write_text("'placement:traits:list': '@'\n")
    stop = threading.Event()
    seen: set[object] = set()

    def ask() -> None:
        while not stop.is_set():
            try:
                seen.add(server.client().get(f"{PREFIX}/").status)
            except (OSError, http.client.HTTPException) as error:
                seen.add(repr(error))

    def may_list() -> bool:
        answer = server.client().get(f"{PREFIX}/traits", x_auth_token="me:mine")
        assert answer.status in (200, 403)
        return answer.status == 200

    assert not may_list()
    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    before = server.answering_ids()
    server.configure(f"[oslo_policy]\npolicy_file = {server.directory}/other.yaml\n")
    server.reload()
    wait_until(lambda: not before & server.answering_ids() and len(server.answering_ids()) == 2)
    wait_until(may_list)
    wait_until(server.has_settled)
    stop.set()
    for thread in asking:
        thread.join(SECONDS_MAX)
    assert seen == {200}
    assert all(may_list() for _ in range(8))


@pytest.mark.parametrize("kind_of_server", SERVERS, ids=lambda server: server.__name__)
def test_a_configuration_that_cannot_be_used_is_named(kind_of_server: type[WsgiServer]) -> None:
    require(kind_of_server)
    with TemporaryDirectory(prefix="roost-") as directory:
        wrong = kind_of_server(Path(directory))
        wrong.configure("[placement]\nmax_allocation_candidates = many\n")
        # uwsgi and gunicorn end at once; Apache answers 500.
        with pytest.raises(AssertionError), wrong:
            assert wrong.client().get(f"{PREFIX}/").status == 200
        assert "max_allocation_candidates" in wrong.log
