"""Sentences about stages: what a stage left, and why a stage left nothing."""

from __future__ import annotations

from dataclasses import replace

from roost.model.candidate_query.query import CandidateQuery, RequestGroup
from roost.model.text import counted, listed
from roost.search.conditions import GROUP_CONDITIONS
from roost.search.conditions.amounts import takes_several
from roost.search.conditions.stages import RESOURCE_STAGES, GroupStage, TreeStage
from roost.search.conditions.traits import RootTraits
from roost.search.explain.account import StageCount
from roost.search.explain.joint_conditions import JointCondition

# The reason if the effort did not suffice to know better.
GAVE_UP = (
    "Each group by itself has a provider, but the search gave up before it found a tree that "
    "meets all groups together."
)


def row_sentence(group: RequestGroup, stage: GroupStage, count: StageCount) -> str:
    """What a stage left of a group.

    >>> group = RequestGroup("_a", {"PCPU": 4})
    >>> row_sentence(group, GroupStage.CLASS, StageCount(600, 300))
    'Group _a: 600 providers in 300 trees have inventory of PCPU.'
    """
    providers = counted(count.providers, "provider")
    trees = counted(count.trees, "tree")
    phrase = _phrase(group, stage, count.providers == 1)
    if phrase is None:
        remain = "remains" if count.providers == 1 else "remain"
        why = next(kind.not_asked for kind in GROUP_CONDITIONS if stage in kind.stages)
        return _of_group(group, f"{providers} in {trees} {remain}: {why}")
    if not takes_several(group):
        return _of_group(group, f"{providers} in {trees} {phrase}")
    have = "has" if count.trees == 1 else "have"
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
    elif takes_several(group) and resource_class is None:
        classes = listed(group.resources, at_most=len(group.resources))
        text = _no_tree(f"has, for each of {classes}, a provider that {phrase}", of_one_tree)
    elif stage in RESOURCE_STAGES:
        text = f"{no_provider} {phrase}"
    else:
        text = f"{no_provider} that passes the stages before {phrase}"
    return _of_group(group, text if fact is None else f"{text}; {fact}")


def tree_sentence(query: CandidateQuery, stage: TreeStage, tree_count: int) -> str:
    """What a stage of the request left."""
    trees = counted(tree_count, "tree")
    is_one = tree_count == 1
    have = "has" if is_one else "have"
    if stage is TreeStage.GROUPS:
        return _sentence(f"{trees} {have} a provider for each group by itself")
    if stage is TreeStage.TOGETHER:
        return _sentence(f"{trees} {have} a provider for all groups together")
    asked = _root_phrase(query)
    if not asked:
        remain = "remains" if is_one else "remain"
        return _sentence(f"{trees} {remain}: the query asks nothing of the root")
    return _sentence(f"{trees} {have} a root that {asked}")


def root_reason(query: CandidateQuery, *, of_one_tree: bool = False) -> str:
    """Why no root may serve."""
    return _sentence(_no_tree(f"has a root that {_root_phrase(query)}", of_one_tree))


def groups_reason(query: CandidateQuery, *, of_one_tree: bool = False) -> str:
    """Why no tree has a provider for each group by itself."""
    asked = _root_phrase(query)
    root = f" and a root that {asked}" if asked else ""
    suffixes = [group.suffix or "without suffix" for group in query.groups]
    asked_of_tree = f"has a provider for each of the groups {listed(suffixes)}{root}"
    return _sentence(_no_tree(asked_of_tree, of_one_tree))


def together_reason(conflict: JointCondition, *, of_one_tree: bool = False) -> str:
    """Why no tree serves all groups together, by the joint condition that is to blame."""
    no_tree = _no_tree(conflict.phrase, of_one_tree)
    return _sentence(f"each group by itself has a provider, but {no_tree}")


def _no_tree(does: str, of_one_tree: bool) -> str:
    """That no tree does what is asked, or that one tree does not.

    >>> _no_tree("has room", of_one_tree=True), _no_tree("has room", of_one_tree=False)
    ('this tree does not have room', 'no tree has room')
    """
    if not of_one_tree:
        return f"no tree {does}"
    verb, _, rest = does.partition(" ")
    # A comma may follow the verb.
    bare = verb.replace("has", "have") if verb.startswith("has") else verb.removesuffix("s")
    return f"this tree does not {bare} {rest}"


def _root_phrase(query: CandidateQuery) -> str:
    """What the query asks of a root; empty if it asks nothing."""
    phrases = [*RootTraits.phrases(query)]
    for group in query.groups:
        for kind in () if group.suffix else GROUP_CONDITIONS:
            phrases += kind.root_phrases(group)
    return " and ".join(phrases)


def _phrase(
    group: RequestGroup, stage: GroupStage, singular: bool, resource_class: str | None = None
) -> str | None:
    """What the stage asks, as a phrase with a verb; `None` if it asks nothing."""
    if resource_class is not None:
        group = replace(group, resources={resource_class: group.resources[resource_class]})
    parts = [
        part
        for kind in GROUP_CONDITIONS
        if stage in kind.stages
        for part in kind.phrases(group, stage, singular=singular)
    ]
    return " and ".join(parts) if parts else None


def _of_group(group: RequestGroup, text: str) -> str:
    return _sentence(f"group {group.suffix}: {text}" if group.suffix else text)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
