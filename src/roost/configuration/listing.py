"""The options as a list: for oslo-config-generator, and as a sample of placement.conf."""

from __future__ import annotations

import io
from importlib.metadata import entry_points

from oslo_config import cfg, generator

from roost.configuration import options

_NAMESPACES = ("roost", "oslo.log", "oslo.policy", "keystonemiddleware.auth_token")
_WIDTH = 100


def list_options() -> list[tuple[str, tuple[cfg.Opt, ...]]]:
    """Each group of Roost with its options, as the entry point `oslo.config.opts` gives them."""
    return list(options.GROUPS.items())


def sample_configuration() -> str:
    """A placement.conf with every option in a comment: its meaning, its default, its values."""
    known = {entry.name for entry in entry_points(group="oslo.config.opts")}
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    arguments = ["--wrap-width", str(_WIDTH)]
    for namespace in _NAMESPACES:
        if namespace in known:
            arguments += ["--namespace", namespace]
    conf(args=arguments, project="placement", default_config_files=[], default_config_dirs=[])
    written = io.StringIO()
    generator.generate(conf, written)
    return written.getvalue()
