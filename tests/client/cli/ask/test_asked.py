"""What a query asks at each stage, in a few words."""

from __future__ import annotations

import pytest

from roost.cli.ask.explain import asked_at
from roost.cli.ask.words import read_request

PAIRS = read_request(
    "DISK_GB=5 --require A,B --require in:C,D --forbid E --in-tree tree --root-require R "
    "--group a_b VF=2,VCPU=1 --require X --require in:Y,Z --forbid W "
    "--member-of c0ffee00-0000-0000-0000-000000000001 "
    "--group c --require Q --same-subtree a_b,c --isolate"
).pairs

ASKED = {
    ("", "class"): "inventory of DISK_GB",
    ("", "unit"): "units that allow DISK_GB=5",
    ("", "room"): "DISK_GB=5 free",
    ("", "traits"): "trait !E",
    ("", "aggregates"): None,
    ("", "in_tree"): "in_tree tree",
    ("_a_b", "class"): "inventory of VF, VCPU",
    ("_a_b", "room"): "VF=2, VCPU=1 free",
    ("_a_b", "traits"): "trait X,!W and in:Y,Z",
    ("_a_b", "aggregates"): "aggregate c0ffee00-0000-0000-0000-000000000001",
    ("_a_b", "in_tree"): None,
    ("_c", "class"): None,
    ("_c", "room"): None,
    ("_c", "traits"): "trait Q",
    (None, "root"): "root R in tree",
    (None, "groups"): "each group by itself",
    (None, "together"): (
        "all groups at once; traits A, B, in:C,D; a provider for each group; same subtree a_b, c"
    ),
    # A stage that a newer server adds.
    ("", "weather"): "weather",
}


@pytest.mark.parametrize("place", ASKED)
def test_a_stage_is_described_by_what_the_query_asks_there(place: tuple[str | None, str]) -> None:
    assert asked_at(PAIRS, *place) == ASKED[place]


def test_a_root_without_conditions_is_not_asked_for() -> None:
    assert asked_at(read_request("VCPU=1").pairs, None, "root") is None
