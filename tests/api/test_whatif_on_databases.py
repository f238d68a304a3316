"""What-ifs and what they read from the tables, on every database."""

from __future__ import annotations

from support.api_client import ApiClient
from support.worlds.notation import provider_uuid
from support.worlds.world import build_world, claim

ASK = "resources=VCPU:2"


def test_totals_ratios_and_allocations_come_from_the_tables(api: ApiClient) -> None:
    build_world(api, "H1(VCPU 8 reserved 2 ratio 1.5), H2(VCPU 4)")
    consumer = claim(api, "H1", "VCPU", 5)
    answer = api.post(
        "/roost/whatif",
        {
            "changes": [
                {"inventory": {"provider": "H1", "resource_class": "VCPU", "total": 16}},
                {"release": consumer.upper()},
                {"drain": provider_uuid("H2")},
                {"claim": {"query": ASK, "order": "spread"}},
            ],
            "ask": [{"candidates": ASK}],
        },
    )
    assert answer.status == 200, answer.body
    side = answer.json["answers"][0]
    shown = {
        uuid: its["resources"]["VCPU"] for uuid, its in side["after"]["provider_summaries"].items()
    }
    # Sixteen less two reserved, times one and a half; the last claim holds two.
    assert shown == {provider_uuid("H1"): {"capacity": 21, "used": 2}}
    direct = api.get(f"/allocation_candidates?{ASK}").json
    assert side["before"] == {**direct, "truncated": False}
