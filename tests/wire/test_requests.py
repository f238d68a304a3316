"""Requests as clients send them: in pieces, several at once, with bodies that no route needs."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from roost.model.identifiers import new_uuid
from support.raw_client import JSON, RawClient, request
from support.servers.live_server import LiveServer

BODY = b"{}"
WITH_BODY = {**JSON, "Content-Length": str(len(BODY))}
LARGE = 17 * 1024 * 1024


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        pytest.param("PUT", "/traits/CUSTOM_LATE_BODY", {}, 201, id="not-needed"),
        pytest.param("GET", "/resource_providers", {}, 200, id="read"),
        pytest.param("DELETE", "/traits/CUSTOM_NOWHERE", {}, 404, id="unknown"),
        pytest.param("PUT", "/nowhere", {}, 404, id="no-route"),
        pytest.param("PATCH", "/traits", {}, 405, id="no-method"),
        pytest.param("GET", "/traits", {"Accept": "text/plain"}, 406, id="no-form"),
        pytest.param("POST", "/allocations", {"Content-Type": "text/plain"}, 415, id="no-type"),
        pytest.param("POST", "/allocations", {"X-Roles": "reader"}, 403, id="no-right"),
        pytest.param("PUT", "/traits/X", {"OpenStack-API-Version": "placement 9.9"}, 406, id="new"),
    ],
)
def test_a_body_that_comes_late_harms_no_later_request(
    server: LiveServer, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    with RawClient(server.port) as client:
        client.send(request(method, path, {**WITH_BODY, **headers}), BODY)
        assert client.answer(method).status == status
        client.send(request("GET", "/"))
        assert client.answer().status == 200


def test_a_body_of_a_request_without_a_user_is_read_before_the_answer(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        head = b"PUT /traits/X HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        client.send(head + b"Content-Length: 2\r\n\r\n", b"{}")
        assert client.answer().status == 401
        client.send(request("GET", "/"))
        assert client.answer().status == 200


@pytest.mark.parametrize("path", ["/resource_providers", "/traits/CUSTOM_X", "/nowhere"])
def test_a_connection_ends_after_a_body_that_is_too_large_to_be_read(
    server: LiveServer, path: str
) -> None:
    with RawClient(server.port) as client:
        client.send(request("POST", path, {**JSON, "Content-Length": str(LARGE)}))
        # The client goes on sending for a while and still receives its answer.
        client.send(b" " * 1024 * 1024)
        answer = client.answer()
        assert answer.status == {"/resource_providers": 413}.get(path, answer.status)
        assert answer.headers["connection"] == "close"


def test_a_body_of_unknown_length_is_read_up_to_the_limit(server: LiveServer) -> None:
    name = json.dumps({"name": "in-chunks", "uuid": new_uuid()}).encode()
    chunked = {**JSON, "Transfer-Encoding": "chunked"}
    with RawClient(server.port) as client:
        chunk = b"%x\r\n%s\r\n" % (len(name), name)
        client.send(request("POST", "/resource_providers", chunked), chunk, b"0\r\n\r\n")
        assert client.answer().status == 200
    with RawClient(server.port) as client:
        client.send(request("POST", "/resource_providers", chunked))
        megabyte = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
        for _ in range(17):
            client.send(megabyte)
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (413, "close")


def test_a_client_that_expects_100_continue_is_told_to_send_its_body(server: LiveServer) -> None:
    body = json.dumps({"name": "asked-first", "uuid": new_uuid()}).encode()
    expecting = {**JSON, "Expect": "100-continue", "Content-Length": str(len(body))}
    with RawClient(server.port) as client:
        client.send(request("POST", "/resource_providers", expecting))
        assert client.answer().status == 100
        client.send(body)
        assert client.answer().status == 200
    with RawClient(server.port) as client:
        client.send(
            request("POST", "/resource_providers", {**expecting, "Content-Length": str(LARGE)})
        )
        assert client.answer().status == 413


@pytest.mark.parametrize("blanks", ["  ", "\t", " \t "])
def test_blanks_around_a_value_are_no_part_of_it(server: LiveServer, blanks: str) -> None:
    padded = {"X-Auth-Token": f"{blanks}admin{blanks}", "Expect": f"{blanks}100-continue{blanks}"}
    with RawClient(server.port) as client:
        client.send(
            request("POST", "/resource_providers", {**JSON, **padded, "Content-Length": "2"})
        )
        assert client.answer().status == 100
        client.send(b"{}")
        # The caller is the administrator, so the answer is about the body.
        assert client.answer().status == 400


def test_pipelined_requests_are_answered_in_their_order(
    server: LiveServer,
) -> None:
    versions = ["1.1", "1.5", "1.10", "1.39", "9.9", "1.0"]
    with RawClient(server.port) as client:
        client.send(
            b"".join(
                request("GET", "/traits", {"OpenStack-API-Version": f"placement {version}"})
                for version in versions
            )
        )
        answers = [client.answer() for _ in versions]
    assert [answer.status for answer in answers] == [404, 404, 200, 200, 406, 404]


def test_a_request_may_come_byte_by_byte(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        whole = request("GET", "/traits?name=in:COMPUTE_NODE")
        client.send(*(whole[at : at + 1] for at in range(len(whole))), pause=0.001)
        assert client.answer().json == {"traits": ["COMPUTE_NODE"]}


def test_a_connection_of_http_1_0_ends_after_its_answer(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        client.send(request("GET", "/", version="1.0"))
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert client.is_closed()


def test_a_connection_of_http_1_0_may_be_kept_alive(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        for _ in range(2):
            client.send(request("GET", "/", {"Connection": "keep-alive"}, version="1.0"))
            answer = client.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "keep-alive")


def test_a_request_for_a_whole_url_is_understood(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        client.send(request("GET", "http://roost.example:80/traits?name=in:COMPUTE_NODE"))
        assert client.answer().json == {"traits": ["COMPUTE_NODE"]}
        client.send(request("OPTIONS", "*"))
        assert client.answer().status == 404


def test_a_connection_ends_when_its_client_asks_for_that(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        client.send(request("GET", "/", {"Connection": "close"}))
        assert client.answer().headers["connection"] == "close"
        assert client.is_closed()


def test_a_head_request_gets_no_body(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        client.send(request("HEAD", "/traits"))
        first = client.answer("HEAD")
        client.send(request("GET", "/"))
        assert (first.status, client.answer().status) == (405, 200)


def test_an_answer_without_content_has_no_content_length(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        client.send(request("PUT", "/traits/CUSTOM_GONE"), request("DELETE", "/traits/CUSTOM_GONE"))
        assert client.answer().status == 201
        answer = client.answer()
        assert answer.status == 204
        assert "content-length" not in answer.headers


def test_an_upgrade_header_is_ignored(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        client.send(request("GET", "/", {"Connection": "Upgrade", "Upgrade": "h2c"}))
        assert client.answer().status == 200


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="http2"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="tls"),
        pytest.param(b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two"),
        pytest.param(b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", id="no-length"),
        pytest.param(b"hello\r\n\r\n", id="no-http"),
    ],
)
def test_bytes_that_are_no_request_are_refused_and_harm_no_second_client(
    server: LiveServer, sent: bytes
) -> None:
    with RawClient(server.port) as client, RawClient(server.port) as other:
        client.send(sent)
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert answer.json["errors"][0]["status"] == 400
        other.send(request("GET", "/"))
        assert other.answer().status == 200


def test_headers_that_are_too_large_are_refused(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        client.send(request("GET", "/traits?name=in:" + "A" * 70_000))
        answer = client.answer()
    assert answer.status == 431
    assert "max_header_bytes" in answer.json["errors"][0]["detail"]


@pytest.mark.parametrize("name", ["X_Roles", "x-roles_", "X_ROLES"])
def test_a_second_spelling_of_a_header_gives_no_rights(server: LiveServer, name: str) -> None:
    with RawClient(server.port) as client:
        client.send(request("GET", "/resource_providers", {"X-Roles": "nobody", name: "admin"}))
        assert client.answer().status == 403
        client.send(request("GET", "/resource_providers", {name: "nobody", "X-Roles": "admin"}))
        assert client.answer().status == 200


def chunked(method: str, path: str, trailer: bytes, **headers: str) -> bytes:
    sent = {"Transfer-Encoding": "chunked", "X-Auth-Token": "user:project", **headers}
    return request(method, path, sent) + b"0\r\n" + trailer + b"\r\n"


def test_headers_behind_a_body_give_no_rights(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        client.send(chunked("GET", "/resource_providers", b"X-Roles: admin\r\n"))
        assert client.answer().status == 403
        client.send(chunked("GET", "/resource_providers", b"X-Auth-Token: admin\r\n"))
        assert client.answer().status == 403


@pytest.mark.parametrize(
    "endless", [b"a: b\r\n" * 20_000, b"a: " + b"b" * 140_000], ids=["many", "long"]
)
def test_headers_behind_a_body_are_bounded(server: LiveServer, endless: bytes) -> None:
    with RawClient(server.port) as client:
        client.send(chunked("GET", "/", b"")[:-2], endless)
        assert client.answer().status == 431


@pytest.mark.parametrize("cut", range(10))
def test_an_upgrade_header_in_two_packets_is_ignored(server: LiveServer, cut: int) -> None:
    """`cut` is a place in the end of the line before, or in the name of the header."""
    headers = {**JSON, "Content-Length": "2", "Connection": "Upgrade", "Upgrade": "h2c"}
    whole = request("POST", "/resource_providers", headers) + b"{}"
    place = whole.index(b"\r\nUpgrade:") + cut
    with RawClient(server.port) as client:
        client.send(whole[:place], whole[place:] + request("GET", "/"))
        assert "'name' is a required property" in client.answer().detail
        assert client.answer().status == 200


def test_a_body_of_a_request_with_an_upgrade_header_is_read(server: LiveServer) -> None:
    body = json.dumps({"name": "upgraded", "uuid": new_uuid()}).encode()
    headers = {**JSON, "Content-Length": str(len(body)), "Connection": "Upgrade", "Upgrade": "h2c"}
    with RawClient(server.port) as client:
        client.send(request("POST", "/resource_providers", headers), body[:5], body[5:])
        assert client.answer().status == 200


def test_the_limit_of_headers_does_not_count_the_body_before_them(server: LiveServer) -> None:
    body = b'{"name": "x"' + b" " * 65_400 + b"}"
    post = request("POST", "/resource_providers", {**JSON, "Content-Length": str(len(body))})
    get = request("GET", "/", {"X-Filler": "x" * 600})
    with RawClient(server.port) as client:
        client.send(post + body + get[:10], get[10:200], get[200:])
        assert client.answer().status in (200, 409)
        assert client.answer().status == 200


def test_every_request_of_a_long_pipeline_is_answered_in_its_order(server: LiveServer) -> None:
    sent = [200, 404, 200, 405] * 500
    paths = {200: ("GET", "/"), 404: ("GET", "/nowhere"), 405: ("BREW", "/")}
    stream = b"".join(request(*paths[status]) for status in sent)
    with RawClient(server.port) as client:
        # The client sends ahead for as long as the server reads.
        sender = threading.Thread(target=client.socket.sendall, args=(stream,))
        sender.start()
        assert [client.answer().status for _ in sent] == sent
        sender.join()


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/traits", {}, 405),
        ("/traits", {"OpenStack-API-Version": "placement 1.0"}, 405),
        ("/nowhere", {}, 404),
        ("/traits", {"X-Roles": "reader"}, 405),
    ],
)
@pytest.mark.parametrize("method", ["FOO", "get", "PROPFIND", "M-SEARCH", "x" * 64])
def test_a_method_that_no_route_has_is_refused_in_the_usual_form(
    server: LiveServer, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    asked = {"Accept": "application/json", **WITH_BODY, **headers}
    with RawClient(server.port) as client:
        client.send(request(method, path, asked), BODY + request("GET", "/"))
        answer = client.answer()
        assert answer.status == status
        assert answer.headers["x-openstack-request-id"].startswith("req-")
        if status == 405:
            assert answer.headers["allow"] == "GET"
            assert f"The method {method} is not allowed for this resource." in answer.detail
            assert answer.error["request_id"] == answer.headers["x-openstack-request-id"]
        # The body was read, and the connection goes on.
        assert client.answer().status == 200


@pytest.mark.parametrize("method", ["G@T", "F\x00O", "F\xd6\xd6", "", "x" * 65, "GET\t"])
def test_a_method_that_is_no_token_is_no_request(server: LiveServer, method: str) -> None:
    with RawClient(server.port) as client:
        client.send(request(method, "/traits"))
        answer = client.answer()
    assert (answer.status, answer.headers["connection"]) == (400, "close")


def test_a_pipelined_request_that_expects_100_continue_gets_it(server: LiveServer) -> None:
    body = json.dumps({"name": "second", "uuid": new_uuid()}).encode()
    expecting = {**JSON, "Expect": "100-continue", "Content-Length": str(len(body))}
    with RawClient(server.port) as client:
        first, second = request("GET", "/traits"), request("POST", "/resource_providers", expecting)
        client.send(first + second)
        assert [client.answer().status, client.answer().status] == [200, 100]
        client.send(body)
        assert client.answer().status == 200


def test_no_100_continue_follows_the_answer(server: LiveServer) -> None:
    """A client would take it for the answer to a later request."""
    with RawClient(server.port) as client:
        client.send(request("GET", "/traits") + request("GET", "/", {"Expect": "100-continue"}))
        assert [client.answer().status, client.answer().status] == [200, 200]
        client.send(request("GET", "/traits"))
        assert client.answer().status == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, id="two-hosts"),
        pytest.param(b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, id="http2-as-text"),
        pytest.param(b"GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505, id="http0.9"),
    ],
)
def test_requests_that_break_http_1_are_refused(
    server: LiveServer, sent: bytes, status: int
) -> None:
    with RawClient(server.port) as client:
        client.send(sent)
        assert client.answer().status == status


def test_a_client_that_has_closed_its_side_still_gets_its_answer(server: LiveServer) -> None:
    with RawClient(server.port) as client:
        client.send(request("GET", "/"))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.answer().status == 200
