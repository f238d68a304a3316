"""`/roost/consumers`: what each consumer holds, and since when."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from roost.api.candidates.schemas import NO_SUCH_PROVIDER
from roost.api.extensions.pages import NEXT, PAGE_PARAMETERS, AskedPage, Page, parse_page
from roost.api.extensions.parameters import (
    Parameters,
    refuse_rest,
    split_parameters,
)
from roost.api.extensions.questions.question_turn import question_turn
from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import (
    COUNT,
    EXAMPLE_PROJECT,
    EXAMPLE_USER,
    INTEGER,
    PROVIDER_REFERENCE,
    STRING,
    UUID,
    AnswerSchema,
    choice,
    described,
    list_of,
    members,
    or_null,
)
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import (
    QueryString,
    RequestParameter,
    Route,
    Success,
    routes_of,
)
from roost.api.services import Services
from roost.model.consumers import ConsumerFilter, ConsumerHolding, SizeMark
from roost.search.forest.forest import Forest
from roost.service.questions.provider_list import resolve_provider
from roost.service.tables.consumers import (
    HoldingConsumer,
    capacities_of,
    get_consumer,
    list_largest_consumers,
    list_oldest_consumers,
    subtree_ids,
)
from roost.store.tables import utc_now
from roost.turns import Turn

M = TypeVar("M")

CONSUMERS = "Consumers"
"""The tag of the routes about consumers."""

# Consumers that a request reads without a turn, and at once.
_FEW_CONSUMERS = 100
_CONSUMERS_AT_ONCE = 512
_AGE = re.compile(r"([0-9]{1,9})([smhd]?)", re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BY_AGE, _BY_SIZE = "age", "size"

_OWN = QueryString.of(
    RequestParameter(
        "type", "The consumer type; `unknown` for consumers that have none.", "INSTANCE"
    ),
    RequestParameter("project", "The id of the project.", EXAMPLE_PROJECT),
    RequestParameter("user", "The id of the user.", EXAMPLE_USER),
    RequestParameter(
        "provider",
        "The uuid or name of a provider. Only consumers that hold something from it, or from a "
        "provider below it.",
        "host-1",
    ),
    RequestParameter(
        "older_than", "The least age: a number of seconds, or a number with s, m, h or d.", "30d"
    ),
    RequestParameter(
        "order",
        "`age`: oldest first. `size`: largest first, and only those that hold something.",
        _BY_AGE,
        choice(_BY_AGE, _BY_SIZE),
    ),
    *PAGE_PARAMETERS,
)

_TIME = or_null(STRING, "In UTC, as `2026-11-18T12:00:00Z`; null if another service left it out.")
_RESOURCES = {"type": "object", "additionalProperties": COUNT}
_OF_CONSUMER = {
    "consumer": UUID,
    "consumer_type": or_null(STRING, "Null if the consumer has none."),
    "project_id": STRING,
    "user_id": STRING,
    "generation": INTEGER,
    "created_at": _TIME,
    "updated_at": _TIME,
    "resources": described(_RESOURCES, "What it holds of each class, from all providers."),
    "size": described(
        {"type": "number"},
        "The sum of its shares: 1 for a class of which it holds all that the cloud has.",
    ),
    "allocations": list_of(
        members(
            {
                "provider": PROVIDER_REFERENCE,
                "root": PROVIDER_REFERENCE,
                "resources": _RESOURCES,
            }
        )
    ),
}
_LIST = AnswerSchema.of(
    "ConsumerList",
    "Consumers, with what they hold.",
    members(
        {
            "consumers": list_of(
                members({**_OF_CONSUMER, "providers": described(COUNT, "From how many.")})
            ),
            "next": NEXT,
        }
    ),
)
_ONE = AnswerSchema.of(
    "ConsumerDetails",
    "A consumer, with what it holds from each provider.",
    members(_OF_CONSUMER),
)


@Route(
    "GET",
    "/roost/consumers",
    rule="roost:consumers:list",
    summary="List consumers",
    successes={200: Success("A page of the consumers.", _LIST)},
    refusals={400: "A parameter is unknown or has a bad value.", 404: NO_SUCH_PROVIDER},
    queries=(_OWN,),
)
def list_consumers(services: Services, request: Request) -> Response:
    """Consumers with what they hold, oldest or largest first.

    The size of a consumer adds up, for each resource class, the share that it holds of what the
    whole cloud has.
    """
    parameters = split_parameters(request, _OWN.names)
    refuse_rest(parameters, _OWN.names)
    order = parameters.own.get("order", _BY_AGE)
    if order not in (_BY_AGE, _BY_SIZE):
        raise bad_value(f"order is {order[:40]!r}. Send `age` or `size`.")
    asked_page = parse_page(parameters)
    forest = services.forest()
    wanted = _filter(services, parameters, forest)
    capacities = _capacities_by_name(forest)
    with question_turn(services, request) as turn:
        read = _oldest if order == _BY_AGE else _largest
        page = read(services, turn, asked_page, wanted, forest)
        shown = page.json(lambda found: _entry(found, capacities), turn.pause)
        return json_response({"consumers": shown, "next": page.next})


@Route(
    "GET",
    "/roost/consumers/{consumer}",
    rule="roost:consumers:show",
    summary="Show a consumer",
    successes={200: Success("The consumer.", _ONE)},
    refusals={404: "No consumer has this uuid."},
)
def show_consumer(services: Services, request: Request) -> Response:
    """A consumer with its owner, its age, and what it holds from each provider."""
    found = services.read(get_consumer, request.parameters["consumer"])
    capacities = _capacities_by_name(services.forest())
    return json_response(_consumer_content(found, capacities))


def _filter(services: Services, parameters: Parameters, forest: Forest) -> ConsumerFilter:
    own = parameters.own
    provider_ids = root_id = None
    if "provider" in own:
        provider = services.read(resolve_provider, own["provider"])
        if provider.id == provider.root_id:
            root_id = provider.id
        else:
            provider_ids = subtree_ids(forest, provider.uuid)
    return ConsumerFilter(
        consumer_type=own.get("type"),
        project=own.get("project"),
        user=own.get("user"),
        provider_ids=provider_ids,
        root_id=root_id,
        created_before=_created_before(own.get("older_than")),
    )


def _created_before(age: str | None) -> datetime | None:
    if age is None:
        return None
    match = _AGE.fullmatch(age)
    if match is None:
        raise bad_value(
            f"older_than is {age[:40]!r}. Send seconds, or a number with s, m, h or d, such as 30d."
        )
    try:
        return utc_now() - timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
    except OverflowError:
        raise bad_value(f"older_than is {age!r}, longer than any calendar. Send less.") from None


def _oldest(
    services: Services, turn: Turn, asked: AskedPage, wanted: ConsumerFilter, _forest: Forest
) -> Page[HoldingConsumer]:
    after, _ = asked.number() or (0, "")
    if asked.length > _FEW_CONSUMERS:
        turn.enter()
    found: list[tuple[int, HoldingConsumer]] = []
    while (missing := asked.length + 1 - len(found)) > 0:
        length = min(missing, _CONSUMERS_AT_ONCE)
        piece = services.read(list_oldest_consumers, wanted, after, length)
        found += piece
        turn.pause()
        if len(piece) < length:
            break
        after = piece[-1][0]
    return _page(asked, found, str)


def _largest(
    services: Services, turn: Turn, asked: AskedPage, wanted: ConsumerFilter, forest: Forest
) -> Page[HoldingConsumer]:
    """The database adds up what all consumers hold, so such a list is a survey."""
    mark = asked.number()
    after = SizeMark(*mark) if mark else None
    turn.enter()
    found = services.survey(
        turn,
        lambda connection, _: list_largest_consumers(
            connection, wanted, capacities_of(forest), after, asked.length + 1
        ),
    )
    return _page(asked, found, lambda mark: f"{mark.size}.{mark.consumer}")


def _page(
    asked: AskedPage, found: list[tuple[M, HoldingConsumer]], mark_text: Callable[[M], str]
) -> Page[HoldingConsumer]:
    page = asked.read(found, lambda entry: mark_text(entry[0]))
    return Page([consumer for _, consumer in page.members], page.next)


def _capacities_by_name(forest: Forest) -> dict[str, int]:
    names = forest.vocabulary.class_names
    return {
        names[class_id]: capacity
        for class_id, capacity in capacities_of(forest).items()
        if class_id in names
    }


def _entry(found: HoldingConsumer, capacities: Mapping[str, int]) -> dict[str, Any]:
    return {**_consumer_content(found, capacities), "providers": len(found.holdings)}


def _consumer_content(found: HoldingConsumer, capacities: Mapping[str, int]) -> dict[str, Any]:
    consumer, resources = found.consumer, found.resources
    return {
        "consumer": consumer.uuid,
        "consumer_type": consumer.consumer_type,
        "project_id": consumer.project,
        "user_id": consumer.user,
        "generation": consumer.generation,
        "created_at": time_text(consumer.created_at),
        "updated_at": time_text(consumer.updated_at),
        "resources": resources,
        "size": _size(resources, capacities),
        "allocations": [_holding_content(holding) for holding in found.holdings],
    }


def _size(resources: Mapping[str, int], capacities: Mapping[str, int]) -> float:
    shares = (
        used / capacities[name] for name, used in resources.items() if capacities.get(name, 0) > 0
    )
    return round(sum(shares), 6)


def _holding_content(holding: ConsumerHolding) -> dict[str, Any]:
    return {
        "provider": {"uuid": holding.provider_uuid, "name": holding.provider_name},
        "root": {"uuid": holding.root_uuid, "name": holding.root_name},
        "resources": holding.resources,
    }


def time_text(time: datetime | None) -> str | None:
    """A stored time for an answer.

    >>> time_text(datetime(2026, 11, 18, 12, 0, 0, 5))
    '2026-11-18T12:00:00Z'
    """
    return None if time is None else f"{time.isoformat(timespec='seconds')}Z"


ROUTES = routes_of(CONSUMERS, list_consumers, show_consumer)
