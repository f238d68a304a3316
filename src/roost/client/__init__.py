"""The other half of a placement service: how a host describes itself. Talks HTTP only."""

from roost.client.claims import Claims
from roost.client.declaration import Declaration, DeclaredProvider
from roost.client.errors import PlacementError, ReshapeNeeded
from roost.client.owning.owner import Owner
from roost.client.owning.records import FileRecords
from roost.client.provider_tree import ProviderData, ProviderSubTree, ProviderTree
from roost.client.reporting.reporter import Reporter
from roost.client.transport.connecting import connect

__all__ = [
    "Claims",
    "Declaration",
    "DeclaredProvider",
    "FileRecords",
    "Owner",
    "PlacementError",
    "ProviderData",
    "ProviderSubTree",
    "ProviderTree",
    "Reporter",
    "ReshapeNeeded",
    "connect",
]
