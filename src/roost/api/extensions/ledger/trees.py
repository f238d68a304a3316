"""`/roost/trees`: whole trees of providers, with all that they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from roost.api.candidates.schemas import NO_SUCH_PROVIDER
from roost.api.extensions.pages import NEXT, AskedPage, Page, page_parameters, parse_page
from roost.api.extensions.parameters import (
    ROOT_PARAMETERS,
    Parameters,
    asked_roots,
    refuse_rest,
    split_parameters,
)
from roost.api.extensions.questions.question_turn import (
    enter_if_large,
    forest_aside,
    question_turn,
)
from roost.api.handlers.inventories import SHOWN_FIELDS
from roost.api.http.accept import quality
from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import (
    AMOUNTS,
    CLASS_NAME,
    GENERATION,
    PROVIDER_UUID,
    STRING,
    AnswerSchema,
    described,
    flag,
    list_of,
    mapping,
    members,
)
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.http.streamed_lists import AT_ONCE_MAX
from roost.api.routing import JSON, LINES, QueryString, Route, Success, routes_of
from roost.api.services import Services
from roost.model.identifiers import canonical_uuid
from roost.model.trees.owned import OwnedParts
from roost.search.forest.forest import Forest
from roost.search.forest.rows import IntColumn
from roost.search.roots import MatchingRoots, RootFilter
from roost.search.trees import WholeProvider, WholeTree, root_ids, tree_sizes
from roost.service.questions.provider_list import no_such_provider, resolve_provider
from roost.service.questions.trees import ReadTrees, StoredFacts, facts_of, read_trees
from roost.turns import Turn

_LENGTH_MAX = 1000
# A page with so many providers has about 15 MB. A larger tree is a page of its own.
_PROVIDERS_OF_PAGE = 20_000
# How many providers the server has in hand at once, unless one tree has more.
_PROVIDERS_AT_ONCE = 2000
# The providers that are read without waiting in line.
_FEW_PROVIDERS = 100

_OWN = QueryString.of(*ROOT_PARAMETERS, *page_parameters(_LENGTH_MAX))

_PROVIDER = {
    "name": STRING,
    "uuid": PROVIDER_UUID,
    "generation": GENERATION,
    "traits": described(list_of(STRING), "By name."),
    "aggregates": described(list_of(STRING), "By uuid."),
    "inventories": described(
        mapping(CLASS_NAME, members(SHOWN_FIELDS)), "The inventories, by resource class."
    ),
    "usages": described(AMOUNTS, "What consumers hold of each inventory."),
    "owners": described(
        {
            "type": "object",
            "additionalProperties": members(
                created=flag("The owner has created the provider."),
                inventories=described(
                    mapping(CLASS_NAME, list_of(STRING)), "The declared fields, by resource class."
                ),
                traits=list_of(STRING),
                aggregates=list_of(STRING),
            ),
        },
        "What each owner has declared of it by `PUT /roost/trees`.",
    ),
}
_TREE = AnswerSchema.of(
    "Tree",
    "A whole tree, in the structure of a tree file.",
    members(
        providers=described(
            list_of(
                members(
                    _PROVIDER,
                    {"parent": described(STRING, "The name of the parent. A root has none.")},
                ),
                minimum=1,
            ),
            "All providers of the tree, the root first.",
        ),
        sharing_providers=described(
            list_of(members(_PROVIDER)),
            "The sharing providers of other trees that are in an aggregate of this tree.",
        ),
    ),
)
_TREES = AnswerSchema.of(
    "Trees",
    "A page of trees.",
    members(
        trees=described(list_of(_TREE), "A page of the trees that match, by uuid of the root."),
        cursor=described(STRING, "Where the changes begin that this answer may not have."),
        next=NEXT,
    ),
)
_CAME = "Providers came to the trees again and again while the server read them."


@Route(
    "GET",
    "/roost/trees",
    rule="roost:trees:list",
    summary="List whole trees",
    successes={200: Success("The trees.", _TREES, lines=_TREE)},
    refusals={
        400: "A parameter is unknown or malformed, or names an unknown thing.",
        409: _CAME,
    },
    queries=(_OWN,),
)
def list_trees(services: Services, request: Request) -> Response:
    """Whole trees, in pages, each tree in the structure of a tree file.

    A page may have fewer trees than `page_limit`, if they are large. A client that accepts
    `application/x-ndjson` gets all trees that match in one answer, one on each line.
    """
    parameters = split_parameters(request, _OWN.names)
    refuse_rest(parameters, _OWN.names)
    accept = request.header("accept")
    as_lines = quality(accept, LINES) > quality(accept, JSON)
    asked_page = None if as_lines else parse_page(parameters, _LENGTH_MAX)
    if as_lines:
        _refuse_pages(parameters)
    forest, position = services.forest_with_position()
    wanted = asked_roots(parameters.own).filter(forest.vocabulary)
    with question_turn(services, request) as turn:
        enter_if_large(turn, forest)
        found = _Roots.matching(forest, wanted, turn)
        # What follows takes newer forests. A long answer keeps no old one in memory.
        del forest
        if asked_page is None:
            if int(found.sizes.sum()) > AT_ONCE_MAX:
                return _lines(turn.pieces(_pieces(services, turn, found)))
            return _lines(b"".join(_pieces(services, turn, found)))
        page = _page(asked_page, found)
        texts = chain.from_iterable(_texts(services, turn, found.between(page.members)))
        return json_response(
            {
                "trees": orjson.Fragment(b"[%b]" % b",".join(texts)),
                "cursor": position.to_text(),
                "next": page.next,
            }
        )


@Route(
    "GET",
    "/roost/trees/{provider}",
    rule="roost:trees:show",
    summary="Show a whole tree",
    successes={200: Success("The tree.", _TREE)},
    refusals={404: NO_SUCH_PROVIDER, 409: _CAME},
)
def show_tree(services: Services, request: Request) -> Response:
    """The whole tree of a provider, which the uuid or the name of any provider in it leads to."""
    refuse_rest(split_parameters(request, ()), ())
    reference = request.parameters["provider"]
    provider = services.read(resolve_provider, reference)
    with question_turn(services, request) as turn:
        found = _read(services, turn, [provider.id])
        if provider.id not in found.trees:
            raise no_such_provider(reference)
        return json_response(_content(found.trees[provider.id], found.facts))


class _Roots(NamedTuple):
    """The roots that match, by uuid: their uuids, their ids, and the sizes of their trees."""

    uuids: npt.NDArray[np.bytes_]
    ids: IntColumn
    sizes: IntColumn

    @classmethod
    def matching(cls, forest: Forest, wanted: RootFilter, turn: Turn) -> _Roots:
        roots = MatchingRoots(forest, wanted, turn.pause)
        return cls(roots.uuids, root_ids(forest, roots), tree_sizes(forest, roots))

    def between(self, places: Sequence[int]) -> _Roots:
        """Only the roots of a range."""
        assert isinstance(places, range), "a page of a range is a range"
        part = slice(places.start, places.stop)
        return _Roots(self.uuids[part], self.ids[part], self.sizes[part])

    def parts(self, providers_max: int) -> Iterator[range]:
        """The roots in parts with so many providers at most, or with one root."""
        ends = np.cumsum(self.sizes)
        begin = providers = 0
        while begin < len(ends):
            end = int(np.searchsorted(ends, providers + providers_max, side="right"))
            end = max(end, begin + 1)
            yield range(begin, end)
            begin, providers = end, int(ends[end - 1])


def _refuse_pages(parameters: Parameters) -> None:
    for name in ("page_limit", "marker"):
        if name in parameters.own:
            raise bad_value(f"{name} is for pages, and lines have none. Leave it out.")


def _page(asked: AskedPage, found: _Roots) -> Page[int]:
    """The page; a shorter one if its trees have too many providers."""

    def cut(length: int) -> Page[int]:
        places = range(len(found.uuids))
        return replace(asked, length=length).cut(places, lambda at: found.uuids[at].decode())

    page = cut(asked.length)
    for part in found.between(page.members).parts(_PROVIDERS_OF_PAGE):
        return cut(min(asked.length, len(part)))
    return page


def _pieces(services: Services, turn: Turn, found: _Roots) -> Iterator[bytes]:
    """The lines of all trees, some at a time."""
    for texts in _texts(services, turn, found):
        yield b"".join(text + b"\n" for text in texts)


def _texts(services: Services, turn: Turn, found: _Roots) -> Iterator[list[bytes]]:
    """The trees in JSON, some at a time. A tree is left out if its root is no root any more."""
    if int(found.sizes.sum()) > _FEW_PROVIDERS:
        turn.enter()
    for part in found.parts(_PROVIDERS_AT_ONCE):
        ids = found.ids[part.start : part.stop].tolist()
        read = _read(services, turn, ids)
        trees = ((id_, read.trees[id_]) for id_ in ids if id_ in read.trees)
        yield [
            orjson.dumps(_content(tree, read.facts))
            for id_, tree in trees
            if tree.providers[0].id == id_
        ]
        turn.pause()


def _read(services: Services, turn: Turn, ids: Sequence[int]) -> ReadTrees:
    return read_trees(
        ids,
        lambda: forest_aside(services, turn),
        lambda some: services.read(facts_of, some),
    )


def _content(tree: WholeTree, facts: Mapping[int, StoredFacts]) -> dict[str, Any]:
    return {
        "providers": [_provider_content(each, facts[each.id]) for each in tree.providers],
        "sharing_providers": [
            _provider_content(each, facts[each.id]) for each in tree.sharing_providers
        ],
    }


def _provider_content(provider: WholeProvider, facts: StoredFacts) -> dict[str, Any]:
    return {
        "name": provider.name,
        "uuid": provider.uuid,
        **({} if provider.parent is None else {"parent": provider.parent}),
        "generation": facts.generation,
        "traits": provider.traits,
        "aggregates": provider.aggregates,
        "inventories": provider.inventories,
        "usages": provider.used,
        "owners": _owners(provider, facts.owners) if facts.owners else {},
    }


def _owners(provider: WholeProvider, owners: Mapping[str, OwnedParts]) -> dict[str, Any]:
    """What each owner owns of what the provider has."""
    traits, aggregates = set(provider.traits), set(map(canonical_uuid, provider.aggregates))
    there = {
        owner: parts.among(provider.inventories.keys(), traits, aggregates)
        for owner, parts in owners.items()
    }
    return {owner: parts.as_json() for owner, parts in there.items() if parts}


def _lines(body: bytes | Iterator[bytes]) -> Response:
    headers = [("content-type", LINES)]
    if isinstance(body, bytes):
        return Response(200, body, headers)
    return Response(200, headers=headers, stream=body)


ROUTES = routes_of("Trees", list_trees, show_tree)
