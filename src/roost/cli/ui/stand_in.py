"""What a placement server without `/roost/` can still answer to the pages."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from roost.client.placement import Placement
from roost.client.provider_tree import ProviderData
from roost.client.reading.inspection import InspectedTree, inspect_tree
from roost.client.reading.lookup import find_provider

TREES = "/roost/trees/"
CANDIDATES = "/roost/candidates"


def tree_answer(server: Placement, path: str) -> dict[str, Any]:
    """The answer to `GET /roost/trees/{provider}`, out of the requests that every server has."""
    provider = find_provider(server, unquote(path.removeprefix(TREES)))
    tree = inspect_tree(server, provider["uuid"])
    sharing = set(tree.sharing)
    names = {member.uuid: member.name for member in tree.members()}
    shown = [(member.uuid, _shown(tree, member, names)) for member in tree.members()]
    return {
        "providers": [one for uuid, one in shown if uuid not in sharing],
        "sharing_providers": [one for uuid, one in shown if uuid in sharing],
    }


def _shown(tree: InspectedTree, member: ProviderData, names: dict[str, str]) -> dict[str, Any]:
    parent = names.get(member.parent_uuid or "")
    return {
        "name": member.name,
        "uuid": member.uuid,
        **({} if parent is None else {"parent": parent}),
        "generation": member.generation,
        "traits": sorted(member.traits),
        "aggregates": sorted(member.aggregates),
        "inventories": member.inventory,
        "usages": dict(tree.usages.get(member.uuid, {})),
    }
