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


def register_keystone_options(conf: Any) -> list[tuple[str, str]]:
    """Register the options that this configuration can set. Returns their groups and names."""
    try:
        from keystoneauth1 import exceptions, loading  # noqa: PLC0415
        from keystonemiddleware import auth_token  # noqa: PLC0415
    except ModuleNotFoundError:
        return []
    registered: dict[str, list[cfg.Opt]] = dict(auth_token.list_opts())
    for group, members in registered.items():
        conf.register_opts(members, group=group)
    section = conf[GROUP].auth_section or GROUP
    if section != GROUP:
        registered[section] = loading.get_auth_common_conf_options()
        conf.register_opts(registered[section], group=section)
    try:
        of_plugin = loading.get_auth_plugin_conf_options(conf[section].auth_type or "password")
    except exceptions.NoMatchingPlugin:
        of_plugin = []
    conf.register_opts(of_plugin, group=section)
    registered[section] = [*registered[section], *of_plugin]
    return [(group, option.dest) for group, members in registered.items() for option in members]


def known_keystone_options(
    groups: Iterable[str], sections: Iterable[str], environment: Mapping[str, str]
) -> dict[str, list[cfg.Opt]]:
    """All options of these groups of files and variables, whatever the way to log in.

    Empty if nothing configures Keystone. `sections` are further groups, which `auth_section` names.
    """
    is_used = GROUP in groups or any(name.startswith(_VARIABLES) for name in environment)
    if not is_used:
        return {}
    try:
        from keystoneauth1 import loading  # noqa: PLC0415
        from keystonemiddleware import auth_token  # noqa: PLC0415
    except ModuleNotFoundError:
        return {}
    known: dict[str, list[cfg.Opt]] = dict(auth_token.list_opts())
    loaders: Iterable[Any] = loading.get_available_plugin_loaders().values()
    of_plugins = [
        option for loader in loaders for option in loading.get_auth_plugin_conf_options(loader)
    ]
    known[GROUP] = [*known[GROUP], *of_plugins]
    named = environment.get(f"{_VARIABLES}AUTH_SECTION")
    for section in (*sections, *([named] if named else [])):
        if section != GROUP:
            known[section] = [*loading.get_auth_common_conf_options(), *of_plugins]
    return known
