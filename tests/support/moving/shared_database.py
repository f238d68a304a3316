"""A database that Roost and the reference use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from roost.store.database import Database
from support.api_client import ApiClient
from support.servers.live_server import LiveServer

# Makes a client of a new application on a database.
MakeApi: TypeAlias = Callable[[Database], ApiClient]


@dataclass(frozen=True)
class SharedDatabase:
    """A database that Roost has adopted, and the reference that runs on it."""

    url: str
    reference: LiveServer
    roost: Database
