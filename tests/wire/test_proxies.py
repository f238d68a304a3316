"""Clients, proxies and prefixes, as a live server sees them."""

from __future__ import annotations

from support.raw_client import RawClient, request
from support.servers.live_server import LiveServer, Serve

PARSING = "[oslo_middleware]\nenable_proxy_headers_parsing = true"
FORWARDED = {"X-Forwarded-For": "198.51.100.9, 192.0.2.1", "X-Forwarded-Proto": "https"}


def location(server: LiveServer, path: str = "/traits/CUSTOM_GOLD") -> str:
    with RawClient(server.port) as client:
        client.send(request("PUT", path, FORWARDED))
        return client.answer().headers["location"]


def test_a_proxy_on_the_same_machine_is_believed(serve: Serve) -> None:
    server = serve(PARSING)
    assert location(server) == "https://roost.example/traits/CUSTOM_GOLD"
    assert '] 192.0.2.1 "PUT /traits/CUSTOM_GOLD"' in server.log


def test_a_client_that_is_no_proxy_is_not_believed(serve: Serve) -> None:
    server = serve(f"trusted_proxies = 192.0.2.0/24\n{PARSING}")
    for _ in range(30):
        assert location(server) == "http://roost.example/traits/CUSTOM_GOLD"
    assert '] 127.0.0.1 "PUT /traits/CUSTOM_GOLD"' in server.log
    # A client cannot fill the log with this line.
    assert server.log.count("add its address to [roost]trusted_proxies") == 10


def test_the_prefix_of_the_command_line_comes_first(serve: Serve) -> None:
    server = serve("prefix = /other", "--prefix", "/placement")
    at = "/placement/traits/CUSTOM_GOLD"
    assert location(server, at) == f"http://roost.example{at}"
    with RawClient(server.port) as client:
        client.send(request("GET", "/traits"))
        assert client.answer().status == 404
    assert f"http://127.0.0.1:{server.port}/placement on " in server.log
