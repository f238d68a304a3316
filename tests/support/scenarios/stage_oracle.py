"""The oracle of explanations: what each stage leaves, counted tree by tree from the rules alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from support.scenarios.oracle import (
    Group,
    Query,
    World,
    candidates_under,
    in_aggregates,
    is_below,
    may_give,
    passes,
    traits_suit,
)

GROUP_STAGES = ("class", "unit", "room", "traits", "aggregates", "in_tree")


@dataclass(frozen=True)
class Counts:
    """What each stage leaves."""

    # For each suffix and alternative, the count of providers and of trees after each stage of a
    # group. The alternative is `None` if the group has none.
    groups: Mapping[tuple[str, int | None], list[tuple[int, int]]]
    # The count of trees after root, groups and together.
    trees: list[int]

    def empty_stage(self, suffixes: list[str]) -> tuple[str, str | None] | None:
        """The first stage without a tree, and its group; the groups are in this order."""
        for position, stage in enumerate(GROUP_STAGES):
            for suffix in suffixes:
                alternatives = [its for (name, _), its in self.groups.items() if name == suffix]
                if not any(counts[position][1] for counts in alternatives):
                    return stage, suffix
        for stage, count in zip(("root", "groups", "together"), self.trees, strict=True):
            if not count:
                return stage, None
        return None


def stage_counts(world: World, query: Query, only_root: str | None = None) -> Counts:
    """The counts of all trees, or of the tree of one root."""
    roots = world.roots() if only_root is None else [only_root]
    groups = {
        (group.suffix, alternative if group.alternatives else None): [
            counted([left_by_stage(world, its, root)[position] for root in roots])
            for position in range(len(GROUP_STAGES))
        ]
        for group in query.groups
        for alternative, its in enumerate(alternatives_of(group))
    }
    anchors = [root for root in roots if may_anchor(world, query, root)]
    served, together = set[str](), set[str]()
    for variant in variants_of(query):
        here = [
            root
            for root in anchors
            if all(all(left_by_stage(world, group, root)[-1]) for group in variant.groups)
        ]
        served.update(here)
        together.update(root for root in here if any(candidates_under(world, variant, root)))
    return Counts(groups, [len(anchors), len(served), len(together)])


def alternatives_of(group: Group) -> list[Group]:
    """The group with each of its alternatives."""
    return [
        replace(group, resources=resources, alternatives=())
        for resources in (group.resources, *group.alternatives)
    ]


def variants_of(query: Query) -> list[Query]:
    """The query with each combination of alternatives."""
    return [
        replace(query, groups=groups) for groups in product(*map(alternatives_of, query.groups))
    ]


def counted(left: list[list[set[str]]]) -> tuple[int, int]:
    """The providers that are left under any root, and the roots with one for each class."""
    providers = {uuid for by_class in left for its in by_class for uuid in its}
    return len(providers), sum(all(by_class) for by_class in left)


def may_anchor(world: World, query: Query, root: str) -> bool:
    """Whether root_required and in_tree of the unsuffixed group admit the root."""
    if not passes(world.providers[root], query):
        return False
    unsuffixed = query.unsuffixed
    places = [] if unsuffixed is None else [unsuffixed.in_tree, unsuffixed.in_subtree]
    return all(
        place in world.providers and world.root(place) == root
        for place in places
        if place is not None
    )


def left_by_stage(world: World, group: Group, root: str) -> list[list[set[str]]]:
    """For each stage, for each class of the unsuffixed group or once, the providers left."""
    parts = (
        [group.resources]
        if group.suffix
        else [{name: amount} for name, amount in group.resources.items()]
    )
    by_part = [left_of_part(world, group, part, root) for part in parts]
    return [[left[position] for left in by_part] for position in range(len(GROUP_STAGES))]


def left_of_part(
    world: World, group: Group, resources: Mapping[str, int], root: str
) -> list[set[str]]:
    checks: list[Callable[[str], bool]] = [
        partial(has_classes, world, group, resources),
        partial(allows, world, resources),
        partial(has_room, world, resources),
        partial(has_traits, world, group),
        partial(is_in_aggregates, world, group, root),
        partial(is_in_tree, world, group, root),
    ]
    left = set(world.under(root))
    found = []
    for check in checks:
        left = set(filter(check, left))
        found.append(left)
    return found


def has_classes(world: World, group: Group, resources: Mapping[str, int], uuid: str) -> bool:
    if not (resources or group.required or group.member_of or group.in_subtree):
        # A group that asks nothing has no provider.
        return False
    return resources.keys() <= world.providers[uuid].inventories.keys()


def allows(world: World, resources: Mapping[str, int], uuid: str) -> bool:
    inventories = world.providers[uuid].inventories
    return all(
        inventories[name].min_unit <= amount <= inventories[name].max_unit
        and amount % inventories[name].step_size == 0
        for name, amount in resources.items()
    )


def has_room(world: World, resources: Mapping[str, int], uuid: str) -> bool:
    provider = world.providers[uuid]
    return all(provider.bears(name, amount) for name, amount in resources.items())


def has_traits(world: World, group: Group, uuid: str) -> bool:
    traits = world.providers[uuid].traits
    return traits_suit(group, traits) if group.suffix else not group.forbidden & traits


def is_in_aggregates(world: World, group: Group, root: str, uuid: str) -> bool:
    provider = world.providers[uuid]
    if group.suffix:
        return in_aggregates(group, provider) and not group.not_member_of & provider.aggregates
    anywhere = Group(member_of=group.member_of, not_member_of=group.not_member_of)
    return may_give(world, anywhere, root, uuid)


def is_in_tree(world: World, group: Group, root: str, uuid: str) -> bool:
    if group.in_subtree is not None and not (
        is_below(world, group, uuid) and (group.suffix or world.root(uuid) == root)
    ):
        return False
    if group.in_tree is None:
        return True
    if group.in_tree not in world.providers:
        return False
    if group.suffix:
        return not group.resources or world.root(uuid) == world.root(group.in_tree)
    return world.root(uuid) == root == world.root(group.in_tree)
