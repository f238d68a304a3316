"""Authentication: from a request to its caller, by the strategy that the operator configured."""

from roost.api.authentication.refusals import IdentityUnavailable, Unauthorized
from roost.api.authentication.strategies import Strategy, check_strategy, make_strategy

__all__ = [
    "IdentityUnavailable",
    "Strategy",
    "Unauthorized",
    "check_strategy",
    "make_strategy",
]
