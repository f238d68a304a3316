"""What `GET /allocation_candidates` and `GET /roost/candidates` take and answer."""

from __future__ import annotations

from roost.api.candidates.group_keys import EXTENDED_GROUP_KEYS, GROUP_KEYS
from roost.api.http.json_schemas import (
    CLASS_NAME,
    COUNT,
    HELD_AMOUNTS,
    INTEGER,
    PARENT,
    STRING,
    AnswerSchema,
    ByVersion,
    Document,
    Versions,
    choice,
    growing,
    list_of,
    mapping,
    members,
    record,
    text,
)
from roost.api.http.microversions import MAX_VERSION, MIN_VERSION, Microversion
from roost.api.http.validation import Schema
from roost.api.routing import QueryString, RequestParameter
from roost.model.text import listed
from roost.search.candidates.ranking import RankingKind

# As the search finds them, whatever the operator configures; or by a ranking.
FIRST = "first"
ORDERS = (FIRST, *RankingKind)

# The query string.

_LIMIT = {"limit": text(pattern="^[1-9][0-9]*$")}
_NUMBER = "[1-9][0-9]*"
_NAME = "[a-zA-Z0-9_-]{1,64}"
_KEYS = ("resources", "required", "member_of")
_NESTED_KEYS = (*_KEYS, "in_tree")


def _groups(suffix: str, *keys: str, **plain: Document) -> Document:
    """Request groups: the keys may have a suffix of this form, the `plain` ones may not."""
    patterns = {f"^{key}({suffix})?$": STRING for key in keys}
    policy = {"group_policy": choice("none", "isolate")}
    return record({}, _LIMIT | policy | plain) | {"patternProperties": patterns}


QUERY_SCHEMAS = Versions(
    *growing(
        ("1.10", {"resources": STRING}, {}),
        ("1.16", {}, _LIMIT),
        ("1.17", {}, {"required": STRING}),
        ("1.21", {}, {"member_of": STRING}),
    ),
    ("1.25", _groups(_NUMBER, *_KEYS)),
    ("1.31", _groups(_NUMBER, *_NESTED_KEYS)),
    ("1.33", _groups(_NAME, *_NESTED_KEYS)),
    ("1.35", _groups(_NAME, *_NESTED_KEYS, root_required=STRING)),
    ("1.36", _groups(_NAME, *_NESTED_KEYS, root_required=STRING, same_subtree=STRING)),
)

# What `GET /roost/candidates` accepts: no version of the API has these keys.
EXTENDED = Schema(
    _groups(
        _NAME,
        *(key.name for key in EXTENDED_GROUP_KEYS),
        root_required=STRING,
        same_subtree=STRING,
        isolate=STRING,
    )
)

PLACEMENT_QUERY = QueryString(
    (
        *(key.parameter for key in GROUP_KEYS),
        RequestParameter("limit", "The greatest number of candidates.", "10"),
        RequestParameter(
            "group_policy",
            "`isolate`: groups with a suffix use different providers. `none`: they may share one. "
            "Two or more such groups need it.",
            "none",
        ),
        RequestParameter(
            "root_required",
            "Traits that the root must have or, after a `!`, must not have.",
            "COMPUTE_NODE",
        ),
        RequestParameter(
            "same_subtree",
            "Suffixes of groups, with commas. The provider of one group is an ancestor of those of "
            "all, or the same one.",
            "_cpu,_net",
            repeated_since=Microversion(1, 36),
        ),
    ),
    QUERY_SCHEMAS,
    groups_text=(
        "Request groups: `resources`, `required`, `member_of` and `in_tree`, each with a suffix. "
        "One provider serves all of a group with a suffix. Until 1.32 a suffix is a number."
    ),
)

BAD_QUERY = "The query is malformed, or names an unknown thing."
NO_SUCH_PROVIDER = "No provider has this uuid or name."

EXTENDED_QUERY = QueryString(
    (
        # Some mean more here than in the Placement API. The later of two declarations counts.
        *PLACEMENT_QUERY.parameters,
        *(key.parameter for key in EXTENDED_GROUP_KEYS),
        RequestParameter(
            "isolate",
            "Suffixes of groups, with commas, that use different providers.",
            "_a,_b",
            repeated_since=MIN_VERSION,
        ),
        RequestParameter(
            "root_required",
            "Traits of the root, as in `required`: all, none, or at least one of several.",
            "COMPUTE_NODE",
            repeated_since=MIN_VERSION,
        ),
    ),
    ByVersion(("1.0", EXTENDED)),
    groups_text=(
        "Request groups: "
        + listed((f"`{key.name}`" for key in EXTENDED_GROUP_KEYS), at_most=len(EXTENDED_GROUP_KEYS))
        + ", each with a suffix."
    ),
    shared_name="extended",
    fixed=MAX_VERSION,
    refusals={400: BAD_QUERY, 404: NO_SUCH_PROVIDER},
)

# The answer.

_AS_LIST = list_of(
    record({"resource_provider": record({"uuid": STRING}), "resources": HELD_AMOUNTS}), minimum=1
)
_BY_PROVIDER: Document = {
    "type": "object",
    "description": "What to claim, by the uuid of the provider.",
    "minProperties": 1,
    "additionalProperties": record({"resources": HELD_AMOUNTS}),
}
_MAPPINGS: Document = {
    "type": "object",
    "description": "The providers of each request group, by its suffix.",
    "additionalProperties": list_of(STRING, minimum=1),
}

_REQUEST = AnswerSchema(
    "AllocationRequest",
    "One candidate. Its members are those of `PUT /allocations/{consumer}` of the same version.",
    ("1.10", record({"allocations": _AS_LIST})),
    *growing(("1.12", {"allocations": _BY_PROVIDER}, {}), ("1.34", {"mappings": _MAPPINGS}, {})),
)

# Other services may have reserved more than there is.
_AMOUNT = record({"capacity": INTEGER, "used": COUNT})
_SUMMARY = AnswerSchema(
    "ProviderSummary",
    "Capacity, usage and traits of a provider; from 1.29 on of each provider of a tree.",
    *growing(
        ("1.10", {"resources": mapping(CLASS_NAME, _AMOUNT)}, {}),
        ("1.17", {"traits": list_of(STRING)}, {}),
        ("1.29", {"parent_provider_uuid": PARENT, "root_provider_uuid": STRING}, {}),
    ),
)


CANDIDATES = AnswerSchema(
    "AllocationCandidates",
    "Candidates, and a summary of each provider that they name.",
    (
        "1.10",
        record(
            allocation_requests=list_of(_REQUEST),
            provider_summaries={
                "type": "object",
                "description": "By the uuid of the provider.",
                "additionalProperties": _SUMMARY,
            },
        ),
    ),
)


def _newest(requests: Document, more: Document | None = None) -> Document:
    return members(
        {
            "allocation_requests": list_of(requests),
            "provider_summaries": {
                "type": "object",
                "additionalProperties": _SUMMARY.versions.at(MAX_VERSION),
            },
            **(more or {}),
        }
    )


_CHOSEN: Document = {
    "type": "object",
    "description": (
        "By the suffix of each group with `or_resources`: 0 for its `resources`, 1 for the first "
        "alternative, and so on."
    ),
    "additionalProperties": COUNT,
}
_EXTENDED_REQUEST = members(
    {"allocations": _BY_PROVIDER, "mappings": _MAPPINGS}, {"alternatives": _CHOSEN}
)


def newest_candidates(more: Document) -> Document:
    """Candidates in their newest form, with further members beside them."""
    return _newest(_EXTENDED_REQUEST, more)


EXTENDED_CANDIDATES = AnswerSchema.of(
    "ExtendedCandidates",
    "Candidates in the form of the newest version, whatever version the client sends.",
    _newest(_EXTENDED_REQUEST),
)
