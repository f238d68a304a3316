"""The client of a placement service: reports hosts, and claims resources. Talks HTTP only."""

from roost.client.claims import CandidateAnswer, Claims
from roost.client.declaration import Declaration, DeclaredProvider, UnreadProviders
from roost.client.errors import PlacementError, ReshapeNeeded
from roost.client.ownership.declarative_reporter import DeclarativeReporter
from roost.client.ownership.store import FileOwnershipStore
from roost.client.provider_tree import ProviderData, ProviderSubTree, ProviderTree
from roost.client.reporting.reporter import Reporter
from roost.client.transport.connecting import connect

__all__ = [
    "CandidateAnswer",
    "Claims",
    "Declaration",
    "DeclarativeReporter",
    "DeclaredProvider",
    "FileOwnershipStore",
    "PlacementError",
    "ProviderData",
    "ProviderSubTree",
    "ProviderTree",
    "Reporter",
    "ReshapeNeeded",
    "UnreadProviders",
    "connect",
]
