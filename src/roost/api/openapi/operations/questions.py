"""Questions below `/roost/`: explain, what-if, and further questions about candidates."""

from __future__ import annotations

from dataclasses import replace

from roost.api.microversions import MIN_VERSION
from roost.api.openapi.operation import JsonBody, Operation, ParameterText, QueryString, Success
from roost.api.openapi.operations.candidates import CANDIDATE_QUERY
from roost.api.schemas import candidates as candidate_schemas
from roost.api.schemas import whatif as whatif_schemas
from roost.api.schemas.building import ByVersion, Versions, record, text
from roost.api.schemas.responses import candidates, explain, sizing, whatif

_TAG = "Questions"
_UNKNOWN_PROVIDER = "No provider has this uuid or name."
_BAD_QUERY = "The query is malformed, or names an unknown thing."
_NUMBER = text(r"^[0-9]{1,10}$")

_EXPLAIN = QueryString(
    Versions(("1.0", record({}, {"provider": text(), "misses": _NUMBER}))),
    {
        "provider": ParameterText(
            "Explain the tree of this provider, by uuid or name, and no other tree.", "host-1"
        ),
        "misses": ParameterText("How many of the nearest trees to name, at most 100.", "5"),
    },
)

_PAGE = {"page_limit": _NUMBER, "marker": text()}
_PAGE_TEXTS = {
    "page_limit": ParameterText("How many entries a page has, at most 10000.", "1000"),
    "marker": ParameterText("`next` of the page before.", "YQ"),
}

_LOSE = QueryString(
    Versions(("1.0", record({}, {"lose": text("^1$"), **_PAGE}))),
    {"lose": ParameterText("How many roots are lost at once.", "1"), **_PAGE_TEXTS},
)

_CAPACITY = QueryString(
    Versions(("1.0", record({}, {"by": {"type": "string", "enum": ["root"]}, **_PAGE}))),
    {
        "by": ParameterText("`root`: also how many fit on each root alone.", "root"),
        **_PAGE_TEXTS,
    },
)

_ASK = QueryString(
    Versions(("1.0", record({}, {"ask": text()}))),
    {
        "ask": ParameterText(
            "A question: a query string of `GET /roost/candidates`, percent-encoded. At most 20 of "
            "them.",
            "resources=VCPU:4",
            repeated_since=MIN_VERSION,
        )
    },
)

_ORDER = QueryString(
    Versions(
        (
            "1.0",
            record(
                {},
                {
                    "order": {"type": "string", "enum": [*map(str, whatif_schemas.ORDERS)]},
                    "seed": _NUMBER,
                },
            ),
        )
    ),
    {
        "order": ParameterText("The order of the candidates.", "first"),
        "seed": ParameterText("Repeats an order at random.", "1"),
    },
)

_EXTENDED = replace(
    CANDIDATE_QUERY,
    schemas=ByVersion(("1.0", candidate_schemas.EXTENDED)),
    texts={
        **CANDIDATE_QUERY.texts,
        "in_subtree": ParameterText(
            "The providers are this one, by uuid or name, or below it.", "host-1"
        ),
        "or_resources": ParameterText(
            "Amounts to take in trees where `resources` of the same group do not fit, in order of "
            "preference.",
            "VCPU:2",
            repeated_since=MIN_VERSION,
        ),
        "isolate": ParameterText(
            "Suffixes of groups, with commas, that use different providers.",
            "_a,_b",
            repeated_since=MIN_VERSION,
        ),
        "root_required": replace(
            CANDIDATE_QUERY.texts["root_required"],
            text="Traits of the root, as in `required`: all, none, or at least one of several.",
            repeated_since=MIN_VERSION,
        ),
        "in_tree": ParameterText("The tree of this provider, by uuid or name.", "host-1"),
    },
    groups_text=(
        "Request groups: `resources`, `or_resources`, `required`, `member_of`, `in_tree` and "
        "`in_subtree`, each with a suffix."
    ),
    shared_name="extended",
)

OPERATIONS = {
    "GET /roost/candidates": Operation(
        "list_extended_candidates",
        _TAG,
        "Ask for candidates beyond the Placement API",
        "Like `GET /allocation_candidates` of the newest version, with further parameters and "
        "orders.",
        {
            200: Success(
                "The candidates, in the order asked for.",
                candidates.EXTENDED,
                headers=("cached", "truncated"),
            )
        },
        {400: _BAD_QUERY, 404: _UNKNOWN_PROVIDER},
        queries=(_ORDER, _EXTENDED),
    ),
    "GET /roost/explain": Operation(
        "explain",
        _TAG,
        "Explain why a query has candidates or none",
        "What each stage of the search leaves, the dominant reason, the nearest misses, and hints. "
        "The numbers are those of the search itself.",
        {200: Success("The explanation.", explain.EXPLANATION)},
        {400: _BAD_QUERY, 404: _UNKNOWN_PROVIDER},
        queries=(_EXPLAIN, _EXTENDED),
    ),
    "GET /roost/capacity": Operation(
        "show_capacity",
        _TAG,
        "Count how many more consumers fit",
        "The largest number of consumers with exactly this request that any sequence of claims "
        "reaches from the present state.",
        {200: Success("The capacity.", sizing.CAPACITY)},
        {400: _BAD_QUERY, 404: _UNKNOWN_PROVIDER},
        queries=(_CAPACITY, _EXTENDED),
    ),
    "GET /roost/fragmentation": Operation(
        "show_fragmentation",
        _TAG,
        "Show what is free and what of it is usable",
        "The free amount of each resource class, and how much of it is in trees where each "
        "question has a candidate.",
        {200: Success("What is free.", sizing.FRAGMENTATION)},
        {400: _BAD_QUERY, 404: _UNKNOWN_PROVIDER},
        queries=(_ASK,),
    ),
    "GET /roost/resilience": Operation(
        "show_resilience",
        _TAG,
        "Look which roots may be lost",
        "For each root: whether what its consumers hold there would fit on the rest. Consumers "
        "move whole, and what they hold elsewhere stays.",
        {200: Success("The roots that may not be lost.", sizing.RESILIENCE)},
        {400: "A parameter is unknown or has a bad value."},
        queries=(_LOSE,),
    ),
    "POST /roost/whatif": Operation(
        "ask_whatif",
        _TAG,
        "Ask before and after changes",
        "Answers each question in the present state and after all changes, in their order. The "
        "service writes nothing.",
        {200: Success("The answers.", whatif.WHATIF)},
        {
            400: "The body does not fit the schema, or a change or question makes no sense.",
            404: "A change or a question names an unknown provider or consumer.",
            409: "The providers or consumers of the changes change all the time.",
        },
        body=JsonBody(
            "WhatIfQuestion",
            "Changes and questions. A query is a query string of `GET /roost/candidates`.",
            ByVersion(("1.0", whatif_schemas.ASK)),
            ByVersion(
                (
                    "1.0",
                    {
                        "changes": [{"drain": "c0ffee00-0000-4000-8000-000000000001"}],
                        "ask": [{"candidates": "resources=VCPU:4,MEMORY_MB:8192"}],
                    },
                )
            ),
        ),
    ),
}
