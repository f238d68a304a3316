"""Sentences about stages: what a stage left, and why a stage left nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from roost.model.candidates import CandidateQuery, RequestGroup
from roost.model.providers import AggregateFilter, TraitFilter
from roost.search.account import StageCount
from roost.search.joint_conditions import JointCondition
from roost.search.stages import RESOURCE_STAGES, GroupStage, RequestStage

# A sentence has this many names of one kind, and says how many more there are.
_NAMES_MAX = 6

# The reason if the effort did not suffice to know better.
GAVE_UP = (
    "Each group by itself has a provider, but the search gave up before it found a tree that "
    "meets all groups together."
)

_NOT_ASKED = {
    GroupStage.TRAITS: "the query asks no traits of single providers",
    GroupStage.AGGREGATES: "the query asks no aggregates",
    GroupStage.IN_TREE: "the query asks no in_tree",
}
_NO_RESOURCES = "the query asks no resources"


def row_sentence(group: RequestGroup, stage: GroupStage, count: StageCount) -> str:
    """What a stage left of a group.

    >>> group = RequestGroup("_a", {"PCPU": 4})
    >>> row_sentence(group, GroupStage.CLASS, StageCount(600, 300))
    'Group _a: 600 providers in 300 trees have inventory of PCPU.'
    """
    providers = _counted(count.providers, "provider")
    trees = _counted(count.trees, "tree")
    phrase = _phrase(group, stage, _is_one(count.providers))
    if phrase is None:
        remain = "remains" if _is_one(count.providers) else "remain"
        why = _NOT_ASKED.get(stage, _NO_RESOURCES)
        return _of_group(group, f"{providers} in {trees} {remain}: {why}")
    if not _takes_several(group):
        return _of_group(group, f"{providers} in {trees} {phrase}")
    have = "has" if _is_one(count.trees) else "have"
    return _of_group(group, f"{providers} {phrase}, and {trees} {have} one for each class")


def group_reason(
    group: RequestGroup,
    stage: GroupStage,
    resource_class: str | None,
    fact: str | None,
    *,
    of_one_tree: bool = False,
) -> str:
    """Why a stage left no tree for a group. The fact says how near the nearest provider is.

    >>> group_reason(RequestGroup("", {"VCPU": 1}), GroupStage.CLASS, None, None, of_one_tree=True)
    'No provider of this tree has inventory of VCPU.'
    """
    no_provider = "no provider of this tree" if of_one_tree else "no provider"
    phrase = _phrase(group, stage, singular=True, resource_class=resource_class)
    if phrase is None:
        text = (
            "no provider counts for it, because it asks neither for resources nor for a trait "
            "or an aggregate"
        )
    elif _takes_several(group) and resource_class is None:
        classes = _joined(list(group.resources))
        text = f"{_no_tree(of_one_tree)} has, for each of {classes}, a provider that {phrase}"
    elif stage in RESOURCE_STAGES:
        text = f"{no_provider} {phrase}"
    else:
        text = f"{no_provider} that passes the stages before {phrase}"
    return _of_group(group, text if fact is None else f"{text}; {fact}")


def tree_sentence(query: CandidateQuery, stage: RequestStage, tree_count: int) -> str:
    """What a stage of the request left."""
    trees = _counted(tree_count, "tree")
    is_one = _is_one(tree_count)
    have = "has" if is_one else "have"
    if stage is RequestStage.GROUPS:
        return _sentence(f"{trees} {have} a provider for each group by itself")
    if stage is RequestStage.TOGETHER:
        return _sentence(f"{trees} {have} a provider for all groups together")
    asked = _root_phrase(query)
    if asked is None:
        remain = "remains" if is_one else "remain"
        return _sentence(f"{trees} {remain}: the query asks nothing of the root")
    return _sentence(f"{trees} {have} a root that {asked}")


def root_reason(query: CandidateQuery, *, of_one_tree: bool = False) -> str:
    """Why no root may serve."""
    return _sentence(f"{_no_tree(of_one_tree)} has a root that {_root_phrase(query)}")


def groups_reason(query: CandidateQuery, *, of_one_tree: bool = False) -> str:
    """Why no tree has a provider for each group by itself."""
    asked = " and ".join(_root_parts(query))
    root = f" and a root that {asked}" if asked else ""
    suffixes = [group.suffix or "without suffix" for group in query.groups]
    return _sentence(
        f"{_no_tree(of_one_tree)} has a provider for each of the groups "
        f"{_joined(_few(suffixes))}{root}"
    )


def together_reason(clash: JointCondition, *, of_one_tree: bool = False) -> str:
    """Why no tree serves all groups together, by the joint condition that is to blame."""
    no_tree = _no_tree(of_one_tree)
    return _sentence(f"each group by itself has a provider, but {no_tree} {clash.phrase}")


def _no_tree(of_one_tree: bool) -> str:
    """The subject of a reason: its verb says what is asked of a tree."""
    return "this tree is not one that" if of_one_tree else "no tree"


def _root_phrase(query: CandidateQuery) -> str | None:
    parts = list(_root_parts(query))
    return " and ".join(parts) if parts else None


def _root_parts(query: CandidateQuery) -> Iterator[str]:
    yield from _trait_parts(query.root_required, singular=True)
    unsuffixed = next((group for group in query.groups if not group.suffix), None)
    if unsuffixed is not None and unsuffixed.in_tree is not None:
        yield f"is in the tree of {unsuffixed.in_tree}"
    if unsuffixed is not None and unsuffixed.in_subtree is not None:
        yield f"is the root of {unsuffixed.in_subtree}"


def _takes_several(group: RequestGroup) -> bool:
    """Whether several providers serve the group, one for each class."""
    return not group.suffix and len(group.resources) > 1


def _phrase(
    group: RequestGroup, stage: GroupStage, singular: bool, resource_class: str | None = None
) -> str | None:
    """What the stage asks, as a phrase with a verb; `None` if it asks nothing."""
    if stage in RESOURCE_STAGES:
        return _resource_phrase(group, stage, singular, resource_class)
    if stage is GroupStage.TRAITS:
        asked = group.traits if group.suffix else TraitFilter(forbidden=group.traits.forbidden)
        parts = list(_trait_parts(asked, singular=singular))
    elif stage is GroupStage.AGGREGATES:
        parts = list(_aggregate_parts(group.aggregates, singular=singular))
    else:
        are = "is" if singular else "are"
        parts = [f"{are} in the tree of {group.in_tree}"] if group.in_tree is not None else []
        if group.in_subtree is not None:
            parts.append(f"{are} {group.in_subtree} or below it")
    return " and ".join(parts) if parts else None


def _resource_phrase(
    group: RequestGroup, stage: GroupStage, singular: bool, resource_class: str | None
) -> str | None:
    if not group.resources:
        return None
    names = list(group.resources) if resource_class is None else [resource_class]
    word = "or" if _takes_several(group) else "and"
    have = "has" if singular else "have"
    if stage is GroupStage.CLASS:
        return f"{have} inventory of {_joined(_few(names), word)}"
    amounts = _joined(_few([f"{name}:{group.resources[name]}" for name in names]), word)
    if stage is GroupStage.ROOM:
        return f"{have} room for {amounts}"
    return f"{'allows' if singular else 'allow'} {amounts} by min_unit, max_unit and step_size"


def _trait_parts(traits: TraitFilter, *, singular: bool) -> Iterator[str]:
    have, lack = ("has", "lacks") if singular else ("have", "lack")
    if traits.required:
        yield f"{have} {_joined(_few(traits.required))}"
    for names in traits.any_of:
        yield f"{have} {_joined(_few(names), 'or')}"
    if traits.forbidden:
        yield f"{lack} {_joined(_few(traits.forbidden))}"


def _aggregate_parts(aggregates: AggregateFilter, *, singular: bool) -> Iterator[str]:
    are = "is" if singular else "are"
    for uuids in aggregates.any_of:
        yield f"{are} in aggregate {_joined(_few(uuids), 'or')}"
    if aggregates.forbidden:
        yield f"{are} outside aggregate {_joined(_few(aggregates.forbidden))}"


def _few(names: Sequence[str]) -> list[str]:
    more = len(names) - _NAMES_MAX
    return list(names) if more <= 1 else [*names[:_NAMES_MAX], f"{more} more"]


def _of_group(group: RequestGroup, text: str) -> str:
    return _sentence(f"group {group.suffix}: {text}" if group.suffix else text)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if _is_one(count) else f"{count} {noun}s"


def _is_one(count: int) -> bool:
    return count == 1


def _joined(words: Iterable[str], word: str = "and") -> str:
    *first, last = words
    return f"{', '.join(first)} {word} {last}" if first else last
