"""A host's tree of providers in memory: a drop-in for the class that Nova's drivers use."""

from roost.client.provider_tree.forest import LEVELS_MAX, ProviderData, providers_too_deep
from roost.client.provider_tree.tree import SHARING_TRAIT, ProviderSubTree, ProviderTree

__all__ = [
    "LEVELS_MAX",
    "SHARING_TRAIT",
    "ProviderData",
    "ProviderSubTree",
    "ProviderTree",
    "providers_too_deep",
]
