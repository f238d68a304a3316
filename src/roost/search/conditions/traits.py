"""Conditions on traits: `required` of a group, and `root_required`.

The unsuffixed group may have several providers. They need its required traits only together: these
are trait choices. Each provider must lack its forbidden traits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Self

import numpy as np

from roost.model import candidate_query_edits as edits
from roost.model.candidates import CandidateQuery, RequestGroup
from roost.model.providers import TraitFilter
from roost.model.query_change import DROP_CONDITION, QueryChange, place, trait_changes
from roost.model.text import listed
from roost.search.block import Block
from roost.search.columns import BoolColumn, FloatColumn, IndexColumn, IntColumn
from roost.search.conditions.condition import Condition, NearProvider, RootCondition, whole_gaps
from roost.search.forest import Forest, TreeRef
from roost.search.lack import Lack, LackRule, LackStage
from roost.search.set_table import SetTable
from roost.search.stages import GroupStage


def trait_phrases(wanted: TraitFilter, *, singular: bool) -> Iterator[str]:
    """What a filter asks, each with a verb."""
    have, lack = ("has", "lacks") if singular else ("have", "lack")
    if wanted.required:
        yield f"{have} {listed(wanted.required)}"
    for names in wanted.any_of:
        yield f"{have} {listed(names, 'or')}"
    if wanted.forbidden:
        yield f"{lack} {listed(wanted.forbidden)}"


def _plain(wanted: TraitFilter) -> str:
    """Required and forbidden traits as a value of a query string."""
    return ",".join((*wanted.required, *(f"!{name}" for name in wanted.forbidden)))


@dataclass(frozen=True)
class _TraitSets:
    """A filter of traits, in terms of the trait sets of a forest."""

    wanted: TraitFilter
    sets: SetTable[int] = field(compare=False, repr=False)
    ids: Mapping[str, int] = field(compare=False, repr=False)

    @classmethod
    def of_filter(cls, forest: Forest, wanted: TraitFilter) -> Self | None:
        """The filter; `None` if it asks nothing."""
        if not wanted.names:
            return None
        return cls(wanted, forest.trait_sets, forest.vocabulary.trait_ids)

    @property
    def choices(self) -> Iterable[tuple[str, ...]]:
        """Every required trait, and every set of which one suffices, each once."""
        return dict.fromkeys(edits.trait_choices_of(self.wanted))

    @cached_property
    def mask(self) -> BoolColumn:
        """By trait set, whether the set will do."""
        # One mask of a choice is held at a time.
        mask = np.ones(len(self.sets), np.bool_)
        for names in self.choices:
            mask &= self._with_any(names)
        return mask & ~self._with_any(self.wanted.forbidden)

    @cached_property
    def failed_by_set(self) -> IntColumn:
        """By trait set, how many traits are missing or forbidden."""
        failed = np.zeros(len(self.sets), np.int64)
        for names in self.choices:
            failed += ~self._with_any(names)
        for name in dict.fromkeys(self.wanted.forbidden):
            failed += self._with_any((name,))
        return failed

    def failed(self, set_number: int) -> Iterator[tuple[LackRule, tuple[str, ...]]]:
        """The traits that a set lacks, one of each tuple, and the forbidden ones that it has."""
        held = self.sets[set_number]
        for names in self.choices:
            if held.isdisjoint(self.ids[name] for name in names):
                yield LackRule.REQUIRED, names
        for name in dict.fromkeys(self.wanted.forbidden):
            if self.ids[name] in held:
                yield LackRule.FORBIDDEN, (name,)

    def may_be_in(self, block: Block) -> bool:
        """Whether a set of the block will do."""
        return bool(self.mask[block.outline.trait_set_numbers].any())

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """The trait that is missing or forbidden."""
        if lack.rule is LackRule.FORBIDDEN:
            return f"{provider} has the forbidden trait {lack.traits[0]}"
        return f"{provider} has no trait {listed(lack.traits, 'or')}"

    def _with_any(self, names: Iterable[str]) -> BoolColumn:
        return self.sets.with_any(self.ids[name] for name in names)


class Traits(_TraitSets, Condition):
    """The traits that the provider of a slot must have or lack."""

    stages = (GroupStage.TRAITS,)
    not_asked = "the query asks no traits of single providers"

    @classmethod
    def of(cls, forest: Forest, group: RequestGroup) -> Self | None:
        """The condition of `required`."""
        return cls.of_filter(forest, _of_one_provider(group))

    @classmethod
    def is_wish(cls, group: RequestGroup) -> bool:
        """Whether the group requires a trait."""
        return bool(group.traits.required or group.traits.any_of)

    @classmethod
    def phrases(cls, group: RequestGroup, stage: GroupStage, *, singular: bool) -> Iterator[str]:
        """The traits to have and to lack."""
        return trait_phrases(_of_one_provider(group), singular=singular)

    @classmethod
    def query_pairs(cls, group: RequestGroup) -> Iterator[tuple[str, str]]:
        """All values of `required`."""
        if plain := _plain(group.traits):
            yield "required", plain
        for names in group.traits.any_of:
            yield "required", f"in:{','.join(names)}"

    def passing(
        self, block: Block, block_number: int, indexes: IndexColumn, *, as_sharing: bool
    ) -> IndexColumn:
        """The providers whose trait set will do."""
        return indexes[self.mask[block.trait_set_numbers[indexes]]]

    def excluding_stage(self, block: Block, block_number: int) -> GroupStage | None:
        """The stage, if no set of the block will do."""
        return None if self.may_be_in(block) else GroupStage.TRAITS

    def gaps(self, block: Block, block_number: int, *, as_sharing: bool) -> FloatColumn:
        """A whole gap for each trait that is missing or forbidden."""
        return whole_gaps(self.failed_by_set[block.trait_set_numbers])

    def lacks(self, near: NearProvider) -> Iterator[Lack]:
        """A lack for each trait that is missing or forbidden."""
        for rule, names in self.failed(int(near.block.trait_set_numbers[near.ref.provider_index])):
            yield Lack(
                LackStage.TRAITS,
                rule,
                near.suffix,
                near.uuid,
                near.only_class,
                traits=names,
                condition=self,
                root_traits=near.root_traits.intersection(names),
            )

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        """Allow the trait, do not require it, or require it of the root."""
        suffix = lack.group or ""
        if lack.rule is LackRule.FORBIDDEN:
            (name,) = lack.traits
            yield QueryChange(
                ("forbidden", suffix, name),
                f"allow {name}{place(query, suffix)}",
                DROP_CONDITION,
                partial(edits.without_forbidden, suffix=suffix, name=name),
            )
        else:
            yield from trait_changes(query, suffix, [lack.traits], lack.root_traits)


class RootRequired(_TraitSets, RootCondition):
    """The traits that the root of a tree must have or lack."""

    @classmethod
    def of(cls, forest: Forest, query: CandidateQuery) -> Self | None:
        """The condition of `root_required`."""
        return cls.of_filter(forest, query.root_required)

    @classmethod
    def phrases(cls, query: CandidateQuery) -> Iterator[str]:
        """The traits to have and to lack."""
        return trait_phrases(query.root_required, singular=True)

    @classmethod
    def query_pairs(cls, query: CandidateQuery) -> Iterator[tuple[str, str]]:
        """The value of `root_required`."""
        if plain := _plain(query.root_required):
            yield "root_required", plain

    def trees(self, block: Block, block_number: int) -> BoolColumn:
        """The trees whose root has a trait set that will do."""
        return self.mask[block.trait_set_numbers[block.roots]]

    def excludes(self, block: Block, block_number: int) -> bool:
        """Whether no provider of the block has a set that will do."""
        return not self.may_be_in(block)

    def gaps(self, block: Block, block_number: int) -> FloatColumn:
        """A whole gap for each trait that is missing or forbidden."""
        return whole_gaps(self.failed_by_set[block.trait_set_numbers[block.roots]])

    def lacks(self, tree: TreeRef, block: Block) -> Iterator[Lack]:
        """A lack for each trait that is missing or forbidden."""
        root = int(block.starts[tree.tree_number])
        uuid = block.uuids[root].decode()
        for rule, names in self.failed(int(block.trait_set_numbers[root])):
            yield Lack(LackStage.ROOT, rule, provider=uuid, traits=names, condition=self)

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        """Neither require nor forbid the trait."""
        (name,) = lack.traits
        verb = "allow" if lack.rule is LackRule.FORBIDDEN else "do not require"
        yield QueryChange(
            ("root_required", name),
            f"{verb} {name} of the root (root_required)",
            DROP_CONDITION,
            partial(edits.without_root_trait, name=name),
        )


@dataclass(frozen=True, slots=True)
class TraitChoice:
    """Traits of which the providers of the unsuffixed group need one, between them."""

    names: tuple[str, ...]
    # By trait set, whether the set has one of them.
    met: BoolColumn = field(compare=False, repr=False)

    def lack(self, root_traits: frozenset[str]) -> Lack:
        """The lack of a tree in which no provider of the group has one of the traits."""
        return Lack(
            LackStage.TOGETHER,
            LackRule.REQUIRED,
            group="",
            traits=self.names,
            condition=self,
            root_traits=root_traits.intersection(self.names),
        )

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """The traits of which none is there."""
        traits = listed(lack.traits, "or")
        return f"No provider of {tree} for the group without suffix has trait {traits}"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        """Do not require the traits, or require one of them of the root."""
        return trait_changes(query, "", [lack.traits], lack.root_traits)


def trait_choices(forest: Forest, query: CandidateQuery) -> Iterator[TraitChoice]:
    """The trait choices of the unsuffixed group."""
    ids = forest.vocabulary.trait_ids
    for group in query.groups:
        if not group.suffix:
            for names in dict.fromkeys(edits.trait_choices_of(group.traits)):
                yield TraitChoice(names, forest.trait_sets.with_any(ids[name] for name in names))


def _of_one_provider(group: RequestGroup) -> TraitFilter:
    """What the group asks of each provider: the required ones of the unsuffixed group are choices.

    >>> _of_one_provider(RequestGroup("", traits=TraitFilter(("A",), forbidden=("B",)))).names
    ('B',)
    """
    return group.traits if group.suffix else TraitFilter(forbidden=group.traits.forbidden)
