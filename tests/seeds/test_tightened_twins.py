"""Every parameter can be tightened until nothing is left, and the dominant reason names it.

`SeedWorld.check` asks the twins of every numbered list. These requests tighten every parameter.
"""

from __future__ import annotations

import pytest

from roost.demo.drawings import drawings
from roost.demo.world import World
from roost.store.database import Database
from support.api_client import ApiClient
from support.worlds.seed_world import load_seed
from support.worlds.tightened_twins import check_twins

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

ALWAYS = {
    *("resources", "unit", "room", "required", "any traits", "member_of", "in_tree"),
    "root_required",
}


@pytest.mark.parametrize(
    ("drawing", "query", "further"),
    [
        (drawings()["sharing"], "resources=VCPU:1&resources1=DISK_GB:500", {"isolate"}),
        (drawings()["in-tree"], "resources=DISK_GB:10", {"not member_of"}),
        (drawings()["same-subtree"], "resources=FPGA:1", {"forbidden", "room together"}),
        (
            drawings()["same-subtree"],
            "resources_A=FPGA:1&required_A=CUSTOM_TYPE2&resources_B=FPGA:1&required_B=CUSTOM_TYPE1"
            "&group_policy=none",
            {"isolate", "room together", "same_subtree"},
        ),
        (
            drawings()["root-traits"],
            "resources=VCPU:1,DISK_GB:100",
            {"root forbidden", "room together"},
        ),
    ],
    ids=["sharing", "in_tree", "devices", "two devices", "root traits"],
)
def test_every_parameter_can_be_tightened(
    database: Database, api: ApiClient, drawing: World, query: str, further: set[str]
) -> None:
    seed = load_seed(database, api, drawing)
    assert api.get(f"/roost/explain?{query}").json["feasible"]
    assert check_twins(api, query, seed.surroundings) >= ALWAYS | further
