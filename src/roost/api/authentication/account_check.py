"""The check of the service account: Keystone lets it log in, and look at tokens.

`roost check-config --connect` asks this. The module needs the packages of the extra `keystone`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from roost.api.authentication.keystone_checks import GROUP, check_keystone
from roost.api.authentication.refusals import IdentityUnavailable
from roost.api.authentication.token_validation import NO_CACHE, TokenValidation
from roost.configuration.settings import Settings
from roost.model.text import without_user_info

# Keystone's own policy lets these roles look at tokens of other users.
_ROLES = frozenset({"service", "admin"})


@dataclass(frozen=True, slots=True)
class AccountCheck:
    """What Keystone says about the service account."""

    account: str
    # Keystone's address, without a password; empty if the way to log in has none.
    address: str
    roles: tuple[str, ...]
    system_scope: str | None

    @property
    def may_look_at_tokens(self) -> bool:
        """Whether Keystone's usual policy lets the account look at tokens of other users.

        Every account may look at its own token, so an attempt would tell nothing.
        """
        return bool(_ROLES.intersection(self.roles)) or self.system_scope is not None


def check_account(settings: Settings) -> AccountCheck:
    """Log in as the service does, and look the token up. `IdentityUnavailable` says what fails."""
    conf = settings.oslo
    account = check_keystone(conf)
    section = conf[conf[GROUP].auth_section or GROUP]
    # No token is written into memcached: a check changes nothing.
    overrides = {"token_cache_time": -1, "delay_auth_decision": False, "cache": NO_CACHE}
    with _silence():
        known = TokenValidation(conf, overrides, account).validate_own()
    if known is None:
        raise IdentityUnavailable(
            f"Keystone does not know the token that it has given to the service account {account}. "
            "Check that all servers of Keystone have the same keys"
        )
    address = without_user_info(section.get("auth_url") or "")
    return AccountCheck(account, address, known.caller.roles, known.caller.system_scope)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep lines of libraries from a terminal: the error says the same, without a password."""
    silent = logging.NullHandler()
    logging.getLogger().addHandler(silent)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(silent)
