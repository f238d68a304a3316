"""The scheduler's side: who has what, claimed, moved, grown and given back."""

from roost.client.claims.claims import Claims

__all__ = ["Claims"]
