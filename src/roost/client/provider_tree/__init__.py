"""A host's tree of providers in memory, a drop-in for the class that Nova's drivers know."""

from roost.client.provider_tree.node import ProviderData
from roost.client.provider_tree.tree import SHARING_TRAIT, ProviderSubTree, ProviderTree

__all__ = ["SHARING_TRAIT", "ProviderData", "ProviderSubTree", "ProviderTree"]
