"""Why the groups of a query do not go together in a tree in which each has a provider.

The module leaves rules out, as few as possible, until the tree has a solution. These are the rules
that the tree breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from roost.model.candidates import CandidateQuery
from roost.search.effort import Effort
from roost.search.feasibility import can_flow
from roost.search.forest import Forest, TreeRef
from roost.search.lack import Lack, LackRule, LackStage
from roost.search.plan import make_plan
from roost.search.problem import LocalProvider, Problem
from roost.search.rules import ContestedClass, Rules
from roost.search.scan import problem_in
from roost.search.sharing import SharingProviders
from roost.search.solving import solve

_RULES = (LackRule.CAPACITY, LackRule.ISOLATE, LackRule.SAME_SUBTREE, LackRule.REQUIRED_TOGETHER)


def is_solvable(rules: Rules, problem: Problem) -> bool | None:
    """Whether a problem has a solution; `None` if the effort did not suffice to know it."""
    if any(step is not None for step in solve(rules, problem)):
        return True
    return None if rules.effort.exhausted else False


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Rules without some rules, and the problem of a tree by the rest."""

    rules: Rules
    problem: Problem

    @property
    def is_solvable(self) -> bool:
        """Whether the tree has a solution, as far as the effort suffices."""
        return bool(is_solvable(self.rules, self.problem))


@dataclass(frozen=True, slots=True)
class _Broken:
    """The rules that a tree breaks, and what of them is to blame."""

    rules: tuple[LackRule, ...] = ()
    classes: tuple[ContestedClass, ...] = ()
    subtrees: tuple[tuple[int, ...], ...] = ()


class Togetherness:
    """Tells what groups lack together in trees in which each group has a provider."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        # Without isolation more classes are contested, so that the problem tells more.
        self._wide_rules = _relaxed_rules(rules, [LackRule.ISOLATE])
        # What trees break, by the problem that they pose by the wide rules.
        self._known: dict[Problem, _Broken] = {}

    def lacks(self, forest: Forest, tree: TreeRef) -> tuple[Lack, ...]:
        """What the groups lack together in a tree.

        Empty if the tree has a solution, or if the effort does not suffice to know.
        """
        wide = problem_in(forest, tree, self._wide_rules)
        if wide is None:
            return ()
        problem = self._narrowed(wide)
        broken = self._known.get(wide)
        if broken is None:
            broken = self._known[wide] = _find_broken(forest, tree, self._rules, problem)
        return tuple(_lacks(forest, tree, self._rules, problem, broken))

    def _narrowed(self, wide: Problem) -> Problem:
        """The problem by the rules themselves, which has the rooms of fewer classes."""
        rooms = self._wide_rules.contested_rooms(wide)
        kept = (its for contested, _, its in rooms if contested in self._rules.contested_classes)
        return wide._replace(usable_rooms=tuple(kept))


def _find_broken(forest: Forest, tree: TreeRef, rules: Rules, problem: Problem) -> _Broken:
    """The rules that a tree breaks, as few as possible."""
    if is_solvable(rules, problem) is not False:
        return _Broken()
    for count in range(1, len(_RULES) + 1):
        for left_out in combinations(_RULES, count):
            relaxed = _relax(forest, tree, rules, left_out)
            if relaxed is not None and relaxed.is_solvable:
                return _Broken(
                    left_out,
                    _classes_to_blame(forest, tree, rules, left_out),
                    _subtrees_to_blame(forest, tree, rules, left_out),
                )
    return _Broken()


def _relaxed_rules(rules: Rules, left_out: Iterable[LackRule]) -> Rules:
    """The rules without some of them; a problem leaves capacity out."""
    plan = rules.plan
    if LackRule.ISOLATE in left_out:
        plan = replace(plan, isolated_sets=())
    if LackRule.SAME_SUBTREE in left_out:
        plan = replace(plan, same_subtrees=())
    if LackRule.REQUIRED_TOGETHER in left_out:
        plan = replace(plan, trait_choices=())
    return Rules(plan, rules.sharing_providers, rules.effort)


def _relax(
    forest: Forest,
    tree: TreeRef,
    rules: Rules,
    left_out: Iterable[LackRule],
    classes: Iterable[int] | None = None,
) -> Relaxed | None:
    """The problem without these rules; `classes` restricts what capacity leaves out."""
    relaxed = _relaxed_rules(rules, left_out)
    problem = problem_in(forest, tree, relaxed)
    if problem is None:
        return None
    if LackRule.CAPACITY in left_out:
        problem = problem._replace(
            usable_rooms=tuple(
                tuple(contested.total for _ in rooms)
                if classes is None or contested.class_id in classes
                else rooms
                for (contested, _), rooms in zip(
                    relaxed.contested_requirement_indexes, problem.usable_rooms, strict=True
                )
            )
        )
    return Relaxed(relaxed, problem)


def _lacks(
    forest: Forest, tree: TreeRef, rules: Rules, problem: Problem, broken: _Broken
) -> Iterator[Lack]:
    """A lack for each broken rule; for each class, if capacity is broken."""
    for rule in broken.rules:
        if rule is LackRule.CAPACITY:
            for contested in broken.classes:
                yield _capacity_lack(forest, tree, rules, problem, contested)
        elif rule is LackRule.ISOLATE:
            yield _isolation_lack(rules, problem)
        elif rule is LackRule.SAME_SUBTREE:
            for slots in broken.subtrees:
                yield Lack(LackStage.TOGETHER, rule, groups=_suffixes(rules, slots))
        else:
            traits = next(group for group in rules.plan.query.groups if not group.suffix).traits
            names = (*traits.required, *(name for names in traits.any_of for name in names))
            yield Lack(
                LackStage.TOGETHER,
                rule,
                group="",
                traits=tuple(dict.fromkeys(names)),
                root_traits=forest.root_traits(tree),
            )


def _classes_to_blame(
    forest: Forest, tree: TreeRef, rules: Rules, broken: tuple[LackRule, ...]
) -> tuple[ContestedClass, ...]:
    """The one contested class whose capacity suffices to leave out, or all of them."""
    if LackRule.CAPACITY not in broken:
        return ()
    contested_classes = _relaxed_rules(rules, broken).contested_classes
    for contested in contested_classes:
        relaxed = _relax(forest, tree, rules, broken, [contested.class_id])
        if relaxed is not None and relaxed.is_solvable:
            return (contested,)
    return contested_classes


def _capacity_lack(
    forest: Forest, tree: TreeRef, rules: Rules, problem: Problem, contested: ContestedClass
) -> Lack:
    providers = {
        provider
        for requirement_index in contested.requirement_indexes
        for provider in problem.providers[requirement_index]
    }
    name = forest.vocabulary.class_names[contested.class_id]
    slots = (rules.plan.slots[slot] for slot in contested.amount_by_slot)
    return Lack(
        LackStage.TOGETHER,
        LackRule.CAPACITY,
        provider=_uuid(forest, tree, rules, *providers) if len(providers) == 1 else None,
        resource_class=name,
        # The amounts of the rules are cut to what columns can hold.
        wanted=sum(slot.resources[name] for slot in slots),
        free=sum(_room(forest, tree, rules, each, contested.class_id) for each in providers),
        groups=_suffixes(rules, contested.amount_by_slot),
    )


def _isolation_lack(rules: Rules, problem: Problem) -> Lack:
    # The set that lacks the most providers.
    slots, free = max(
        ((each, _apart(rules, problem, each)) for each in rules.plan.isolated_sets),
        key=lambda found: len(found[0]) - found[1],
    )
    classes = {name for slot in slots for name in rules.plan.slots[slot].resources}
    return Lack(
        LackStage.TOGETHER,
        LackRule.ISOLATE,
        resource_class=next(iter(classes)) if len(classes) == 1 else None,
        wanted=len(slots),
        free=free,
        groups=_suffixes(rules, slots),
    )


def _apart(rules: Rules, problem: Problem, slots: tuple[int, ...]) -> int:
    """How many of the slots of an isolated set can have a provider of their own."""
    chosen: list[tuple[LocalProvider, ...]] = []
    for slot in slots:
        eligible = [*chosen, problem.providers[rules.requirement_index_by_slot[slot]]]
        one_each = {provider: 1 for providers in eligible for provider in providers}
        if can_flow([1] * len(eligible), eligible, one_each, rules.effort):
            chosen = eligible
    return len(chosen)


def _subtrees_to_blame(
    forest: Forest, tree: TreeRef, rules: Rules, broken: tuple[LackRule, ...]
) -> tuple[tuple[int, ...], ...]:
    """The one same_subtree that suffices to leave out, or all of them."""
    if LackRule.SAME_SUBTREE not in broken:
        return ()
    subtrees = rules.plan.same_subtrees
    others = tuple(rule for rule in broken if rule is not LackRule.SAME_SUBTREE)
    for position, slots in enumerate(subtrees):
        rest = subtrees[:position] + subtrees[position + 1 :]
        fewer = Rules(
            replace(rules.plan, same_subtrees=rest), rules.sharing_providers, rules.effort
        )
        relaxed = _relax(forest, tree, fewer, others)
        if relaxed is not None and relaxed.is_solvable:
            return (slots,)
    return subtrees


def _suffixes(rules: Rules, slots: Iterable[int]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rules.plan.slots[slot].suffix for slot in slots))


def _uuid(forest: Forest, tree: TreeRef, rules: Rules, provider: LocalProvider) -> str:
    if provider < 0:
        return rules.sharing_providers.providers[~provider].uuid.decode()
    block = forest.blocks[tree.block_number]
    return block.uuids[int(block.starts[tree.tree_number]) + provider].decode()


def _room(
    forest: Forest, tree: TreeRef, rules: Rules, provider: LocalProvider, class_id: int
) -> int:
    if provider < 0:
        return max(0, rules.sharing_providers.room(~provider, class_id))
    block = forest.blocks[tree.block_number]
    inventory = block.inventories[class_id]
    index = int(block.starts[tree.tree_number]) + provider
    return max(0, int(inventory.room[inventory.indexes.searchsorted(index)]))


def has_candidate_in(forest: Forest, tree: TreeRef, query: CandidateQuery, effort: Effort) -> bool:
    """Whether a tree has a candidate for a query, as far as the effort suffices to know."""
    plan = make_plan(forest, query)
    if plan is None:
        return False
    rules = Rules(plan, SharingProviders(forest, plan, effort.pause), effort)
    problem = problem_in(forest, tree, rules)
    return problem is not None and bool(is_solvable(rules, problem))
