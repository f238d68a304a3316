"""`GET /roost/changes`: what was written, page by page, as soon as it happens, or as a stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from roost.api.candidates.schemas import NO_SUCH_PROVIDER
from roost.api.extensions.changes.follower import Follower
from roost.api.extensions.changes.hub import ChangePage
from roost.api.extensions.parameters import NUMBER, Parameters, refuse_rest, split_parameters
from roost.api.http.accept import quality
from roost.api.http.errors import HttpError, OverLimit, bad_value
from roost.api.http.json_schemas import (
    CLASS_NAME,
    STRING,
    AnswerSchema,
    choice,
    described,
    flag,
    list_of,
    members,
    or_null,
)
from roost.api.http.requests import Request
from roost.api.http.responses import Response
from roost.api.routing import EVENTS, JSON, QueryString, RequestParameter, Route, Success, routes_of
from roost.api.services import Services
from roost.service.errors import ErrorCode
from roost.service.ledger.changes import ChangeFilter, Kind
from roost.service.questions.provider_list import resolve_provider
from roost.store.journal.changes import ChangeCursor
from roost.store.journal.position import JournalLost, NoPosition

_LENGTH_DEFAULT = 1000
_LENGTH_MAX = 10_000
_WAIT_MAX = 300
# Under another server a client that waits holds a thread: so long, and so many at most.
HELD_SECONDS = 2.0
HELD_MAX = 4
_held = threading.BoundedSemaphore(HELD_MAX)

_OWN = QueryString.of(
    RequestParameter(
        "since",
        "A cursor: `next` of the page before, or `cursor` of another answer. Without it, changes "
        "begin now.",
        "eNoDAAAAAAE",
    ),
    RequestParameter(
        "page_limit",
        f"How many changes a page has, at most {_LENGTH_MAX}. A transaction is never divided.",
        "1000",
        NUMBER,
    ),
    RequestParameter(
        "wait", f"Seconds to wait for a change, at most {_WAIT_MAX}; 0 if left out.", "0", NUMBER
    ),
    RequestParameter("provider", "Only changes of the provider with this uuid or name.", "host-1"),
    RequestParameter(
        "root", "Only changes in the tree of the provider with this uuid or name.", "host-1"
    ),
    RequestParameter("kind", "Only changes of these kinds, separated by commas.", "usage"),
)
_LAST_EVENT = RequestParameter(
    "Last-Event-ID", "The id of the last event that a client has got: a cursor.", "eNoDAAAAAAE"
)

_PROVIDER = members(
    uuid=STRING,
    name=or_null(STRING, "Null for a provider that no longer exists, if its name is not known."),
)
_NULL = "null where it is not known: an older version or another program wrote it."
_CHANGE = members(
    {
        "at": described(STRING, "When it was written, in UTC, as `2026-11-18T12:00:00Z`."),
        "kind": described(
            choice(*Kind),
            "What changed. `provider`: its writer did not tell what. `resource_classes` and "
            "`trait_names`: names came, went or changed, and there is no provider.",
        ),
        "provider": or_null(_PROVIDER, "The provider, by its name of now."),
        "root": or_null(_PROVIDER, "The root of its tree, if it is known."),
        "resource_classes": described(
            list_of(STRING | {"pattern": CLASS_NAME}),
            "The classes that changed. If it is empty, any class of the provider may have changed.",
        ),
        "request_id": or_null(STRING, f"The request that wrote it; {_NULL}"),
        "user_id": or_null(STRING, f"The user of the request; {_NULL}"),
        "project_id": or_null(STRING, f"The project of the user; {_NULL}"),
    }
)
_CHANGES = AnswerSchema.of(
    "Changes",
    "Changes in the order of commits, whole transactions.",
    members(
        {
            "changes": list_of(_CHANGE),
            "next": described(STRING, "The cursor from which the next changes follow."),
            "more": flag("Whether more had been written: then the next page comes at once."),
        },
        {
            "kind": described(choice("progress"), "Only in a stream: nothing has changed."),
            "cursor": described(STRING, "Only in a stream, beside `kind`: the same as `next`."),
        },
    ),
)


@Route(
    "GET",
    "/roost/changes",
    rule="roost:changes:list",
    summary="List changes, or follow them",
    successes={200: Success("The changes.", _CHANGES, events=_CHANGES)},
    refusals={
        400: "A parameter is unknown or malformed, or `since` is no cursor of this database.",
        404: NO_SUCH_PROVIDER,
        410: "The journal no longer has all changes since the cursor (`roost.cursor_expired`). "
        "Read everything again, for example `GET /roost/overview`, and go on from its `cursor`.",
        503: "Too many clients follow (`[roost]max_followers`), or the database is away.",
    },
    queries=(_OWN,),
    headers=(_LAST_EVENT,),
)
def list_changes(services: Services, request: Request) -> Response:
    """What was written since a cursor, with the request, the user and the project that wrote it.

    With `wait`, an answer comes as soon as there is a change. A client that accepts
    `text/event-stream` gets changes as they happen: each event has a page, and its id is the
    cursor after it. An idle stream sends its cursor every 15 seconds at most. A stream ends after
    `[roost]follow_seconds`, and the client goes on from its last cursor.
    """
    parameters = split_parameters(request, _OWN.names)
    refuse_rest(parameters, _OWN.names)
    rows_max = parameters.integer("page_limit", _LENGTH_DEFAULT, least=1, most=_LENGTH_MAX)
    seconds = parameters.integer("wait", 0, least=0, most=_WAIT_MAX)
    wanted = _filter(services, parameters)
    accept = request.header("accept")
    as_events = quality(accept, EVENTS) > quality(accept, JSON)
    text = request.header("last-event-id") if as_events else None
    place = services.hub.place()
    page = _page(services, text or parameters.own.get("since") or None, rows_max)
    follower = Follower(
        services.hub,
        wanted,
        page.cursor,
        rows_max,
        request.environ.get("roost.is_stopping", lambda: False),
        place=place,
    )
    first = page.only(wanted)
    if as_events:
        return _events(services, request, follower, first)
    if first.changes or not seconds or page.cursor.target is not None:
        return Response(200, first.json(), [("content-type", JSON)])
    return _awaited(services, request, follower, seconds)


def _page(services: Services, text: str | None, rows_max: int) -> ChangePage:
    """The page after a cursor; without a cursor, an empty page that ends now."""
    if text is None:
        _, position = services.forest_with_position()
        return ChangePage((), ChangeCursor(position))
    try:
        cursor = ChangeCursor.from_text(services.database.dialect.position, text)
    except NoPosition:
        raise bad_value(
            f"since is {text[:40]!r}, which is no cursor of this database. Send `next` or `cursor` "
            "of an answer, or leave it out to begin now."
        ) from None
    try:
        # The replica forgets missing ids that nothing will fill, so cursors stay short.
        _, until = services.forest_with_position()
        return services.hub.read(cursor, rows_max, until)
    except JournalLost as error:
        raise HttpError(
            410,
            f"The changes since this cursor are no longer known: {error}. Read everything again, "
            "for example with GET /roost/overview, and go on from its cursor.",
            ErrorCode.CURSOR_EXPIRED,
        ) from None


def _filter(services: Services, parameters: Parameters) -> ChangeFilter:
    """Which changes a client wants. A parameter without a value asks nothing."""
    own = parameters.own
    provider, root = (
        services.read(resolve_provider, own[name]) if own.get(name) else None
        for name in ("provider", "root")
    )
    kinds = [kind for kind in own.get("kind", "").split(",") if kind]
    unknown = next((kind for kind in kinds if kind not in set(Kind)), None)
    if unknown is not None:
        raise bad_value(f"kind is {unknown[:40]!r}. Send some of: {', '.join(Kind)}.")
    return ChangeFilter(
        None if provider is None else provider.uuid,
        None if root is None else root.root_uuid,
        frozenset(map(Kind, kinds)),
    )


def _events(
    services: Services, request: Request, follower: Follower, first: ChangePage
) -> Response:
    """A stream. Under a server that cannot wait without a thread, it ends after the first event."""
    follow = request.environ.get("roost.follow")
    headers = [("content-type", EVENTS), ("cache-control", "no-store"), ("x-accel-buffering", "no")]
    seconds = services.settings.limits.follow_seconds if follow is not None else 0
    if follow is not None:
        _join(services, follower, follow)
    stream = follower.stream(first, seconds)
    return Response(200, headers=headers, stream=stream, waits=True)


def _awaited(services: Services, request: Request, follower: Follower, seconds: int) -> Response:
    """The answer to a client that waits for a change."""
    headers = [("content-type", JSON)]
    follow = request.environ.get("roost.follow")
    if follow is not None:
        _join(services, follower, follow)
        return Response(200, headers=headers, stream=follower.one_page(seconds), waits=True)
    if not _held.acquire(blocking=False):
        return Response(200, b"".join(follower.one_page(0)), headers)
    try:
        return Response(200, _held_page(services, follower, min(seconds, HELD_SECONDS)), headers)
    finally:
        _held.release()


def _join(services: Services, follower: Follower, follow: Callable[[], Callable[[], None]]) -> None:
    """Let the hub wake the follower; 503 if the hub has too many."""
    most = services.settings.limits.max_followers
    if not services.hub.join(follower, most):
        raise OverLimit(
            503,
            f"{most} clients follow changes at this worker ([roost]max_followers). Try again "
            "later, or ask without `wait`.",
            "max_followers",
        )
    follower.wake = follow()


def _held_page(services: Services, follower: Follower, seconds: float) -> bytes:
    """The page of a client whose thread waits for it."""
    woken = threading.Event()
    _join(services, follower, lambda: woken.set)
    ends = time.monotonic() + seconds
    pieces: Iterator[bytes] = follower.one_page(seconds)
    for piece in pieces:
        if piece:
            return piece
        woken.wait(max(0.0, ends - time.monotonic()))
        woken.clear()
    raise AssertionError("a follower always answers")


ROUTES = routes_of("Changes", list_changes)
