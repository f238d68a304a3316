"""The stages of a search, in the order in which an account lists them."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias


class GroupStage(StrEnum):
    """A check that the providers of one request group pass."""

    CLASS = "class"
    """The provider has inventory of the class."""
    UNIT = "unit"
    """min_unit, max_unit and step_size allow the amount."""
    ROOM = "room"
    """The capacity less the used amount suffices."""
    TRAITS = "traits"
    AGGREGATES = "aggregates"
    IN_TREE = "in_tree"


class TreeStage(StrEnum):
    """A check that whole trees pass, after those of the groups."""

    ROOT = "root"
    """root_required, and in_tree of the unsuffixed group."""
    GROUPS = "groups"
    """Each group by itself has an eligible provider in the tree, or one that shares with it."""
    TOGETHER = "together"
    """The groups fit together: room, group_policy, same_subtree, traits of the unsuffixed group."""


GROUP_STAGES = tuple(GroupStage)
SearchStage: TypeAlias = GroupStage | TreeStage

STAGES: tuple[SearchStage, ...] = (*GroupStage, *TreeStage)
# The stages that ask for resources; the rest of the stages of a group have other conditions.
RESOURCE_STAGES = (GroupStage.CLASS, GroupStage.UNIT, GroupStage.ROOM)
