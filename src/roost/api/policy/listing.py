"""The rules of the policy as a list: for the tools of oslo.policy, and as a sample file."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from oslo_config import cfg
from oslo_policy import generator, policy

from roost.api.policy.policy import rule_defaults
from roost.configuration.settings import load_settings

_HEADER = """\
# The rules of the policy, with their defaults. Remove the sign of a comment to change a rule.
# A rule is a text: "role:admin", "rule:service_api", "@" (every caller), "!" (no caller).

"""


def list_rules() -> list[policy.RuleDefault]:
    """All rules with what they are for, as the entry point `oslo.policy.policies` gives them."""
    return rule_defaults()


def get_enforcer() -> policy.Enforcer:
    """The rules with the files of this machine, as the entry point `oslo.policy.enforcer` does."""
    enforcer = policy.Enforcer(load_settings().oslo)
    enforcer.register_defaults(list_rules())
    return enforcer


def sample_policy() -> str:
    """A policy file with every rule in a comment: what it is for, and its default."""
    written = io.StringIO()
    with redirect_stdout(written):
        generator.generate_sample(args=["--namespace", "roost"], conf=cfg.ConfigOpts())
    return _HEADER + written.getvalue()
