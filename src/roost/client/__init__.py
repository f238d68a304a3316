"""The client of a placement service: reports hosts, and claims resources. Talks HTTP only."""

from roost.client.claims import CandidateAnswer, Claims
from roost.client.errors import PlacementError, ReshapeNeeded
from roost.client.ledger.changes import LedgerChange, LedgerPage
from roost.client.ledger.query import Needs
from roost.client.ledger.roost import Roost
from roost.client.ledger.values import Candidate, Claimed, ResourceProvider, ResourceTree
from roost.client.outcome import Outcome, outcome_of
from roost.client.ownership.declarative_reporter import DeclarativeReporter
from roost.client.ownership.store import FileOwnershipStore
from roost.client.provider_tree import ProviderData, ProviderSubTree, ProviderTree
from roost.client.reporting.reporter import Reporter
from roost.client.transport.connecting import connect
from roost.model.inventory import Inventory
from roost.model.trees.declaration import Declaration, DeclaredProvider, UnreadProviders

__all__ = [
    "Candidate",
    "CandidateAnswer",
    "Claimed",
    "Claims",
    "Declaration",
    "DeclarativeReporter",
    "DeclaredProvider",
    "FileOwnershipStore",
    "Inventory",
    "LedgerChange",
    "LedgerPage",
    "Needs",
    "Outcome",
    "PlacementError",
    "ProviderData",
    "ProviderSubTree",
    "ProviderTree",
    "Reporter",
    "ReshapeNeeded",
    "ResourceProvider",
    "ResourceTree",
    "Roost",
    "UnreadProviders",
    "connect",
    "outcome_of",
]
