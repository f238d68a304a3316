"""Random requests for allocation candidates that a cloud can often satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from support.scenarios.bad_requests import spoilt
from support.scenarios.cloud import Cloud
from support.scenarios.oracle import SHARING, Group, Provider, Query, World
from support.scenarios.random_clouds import (
    AGGREGATES,
    AMOUNTS,
    CLASSES,
    TRAITS,
    Draw,
    T,
    choose,
    happens,
    shuffled,
    some,
)
from support.scenarios.requests import (
    ANY_SUFFIX,
    ANY_TRAITS,
    FORBIDDEN,
    IN_TREE,
    LIMIT,
    MEMBER_OF,
    NOT_MEMBER_OF,
    REQUIRED,
    ROOT_REQUIRED,
    SAME_SUBTREE,
    SEVERAL_MEMBER_OF,
    SUFFIXES,
    Request,
    group_parameters,
    query_parameters,
)
from support.worlds.notation import aggregate_uuid, provider_uuid

MINORS = (39,) * 14 + (38, 37, 36, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 22, 21)
OLD_MINORS = (20, 17, 16, 12, 11, 10)
MISSING_PROVIDER = provider_uuid("missing")
EMPTY_AGGREGATE = aggregate_uuid("Z")


@dataclass(frozen=True)
class Aim:
    """The providers under one anchor that the groups of a request aim at."""

    draw: Draw
    minor: int
    cloud: Cloud
    world: World
    root: str
    # The providers under the anchor, and those among them that the suffixed groups aim at.
    under: list[str]
    family: list[str]
    # The number of groups. The more groups, the less each of them asks for.
    size: int

    def provider(self, uuid: str) -> Provider:
        return self.world.providers[uuid]

    def pick(self, good: Sequence[T], all_: Sequence[T]) -> T:
        """Mostly an item of `good`, seldom any item of `all_`."""
        pool = all_ if not good or happens(self.draw, 7) else good
        return choose(self.draw, pool)

    def asks(self, percent: int) -> bool:
        """Whether a group has an additional condition."""
        return happens(self.draw, percent * 3 // (self.size + 2))

    def extra(self, pool: Sequence[T]) -> list[T]:
        """Seldom one item of the pool, mostly none."""
        return [choose(self.draw, pool)] if happens(self.draw, 8) else []

    def rich(self, pool: list[str]) -> list[str]:
        """The providers in the pool that have inventories; all providers if none has."""
        return [uuid for uuid in pool if self.provider(uuid).inventories] or pool

    def known(self, names: Sequence[str]) -> list[str]:
        """The names that exist in the cloud."""
        return [name for name in names if name in self.cloud.named or name[:6] != "CUSTOM"]


@st.composite
def requests(draw: Draw, cloud: Cloud, newest: bool = False) -> Request:
    """A request; seldom a bad one. At the `newest` version there are good ones only."""
    world = cloud.world()
    # Old versions are rare, so that most requests can use every parameter.
    minor = MINORS[0] if newest else choose(draw, OLD_MINORS if happens(draw, 8) else MINORS)
    root = choose(draw, world.roots())
    suffixes = draw_suffixes(draw, minor)
    aim = draw_aim(draw, minor, cloud, root, suffixes)
    groups = [draw_suffixed(aim, suffix) for suffix in suffixes]
    if aim.size > len(groups) or not any(group.resources for group in groups):
        groups.append(draw_unsuffixed(aim))
    required, forbidden = draw_root_traits(aim)
    query = Query(
        minor=minor,
        groups=tuple(groups),
        root_required=required,
        root_forbidden=forbidden,
        same_subtrees=draw_same_subtrees(aim, groups),
        policy=draw_policy(aim, len(suffixes)),
        limit=choose(draw, [1, 2, 3, 5, 1000]) if minor >= LIMIT and happens(draw, 12) else None,
    )
    parameters = [pair for group in groups for pair in group_parameters(draw, minor, group)]
    parameters += query_parameters(query)
    request = Request(query, tuple(shuffled(draw, parameters)))
    return spoilt(draw, request) if not newest and happens(draw, 4) else request


def draw_suffixes(draw: Draw, minor: int) -> list[str]:
    if minor < SUFFIXES:
        return []
    pool = ["_A", "01", "1"] if minor >= ANY_SUFFIX else ["1", "2", "42"]
    return pool[: choose(draw, [0, 1, 2, 2, 3])]


def draw_aim(draw: Draw, minor: int, cloud: Cloud, root: str, suffixes: list[str]) -> Aim:
    world = cloud.world()
    under = world.under(root)
    family = under
    if minor >= SAME_SUBTREE and happens(draw, 50):
        top = choose(draw, under)
        family = [uuid for uuid in under if top in world.lineage(uuid)]
    unsuffixed = not suffixes or happens(draw, 50)
    return Aim(draw, minor, cloud, world, root, under, family, len(suffixes) + unsuffixed)


def draw_suffixed(aim: Aim, suffix: str) -> Group:
    bare = aim.minor >= SAME_SUBTREE and happens(aim.draw, 20)
    target = choose(aim.draw, aim.family if bare else aim.rich(aim.family))
    provider = aim.provider(target)
    resources: dict[str, int] = {}
    if not bare:
        for _ in range(choose(aim.draw, [1, 1, 2])):
            resources |= [draw_resource(aim, target)]
    required, forbidden = draw_traits(
        aim, provider.traits, always=bare and not happens(aim.draw, 12)
    )
    member_of, not_member_of = draw_aggregates(aim, provider.aggregates, provider.aggregates)
    in_tree = draw_in_tree(aim, target, bare)
    if not (resources or required or forbidden or member_of or not_member_of or in_tree):
        # A group without any parameter does not exist.
        forbidden = frozenset([SHARING])
    return Group(suffix, resources, required, forbidden, member_of, not_member_of, in_tree)


def draw_unsuffixed(aim: Aim) -> Group:
    """A group for several providers. With many groups, it asks for few classes."""
    count = choose(aim.draw, [1, 1, 2] if aim.size > 2 else [1, 2, 3])
    targets = [choose(aim.draw, aim.rich(aim.under)) for _ in range(count)]
    resources = dict(draw_resource(aim, target) for target in targets)
    providers = [aim.provider(target) for target in targets]
    required, forbidden = draw_traits(
        aim, frozenset().union(*(provider.traits for provider in providers))
    )
    alike = frozenset(AGGREGATES).intersection(*(its.aggregates for its in providers))
    every = aim.provider(aim.root).aggregates.union(*(its.aggregates for its in providers))
    member_of, not_member_of = draw_aggregates(
        aim, alike | aim.provider(aim.root).aggregates, every
    )
    in_tree = draw_in_tree(aim, aim.root)
    return Group("", resources, required, forbidden, member_of, not_member_of, in_tree)


def draw_resource(aim: Aim, target: str) -> tuple[str, int]:
    provider = aim.provider(target)
    name = aim.pick(sorted(provider.inventories), aim.known(CLASSES))
    amounts = [amount for amount in AMOUNTS if provider.has_room(name, amount)]
    if name in provider.inventories and happens(aim.draw, 15):
        # All that is free, or one unit more.
        free = provider.inventories[name].capacity - provider.used.get(name, 0)
        return name, max(1, free + aim.pick([0], [1]))
    # Small amounts leave room for several groups.
    return name, aim.pick(amounts[:3], AMOUNTS)


def draw_traits(
    aim: Aim, present: frozenset[str], always: bool = False
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Required and forbidden traits that a provider with the present traits mostly suits."""
    if aim.minor < REQUIRED:
        return (), frozenset()
    known = [*aim.known(TRAITS), SHARING]
    required: list[frozenset[str]] = []
    forbidden: frozenset[str] = frozenset()
    count = choose(aim.draw, [1, 1, 2]) if always or (present and aim.asks(45)) else 0
    for _ in range(count):
        item = {aim.pick(sorted(present), known)}
        if aim.minor >= ANY_TRAITS and happens(aim.draw, 35):
            item.add(choose(aim.draw, known))
        required.append(frozenset(item))
    if aim.minor >= FORBIDDEN and aim.asks(25):
        others = [name for name in known if name not in present]
        forbidden = frozenset(some(aim.draw, others, 40) + aim.extra(known))
    # The API refuses a required item if all its traits are forbidden.
    return tuple(item for item in required if not item <= forbidden), forbidden


def draw_aggregates(
    aim: Aim, present: frozenset[str], every: frozenset[str]
) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Values of `member_of` that suit a provider in the present aggregates."""
    if aim.minor < MEMBER_OF:
        return (), frozenset()
    pool = [*AGGREGATES, EMPTY_AGGREGATE]
    member_of: list[frozenset[str]] = []
    not_member_of: frozenset[str] = frozenset()
    if aim.asks(40 if present else 5):
        several = aim.minor >= SEVERAL_MEMBER_OF and happens(aim.draw, 35)
        for _ in range(1 + several):
            item = {aim.pick(sorted(present), pool)}
            if happens(aim.draw, 40):
                item.add(choose(aim.draw, pool))
            member_of.append(frozenset(item))
    if aim.minor >= NOT_MEMBER_OF and aim.asks(20):
        others = [uuid for uuid in pool if uuid not in every]
        not_member_of = frozenset(some(aim.draw, others, 50) + aim.extra(pool))
    return tuple(member_of), not_member_of


def draw_in_tree(aim: Aim, target: str, bare: bool = False) -> str | None:
    if aim.minor < IN_TREE or not aim.asks(18):
        return None
    if bare:
        # For a group without resources, only the existence of the provider matters.
        return choose(aim.draw, [*aim.world.providers, MISSING_PROVIDER])
    tree = [uuid for uuid in aim.world.providers if aim.world.root(uuid) == aim.world.root(target)]
    return aim.pick(tree, [*aim.world.providers, MISSING_PROVIDER])


def draw_root_traits(aim: Aim) -> tuple[frozenset[str], frozenset[str]]:
    if aim.minor < ROOT_REQUIRED or not happens(aim.draw, 20):
        return frozenset(), frozenset()
    present = aim.provider(aim.root).traits
    known = [*aim.known(TRAITS), SHARING]
    required = frozenset(some(aim.draw, sorted(present), 50) + aim.extra(known))
    others = [name for name in known if name not in present]
    forbidden = frozenset(some(aim.draw, others, 40) + aim.extra(known))
    return required, forbidden - required


def draw_same_subtrees(aim: Aim, groups: list[Group]) -> tuple[frozenset[str], ...]:
    """Sets of suffixes, with every group without resources in one of them."""
    suffixes = [group.suffix for group in groups if group.suffix]
    found: list[frozenset[str]] = []
    if aim.minor < SAME_SUBTREE or not suffixes:
        return ()
    # Groups that aim at the whole tree seldom satisfy `same_subtree`.
    likely = [0, 1, 2, 2] if aim.family != aim.under else [0, 0, 0, 0, 1, 2]
    for _ in range(choose(aim.draw, likely)):
        if chosen := some(aim.draw, suffixes, 55):
            found.append(frozenset(chosen))
    for group in groups:
        if group.suffix and not group.resources and not any(group.suffix in its for its in found):
            partner = choose(aim.draw, suffixes)
            found.append(frozenset([group.suffix, partner]))
    return tuple(found)


def draw_policy(aim: Aim, suffixed: int) -> str | None:
    if aim.minor < SUFFIXES:
        return None
    obligatory = [] if suffixed > 1 else [None]
    return choose(aim.draw, [*obligatory, "none", "none", "isolate"])
