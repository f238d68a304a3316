"""What must be right in `[keystone_authtoken]` at start, and what holds where it is silent.

`roost check-config --connect` checks the service account: Keystone lets it log in, and look at
tokens. The module needs the packages of the extra `keystone`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1 import loading

from roost.api.authentication.refusals import IdentityUnavailable
from roost.api.authentication.token_validation import NO_CACHE, TokenValidation
from roost.configuration.regular_files import check_regular
from roost.configuration.settings import ConfigurationError, Settings
from roost.model.text import without_user_info

GROUP = "keystone_authtoken"
_PASSWORD_TYPES = ("password", "v3password")

# Keystone's own policy lets these roles look at tokens of other users.
_LOOKING_ROLES = frozenset({"service", "admin"})


def check_keystone(conf: Any) -> str:
    """The name of the service account; `ConfigurationError` says what is missing."""
    group = conf[GROUP]
    section = group.auth_section or GROUP
    auth_type = conf[section].auth_type
    if not auth_type:
        raise ConfigurationError(
            f"[api]auth_strategy = keystone needs auth_type in [{section}]. Write auth_type = "
            "password there, with auth_url, username, password, user_domain_name, project_name "
            "and project_domain_name of the service's own account."
        )
    try:
        loader: Any = loading.get_plugin_loader(auth_type)
        loader.load_from_options_getter(lambda option: conf[section][option.dest])
    except keystone_errors.NoMatchingPlugin:
        raise ConfigurationError(
            f"[{section}]auth_type = {auth_type} is no way to authenticate that keystoneauth "
            "knows. Write password, or install the package that brings it."
        ) from None
    except keystone_errors.MissingRequiredOptions as error:
        names = ", ".join(option.dest for option in error.options)
        raise ConfigurationError(
            f"auth_type = {auth_type} needs {names} in [{section}]. Add what is missing."
        ) from None
    except keystone_errors.OptionError as error:
        raise ConfigurationError(f"[{section}] cannot be used: {error}") from None
    account = conf[section]
    if auth_type in _PASSWORD_TYPES:
        _check_account(account, section)
    _check_files(group)
    _check_cache(group)
    name = account.get("username") or account.get("user_id") or auth_type
    return str(name)


def cache_seconds(conf: Any) -> tuple[int, int]:
    """How long this process, and how long memcached keeps a valid token; together as configured.

    A revoked token must be refused after `token_cache_time`. An entry of memcached that is about to
    end can start a new entry in a process. So the two times add up to the configured one.
    """
    configured: int = conf[GROUP].token_cache_time
    if configured <= 0:
        return -1, -1
    if not conf[GROUP].memcached_servers:
        return configured, -1
    here = configured // 10
    return here, configured - here


def authenticate_uri(conf: Any) -> str:
    """Where a client without a valid token can get one."""
    group = conf[GROUP]
    section = conf[group.auth_section or GROUP]
    # Clients read this, and an `auth_url` may have a password.
    own = without_user_info(section.get("auth_url") or "", mark="")
    return str(group.www_authenticate_uri or own)


def _check_account(account: Any, section: str) -> None:
    missing = [] if account.username or account.user_id else ["username"]
    if not account.password:
        missing.append("password")
    if missing:
        raise ConfigurationError(
            f"[{section}] has no {' and no '.join(missing)}. Add the service's own account."
        )


def _check_files(group: Any) -> None:
    for name in ("cafile", "certfile", "keyfile"):
        path = group[name]
        if not path:
            continue
        try:
            check_regular(path)
        except OSError as error:
            raise ConfigurationError(
                f"The {name} of [{GROUP}], {path}, cannot be read: {error.strerror}. Correct the "
                "name, or let this user read the file."
            ) from None


def _check_cache(group: Any) -> None:
    if group.memcache_security_strategy.lower() != "none" and not group.memcache_secret_key:
        raise ConfigurationError(
            f"memcache_security_strategy in [{GROUP}] needs memcache_secret_key. Add a secret that "
            "all workers share."
        )
    if not group.memcached_servers:
        return
    needed = {
        "memcache": ("python-memcached", True),
        "bmemcached": (
            "python-binary-memcached",
            group.memcache_sasl_enabled or group.memcache_tls_enabled,
        ),
        "cryptography": ("cryptography", group.memcache_security_strategy.lower() == "encrypt"),
    }
    for module, (package, is_needed) in needed.items():
        if is_needed and find_spec(module) is None:
            raise ConfigurationError(
                f"The memcached options of [{GROUP}] need a package that is not installed. Install "
                f"it with: pip install {package}"
            )


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
        return bool(_LOOKING_ROLES.intersection(self.roles)) or self.system_scope is not None


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
