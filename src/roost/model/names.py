"""Named things of the vocabulary: resource classes and traits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Name:
    """A resource class or a trait."""

    id: int
    name: str
    modified_at: datetime
