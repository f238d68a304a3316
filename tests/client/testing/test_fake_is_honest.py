"""The fake server answers as live servers do: the same requests, to both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID, uuid4, uuid5

import pytest

from roost.client.testing import FakePlacement
from roost.client.transport import PlacementRequest, PlacementResponse
from roost.client.transport.http import HttpTransport
from support.servers.live_server import LiveServer

ABSENT = "00000000-0000-4000-8000-00000000dead"


class Ask(NamedTuple):
    """A request of the script; `<name>` in it stands for a uuid or a name of this run."""

    method: str
    path: str
    body: Any = None
    version: str | None = "1.39"


def at(uuid: str, part: str = "") -> str:
    return f"/resource_providers/<{uuid}>" + (f"/{part}" if part else "")


def inventories(generation: int, **fields: Any) -> dict[str, Any]:
    return {"resource_provider_generation": generation, "inventories": fields}


def traits(generation: int, *names: str) -> dict[str, Any]:
    return {"resource_provider_generation": generation, "traits": list(names)}


def aggregates(generation: int, *uuids: str) -> dict[str, Any]:
    return {"resource_provider_generation": generation, "aggregates": list(uuids)}


def claim(generation: int | None, **amounts: dict[str, int]) -> dict[str, Any]:
    return {
        "allocations": {f"<{name}>": {"resources": used} for name, used in amounts.items()},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": generation,
    }


VCPU = {"total": 8, "reserved": 1, "allocation_ratio": 2.0, "max_unit": 4}
CARD = "CUSTOM_CARD<MARK>"
GOLD = "CUSTOM_GOLD<MARK>"

SCRIPTS: dict[str, list[Ask]] = {
    "providers": [
        Ask("GET", at("root")),
        Ask("POST", "/resource_providers", {"name": "root-<mark>", "uuid": "<root>"}, "1.20"),
        Ask("POST", "/resource_providers", {"name": "root-<mark>", "uuid": "<root>"}, "1.20"),
        Ask("POST", "/resource_providers", {"name": "root-<mark>", "uuid": "<other>"}, "1.20"),
        Ask("POST", "/resource_providers", {"name": "other-<mark>", "uuid": "<root>"}, "1.20"),
        Ask("POST", "/resource_providers", {"name": "old-<mark>", "uuid": "<old>"}, None),
        Ask("POST", "/resource_providers", {"name": "", "uuid": "<other>"}),
        Ask("POST", "/resource_providers", {"uuid": "<other>"}),
        Ask("POST", "/resource_providers", {"name": "x", "uuid": "no uuid"}),
        Ask("POST", "/resource_providers", {"name": "x", "colour": "red"}),
        Ask(
            "POST",
            "/resource_providers",
            {"name": "child-<mark>", "uuid": "<child>", "parent_provider_uuid": "<root>"},
        ),
        Ask(
            "POST",
            "/resource_providers",
            {"name": "orphan-<mark>", "uuid": "<orphan>", "parent_provider_uuid": ABSENT},
        ),
        Ask("GET", at("child")),
        Ask("GET", at("child"), version=None),
        Ask("GET", at("child"), version="1.13"),
        Ask("GET", "/resource_providers?in_tree=<child>", version="1.14"),
        Ask("GET", "/resource_providers?in_tree=<child>", version="1.13"),
        Ask("GET", f"/resource_providers?in_tree={ABSENT}", version="1.14"),
        Ask("GET", "/resource_providers?name=root-<mark>", version=None),
        Ask("GET", "/resource_providers?uuid=<root>"),
        Ask("GET", "/resource_providers?colour=red"),
        Ask("GET", "/resource_providers?required=CUSTOM_NOBODY_HAS_IT"),
        Ask("DELETE", at("root")),
        Ask("PUT", at("child"), {"name": "child-<mark>", "parent_provider_uuid": "<old>"}, "1.36"),
        Ask("PUT", at("child"), {"name": "child-<mark>", "parent_provider_uuid": "<old>"}, "1.37"),
        Ask("GET", at("child")),
        Ask("PUT", at("old"), {"name": "old-<mark>", "parent_provider_uuid": "<child>"}, "1.37"),
        Ask("PUT", at("child"), {"name": "renamed-<mark>"}, "1.37"),
        Ask("PUT", at("child"), {"name": "root-<mark>"}, "1.37"),
        Ask("PUT", at("child"), {"name": "renamed-<mark>", "parent_provider_uuid": None}, "1.36"),
        Ask("PUT", at("child"), {"name": "renamed-<mark>", "parent_provider_uuid": None}, "1.37"),
        Ask("PUT", at("absent"), {"name": "x"}),
        Ask("GET", "/resource_providers?in_tree=<child>"),
        Ask("DELETE", at("child"), version=None),
        Ask("DELETE", at("child"), version=None),
        Ask("GET", at("child")),
        Ask("GET", at("root"), version="1.40"),
        Ask("GET", at("root"), version="latest"),
        Ask("PATCH", at("root")),
        Ask("GET", "/nothing"),
    ],
    "inventories": [
        Ask("POST", "/resource_providers", {"name": "root-<mark>", "uuid": "<root>"}, "1.20"),
        Ask("GET", at("root", "inventories"), version=None),
        Ask("GET", at("absent", "inventories"), version=None),
        Ask("PUT", at("root", "inventories"), inventories(0, VCPU=VCPU), "1.26"),
        Ask("PUT", at("root", "inventories"), inventories(0, VCPU=VCPU), "1.26"),
        Ask("GET", at("root", "inventories"), version=None),
        Ask("PUT", at("root", "inventories"), inventories(1, VCPU={"total": 0}), "1.26"),
        Ask("PUT", at("root", "inventories"), inventories(1, VCPU={"reserved": 0}), "1.26"),
        Ask("PUT", at("root", "inventories"), inventories(1, VCPU={"total": "8"}), "1.26"),
        Ask("PUT", at("root", "inventories"), inventories(1, vcpu={"total": 8}), "1.26"),
        Ask("PUT", at("root", "inventories"), inventories(1, **{CARD: {"total": 8}}), "1.26"),
        Ask("GET", f"/resource_classes/{CARD}"),
        Ask("PUT", f"/resource_classes/{CARD}", version="1.7"),
        Ask("PUT", f"/resource_classes/{CARD}", version="1.7"),
        Ask("PUT", "/resource_classes/GOLD", version="1.7"),
        Ask("GET", f"/resource_classes/{CARD}"),
        Ask("POST", "/resource_classes", {"name": CARD}),
        Ask("PUT", at("root", "inventories"), inventories(1, **{CARD: {"total": 8}}), "1.26"),
        Ask("DELETE", f"/resource_classes/{CARD}"),
        Ask("DELETE", "/resource_classes/VCPU"),
        Ask(
            "PUT",
            at("root", "inventories"),
            inventories(2, VCPU={"total": 4, "reserved": 4}),
            "1.26",
        ),
        Ask(
            "PUT",
            at("root", "inventories"),
            inventories(3, VCPU={"total": 4, "reserved": 4}),
            "1.25",
        ),
        Ask(
            "PUT",
            at("root", "inventories"),
            inventories(3, VCPU={"total": 4, "reserved": 5}),
            "1.26",
        ),
        Ask("GET", at("root", "usages"), version=None),
        Ask("DELETE", at("root", "inventories")),
        Ask("GET", at("root")),
        Ask("DELETE", f"/resource_classes/{CARD}"),
    ],
    "traits and aggregates": [
        Ask("POST", "/resource_providers", {"name": "root-<mark>", "uuid": "<root>"}, "1.20"),
        Ask("GET", at("root", "traits"), version="1.6"),
        Ask("GET", at("root", "traits"), version="1.5"),
        Ask("GET", f"/traits?name=in:{GOLD},HW_CPU_X86_AVX", version="1.6"),
        Ask("GET", f"/traits/{GOLD}", version="1.6"),
        Ask("PUT", at("root", "traits"), traits(0, GOLD), "1.6"),
        Ask("PUT", f"/traits/{GOLD}", version="1.6"),
        Ask("PUT", f"/traits/{GOLD}", version="1.6"),
        Ask("PUT", "/traits/GOLD", version="1.6"),
        Ask("PUT", "/traits/HW_CPU_X86_AVX", version="1.6"),
        Ask("PUT", at("root", "traits"), traits(0, GOLD, "HW_CPU_X86_AVX"), "1.6"),
        Ask("PUT", at("root", "traits"), traits(0, GOLD), "1.6"),
        Ask("PUT", at("root", "traits"), traits(1, "HW_CPU_X86_AVX", GOLD), "1.6"),
        Ask("GET", at("root")),
        Ask("GET", f"/traits?name=in:{GOLD}&associated=true", version="1.6"),
        Ask("DELETE", f"/traits/{GOLD}", version="1.6"),
        Ask("GET", f"/resource_providers?required={GOLD}&name=root-<mark>", version="1.18"),
        Ask("GET", f"/resource_providers?required=!{GOLD}&name=root-<mark>", version="1.22"),
        Ask("PUT", at("root", "aggregates"), aggregates(1, "<agg>"), "1.19"),
        Ask("PUT", at("root", "aggregates"), aggregates(1, "<agg>"), "1.19"),
        Ask("GET", at("root", "aggregates"), version="1.19"),
        Ask("PUT", at("root", "aggregates"), ["<agg>", "<more>"], "1.18"),
        Ask("GET", at("root", "aggregates"), version="1.18"),
        Ask("GET", at("root")),
        Ask("PUT", at("root", "aggregates"), aggregates(2, "no uuid"), "1.19"),
        Ask(
            "GET",
            f"/resource_providers?member_of=in:<agg>,{ABSENT}&required={GOLD}",
            version="1.18",
        ),
        Ask("GET", "/resource_providers?member_of=<more>", version="1.3"),
        Ask("GET", f"/resource_providers?member_of={ABSENT}", version="1.18"),
        Ask("DELETE", at("root", "traits")),
        Ask("GET", at("root")),
        Ask("DELETE", f"/traits/{GOLD}"),
        Ask("DELETE", "/traits/HW_CPU_X86_AVX"),
    ],
    "allocations": [
        Ask("POST", "/resource_providers", {"name": "root-<mark>", "uuid": "<root>"}),
        Ask("POST", "/resource_providers", {"name": "other-<mark>", "uuid": "<other>"}),
        Ask("PUT", at("root", "inventories"), inventories(0, VCPU=VCPU)),
        Ask("PUT", at("other", "inventories"), inventories(0, VCPU=VCPU, DISK_GB={"total": 10})),
        Ask("GET", "/allocations/<alice>", version="1.28"),
        Ask("PUT", "/allocations/<alice>", claim(None, root={"VCPU": 4}), "1.28"),
        Ask("PUT", "/allocations/<alice>", claim(None, root={"VCPU": 4}), "1.28"),
        Ask("GET", "/allocations/<alice>", version="1.28"),
        Ask("GET", "/allocations/<alice>", version="1.38"),
        Ask("GET", "/allocations/<alice>", version="1.12"),
        Ask("PUT", "/allocations/<alice>", claim(1, root={"VCPU": 5}), "1.28"),
        Ask("PUT", "/allocations/<alice>", claim(1, root={"DISK_GB": 5}), "1.28"),
        Ask("PUT", "/allocations/<alice>", claim(1, absent={"VCPU": 1}), "1.28"),
        Ask("PUT", "/allocations/<alice>", claim(1, root={"CUSTOM_NONE": 1}), "1.28"),
        Ask("PUT", "/allocations/<alice>", claim(1, root={"VCPU": 0}), "1.28"),
        Ask("PUT", "/allocations/<alice>", claim(1, root={"VCPU": 2}), "1.38"),
        Ask(
            "PUT",
            "/allocations/<alice>",
            {**claim(1, root={"VCPU": 2}, other={"VCPU": 1}), "consumer_type": "INSTANCE"},
            "1.38",
        ),
        Ask(
            "PUT",
            "/allocations/<alice>",
            {**claim(2, root={"VCPU": 2}), "consumer_type": "unknown"},
            "1.38",
        ),
        Ask("GET", "/allocations/<alice>", version="1.38"),
        Ask("PUT", "/allocations/<alice>", claim(2, root={"VCPU": 4}), "1.28"),
        Ask("GET", "/allocations/<alice>", version="1.38"),
        Ask("PUT", "/allocations/<bob>", claim(None, root={"VCPU": 4}), "1.28"),
        Ask("PUT", "/allocations/<carol>", claim(None, root={"VCPU": 4}), "1.28"),
        Ask("PUT", "/allocations/<carol>", claim(None, root={"VCPU": 4}), "1.28"),
        Ask("GET", at("root", "usages"), version=None),
        Ask("GET", at("root", "allocations"), version=None),
        Ask("GET", at("root", "allocations"), version="1.28"),
        Ask("DELETE", at("root")),
        Ask("PUT", at("root", "inventories"), inventories(5, DISK_GB={"total": 1})),
        Ask("PUT", at("root", "inventories"), inventories(6, DISK_GB={"total": 1})),
        Ask("GET", at("root")),
        Ask("GET", at("other")),
        Ask(
            "POST",
            "/allocations",
            {"<alice>": claim(3), "<dave>": claim(None, root={"VCPU": 2})},
            "1.28",
        ),
        Ask(
            "POST",
            "/allocations",
            {"<bob>": claim(7), "<erin>": claim(None, root={"VCPU": 2})},
            "1.28",
        ),
        Ask("GET", "/allocations/<alice>", version="1.28"),
        Ask("GET", "/allocations/<dave>", version="1.28"),
        Ask("GET", at("root")),
        Ask("DELETE", "/allocations/<dave>", version=None),
        Ask("DELETE", "/allocations/<dave>", version=None),
        Ask("PUT", "/allocations/<bob>", claim(1), "1.28"),
        Ask("GET", "/allocations/<bob>", version="1.28"),
        Ask("GET", at("root")),
        Ask("GET", at("root", "usages")),
    ],
    "reshapes": [
        Ask("POST", "/resource_providers", {"name": "root-<mark>", "uuid": "<root>"}),
        Ask(
            "POST",
            "/resource_providers",
            {"name": "child-<mark>", "uuid": "<child>", "parent_provider_uuid": "<root>"},
        ),
        Ask("PUT", at("root", "inventories"), inventories(0, VCPU=VCPU, VGPU={"total": 4})),
        Ask("PUT", "/allocations/<alice>", claim(None, root={"VCPU": 1, "VGPU": 2}), "1.28"),
        Ask("PUT", "/allocations/<bob>", claim(None, root={"VGPU": 2}), "1.28"),
        *(
            Ask("POST", "/reshaper", body, "1.30")
            for body in (
                # The generation of a provider is old.
                {
                    "inventories": {"<root>": inventories(1, VCPU=VCPU)},
                    "allocations": {"<alice>": claim(1, root={"VCPU": 1})},
                },
                # A consumer would still hold what goes.
                {
                    "inventories": {
                        "<root>": inventories(3, VCPU=VCPU),
                        "<child>": inventories(0, VGPU={"total": 4}),
                    },
                    "allocations": {
                        "<alice>": claim(1, root={"VCPU": 1}, child={"VGPU": 2}),
                    },
                },
                # The generation of a consumer is old.
                {
                    "inventories": {
                        "<root>": inventories(3, VCPU=VCPU),
                        "<child>": inventories(0, VGPU={"total": 4}),
                    },
                    "allocations": {
                        "<alice>": claim(7, root={"VCPU": 1}, child={"VGPU": 2}),
                        "<bob>": claim(1, child={"VGPU": 2}),
                    },
                },
                # The new inventory is too small.
                {
                    "inventories": {
                        "<root>": inventories(3, VCPU=VCPU),
                        "<child>": inventories(0, VGPU={"total": 3}),
                    },
                    "allocations": {
                        "<alice>": claim(1, root={"VCPU": 1}, child={"VGPU": 2}),
                        "<bob>": claim(1, child={"VGPU": 2}),
                    },
                },
                {"inventories": {"<absent>": inventories(3, VCPU=VCPU)}, "allocations": {}},
                {
                    "inventories": {
                        "<root>": inventories(3, VCPU=VCPU),
                        "<child>": inventories(0, VGPU={"total": 4}),
                    },
                    "allocations": {
                        "<alice>": claim(1, root={"VCPU": 1}, child={"VGPU": 2}),
                        "<bob>": claim(1, child={"VGPU": 2}),
                    },
                },
            )
        ),
        Ask("GET", at("root")),
        Ask("GET", at("child")),
        Ask("GET", at("root", "inventories")),
        Ask("GET", at("child", "usages")),
        Ask("GET", "/allocations/<alice>", version="1.28"),
        Ask("GET", "/allocations/<bob>", version="1.28"),
        Ask("POST", "/reshaper", {"inventories": {}, "allocations": {}}, "1.29"),
    ],
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_fake_answers_as_live_servers_do(server: LiveServer, name: str) -> None:
    run, fake = _Names(), FakePlacement()
    live = HttpTransport(server.url, "admin")
    try:
        for number, ask in enumerate(SCRIPTS[name]):
            request = PlacementRequest(
                ask.method, run.filled(ask.path), run.filled(ask.body), ask.version
            )
            real, faked = live.send(request), fake.send(request)
            where = f"step {number}, {request} {ask.version}"
            assert faked.status == real.status, f"{where}: {real.detail} / {faked.detail}"
            assert _shape(faked) == _shape(real), where
            if not real.ok and ask.version not in (None, "latest"):
                assert faked.code == real.code, f"{where}: {real.detail}"
    finally:
        live.close()


def test_the_root_tells_the_versions(server: LiveServer) -> None:
    live = HttpTransport(server.url, "admin")
    request = PlacementRequest("GET", "/")
    (real,), (fake,) = (
        transport.send(request).field("versions") for transport in (live, FakePlacement())
    )
    live.close()
    assert fake == real


class _Names:
    """The uuids and names of one run, so that runs can share a live server."""

    def __init__(self) -> None:
        self._namespace = uuid4()

    def filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.filled(key): self.filled(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.filled(each) for each in value]
        return "".join(self._parts(value)) if isinstance(value, str) else value

    def _parts(self, text: str) -> Iterator[str]:
        while "<" in text:
            before, _, rest = text.partition("<")
            name, _, text = rest.partition(">")
            yield before
            mark = self._namespace.hex[:10]
            special = {"mark": mark, "MARK": mark.upper(), "absent": ABSENT}
            yield special.get(name) or str(uuid5(UUID(str(self._namespace)), name))
        yield text


def _shape(answer: PlacementResponse) -> Any:
    """What clients rely on: the body without links and sentences, and the headers they read."""
    headers = sorted({"location", "openstack-api-version"} & answer.headers.keys())
    if not answer.content:
        return headers, None
    if not answer.ok:
        return headers, sorted(answer.json["errors"][0])
    return headers, _plain(answer.json)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"rel", "href"}:
            return value["rel"]
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        found = [_plain(each) for each in value]
        return sorted(found, key=repr)
    return value
