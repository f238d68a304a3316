"""The calls of the Placement API that the client makes."""

from roost.client.placement.answers import ProviderBody
from roost.client.placement.placement import Placement

__all__ = ["Placement", "ProviderBody"]
