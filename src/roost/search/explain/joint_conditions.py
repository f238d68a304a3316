"""Joint conditions: what the groups of a query must fulfil together, in one tree.

A tree may have a provider for each group by itself, and no solution. Then a conflict is to blame:
one condition that alone leaves no solution, or a few that leave none at once. The dominant reason
is the first conflict of all trees together, and a miss lacks every conflict of its tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from roost.model.candidate_query import edits
from roost.model.candidate_query.change import (
    DROP_RULE,
    QueryChange,
    change_amount,
    trait_changes,
    unlike,
)
from roost.model.candidate_query.query import CandidateQuery
from roost.model.text import listed
from roost.search.candidates.effort import Effort
from roost.search.candidates.rules import ContestedClass, Rules
from roost.search.candidates.scan import alike_trees, eligible_trees, problem_in
from roost.search.candidates.solving.flow import can_flow
from roost.search.candidates.solving.problem import LocalProvider, Problem
from roost.search.candidates.solving.solver import solve
from roost.search.conditions.lack import Lack, LackRule
from roost.search.conditions.stages import TreeStage
from roost.search.forest.forest import Forest, TreeRef

# With more conditions, or more different problems, the search for a conflict takes too long.
_CONDITIONS_MAX = 16
_PROBLEMS_MAX = 1000
# The work in vain on the dominant reason: a tenth of a search's.
_UNITS_MAX = 300_000


@dataclass(frozen=True, slots=True)
class ProblemOfTree:
    """The problem that one tree of a forest poses."""

    forest: Forest
    tree: TreeRef
    rules: Rules
    problem: Problem

    def uuid(self, provider: LocalProvider) -> str:
        """The uuid of a provider of the problem."""
        if provider < 0:
            return self.rules.sharing_providers.providers[~provider].uuid.decode()
        block = self.forest.blocks[self.tree.block_number]
        return block.uuids[self._index(provider)].decode()

    def room(self, provider: LocalProvider, class_id: int) -> int:
        """The room that a provider of the problem has, even if no slot can use all of it."""
        if provider < 0:
            return max(0, self.rules.sharing_providers.room(~provider, class_id))
        inventory = self.forest.blocks[self.tree.block_number].inventories[class_id]
        return max(0, int(inventory.room[inventory.row_of(self._index(provider))]))

    def _index(self, offset: int) -> int:
        return (
            int(self.forest.blocks[self.tree.block_number].starts[self.tree.tree_number]) + offset
        )


class JointCondition(ABC):
    """One condition that several groups fulfil together, at the stage `together`."""

    rule: LackRule
    # The groups that it is about.
    suffixes: tuple[str, ...]

    @property
    def members(self) -> tuple[JointCondition, ...]:
        """The conditions that it consists of."""
        return (self,)

    @property
    def resource_class(self) -> str | None:
        """The class of which there must be room, if the condition is about one."""
        return None

    @property
    @abstractmethod
    def name(self) -> str:
        """What a query calls it."""

    @property
    @abstractmethod
    def phrase(self) -> str:
        """What a tree does that meets it: a verb and its object."""

    @abstractmethod
    def add_to(self, rules: Rules) -> None:
        """Let rules without joint conditions ask for it."""

    def lack(self, posed: ProblemOfTree) -> Lack:
        """What a tree lacks that does not meet it."""
        return Lack(TreeStage.TOGETHER, self.rule, groups=self.suffixes, condition=self)

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        """The lack in words; `tree` and `provider` are names."""
        return f"{tree} does not have {self.name}"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        """The changes of a query that relax it."""
        return iter(())


@dataclass(frozen=True)
class _RoomTogether(JointCondition):
    """Several groups may take a class from one provider, which has room for all of them."""

    contested: ContestedClass
    class_name: str
    suffixes: tuple[str, ...]
    rule = LackRule.CAPACITY

    @property
    def resource_class(self) -> str:
        return self.class_name

    @property
    def name(self) -> str:
        return f"room for the {self.class_name} of all groups"

    @property
    def phrase(self) -> str:
        return f"has {self.name} together"

    def add_to(self, rules: Rules) -> None:
        contested = self.contested
        rules.contested_classes += (contested,)
        rules.contested_requirement_indexes += tuple(
            (contested, requirement_index) for requirement_index in contested.requirement_indexes
        )

    def lack(self, posed: ProblemOfTree) -> Lack:
        slots, name = posed.rules.plan.slots, self.class_name
        providers = {
            provider
            for requirement_index in self.contested.requirement_indexes
            for provider in posed.problem.providers[requirement_index]
        }
        return Lack(
            TreeStage.TOGETHER,
            self.rule,
            provider=posed.uuid(*providers) if len(providers) == 1 else None,
            resource_class=name,
            # The amounts of the rules are cut to what columns can hold.
            wanted=sum(slots[slot].resources[name] for slot in self.contested.amount_by_slot),
            free=sum(posed.room(provider, self.contested.class_id) for provider in providers),
            groups=self.suffixes,
            condition=self,
        )

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        where = "The providers that fit them have" if provider is None else f"{provider} has"
        short = lack.free is not None and lack.wanted is not None and lack.free < lack.wanted
        parts = "" if short else " in parts that do not suffice"
        return (
            f"{where} {lack.free} {lack.resource_class} free{parts}, "
            f"groups {_groups(lack.groups)} want {lack.wanted} together"
        )

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        if lack.wanted is None or lack.free is None or lack.free >= lack.wanted:
            return
        name = self.class_name
        # The last group gives way first.
        for suffix in unlike(query, lack.groups[::-1]):
            left = edits.group_of(query, suffix).resources[name] - (lack.wanted - lack.free)
            if left > 0:
                yield change_amount(query, suffix, name, left)


@dataclass(frozen=True)
class _GroupsApart(JointCondition):
    """No two groups of a set have the same provider."""

    slots: tuple[int, ...]
    suffixes: tuple[str, ...]
    # Whether the set has all suffixed groups, by group_policy.
    by_policy: bool
    rule = LackRule.ISOLATE

    @property
    def name(self) -> str:
        return "group_policy=isolate" if self.by_policy else f"isolate={_listing(self.suffixes)}"

    @property
    def phrase(self) -> str:
        groups = "suffixed group" if self.by_policy else f"of the groups {_groups(self.suffixes)}"
        return f"has another provider for each {groups} ({self.name})"

    def add_to(self, rules: Rules) -> None:
        rules.plan = replace(rules.plan, isolated_sets=(*rules.plan.isolated_sets, self.slots))

    def lack(self, posed: ProblemOfTree) -> Lack:
        slots = posed.rules.plan.slots
        classes = {name for slot in self.slots for name in slots[slot].resources}
        return Lack(
            TreeStage.TOGETHER,
            self.rule,
            resource_class=next(iter(classes)) if len(classes) == 1 else None,
            wanted=len(self.slots),
            free=self._apart(posed),
            groups=self.suffixes,
            condition=self,
        )

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        return (
            f"Only {lack.free} of the {lack.wanted} groups {_groups(lack.groups)} can have a "
            f"provider of their own in {tree} ({self.name})"
        )

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        if self.by_policy:
            text, edit = "let groups share a provider (group_policy=none)", edits.without_policy
        else:
            text = f"leave {self.name} out"
            edit = partial(edits.without_isolated_set, suffixes=frozenset(self.suffixes))
        yield QueryChange(("isolate", *self.suffixes), text, DROP_RULE, edit)

    def _apart(self, posed: ProblemOfTree) -> int:
        """How many of the slots can have a provider of their own."""
        rules, chosen = posed.rules, list[tuple[LocalProvider, ...]]()
        for slot in self.slots:
            eligible = [*chosen, posed.problem.providers[rules.requirement_index_by_slot[slot]]]
            one_each = {provider: 1 for providers in eligible for provider in providers}
            if can_flow([1] * len(eligible), eligible, one_each, rules.effort):
                chosen = eligible
        return len(chosen)


@dataclass(frozen=True)
class _OneSubtree(JointCondition):
    """Of the providers of a set of groups, one is above all the rest."""

    slots: tuple[int, ...]
    suffixes: tuple[str, ...]
    rule = LackRule.SAME_SUBTREE

    @property
    def name(self) -> str:
        return f"same_subtree={_listing(self.suffixes)}"

    @property
    def phrase(self) -> str:
        return f"has their providers in one subtree ({self.name})"

    def add_to(self, rules: Rules) -> None:
        rules.plan = replace(rules.plan, same_subtrees=(*rules.plan.same_subtrees, self.slots))

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        return (
            f"No provider of {tree} that fits one of the groups {_groups(lack.groups)} is above "
            "those that fit the rest (same_subtree)"
        )

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        yield QueryChange(
            ("same_subtree", _listing(self.suffixes)),
            f"leave {self.name} out",
            DROP_RULE,
            partial(edits.without_same_subtree, suffixes=frozenset(self.suffixes)),
        )


@dataclass(frozen=True)
class _TraitsTogether(JointCondition):
    """The providers of the unsuffixed group have its required traits between them."""

    choices: tuple[tuple[str, ...], ...]
    rules: Rules
    rule = LackRule.REQUIRED_TOGETHER
    suffixes = ("",)
    name = "required"

    @property
    def phrase(self) -> str:
        single = [names[0] for names in self.choices if len(names) == 1]
        several = [names for names in self.choices if len(names) > 1]
        parts = [f"have {listed(single, 'and')}"] if single else []
        parts += [f"have {listed(names, 'or')}" for names in several]
        return f"has providers for the group without suffix that together {' and '.join(parts)}"

    def add_to(self, rules: Rules) -> None:
        whole = self.rules
        rules.plan = replace(rules.plan, trait_choices=whole.plan.trait_choices)
        rules.unsuffixed_requirement_indexes = whole.unsuffixed_requirement_indexes
        rules.trait_choice_words = whole.trait_choice_words
        rules.all_trait_choices = whole.all_trait_choices

    def lack(self, posed: ProblemOfTree) -> Lack:
        names = tuple(dict.fromkeys(chain.from_iterable(self.choices)))
        return Lack(
            TreeStage.TOGETHER,
            self.rule,
            group="",
            traits=names,
            root_traits=posed.forest.root_traits(posed.tree).intersection(names),
            condition=self,
        )

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        traits = listed(lack.traits, "and")
        return f"The providers of {tree} for the group without suffix do not have {traits} together"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        return trait_changes(query, "", self.choices, lack.root_traits)


@dataclass(frozen=True)
class _OneProvider(JointCondition):
    """Before 1.29, one provider of a tree serves all groups."""

    rule = LackRule.ONE_PROVIDER
    suffixes = ()

    name = "one provider of a tree, as versions before 1.29 ask"
    phrase = "lets one provider of a tree serve all groups, as versions before 1.29 ask"

    def add_to(self, rules: Rules) -> None:
        rules.one_provider_per_tree = True


@dataclass(frozen=True)
class _AtOnce(JointCondition):
    """Several conditions at once. None of them alone is known to leave no solution."""

    conditions: tuple[JointCondition, ...]
    rule = LackRule.AT_ONCE

    @property
    def members(self) -> tuple[JointCondition, ...]:
        return self.conditions

    @property
    def name(self) -> str:
        return listed([condition.name for condition in self.conditions], "and")

    @property
    def phrase(self) -> str:
        return f"meets all of these at once: {self.name}"

    def add_to(self, rules: Rules) -> None:
        for condition in self.conditions:
            condition.add_to(rules)

    @property
    def suffixes(self) -> tuple[str, ...]:  # type: ignore[override]  # made of those of its members
        named = chain.from_iterable(condition.suffixes for condition in self.conditions)
        return tuple(dict.fromkeys(named))

    def lack(self, posed: ProblemOfTree) -> Lack:
        parts = tuple(condition.lack(posed) for condition in self.conditions)
        return replace(super().lack(posed), parts=parts)

    def lack_text(self, lack: Lack, tree: str, provider: str | None) -> str:
        return f"{tree} does not meet all of these at once: {self.name}"

    def changes(self, query: CandidateQuery, lack: Lack) -> Iterator[QueryChange]:
        for condition, part in zip(self.conditions, lack.parts, strict=True):
            yield from condition.changes(query, part)


def joint_conditions(rules: Rules, class_names: Mapping[int, str]) -> list[JointCondition]:
    """All joint conditions of the rules."""
    plan = rules.plan

    def suffixes(slots: Iterable[int]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(plan.slots[slot].suffix for slot in slots))

    found: list[JointCondition] = [
        _RoomTogether(
            contested, class_names[contested.class_id], suffixes(contested.amount_by_slot)
        )
        for contested in rules.contested_classes
    ]
    by_policy = plan.query.isolate
    found += [_GroupsApart(slots, suffixes(slots), by_policy) for slots in plan.isolated_sets]
    found += [_OneSubtree(slots, suffixes(slots)) for slots in plan.same_subtrees]
    if plan.trait_choices:
        traits = edits.group_of(plan.query, "").traits
        choices = tuple(dict.fromkeys(edits.trait_choices_of(traits)))
        found.append(_TraitsTogether(choices, rules))
    if rules.one_provider_per_tree:
        found.append(_OneProvider())
    return found


def find_conflict(
    forest: Forest,
    rules: Rules,
    problems: Collection[Problem],
    *,
    is_complete: bool,
    only_tree: TreeRef | None = None,
) -> JointCondition:
    """What is to blame, if none of these problems has a solution.

    `is_complete` is false if trait choices excluded trees before they posed a problem.
    """
    conditions = joint_conditions(rules, forest.vocabulary.class_names)
    if len(conditions) > 1 and not is_complete:
        problems = _all_problems(forest, rules, only_tree)
    if len(problems) > _PROBLEMS_MAX:
        return _at_once(conditions)
    effort = Effort(units=_UNITS_MAX, pause=rules.effort.pause)
    return _conflict(rules, conditions, problems, effort)


class TreeConflicts:
    """The conflicts of single trees in which each group has a provider."""

    def __init__(self, forest: Forest, rules: Rules) -> None:
        self._forest = forest
        self._rules = rules
        self._conditions = joint_conditions(rules, forest.vocabulary.class_names)
        # The conflicts of trees, by the problem that they pose.
        self._known: dict[Problem, list[JointCondition]] = {}

    def lacks(self, tree: TreeRef) -> list[Lack]:
        """What the groups lack together in a tree.

        Empty if the tree has a solution, or if the effort does not suffice to know.
        """
        problem = problem_in(self._forest, tree, self._rules)
        if problem is None:
            return []
        if problem not in self._known:
            self._known[problem] = list(self._conflicts(problem))
        posed = ProblemOfTree(self._forest, tree, self._rules, problem)
        return [condition.lack(posed) for condition in self._known[problem]]

    def _conflicts(self, problem: Problem) -> Iterator[JointCondition]:
        """The conflicts, none of which has a condition of another one."""
        rules, left = self._rules, self._conditions
        while left and not _any_solution(rules, left, (problem,), rules.effort):
            found = _conflict(rules, left, (problem,), rules.effort)
            yield found
            left = [condition for condition in left if condition not in found.members]


def _conflict(
    rules: Rules,
    conditions: Sequence[JointCondition],
    problems: Collection[Problem],
    effort: Effort,
) -> JointCondition:
    """Of conditions that leave no solution: the first that alone leaves none, or the fewest."""
    if 1 < len(conditions) <= _CONDITIONS_MAX:
        for condition in conditions:
            if not _any_solution(rules, (condition,), problems, effort):
                return condition
        for condition in conditions:
            fewer = [each for each in conditions if each is not condition]
            if not _any_solution(rules, fewer, problems, effort):
                conditions = fewer
    return _at_once(conditions)


def _at_once(conditions: Sequence[JointCondition]) -> JointCondition:
    return conditions[0] if len(conditions) == 1 else _AtOnce(tuple(conditions))


def _any_solution(
    rules: Rules,
    conditions: Iterable[JointCondition],
    problems: Collection[Problem],
    effort: Effort,
) -> bool:
    """Whether one of the problems has a solution under these conditions only, or may have one."""
    relaxed = without_conditions(rules)
    relaxed.effort = effort
    for condition in conditions:
        condition.add_to(relaxed)
    for problem in dict.fromkeys(_reduced(rules, problem, relaxed) for problem in problems):
        if any(step is not None for step in solve(relaxed, problem)):
            return True
    return effort.gave_up


def without_conditions(rules: Rules) -> Rules:
    """The rules without joint conditions."""
    found = copy(rules)
    found.plan = replace(rules.plan, isolated_sets=(), same_subtrees=(), trait_choices=())
    found.contested_classes = ()
    found.contested_requirement_indexes = ()
    found.unsuffixed_requirement_indexes = ()
    found.trait_choice_words = []
    found.all_trait_choices = 0
    found.one_provider_per_tree = False
    return found


def _reduced(rules: Rules, problem: Problem, relaxed: Rules) -> Problem:
    """The problem with what relaxed rules need to know."""
    kept = relaxed.contested_classes
    return Problem(
        problem.providers,
        tuple(rooms for contested, _, rooms in rules.contested_rooms(problem) if contested in kept),
        problem.met_trait_choices if relaxed.plan.trait_choices else (),
        problem.parents if relaxed.plan.same_subtrees else (),
    )


def _all_problems(forest: Forest, rules: Rules, only_tree: TreeRef | None) -> dict[Problem, None]:
    """The problems of all trees with a provider for each group, whatever traits they have."""
    block_numbers = range(len(forest.blocks)) if only_tree is None else (only_tree.block_number,)
    without = without_conditions(rules)
    found: dict[Problem, None] = {}
    for block_number in block_numbers:
        eligible = eligible_trees(forest, block_number, without)
        if eligible is None:
            continue
        for alike in alike_trees(forest.blocks[block_number], block_number, rules, eligible):
            if only_tree is None or only_tree.tree_number in alike.tree_numbers:
                found[alike.problem] = None
    return found


def _groups(suffixes: Iterable[str]) -> str:
    return listed([suffix or "without suffix" for suffix in suffixes], "and")


def _listing(suffixes: Iterable[str]) -> str:
    """The suffixes as a query has them."""
    return ",".join(sorted(suffixes))
