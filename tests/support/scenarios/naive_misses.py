"""How many checks each tree fails, counted one by one from the rules of the oracle."""

from __future__ import annotations

from collections.abc import Iterator

from support.scenarios.oracle import (
    Group,
    Provider,
    Query,
    World,
    candidates_under,
    is_below,
    passes,
)


def is_feasible(world: World, query: Query, root: str) -> bool:
    """Whether the tree has a candidate."""
    return passes(world.providers[root], query) and any(candidates_under(world, query, root))


def failed_checks(world: World, query: Query, root: str) -> int:
    """The checks that a tree fails, without those that several groups must pass together."""
    anchor = world.providers[root]
    choices = {frozenset([name]) for name in query.root_required} | set(query.root_any)
    count = sum(not choice & anchor.traits for choice in choices)
    count += len(query.root_forbidden & anchor.traits)
    unsuffixed = query.unsuffixed
    if unsuffixed is not None:
        count += len(unsuffixed.not_member_of & anchor.aggregates)
        places = (unsuffixed.in_tree, unsuffixed.in_subtree)
        count += sum(place is not None and world.root(place) != root for place in places)
    unmet = set(unsuffixed.required) if unsuffixed is not None else set()
    for group in query.groups:
        for resources in slots_of(group):
            options = list(_options(world, group, resources, root))
            fewest = min(failed for failed, _ in options)
            count += fewest
            if not group.suffix:
                nearest = [traits for failed, traits in options if failed == fewest]
                unmet -= {item for item in unmet if any(item & traits for traits in nearest)}
    return count + len(unmet)


def slots_of(group: Group) -> list[dict[str, int]]:
    """The resources of each provider that a group asks for."""
    if group.suffix:
        return [dict(group.resources)]
    return [{name: amount} for name, amount in group.resources.items()]


def _options(
    world: World, group: Group, resources: dict[str, int], root: str
) -> Iterator[tuple[int, frozenset[str]]]:
    """For each provider that may come near: how many checks it fails, and its traits."""
    for uuid, provider in world.providers.items():
        if world.root(uuid) == root:
            yield _own_failed(world, group, resources, uuid, root), provider.traits
        elif provider.sharing:
            failed = _failed(world, group, resources, uuid) + _excluded(group)
            if not group.suffix and group.in_subtree is not None and is_below(world, group, uuid):
                # The subtree is one of another tree.
                failed += 1
            if root in world.anchors(uuid):
                yield failed, provider.traits
            elif not failed:
                yield 1, provider.traits


def _own_failed(world: World, group: Group, resources: dict[str, int], uuid: str, root: str) -> int:
    if group.suffix:
        return _failed(world, group, resources, uuid)
    provider, anchor = world.providers[uuid], world.providers[root]
    failed = _failed(world, group, resources, uuid)
    # The aggregates of the root count for its providers, and forbidden ones count once.
    failed -= max(0, _outside(group, provider) - _outside(group, anchor))
    return failed - (len(group.not_member_of & provider.aggregates) if uuid == root else 0)


def _excluded(group: Group) -> int:
    """How many checks keep the unsuffixed group from the sharing providers of other trees."""
    return int(not group.suffix and group.in_tree is not None)


def _outside(group: Group, provider: Provider) -> int:
    return sum(not asked & provider.aggregates for asked in set(group.member_of))


def _failed(world: World, group: Group, resources: dict[str, int], uuid: str) -> int:
    provider = world.providers[uuid]
    failed = int(not is_below(world, group, uuid))
    failed += sum(_amount_failed(provider, name, amount) for name, amount in resources.items())
    failed += len(group.forbidden & provider.traits)
    failed += _outside(group, provider) + len(group.not_member_of & provider.aggregates)
    if group.suffix:
        failed += sum(not item & provider.traits for item in set(group.required))
        if resources and group.in_tree is not None:
            failed += world.root(uuid) != world.root(group.in_tree)
    return failed


def _amount_failed(provider: Provider, name: str, amount: int) -> int:
    inventory = provider.inventories.get(name)
    if inventory is None:
        return 3
    in_units = (
        inventory.min_unit <= amount <= inventory.max_unit and amount % inventory.step_size == 0
    )
    return (not in_units) + (provider.used.get(name, 0) + amount > inventory.capacity)
