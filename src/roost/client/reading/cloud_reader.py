"""Reads the providers of a server with what they have.

A caller says which providers it wants, and which facets of them. How the reader fetches these is
its own affair. Roost has whole trees in one answer. Placement answers for one provider at a time.
So on other servers, several threads ask at once. Both ways find the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Any, TypeVar

from roost.client.errors import (
    PlacementError,
    ResourceProviderRetrievalFailed,
    ResourceProviderUpdateConflict,
    UnreadableAnswer,
)
from roost.client.placement import Placement, ProviderBody
from roost.client.placement.answers import AmountsByClass
from roost.client.provider_tree import ProviderTree
from roost.client.reading.cloud_provider import CloudProvider, CloudTree
from roost.client.reading.lookup import parents_first, subtree_of
from roost.client.reading.parallel import in_order
from roost.client.reading.whole_trees import NO_TREE, WholeTrees

THREADS = 4
"""The number of questions that are asked at once, unless a caller gives another one."""

CONSISTENT_READ_ATTEMPTS = 4
"""Another writer may change a provider between its reads; then they are repeated."""

_TREES_MAX = 100
"""The number of trees up to which single requests cost less than a list of all providers."""

TellProgress = Callable[[int, int], None]
"""Takes the number of all questions, and the number of those answered since."""

Q = TypeVar("Q")
A = TypeVar("A")

NO_PROJECT = "00000000-0000-0000-0000-000000000000"
"""The project of consumers that clients of 1.7 and older made without one."""


class Facet(StrEnum):
    """One kind of what a provider has, in the order in which the reader asks."""

    INVENTORIES = "inventories"
    AGGREGATES = "aggregates"
    TRAITS = "traits"
    USAGES = "usages"
    ALLOCATIONS = "allocations"


ASSOCIATIONS = (Facet.INVENTORIES, Facet.AGGREGATES, Facet.TRAITS)
"""The facets that have the generation of the provider."""

_WHOLE = frozenset({*ASSOCIATIONS, Facet.USAGES})
"""The facets that whole trees have."""


@dataclass(frozen=True, slots=True)
class ProviderChoice:
    """Which providers of a server: all, or those in some trees, or those below some providers."""

    in_trees: Sequence[str] | None = None
    """Any providers of the trees, by uuid."""
    below: Sequence[ProviderBody] | None = None
    """The highest providers, which belong to the chosen ones."""


EVERYTHING = ProviderChoice()

_QUESTIONS: Mapping[Facet, Callable[[Placement, str], Any]] = {
    Facet.INVENTORIES: Placement.inventories,
    Facet.AGGREGATES: Placement.aggregates,
    Facet.TRAITS: Placement.traits,
    Facet.USAGES: Placement.usages,
    Facet.ALLOCATIONS: Placement.allocations,
}


def _ignore(total: int, answered: int) -> None:
    """Tell no operator of the progress."""


class CloudReader:
    """Reads from one server."""

    def __init__(self, server: Placement, threads: int = THREADS) -> None:
        self._server = server
        self._threads = threads
        self._whole = WholeTrees(server)

    # -- providers

    def providers(
        self,
        chosen: ProviderChoice = EVERYTHING,
        facets: Sequence[Facet] = (),
        tell: TellProgress = _ignore,
    ) -> Iterator[CloudProvider]:
        """The chosen providers; one that another client deletes meanwhile is left out."""
        whole = self._of_whole_trees(chosen) if _WHOLE.issuperset(facets) and facets else None
        if whole is not None:
            return whole
        bodies = self._bodies(chosen)
        if not facets:
            return map(CloudProvider, bodies)
        return self.listed(bodies, facets, tell)

    def _of_whole_trees(self, chosen: ProviderChoice) -> Iterator[CloudProvider] | None:
        """The chosen providers out of whole trees, with all facets that these have."""
        if chosen.in_trees is None and chosen.below is None:
            trees = self._whole.all()
            return None if trees is None else chain.from_iterable(one.providers for one in trees)
        found: dict[str, CloudProvider] = {}
        for top in [body["uuid"] for body in chosen.below or ()] or chosen.in_trees or ():
            tree = self._whole.of(top)
            if tree is None:
                return None
            part = tree.providers if chosen.below is None else _subtree(tree, top)
            found.update((provider.uuid, provider) for provider in part)
        return iter(found.values())

    def listed(
        self, bodies: Sequence[ProviderBody], facets: Sequence[Facet], tell: TellProgress = _ignore
    ) -> Iterator[CloudProvider]:
        """The providers of a list; one that another client deletes meanwhile is left out."""

        def read(body: ProviderBody) -> CloudProvider | None:
            try:
                return self.provider(body, facets)
            except PlacementError as error:
                if error.status == 404:
                    return None
                raise

        return self._ask_each(bodies, read, tell)

    def provider(self, body: ProviderBody, facets: Sequence[Facet]) -> CloudProvider:
        """One provider; its associations are those of one generation.

        If another writer changes the provider in all attempts, the generation is the oldest one
        that was read. The server refuses a write that is based on it, so no change is lost.
        """
        for _ in range(CONSISTENT_READ_ATTEMPTS):
            found: dict[str, Any] = {}
            generations: set[int] = set()
            for facet in facets:
                # Only what has inventory has usages.
                if facet is not Facet.USAGES or found.get(Facet.INVENTORIES) != {}:
                    answer = _QUESTIONS[facet](self._server, body["uuid"])
                    if facet in ASSOCIATIONS:
                        generation, answer = answer
                        generations.add(generation)
                    found[facet] = answer
            if len(generations) <= 1:
                break
        fresh = {"generation": min(generations)} if generations else {}
        return CloudProvider({**body, **fresh}, **found)

    def _bodies(self, chosen: ProviderChoice) -> list[ProviderBody]:
        if chosen.below is not None:
            parts = [subtree_of(self._server, top) for top in chosen.below]
        elif chosen.in_trees is None:
            parts = [self._server.providers()]
        elif len(wanted := set(chosen.in_trees)) > _TREES_MAX:
            listed = self._server.providers()
            roots = {body["root_provider_uuid"] for body in listed if body["uuid"] in wanted}
            parts = [[body for body in listed if body["root_provider_uuid"] in roots]]
        else:
            trees = list(dict.fromkeys(chosen.in_trees))
            parts = list(in_order(trees, self._server.tree, self._threads))
        return list({body["uuid"]: body for part in parts for body in part}.values())

    # -- trees

    def whole_tree(self, root: str) -> CloudTree:
        """The tree of a root with all facets but allocations; `NO_TREE` without such a root."""
        found = self._whole.of(root)
        return self._walked(root, self._server.tree(root)) if found is None else self._placed(found)

    def whole_trees(self) -> Iterator[CloudTree]:
        """All trees, each read as the caller takes it; one that ends meanwhile is left out."""
        whole = self._whole.all()
        if whole is not None:
            yield from map(self._placed, whole)
            return
        members: defaultdict[str, list[ProviderBody]] = defaultdict(list)
        for body in self._server.providers():
            members[body["root_provider_uuid"]].append(body)
        for root, bodies in members.items():
            tree = self._walked(root, bodies)
            if tree.providers:
                yield tree

    def _placed(self, tree: CloudTree) -> CloudTree:
        """The tree with the places of its sharing providers, which its answer does not have."""
        placed = []
        for provider in tree.sharing:
            body = self._server.provider(provider.uuid)
            if body is not None:
                fresh = {**body, "generation": provider.body["generation"]}
                placed.append(replace(provider, body=fresh))
        return CloudTree(tree.providers, tuple(placed))

    def _walked(self, root: str, bodies: Sequence[ProviderBody]) -> CloudTree:
        """A tree out of single answers; an empty one if its root is deleted meanwhile."""
        facets = (*ASSOCIATIONS, Facet.USAGES)
        top = next((body for body in bodies if body["uuid"] == root), None)
        if top is None:
            return NO_TREE
        members = tuple(self.listed(parents_first(top, bodies), facets))
        if not members or members[0].uuid != root:
            return NO_TREE
        inside = {member.uuid for member in members}
        aggregates = {aggregate for member in members for aggregate in member.aggregates}
        lending = self._server.sharing_providers(aggregates)
        outside = [body for body in lending if body["uuid"] not in inside]
        return CloudTree(members, tuple(self.listed(outside, facets)))

    def tree(self, uuid: str, known: ProviderTree | None = None) -> ProviderTree:
        """The tree of a provider, with its sharing providers as lone roots.

        The tree is empty if the server does not have the provider. A sharing provider has the
        sharing trait, and an aggregate in common with a member of the tree. Its own tree and its
        own sharing providers are not read.

        The associations of providers in `known` that have kept their generation are copied.
        """
        return self.tree_and_usages(uuid, known, ASSOCIATIONS)[0]

    def tree_and_usages(
        self,
        uuid: str,
        known: ProviderTree | None = None,
        facets: Sequence[Facet] = (*ASSOCIATIONS, Facet.USAGES),
    ) -> tuple[ProviderTree, dict[str, AmountsByClass]]:
        """The same, and the usages of the providers that are not in `known`."""
        whole = self._whole.of(uuid) if known is None else None
        tree = ProviderTree()
        if whole is not None:
            whole.put_into(tree)
            return tree, {one.uuid: one.usages for one in (*whole.providers, *whole.sharing)}
        members = self._server.tree(uuid)
        try:
            tree.populate_from_iterable(members)
        except ValueError as error:
            raise UnreadableAnswer(f"The server sent no tree for {uuid}: {error}") from error
        found = self._filled(tree, members, known, facets)
        aggregates = {
            aggregate
            for member in tree.get_provider_uuids()
            for aggregate in tree.data(member).aggregates
        }
        sharing = [
            provider
            for provider in self._server.sharing_providers(aggregates)
            if not tree.exists(provider["uuid"])
        ]
        for provider in sharing:
            tree.new_root(provider["name"], provider["uuid"], provider["generation"])
        found += self._filled(tree, sharing, known, facets)
        return tree, {provider.uuid: provider.usages for provider in found}

    def _filled(
        self,
        tree: ProviderTree,
        bodies: Iterable[ProviderBody],
        known: ProviderTree | None,
        facets: Sequence[Facet],
    ) -> list[CloudProvider]:
        """Put what the providers have into the tree; those that had to be read."""
        changed = []
        for body in bodies:
            if known is not None and known.exists(body["uuid"]):
                before = known.data(body["uuid"])
                if before.generation == body["generation"]:
                    held = (
                        before.inventory,
                        frozenset(before.aggregates),
                        frozenset(before.traits),
                    )
                    CloudProvider(body, *held).put_into(tree)
                    continue
            changed.append(body)

        def read(body: ProviderBody) -> CloudProvider:
            with demanding_existence(body["uuid"]):
                return self.provider(body, facets)

        found = list(in_order(changed, read, self._threads))
        for provider in found:
            provider.put_into(tree)
        return found

    def _ask_each(
        self, questions: Sequence[Q], ask: Callable[[Q], A | None], tell: TellProgress
    ) -> Iterator[A]:
        """The answers in the order of the questions, without those that are `None`."""
        for answer in in_order(questions, ask, self._threads):
            tell(len(questions), 1)
            if answer is not None:
                yield answer


def _subtree(tree: CloudTree, top: str) -> list[CloudProvider]:
    """A provider of the tree and all below it, parents first."""
    inside = {top}
    found = []
    for provider in tree.providers:
        if provider.uuid == top or provider.body["parent_provider_uuid"] in inside:
            inside.add(provider.uuid)
            found.append(provider)
    return found


@contextmanager
def demanding_existence(uuid: str) -> Iterator[None]:
    """Turn "not found" into a conflict: another writer deleted a provider that was listed."""
    try:
        yield
    except ResourceProviderRetrievalFailed as error:
        if error.status != 404:
            raise
        raise ResourceProviderUpdateConflict(
            f"Provider {uuid} was deleted by another writer meanwhile", provider_uuid=uuid
        ) from error
