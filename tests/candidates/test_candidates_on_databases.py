"""Allocation candidates on every kind of database: queries of all kinds, and changes."""

from __future__ import annotations

from support.api_client import ApiClient
from support.worlds.case_tables import rows
from support.worlds.notation import aggregate_uuid, provider_uuid
from support.worlds.world import World, build_world, claim, replace

PROVIDERS = ", ".join(
    (
        "R(MEM 9 reserved 1 ratio 1.5, agg A, T1)",
        "N<R(VCPU 4 used 1+2, T2)",
        "M<R(VCPU 4 max 2)",
        "L<M(GOLD 1)",
        "Q(VCPU 8 step 4, MEM 8)",
        "*S(DISK 10, agg A)",
    )
)
QUERIES_OF_ALL_KINDS = rows(
    """
    VCPU:1,MEM:12                               | N+R; M+R
    VCPU:2,MEM:1,DISK:1                         | M[VCPU:2] R[MEM:1] S[DISK:1] {''=M+R+S}
    VCPU:4                                      | Q
    VCPU:1&required=T2                          | N
    VCPU:1&required=in:T1,T2                    | N
    VCPU:1&root_required=T1&required=!T2        | M
    VCPU:1&member_of={A}                        | M; N
    resources_1=VCPU:1&resources_2=VCPU:1&group_policy=isolate  | {_1=M _2=N}; {_1=N _2=M}
    resources_1=VCPU:1&resources_2=GOLD:1&group_policy=none&same_subtree=_1,_2    | {_1=M _2=L}
    resources=DISK:1&resources_1=GOLD:1         | L[GOLD:1] S[DISK:1] {''=S _1=L}
    DISK:1&in_tree=<S>                          | S[DISK:1] {''=S}
    MEM:13                                      | none
    """
)


def test_queries_of_all_kinds_are_answered(api: ApiClient) -> None:
    world = build_world(api, PROVIDERS)
    for _, query, answer in QUERIES_OF_ALL_KINDS:
        world.expect(query, answer)


def test_a_claim_shows_in_the_next_answer(api: ApiClient) -> None:
    world = build_world(api, "R(VCPU 4), N<R(MEM 4), Q(VCPU 4)")
    world.expect("VCPU:1", "R; Q")
    consumer = claim(api, "R", "VCPU", 4)
    world.expect("VCPU:1", "Q")
    claim(api, "Q", "VCPU", 1)
    world.expect("VCPU:4", "none")
    assert world.ask("VCPU:3").summaries["Q"]["resources"] == {"VCPU": {"capacity": 4, "used": 1}}
    assert api.delete(f"/allocations/{consumer}").status == 204
    world.expect("VCPU:1", "R; Q")
    world.expect("VCPU:4", "R")


def test_a_change_of_a_provider_shows_in_the_next_answer(api: ApiClient) -> None:
    world = build_world(api, "R(VCPU 4), N<R(MEM 4), Q(VCPU 4), *S(DISK 4, agg A)")
    world.expect("VCPU:1&required=T1", "none")
    replace(api, "Q", "traits", ["CUSTOM_T1"])
    world.expect("VCPU:1&required=T1", "Q")
    replace(api, "N", "aggregates", [aggregate_uuid("A")])
    world.expect("VCPU:1,DISK:1", "R+S")
    replace(api, "Q", "aggregates", [aggregate_uuid("A")])
    world.expect("VCPU:1,DISK:1", "R+S; Q+S")
    replace(api, "S", "traits", [])
    world.expect("VCPU:1,DISK:1", "none")
    replace(api, "R", "inventories", {"VCPU": {"total": 8}})
    world.expect("VCPU:5", "R")
    replace(api, "R", "inventories", {})
    world.expect("VCPU:1", "Q")


def test_a_change_of_a_tree_shows_in_the_next_answer(api: ApiClient) -> None:
    world = build_world(api, "R(VCPU 4), N<R(MEM 4), Q(VCPU 4)")
    world.expect("VCPU:1,MEM:1", "N+R")
    body: dict[str, str | None] = {"name": "Q", "parent_provider_uuid": provider_uuid("R")}
    assert api.put(f"/resource_providers/{provider_uuid('Q')}", body).status == 200
    world = World(api, "R(VCPU 4), N<R(MEM 4), Q<R(VCPU 4)")
    world.expect("VCPU:1,MEM:1", "N+R; N+Q", "N, Q, R")
    assert api.delete(f"/resource_providers/{provider_uuid('Q')}").status == 204
    world = World(api, "R(VCPU 4), N<R(MEM 4)")
    world.expect("VCPU:1,MEM:1", "N+R", "N, R")
    body = {"name": "N", "parent_provider_uuid": None}
    assert api.put(f"/resource_providers/{provider_uuid('N')}", body).status == 200
    world = World(api, "R(VCPU 4), N(MEM 4)")
    world.expect("VCPU:1,MEM:1", "none")
    world.expect("MEM:1", "N", "N")


def test_new_traits_and_classes_are_known_to_the_next_request(api: ApiClient) -> None:
    world = build_world(api, "R(VCPU 4)")
    world.expect("VCPU:1&required=CUSTOM_NEW", "400 No such trait(s): CUSTOM_NEW.")
    assert api.put("/traits/CUSTOM_NEW").status == 201
    world.expect("VCPU:1&required=CUSTOM_NEW", "none")
    world.expect("VCPU:1&required=!CUSTOM_NEW", "R")
    world.expect("CUSTOM_NEW:1", "400 No such resource class CUSTOM_NEW.")
    assert api.put("/resource_classes/CUSTOM_NEW").status == 201
    world.expect("CUSTOM_NEW:1", "none")
