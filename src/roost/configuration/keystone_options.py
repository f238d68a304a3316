"""The options of `[keystone_authtoken]`: keystonemiddleware's, and those of the way to log in.

The package is an extra. Without it there are no such options, and the strategy says what to
install. The import takes 0.4 seconds, so nothing imports it that does not need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oslo_config import cfg

GROUP = "keystone_authtoken"
_VARIABLES = f"OS_{GROUP.upper()}__"
# Without these, a Keystone that accepts connections and is silent would hold a look-up for ever.
_ANSWER_SECONDS = 5
# A connection that Keystone has closed meanwhile needs a second attempt.
_RETRIES = 1


def register_keystone_options(conf: Any) -> list[tuple[str, str]]:
    """Register the options that this configuration can set. Returns their groups and names.

    Waits get an end where the operator gives none.
    """
    try:
        # The extra `keystone` brings these packages, and may not be installed.
        from keystoneauth1 import loading  # noqa: PLC0415
        from keystonemiddleware import auth_token  # noqa: PLC0415
    except ModuleNotFoundError:
        return []
    for group, members in auth_token.list_opts():
        conf.register_opts(members, group=group)
    conf.set_default("http_connect_timeout", _ANSWER_SECONDS, group=GROUP)
    conf.set_default("http_request_max_retries", _RETRIES, group=GROUP)
    section = conf[GROUP].auth_section or GROUP
    if section != GROUP:
        conf.register_opts(loading.get_auth_common_conf_options(), group=section)
    conf.register_opts(_plugin_options(conf[section].auth_type or "password"), group=section)
    registered = registered_keystone_options(conf)
    return [(group, option.dest) for group, members in registered.items() for option in members]


def registered_keystone_options(conf: Any) -> dict[str, list[cfg.Opt]]:
    """The options that this configuration has, by group; none without Keystone."""
    if GROUP not in conf:
        return {}
    # The options are registered, so the packages of the extra `keystone` are installed.
    from keystoneauth1 import loading  # noqa: PLC0415
    from keystonemiddleware import auth_token  # noqa: PLC0415

    registered: dict[str, list[cfg.Opt]] = dict(auth_token.list_opts())
    section = conf[GROUP].auth_section or GROUP
    if section != GROUP:
        registered[section] = loading.get_auth_common_conf_options()
    of_plugin = _plugin_options(conf[section].auth_type or "password")
    registered[section] = [*registered[section], *of_plugin]
    return registered


def known_keystone_options(
    groups: Iterable[str], choices: Iterable[tuple[str, str]], environment: Mapping[str, str]
) -> dict[str, list[cfg.Opt]]:
    """The options by group, as far as files and variables configure Keystone.

    `choices` are the values of `auth_type` and `auth_section`, which decide what else there is.
    """
    of_variables = [
        (name.removeprefix(_VARIABLES).lower(), value)
        for name, value in environment.items()
        if name.startswith(_VARIABLES)
    ]
    if GROUP not in groups and not of_variables:
        return {}
    try:
        # The extra `keystone` brings these packages, and may not be installed.
        from keystoneauth1 import loading  # noqa: PLC0415
        from keystonemiddleware import auth_token  # noqa: PLC0415
    except ModuleNotFoundError:
        return {}
    made = [*choices, *of_variables]
    types = {value for name, value in made if name in ("auth_type", "auth_plugin")}
    known: dict[str, list[cfg.Opt]] = dict(auth_token.list_opts())
    of_plugins = [option for name in types or {"password"} for option in _plugin_options(name)]
    known[GROUP] = [*known[GROUP], *of_plugins]
    for section in {value for name, value in made if name == "auth_section"} - {GROUP}:
        known[section] = [*loading.get_auth_common_conf_options(), *of_plugins]
    return known


def _plugin_options(auth_type: str) -> list[cfg.Opt]:
    """The options of a way to log in; none if keystoneauth does not know it."""
    # The extra `keystone` brings this package, and may not be installed.
    from keystoneauth1 import exceptions, loading  # noqa: PLC0415

    try:
        found: list[cfg.Opt] = loading.get_auth_plugin_conf_options(auth_type)
    except exceptions.NoMatchingPlugin:
        return []
    return found
