"""Conditions on traits: `required` of a group, and `root_required`.

The unsuffixed group may have several providers. They need its required traits only together: these
are trait choices. Each provider must lack its forbidden traits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self

from roost.model.candidate_query import edits
from roost.model.candidate_query.change import (
    DROP_CONDITION,
    QueryChange,
    drop_condition,
    trait_changes,
)
from roost.model.candidate_query.query import NO_TRAITS, CandidateQuery, RequestGroup
from roost.model.providers import TraitFilter
from roost.model.text import listed
from roost.search.conditions.condition import (
    BlockView,
    Condition,
    NearProvider,
    RootCondition,
    whole_gaps,
)
from roost.search.conditions.lack import Lack, LackRule
from roost.search.conditions.sets import SetFilter
from roost.search.conditions.stages import GroupStage, TreeStage
from roost.search.forest.block import Block
from roost.search.forest.forest import Forest, TreeRef
from roost.search.forest.rows import BoolColumn, FloatColumn, IndexColumn


@dataclass(frozen=True, slots=True)
class _OnTraits:
    """A condition on the traits of one provider."""

    filter: SetFilter[int]

    @classmethod
    def of_filter(cls, forest: Forest, wanted: TraitFilter) -> Self | None:
        """The condition; `None` if the filter asks nothing."""
        if not (wanted.required or wanted.any_of or wanted.forbidden):
            return None
        found = SetFilter(
            tuple(dict.fromkeys(edits.trait_choices_of(wanted))),
            tuple(dict.fromkeys(wanted.forbidden)),
            forest.trait_sets,
            forest.vocabulary.trait_ids.__getitem__,
        )
        return cls(found)

    def failed(self, set_number: int) -> Iterator[tuple[LackRule, tuple[str, ...]]]:
        """The traits that are missing or forbidden."""
        yield from ((LackRule.REQUIRED, names) for names in self.filter.missing(set_number))
        yield from ((LackRule.FORBIDDEN, names) for names in self.filter.forbidden_in(set_number))

    def gaps_of(self, set_numbers: IndexColumn) -> FloatColumn:
        """A whole gap for each trait that is missing or forbidden."""
        its = self.filter
        return whole_gaps(its.missing_counts[set_numbers] + its.forbidden_counts[set_numbers])

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """The trait that is missing or forbidden."""
        if lack.rule is LackRule.FORBIDDEN:
            return f"{provider} has the forbidden trait {lack.traits[0]}"
        return f"{provider} has no trait {listed(lack.traits, 'or')}"


class Traits(_OnTraits, Condition):
    """The traits that the provider of a slot must have or lack."""

    stages = (GroupStage.TRAITS,)
    not_asked = "the query asks no traits of single providers"

    @classmethod
    def of(cls, forest: Forest, group: RequestGroup) -> Self | None:
        return cls.of_filter(forest, _of_one_provider(group))

    @classmethod
    def is_wish(cls, group: RequestGroup) -> bool:
        return bool(group.traits.required or group.traits.any_of)

    @classmethod
    def phrases(cls, group: RequestGroup, stage: GroupStage, *, singular: bool) -> Iterator[str]:
        return _phrases(_of_one_provider(group), singular=singular)

    @classmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        return _query_pairs("required", group.traits)

    def passing(self, view: BlockView, indexes: IndexColumn) -> IndexColumn:
        return indexes[self.filter.mask[view.block.trait_set_numbers[indexes]]]

    def excluding_stage(self, view: BlockView) -> GroupStage | None:
        may_pass = self.filter.mask[view.block.outline.trait_set_numbers].any()
        return None if may_pass else GroupStage.TRAITS

    def gaps(self, view: BlockView) -> FloatColumn:
        return self.gaps_of(view.block.trait_set_numbers)

    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        set_number = near.view.block.trait_set_numbers[near.ref.provider_index]
        for rule, names in self.failed(int(set_number)):
            on_root = near.root_traits.intersection(names)
            yield near.lack(self, GroupStage.TRAITS, rule, traits=names, root_traits=on_root)

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        suffix = lack.group or ""
        if lack.rule is LackRule.REQUIRED:
            yield from trait_changes(query, suffix, [lack.traits], lack.root_traits)
            return
        (name,) = lack.traits

        def allowing(group: RequestGroup) -> RequestGroup:
            return replace(group, traits=_without_forbidden(group.traits, lack.traits))

        yield drop_condition(query, ("forbidden", suffix, name), f"allow {name}", allowing)


class RootTraits(_OnTraits, RootCondition):
    """The traits that the root of a tree must have or lack."""

    @classmethod
    def of(cls, forest: Forest, query: CandidateQuery) -> Self | None:
        """The condition of `root_required`; `None` if it asks nothing."""
        return cls.of_filter(forest, query.root_required)

    @classmethod
    def phrases(cls, query: CandidateQuery) -> Iterator[str]:
        """What `root_required` asks, each with a verb."""
        return _phrases(query.root_required, singular=True)

    @classmethod
    def query_pairs(cls, query: CandidateQuery) -> Iterator[tuple[str, str]]:
        """Keys and values that ask for it in a query string."""
        return _query_pairs("root_required", query.root_required)

    def trees(self, view: BlockView) -> BoolColumn:
        return self.filter.mask[view.block.trait_set_numbers[view.block.roots]]

    def excludes(self, view: BlockView) -> bool:
        return not self.filter.mask[view.block.outline.trait_set_numbers].any()

    def gaps(self, view: BlockView) -> FloatColumn:
        return self.gaps_of(view.block.trait_set_numbers[view.block.roots])

    def lacks(self, tree: TreeRef, block: Block) -> Iterator[Lack]:
        root = int(block.starts[tree.tree_number])
        uuid = block.root_uuid(tree.tree_number)
        for rule, names in self.failed(int(block.trait_set_numbers[root])):
            yield Lack(TreeStage.ROOT, rule, provider=uuid, traits=names, condition=self)

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        if lack.rule is LackRule.FORBIDDEN:
            verb, edit = "allow", _without_forbidden
        else:
            verb, edit = "do not require", edits.without_choice

        def relaxed(query: CandidateQuery) -> CandidateQuery:
            return replace(query, root_required=edit(query.root_required, lack.traits))

        text = f"{verb} {' or '.join(lack.traits)} of the root (root_required)"
        yield QueryChange(("root_required", *lack.traits), text, DROP_CONDITION, relaxed)


@dataclass(frozen=True, slots=True)
class TraitChoice:
    """Traits of which the providers of the unsuffixed group need one, between them."""

    names: tuple[str, ...]
    # By trait set, whether the set has one of them.
    met: BoolColumn = field(compare=False, repr=False)

    def lack(self, root_traits: frozenset[str]) -> Lack:
        """The lack of a tree in which no provider of the group has one of the traits."""
        return Lack(
            TreeStage.TOGETHER,
            LackRule.REQUIRED,
            group="",
            traits=self.names,
            condition=self,
            root_traits=root_traits.intersection(self.names),
        )

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        traits = listed(lack.traits, "or")
        return f"No provider of {tree} for the group without suffix has trait {traits}"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        return trait_changes(query, "", [lack.traits], lack.root_traits)


def trait_choices(forest: Forest, query: CandidateQuery) -> Iterator[TraitChoice]:
    """The trait choices of the unsuffixed group."""
    ids = forest.vocabulary.trait_ids
    for group in query.groups:
        for names in () if group.suffix else dict.fromkeys(edits.trait_choices_of(group.traits)):
            yield TraitChoice(names, forest.trait_sets.with_any(ids[name] for name in names))


def _of_one_provider(group: RequestGroup) -> TraitFilter:
    """What the group asks of each provider by itself.

    >>> _of_one_provider(RequestGroup("", traits=TraitFilter(("A",), forbidden=("B",)))).names
    ('B',)
    """
    if group.suffix:
        return group.traits
    return TraitFilter(forbidden=group.traits.forbidden) if group.traits.forbidden else NO_TRAITS


def _without_forbidden(traits: TraitFilter, names: tuple[str, ...]) -> TraitFilter:
    return replace(traits, forbidden=tuple(each for each in traits.forbidden if each not in names))


def _phrases(wanted: TraitFilter, *, singular: bool) -> Iterator[str]:
    have, lack = ("has", "lacks") if singular else ("have", "lack")
    if wanted.required:
        yield f"{have} {listed(wanted.required)}"
    for names in wanted.any_of:
        yield f"{have} {listed(names, 'or')}"
    if wanted.forbidden:
        yield f"{lack} {listed(wanted.forbidden)}"


def _query_pairs(key: str, wanted: TraitFilter) -> Iterator[tuple[str, str]]:
    plain = [*wanted.required, *(f"!{name}" for name in wanted.forbidden)]
    if plain:
        yield key, ",".join(plain)
    for names in wanted.any_of:
        yield key, f"in:{','.join(names)}"
