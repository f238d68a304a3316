"""Claims: the allocations of consumers, as a scheduler writes them."""

from roost.client.claims.claiming import CandidateAnswer
from roost.client.claims.claims import Claims

__all__ = ["CandidateAnswer", "Claims"]
