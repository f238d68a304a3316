"""`GET /roost/overview`: all roots as columns, with totals and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson

from roost.api.candidates.schemas import NO_SUCH_PROVIDER
from roost.api.extensions.pages import NEXT, page_parameters, parse_page
from roost.api.extensions.parameters import (
    QUESTIONS,
    ROOT_PARAMETERS,
    Parameters,
    asked_roots,
    read_query_text,
    refuse_rest,
    split_parameters,
)
from roost.api.extensions.questions.question_turn import enter_if_large, question_turn
from roost.api.extensions.questions.whatif_body import naming
from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import (
    CLASS_NAME,
    COUNT,
    EXAMPLE_PROVIDER,
    INTEGER,
    STRING,
    AnswerSchema,
    choice,
    described,
    integer,
    list_of,
    mapping,
    members,
    or_null,
)
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import QueryString, RequestParameter, Route, Success, routes_of
from roost.api.services import Services
from roost.search.overview import ByAggregate, ClassAmounts, RootOverview, TraitPrefix
from roost.service.questions.overview import OverviewQuestion, overview_of

# A page of so many roots has about 15 MB.
_LENGTH_MAX = 100_000
_ROWS_AT_ONCE = 1000
_TRAIT = "trait:"
_COLUMNS = ("uuid", "name", *ClassAmounts._fields, "fits", "group")

_OWN = QueryString.of(
    RequestParameter(
        "resource_class",
        "The class that the amounts are of. Without it, the amounts of rows and groups are null.",
        "VCPU",
    ),
    RequestParameter(
        "fits",
        "A query string of `GET /roost/candidates`, percent-encoded: count how many consumers "
        "each root alone holds.",
        "resources=VCPU:4",
    ),
    RequestParameter(
        "group_by",
        "`aggregate`, or `trait:` and the beginning of trait names: group roots by what they have "
        "themselves. A root with several of them belongs to the first in order.",
        "trait:CUSTOM_ZONE_",
    ),
    *ROOT_PARAMETERS,
    *page_parameters(_LENGTH_MAX),
)

_AMOUNTS = {
    "total": described(COUNT, "The sum of all totals."),
    "reserved": described(COUNT, "The sum of what is reserved."),
    "used": described(COUNT, "What consumers hold."),
    "free": described(
        COUNT,
        "What could still be claimed: capacity less usage of each provider, added up. A provider "
        "with more used than its capacity counts as zero.",
    ),
}
_ROW = {
    "type": "array",
    "minItems": len(_COLUMNS),
    "maxItems": len(_COLUMNS),
    "examples": [[EXAMPLE_PROVIDER, "host-1", 64, 4, 12, 48, 12, "CUSTOM_ZONE_NORTH"]],
}
_GROUP = STRING | {"examples": ["CUSTOM_ZONE_NORTH"]}
_OVERVIEW = AnswerSchema.of(
    "Overview",
    "All roots as columns, with the sums of their trees.",
    members(
        {
            "columns": described(
                list_of(choice(*_COLUMNS)) | {"examples": [list(_COLUMNS)]},
                "What each row has. Amounts are sums over the tree of the root: null without "
                "`resource_class`, 0 in a tree without such an inventory. `fits` is null without "
                "a query. `group` is null without `group_by`, and for roots without such a value.",
            ),
            "rows": described(list_of(_ROW), "A page of the roots that match, by uuid."),
            "roots": described(COUNT, "How many roots match, on all pages."),
            "exact": or_null(
                {"type": "boolean"},
                "Whether no root holds more than `fits` says; null without a query.",
            ),
            "totals": described(
                mapping(
                    CLASS_NAME,
                    members(
                        _AMOUNTS
                        | {
                            "capacity": described(
                                INTEGER, "Total less reserved, times the ratio, of each provider."
                            ),
                            "providers": described(
                                integer(1), "How many providers have such an inventory."
                            ),
                        }
                    ),
                ),
                "The sums of each class over the trees of all roots that match.",
            ),
            "groups": described(
                list_of(
                    members(
                        {
                            "group": or_null(_GROUP, "An aggregate or a trait; null comes last."),
                            "roots": described(integer(1), "How many roots belong to it."),
                            **{name: or_null(amount) for name, amount in _AMOUNTS.items()},
                            "fits": or_null(COUNT, "The sum over the roots, each by itself."),
                        }
                    )
                ),
                "The sums of each group over all roots that match; empty without `group_by`.",
            ),
            "cursor": described(STRING, "Where the changes begin that this answer does not have."),
            "next": NEXT,
        }
    ),
)


@Route(
    "GET",
    "/roost/overview",
    rule="roost:overview:list",
    summary="List all roots with the sums of their trees",
    successes={200: Success("The roots.", _OVERVIEW)},
    refusals={
        400: "A parameter is unknown or malformed, or names an unknown thing.",
        404: NO_SUCH_PROVIDER,
    },
    queries=(_OWN,),
)
def list_overview(services: Services, request: Request) -> Response:
    """A row for each root: what its tree has of one class, and how many consumers it holds.

    Totals and groups are over all roots that match, whatever the page. Sharing providers are trees
    of their own.
    """
    parameters = split_parameters(request, _OWN.names)
    refuse_rest(parameters, _OWN.names)
    asked_page = parse_page(parameters, _LENGTH_MAX)
    asked = _question(services, parameters)
    forest, position = services.forest_with_position()
    with question_turn(services, request) as turn:
        enter_if_large(turn, forest)
        found = overview_of(forest, asked, turn.pause)
        page = asked_page.cut(range(len(found)), lambda at: found.uuids[at].decode())
        return json_response(
            {
                "columns": _COLUMNS,
                "rows": _rows(found, page.members, turn.pause),
                "roots": len(found),
                "exact": found.exact,
                "totals": {name: total._asdict() for name, total in found.totals.items()},
                "groups": [
                    {
                        "group": group.value,
                        "roots": group.roots,
                        **dict.fromkeys(ClassAmounts._fields),
                        **(group.amounts._asdict() if group.amounts else {}),
                        "fits": group.fits,
                    }
                    for group in found.groups()
                ],
                "cursor": position.to_text(),
                "next": page.next,
            }
        )


def _question(services: Services, parameters: Parameters) -> OverviewQuestion:
    """What a client asks. A parameter without a value, as a form sends it, asks nothing."""
    own = {name: value for name, value in parameters.own.items() if value}
    query = own.get("fits")
    fits = None
    if query is not None:
        with naming("fits"):
            fits = read_query_text(services, query)
    return OverviewQuestion(
        resource_class=own.get("resource_class"),
        fits=fits,
        grouping=_grouping(own.get("group_by")),
        roots=asked_roots(own),
    )


def _grouping(text: str | None) -> TraitPrefix | ByAggregate | None:
    if text is None:
        return None
    if text == "aggregate":
        return ByAggregate()
    if text.startswith(_TRAIT) and text != _TRAIT:
        return TraitPrefix(text.removeprefix(_TRAIT))
    raise bad_value(
        f"group_by is {text[:40]!r}. Send `aggregate`, or `trait:` and the beginning of the names "
        "of traits."
    )


def _rows(found: RootOverview, page: Iterable[int], pause: Callable[[], None]) -> orjson.Fragment:
    """The rows of a page. Only some of these lists exist at once."""
    assert isinstance(page, range), "a page of a range is a range"
    texts: list[bytes] = []
    for begin in range(page.start, page.stop, _ROWS_AT_ONCE):
        end = min(begin + _ROWS_AT_ONCE, page.stop)
        nothing: list[Any] = [None] * (end - begin)
        amounts = found.amounts or (None,) * len(ClassAmounts._fields)
        rows = zip(
            found.uuids[begin:end].astype(str).tolist(),
            found.names(begin, end),
            *(
                nothing if each is None else each[begin:end].tolist()
                for each in (*amounts, found.fits)
            ),
            found.group_values(begin, end),
            strict=True,
        )
        texts.append(orjson.dumps(list(rows))[1:-1])
        pause()
    return orjson.Fragment(b"[%b]" % b",".join(texts))


ROUTES = routes_of(QUESTIONS, list_overview)
