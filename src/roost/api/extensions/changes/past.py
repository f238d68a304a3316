"""`GET /roost/changes/past`: what was written, as far back as the journal goes, newest first."""

from __future__ import annotations

from datetime import UTC, datetime

from roost.api.candidates.schemas import NO_SUCH_PROVIDER
from roost.api.extensions.changes.handler import list_changes
from roost.api.extensions.changes.hub import ChangePage
from roost.api.extensions.parameters import NUMBER, Parameters, refuse_rest, split_parameters
from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import STRING, AnswerSchema, described, members, or_null
from roost.api.http.microversions import MAX_VERSION
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import QueryString, RequestParameter, Route, Success, routes_of
from roost.api.services import Services
from roost.service.ledger.changes import ChangeFilter, changes_of
from roost.service.questions.provider_list import resolve_provider
from roost.store.journal.changes import ChangeCursor, read_past

_LENGTH_DEFAULT = 200
_LENGTH_MAX = 1000

_OWN = QueryString.of(
    RequestParameter(
        "until", "Only changes of this time and earlier ones, in UTC.", "2026-11-18T12:00:00Z"
    ),
    RequestParameter("marker", "`older` of the page before.", "1042", NUMBER),
    RequestParameter(
        "page_limit", f"How many changes are looked at, at most {_LENGTH_MAX}.", "200", NUMBER
    ),
    RequestParameter(
        "root", "Only changes in the tree of the provider with this uuid or name.", "host-1"
    ),
)
_TIME = or_null(STRING, "Null in a journal without changes.")
_CHANGES = list_changes.successes[200].schema
assert _CHANGES is not None
_PAST = AnswerSchema.of(
    "PastChanges",
    "Changes, the newest first, and how far back they go.",
    members(
        {
            "changes": _CHANGES.versions.at(MAX_VERSION)["properties"]["changes"],
            "older": or_null(STRING, "The marker of the page before; null if there is none."),
            "oldest_at": _TIME,
            "newest_at": _TIME,
            "next": described(STRING, "The cursor from which `GET /roost/changes` goes on."),
        }
    ),
)


@Route(
    "GET",
    "/roost/changes/past",
    rule="roost:past_changes:list",
    summary="List changes of the past",
    successes={200: Success("The changes.", _PAST)},
    refusals={400: "A parameter is unknown or malformed.", 404: NO_SUCH_PROVIDER},
    queries=(_OWN,),
)
def list_past_changes(services: Services, request: Request) -> Response:
    """What was written, the newest first, as far back as the journal goes.

    A page looks at `page_limit` changes, and has those that the client wants. The changes of one
    request may stand on two pages. All later changes follow from the cursor `next`.
    """
    parameters = split_parameters(request, _OWN.names)
    refuse_rest(parameters, _OWN.names)
    rows_max = parameters.integer("page_limit", _LENGTH_DEFAULT, least=1, most=_LENGTH_MAX)
    root = parameters.own.get("root")
    wanted = ChangeFilter(root=services.read(resolve_provider, root).root_uuid if root else None)
    past = services.database.snapshot(
        read_past, _marker(parameters), _time(parameters.own.get("until")), rows_max
    )
    changes = changes_of([(row,) for row in past.rows], services.forest())
    page = ChangePage(changes, ChangeCursor(past.now)).only(wanted)
    return json_response(
        {
            "changes": page.shown(),
            "older": str(past.rows[-1].id) if past.has_more else None,
            "oldest_at": _text(past.oldest),
            "newest_at": _text(past.newest),
            "next": page.next,
        }
    )


def _marker(parameters: Parameters) -> int | None:
    text = parameters.own.get("marker")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise bad_value(f"marker is {text[:40]!r}. Send `older` of the page before.")
    return int(text)


def _time(text: str | None) -> datetime | None:
    """The time in UTC as the journal has it; without a zone, the client means UTC."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise bad_value(
            f"until is {text[:40]!r}. Send a time such as 2026-11-18T12:00:00Z."
        ) from None
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def _text(time: datetime | None) -> str | None:
    return None if time is None else f"{time.isoformat(timespec='seconds')}Z"


ROUTES = routes_of("Changes", list_past_changes)
