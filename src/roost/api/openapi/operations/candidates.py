"""`/allocation_candidates`, and its query string, which routes below `/roost/` take, too."""

from __future__ import annotations

from dataclasses import replace

from roost.api.microversions import MAX_VERSION, Microversion
from roost.api.openapi.operation import Operation, ParameterText, QueryString, Success
from roost.api.schemas import candidates as schemas
from roost.api.schemas.responses import candidates as answers

_UUID = "c0ffee00-0000-4000-8000-000000000001"
_AGGREGATE = "42896e0d-205d-4fe3-bd1e-100924931787"

_OWN_QUERY = QueryString(
    schemas.LIST,
    {
        "resources": ParameterText(
            "The amounts that a candidate must have, by resource class.", "VCPU:4,MEMORY_MB:8192"
        ),
        "required": ParameterText(
            "Traits that the providers must have, or, from 1.22 on and after a `!`, must not have. "
            "From 1.39 on `in:A,B` means at least one of several.",
            "HW_CPU_X86_AVX2,!CUSTOM_OLD",
            repeated_since=Microversion(1, 39),
        ),
        "member_of": ParameterText(
            "The aggregate of the providers. `in:A,B` means at least one of several, and, from "
            "1.32 on, `!A` or `!in:A,B` none of them.",
            f"in:{_AGGREGATE}",
            repeated_since=Microversion(1, 24),
        ),
        "in_tree": ParameterText("The tree of this provider, and no other tree.", _UUID),
        "limit": ParameterText("The greatest number of candidates.", "10"),
        "group_policy": ParameterText(
            "`isolate`: groups with a suffix use different providers. `none`: they may share one. "
            "Two or more such groups need it.",
            "none",
        ),
        "root_required": ParameterText(
            "Traits that the root must have or, after a `!`, must not have.", "COMPUTE_NODE"
        ),
        "same_subtree": ParameterText(
            "Suffixes of groups, with commas. The provider of one group is an ancestor of those of "
            "all, or the same one.",
            "_cpu,_net",
            repeated_since=Microversion(1, 36),
        ),
    },
    groups_text=(
        "Request groups: `resources`, `required`, `member_of` and `in_tree`, each with a suffix. "
        "One provider serves all of a group with a suffix. Until 1.32 a suffix is a number."
    ),
)

CANDIDATE_QUERY = replace(_OWN_QUERY, shared_name="candidates", fixed=MAX_VERSION)
"""The `<query>` of routes below `/roost/`: it means what it means at the newest version."""

OPERATIONS = {
    "GET /allocation_candidates": Operation(
        "list_allocation_candidates",
        "Candidates",
        "Find providers for a request",
        "All ways to place a request, each ready for `PUT /allocations/{consumer}`. The answer "
        "names each provider of a candidate with its capacity, usage and traits.",
        {
            200: Success(
                "The candidates. None are an empty list.",
                answers.CANDIDATES,
                headers=("cached", "truncated", "reason"),
            )
        },
        {400: "A parameter is unknown to the version, malformed, or names an unknown thing."},
        queries=(_OWN_QUERY,),
        headers={
            "X-Roost-Explain": ParameterText("`1` asks for the reason of an empty answer.", "1")
        },
    ),
}
