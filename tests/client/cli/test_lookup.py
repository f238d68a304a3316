"""Names that an operator gives: what is found, and what an error suggests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from roost.client.errors import NoSuchProvider, PlacementError
from roost.client.placement import Placement
from roost.client.reading.lookup import NoSuchName, demand_known, find_provider
from roost.client.transport.http import HttpTransport
from roost.client.versions import ServerTooOld, newest_common
from support.client.live_providers import LiveProviders
from support.stubs.placement_stub import PlacementStub, Reply
from support.transports.counting import CountingTransport
from support.transports.tampering import one_server


def test_an_unknown_name_is_answered_with_near_names_and_the_next_command(
    live_providers: LiveProviders, transport: CountingTransport
) -> None:
    live_providers.add("host-1")
    wanted = live_providers.name("host1")
    with pytest.raises(NoSuchProvider) as refused:
        find_provider(Placement(transport), wanted)
    first, last = str(refused.value).splitlines()
    assert first.startswith(f"No provider has the name or uuid {wanted}. Near it: ")
    assert live_providers.name("host-1") in first
    assert last == "Next: roost provider list"


@one_server
def test_a_uuid_counts_before_a_name(
    live_providers: LiveProviders, transport: CountingTransport
) -> None:
    uuid = live_providers.add("host")
    body = {"uuid": live_providers.uuid("namesake"), "name": uuid}
    live_providers.send("POST", "/resource_providers", body)
    assert find_provider(Placement(transport), uuid.upper())["uuid"] == uuid


@contextmanager
def _answering(body: object) -> Iterator[HttpTransport]:
    """A connection to a server that answers every request with this body."""
    with PlacementStub(otherwise=lambda _: Reply(body=body)) as stub:
        transport = HttpTransport(stub.url, "admin")
        yield transport
        transport.close()


def test_an_empty_name_is_the_name_of_no_provider() -> None:
    only = [_body("1", "host")]
    with _answering({"resource_providers": only}) as transport, pytest.raises(NoSuchProvider):
        find_provider(Placement(transport), "")


def _body(uuid: str, name: str) -> dict[str, object]:
    return {
        "uuid": uuid,
        "name": name,
        "generation": 0,
        "parent_provider_uuid": None,
        "root_provider_uuid": uuid,
    }


def test_the_exact_spelling_counts_where_a_database_ignores_case() -> None:
    both = [_body("1", "HOST"), _body("2", "host")]
    with _answering({"resource_providers": both}) as transport:
        placement = Placement(transport)
        assert find_provider(placement, "host")["uuid"] == "2"
        with pytest.raises(NoSuchProvider, match=r"2 providers have the name Host: 1, 2. Give"):
            find_provider(placement, "Host")


def test_an_unknown_trait_is_answered_with_near_names() -> None:
    with pytest.raises(NoSuchName) as refused:
        demand_known(
            "HW_CPU_X86_AVX5", ["HW_CPU_X86_AVX2", "CUSTOM_A"], "trait", "roost trait list"
        )
    assert str(refused.value).splitlines() == [
        "No trait has the name HW_CPU_X86_AVX5. Near it: HW_CPU_X86_AVX2.",
        "Next: roost trait list",
    ]


@pytest.mark.parametrize(
    ("newest", "common"), [("1.14", "1.14"), ("1.39", "1.39"), ("1.50", "1.39")]
)
def test_the_newest_version_of_both_sides_is_chosen(newest: str, common: str) -> None:
    body = {"versions": [{"max_version": newest}]}
    with _answering(body) as transport:
        assert str(newest_common(transport)) == common


def test_a_server_that_is_too_old_is_named() -> None:
    body = {"versions": [{"max_version": "1.9"}]}
    with (
        _answering(body) as transport,
        pytest.raises(ServerTooOld, match=r"speaks placement 1\.9 at most, and trees need 1\.14"),
    ):
        newest_common(transport)


@pytest.mark.parametrize("body", [{}, {"versions": []}, {"versions": [{"max_version": "new"}]}])
def test_an_answer_without_versions_is_no_answer_of_a_placement_server(body: object) -> None:
    with (
        _answering(body) as transport,
        pytest.raises(PlacementError, match="is the address right"),
    ):
        newest_common(transport)
