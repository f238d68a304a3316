"""The options of `[keystone_authtoken]`: keystonemiddleware's, and those of the way to log in.

The package is an extra. Without it there are no such options, and the strategy says what to
install. The import takes 0.4 seconds, so nothing imports it that does not need it.
"""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

GROUP = "keystone_authtoken"
# Without these, a Keystone that accepts connections and is silent would hold a look-up for ever.
_ANSWER_SECONDS = 5
# A connection that Keystone has closed meanwhile needs a second attempt.
_RETRIES = 1


def register_keystone_options(conf: Any) -> None:
    """Register the options that this configuration can set.

    Waits get an end where the operator gives none.
    """
    try:
        # The extra `keystone` brings this package, and may not be installed.
        from keystonemiddleware import auth_token  # noqa: PLC0415
    except ModuleNotFoundError:
        return
    for group, members in auth_token.list_opts():
        conf.register_opts(members, group=group)
    conf.set_default("http_connect_timeout", _ANSWER_SECONDS, group=GROUP)
    conf.set_default("http_request_max_retries", _RETRIES, group=GROUP)
    for group, members in registered_keystone_options(conf).items():
        conf.register_opts(members, group=group)


def registered_keystone_options(conf: Any) -> dict[str, list[cfg.Opt]]:
    """The options that this configuration has, by group; none without Keystone.

    Another group may have the service account, which `auth_section` names.
    """
    if GROUP not in conf:
        return {}
    # The group is registered, so the packages of the extra `keystone` are installed.
    from keystoneauth1 import exceptions, loading  # noqa: PLC0415
    from keystonemiddleware import auth_token  # noqa: PLC0415

    registered: dict[str, list[cfg.Opt]] = dict(auth_token.list_opts())
    common = loading.get_auth_common_conf_options()
    for section in {GROUP: None, conf[GROUP].auth_section or GROUP: None}:
        conf.register_opts(common, group=section)
        try:
            auth_type = conf[section].auth_type or "password"
            of_plugin = loading.get_auth_plugin_conf_options(auth_type)
        except (exceptions.NoMatchingPlugin, cfg.Error):
            # The start names a wrong value.
            of_plugin = []
        registered[section] = [*registered.get(section, common), *of_plugin]
    return registered
