"""A small cloud with everything that a database can have, made by requests."""

from __future__ import annotations

from typing import Any

from support.api_client import ApiClient
from support.worlds.notation import aggregate_uuid, provider_uuid


def make_sample_cloud(api: ApiClient, prefix: str = "") -> None:
    """Trees, a sharing provider, custom names, consumers of several types, a moved provider."""
    send(api, "PUT", "/resource_classes/CUSTOM_GOLD")
    for trait in ("CUSTOM_T1", "CUSTOM_T2"):
        send(api, "PUT", f"/traits/{trait}")
    for host in range(3):
        root, numa = f"{prefix}host {host}", f"{prefix}numa {host}"
        provider(api, root)
        provider(api, numa, parent=root)
        inventories(
            api,
            root,
            {
                "MEMORY_MB": {"total": 4096, "reserved": 128},
                "DISK_GB": {"total": 100, "allocation_ratio": 1.1},
            },
        )
        inventories(
            api, numa, {"VCPU": {"total": 8, "allocation_ratio": 4.0}, "CUSTOM_GOLD": {"total": 2}}
        )
        part(api, numa, "traits", ["CUSTOM_T1", "HW_CPU_X86_AVX"] if host else ["CUSTOM_T2"])
        part(api, root, "aggregates", [aggregate_uuid("A"), aggregate_uuid("B")][: host % 2 + 1])
    shared = f"{prefix}disks"
    provider(api, shared)
    inventories(api, shared, {"DISK_GB": {"total": 2000}})
    part(api, shared, "traits", ["MISC_SHARES_VIA_AGGREGATE"])
    part(api, shared, "aggregates", [aggregate_uuid("A")])
    # The parent of this provider has a higher id than the provider.
    provider(api, f"{prefix}early")
    provider(api, f"{prefix}late")
    move(api, f"{prefix}early", f"{prefix}late")
    for number, kind in enumerate(("INSTANCE", "INSTANCE", "MIGRATION")):
        claim(api, f"{prefix}consumer {number}", f"{prefix}numa {number}", kind)
    claim(api, f"{prefix}untyped", f"{prefix}numa 0", None)


def change_sample_cloud(api: ApiClient, prefix: str = "") -> None:
    """Writes of every kind to such a cloud."""
    send(api, "DELETE", f"/allocations/{provider_uuid(f'{prefix}consumer 0')}")
    claim(api, f"{prefix}later", f"{prefix}numa 1", "INSTANCE")
    part(api, f"{prefix}numa 2", "traits", ["CUSTOM_T2"])
    part(api, f"{prefix}host 0", "aggregates", [aggregate_uuid("C")])
    inventories(api, f"{prefix}late", {"VCPU": {"total": 3}})
    send(api, "DELETE", f"/resource_providers/{provider_uuid(f'{prefix}early')}")
    provider(api, f"{prefix}new", parent=f"{prefix}late")
    send(api, "PUT", f"/traits/CUSTOM_{prefix.strip().upper() or 'NEW'}")


def send(api: ApiClient, method: str, path: str, body: Any = None) -> Any:
    answer = api.request(method, path, body)
    assert answer.status < 300, f"{method} {path}: {answer.status} {answer.body!r}"
    return answer.json if answer.body else None


def provider(api: ApiClient, name: str, parent: str | None = None) -> None:
    body = {"name": name, "uuid": provider_uuid(name)}
    if parent is not None:
        body["parent_provider_uuid"] = provider_uuid(parent)
    send(api, "POST", "/resource_providers", body)


def move(api: ApiClient, name: str, parent: str) -> None:
    body = {"name": name, "parent_provider_uuid": provider_uuid(parent)}
    send(api, "PUT", f"/resource_providers/{provider_uuid(name)}", body)


def inventories(api: ApiClient, name: str, fields: Any) -> None:
    part(api, name, "inventories", fields)


def part(api: ApiClient, name: str, what: str, value: Any) -> None:
    """Replace inventories, traits or aggregates of a provider."""
    path = f"/resource_providers/{provider_uuid(name)}"
    generation = send(api, "GET", path)["generation"]
    send(api, "PUT", f"{path}/{what}", {"resource_provider_generation": generation, what: value})


def claim(api: ApiClient, consumer: str, giver: str, kind: str | None) -> None:
    """A consumer of this type gets two CPUs; one without type by an older version."""
    uuid, api = provider_uuid(consumer), api if kind else api.at("1.37")
    body = {
        "allocations": {provider_uuid(giver): {"resources": {"VCPU": 2}}},
        "project_id": "a project",
        "user_id": f"user of {consumer}",
        "consumer_generation": None,
    }
    if kind is not None:
        body["consumer_type"] = kind
    send(api, "PUT", f"/allocations/{uuid}", body)
