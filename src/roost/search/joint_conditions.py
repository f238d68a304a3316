"""Joint conditions: what the slots of a query must fulfil together, one by one.

If no tree has a solution, though every group has a provider there, one condition may be to blame:
the one that alone leaves no solution.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from copy import copy
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from roost.search.effort import Effort
from roost.search.forest import Forest, TreeRef
from roost.search.problem import Problem
from roost.search.rules import Rules
from roost.search.scan import scan_block
from roost.search.solving import solve

# With more conditions, or more different problems, the search for the one to blame takes too long.
_CONDITIONS_MAX = 16
_PROBLEMS_MAX = 1000


class JointKind(StrEnum):
    """What a joint condition is about."""

    ROOM = "room"
    ISOLATION = "isolation"
    SUBTREE = "subtree"
    TRAITS = "traits"
    ONE_PROVIDER = "one provider"


class JointCondition(NamedTuple):
    """One condition: the room of one class, one same_subtree, and so on."""

    kind: JointKind
    # The class of which there must be room, or the position of the same_subtree.
    which: int = 0


def joint_conditions(rules: Rules) -> list[JointCondition]:
    """All joint conditions of the rules."""
    plan = rules.plan
    found = [
        JointCondition(JointKind.ROOM, contested.class_id) for contested in rules.contested_classes
    ]
    if plan.isolated_sets:
        found.append(JointCondition(JointKind.ISOLATION))
    found += [JointCondition(JointKind.SUBTREE, which) for which in range(len(plan.same_subtrees))]
    if plan.trait_choices:
        found.append(JointCondition(JointKind.TRAITS))
    if rules.one_provider_per_tree:
        found.append(JointCondition(JointKind.ONE_PROVIDER))
    return found


def find_clash(
    forest: Forest,
    rules: Rules,
    problems: Collection[Problem],
    *,
    is_complete: bool,
    only_tree: TreeRef | None = None,
) -> JointCondition | None:
    """The first condition that alone leaves no solution of these problems; `None` if none does.

    `is_complete` is false if trait choices excluded trees before they posed a problem.
    """
    conditions = joint_conditions(rules)
    if len(conditions) == 1:
        return conditions[0]
    if len(conditions) > _CONDITIONS_MAX or len(problems) > _PROBLEMS_MAX:
        return None
    posed = problems
    if not is_complete:
        # Of an excluded tree only the trait choices are known to leave nothing.
        posed = posed_problems(forest, _without_traits(rules), only_tree)
    for condition in conditions:
        its = problems if condition.kind is JointKind.TRAITS else posed
        if not _any_solution(rules, its, condition):
            return condition
    return None


def posed_problems(
    forest: Forest, rules: Rules, only_tree: TreeRef | None = None
) -> dict[Problem, int]:
    """The problems that trees pose, with the count of their trees."""
    block_numbers = range(len(forest.blocks)) if only_tree is None else (only_tree.block_number,)
    found: dict[Problem, int] = {}
    for block_number in block_numbers:
        for alike in scan_block(forest, block_number, rules):
            if only_tree is None or only_tree.tree_number in alike.tree_numbers:
                found[alike.problem] = found.get(alike.problem, 0) + len(alike.tree_numbers)
    return found


def _any_solution(rules: Rules, problems: Collection[Problem], condition: JointCondition) -> bool:
    """Whether one of the problems has a solution under this condition alone, or may have one."""
    effort = Effort(pause=rules.effort.pause)
    relaxed = _only(rules, condition, effort)
    for problem in dict.fromkeys(_reduced(rules, problem, condition) for problem in problems):
        if any(step is not None for step in solve(relaxed, problem)):
            return True
    return effort.gave_up


def _only(rules: Rules, condition: JointCondition, effort: Effort) -> Rules:
    """The rules with one joint condition."""
    kind, which = condition
    plan = rules.plan
    found = copy(rules)
    found.effort = effort
    found.plan = replace(
        plan,
        isolated_sets=plan.isolated_sets if kind is JointKind.ISOLATION else (),
        same_subtrees=(plan.same_subtrees[which],) if kind is JointKind.SUBTREE else (),
    )
    found.contested_classes = tuple(
        contested
        for contested in rules.contested_classes
        if kind is JointKind.ROOM and contested.class_id == which
    )
    found.contested_requirement_indexes = tuple(
        (contested, requirement_index)
        for contested in found.contested_classes
        for requirement_index in contested.requirement_indexes
    )
    found.one_provider_per_tree = kind is JointKind.ONE_PROVIDER
    return found if kind is JointKind.TRAITS else _without_traits(found)


def _without_traits(rules: Rules) -> Rules:
    """The rules without trait choices."""
    found = copy(rules)
    found.plan = replace(rules.plan, trait_choices=())
    found.unsuffixed_requirement_indexes = ()
    found.trait_choice_words = []
    found.all_trait_choices = 0
    return found


def _reduced(rules: Rules, problem: Problem, condition: JointCondition) -> Problem:
    """The problem with what one joint condition needs to know."""
    kind, which = condition
    return Problem(
        problem.providers,
        tuple(_rooms(rules, problem, which)) if kind is JointKind.ROOM else (),
        problem.met_trait_choices if kind is JointKind.TRAITS else (),
        problem.parents if kind is JointKind.SUBTREE else (),
    )


def _rooms(rules: Rules, problem: Problem, class_id: int) -> Iterator[tuple[int, ...]]:
    for contested, _, rooms in rules.contested_rooms(problem):
        if contested.class_id == class_id:
            yield rooms
