"""`GET /roost/resilience`: which roots may be lost, one at a time."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from traceback import clear_frames
from typing import Any

from roost.api.extensions.pages import NEXT, PAGE_PARAMETERS, parse_page
from roost.api.extensions.parameters import QUESTIONS, refuse_rest, split_parameters
from roost.api.extensions.questions.question_turn import forest_aside, look_up_names, question_turn
from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import (
    COUNT,
    PROVIDER_REFERENCE,
    SENTENCE,
    AnswerSchema,
    described,
    flag,
    list_of,
    members,
    text,
)
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import QueryString, RequestParameter, Route, Success, routes_of
from roost.api.services import FoundResilience, Services
from roost.freed_memory import give_back_memory
from roost.search.forest.vocabulary import Vocabulary
from roost.search.resilience.resilience import LossOutcome, LostRoot, find_resilience
from roost.service.questions.resilience import list_all_allocations, loss_sentence
from roost.turns import Turn

_OWN = QueryString.of(
    RequestParameter("lose", "How many roots are lost at once.", "1", text("^1$")), *PAGE_PARAMETERS
)
_EXACT = flag("False if the search ended before it saw every arrangement.")
_RESILIENCE = AnswerSchema.of(
    "Resilience",
    "Whether the rest of the cloud has room for what each root holds.",
    members(
        survives=described(COUNT, "How many roots may be lost, one at a time."),
        of=described(COUNT, "How many roots there are."),
        exact=_EXACT,
        roots=described(
            list_of(
                members(
                    root=PROVIDER_REFERENCE,
                    fits={"type": "boolean"},
                    exact=_EXACT,
                    consumers=described(COUNT, "How many consumers would move."),
                    text=SENTENCE,
                )
            ),
            "The roots whose consumers do not fit elsewhere.",
        ),
        next=NEXT,
    ),
)


@Route(
    "GET",
    "/roost/resilience",
    rule="roost:resilience:show",
    summary="Look which roots may be lost",
    successes={200: Success("The roots that may not be lost.", _RESILIENCE)},
    queries=(_OWN,),
)
def show_resilience(services: Services, request: Request) -> Response:
    """For each root: whether what its consumers hold there would fit on the rest.

    Consumers move whole, and what they hold elsewhere stays.
    """
    parameters = split_parameters(request, _OWN.names)
    refuse_rest(parameters, _OWN.names)
    lose = parameters.own.get("lose", "1")
    if lose != "1":
        raise bad_value(
            f"lose is {lose[:40]!r}. Only the loss of one root at a time is worked out: send 1."
        )
    asked_page = parse_page(parameters)
    with question_turn(services, request) as turn:
        found, vocabulary = services.resilience.share(turn, partial(_found, services, turn))
        page = asked_page.cut(found.roots, attrgetter("root_uuid"))
        names = look_up_names(services, turn, [root.root_uuid for root in page.members])
        body = {
            "survives": found.survives,
            "of": found.survives + len(found.roots),
            "exact": found.exact,
            "roots": page.json(lambda root: _shown(root, names, vocabulary), turn.pause),
            "next": page.next,
        }
        return json_response(body)


def _found(services: Services, turn: Turn) -> FoundResilience:
    """The answer for all requests that wait for it: first the turn, then the data."""
    turn.enter_as_very_large()
    try:
        return _searched(services, turn)
    except Exception as error:
        # The traceback of the failure would keep the data.
        clear_frames(error.__traceback__)
        raise
    finally:
        give_back_memory()


def _searched(services: Services, turn: Turn) -> FoundResilience:
    allocations = services.survey(turn, list_all_allocations)
    forest = forest_aside(services, turn)
    return find_resilience(forest, allocations, turn.pause), forest.vocabulary


def _shown(root: LostRoot, names: dict[str, str], vocabulary: Vocabulary) -> dict[str, Any]:
    name = names.get(root.root_uuid, root.root_uuid)
    return {
        "root": {"uuid": root.root_uuid, "name": name},
        "fits": False,
        "exact": root.verdict.outcome is not LossOutcome.UNKNOWN,
        "consumers": root.consumers,
        "text": loss_sentence(root, name, vocabulary),
    }


ROUTES = routes_of(QUESTIONS, show_resilience)
