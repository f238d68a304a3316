"""A merge while consumers claim: every claim that was acknowledged is found at the target."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from support.api_client import ApiClient
from support.waiting import SECONDS_MAX
from support.worlds.notation import provider_uuid
from support.worlds.world import build_world

CLAIMS = 30


def claim(api: ApiClient, number: int) -> tuple[str, int]:
    """Let a new consumer claim one VCPU of the old host; its uuid, and the status of the answer."""
    uuid = str(UUID(int=number))
    body = {
        "allocations": {provider_uuid("OLD"): {"resources": {"VCPU": 1}}},
        "project_id": "lab",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return uuid, api.put(f"/allocations/{uuid}", body).status


def test_no_claim_is_lost_in_a_merge(api: ApiClient) -> None:
    build_world(api, "OLD(VCPU 100), N1<OLD(MEM 10), NEW(VCPU 100)")
    some_claimed = threading.Semaphore(0)

    def claim_and_tell(number: int) -> tuple[str, int]:
        result = claim(api, number)
        some_claimed.release()
        return result

    with ThreadPoolExecutor(4) as pool:
        claims = [pool.submit(claim_and_tell, number) for number in range(1, CLAIMS + 1)]
        for _ in range(CLAIMS // 3):
            assert some_claimed.acquire(timeout=SECONDS_MAX)
        merged = api.post("/roost/providers/OLD/merge", {"into": "NEW"})
        outcomes = [each.result(SECONDS_MAX) for each in claims]
    assert merged.status == 200, merged.body
    claimed = {uuid for uuid, status in outcomes if status == 204}
    # Claims that came too late name a provider that exists no more.
    assert {status for _, status in outcomes} <= {204, 400}
    assert merged.json["consumers"] == len(claimed)
    path = f"/resource_providers/{provider_uuid('NEW')}"
    assert set(api.get(f"{path}/allocations").json["allocations"]) == claimed
    assert api.get(f"{path}/usages").json["usages"] == {"VCPU": len(claimed)}
