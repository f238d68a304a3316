"""The rules of the policy as a list: for the tools of oslo.policy, and as a sample file."""

from __future__ import annotations

import io
from collections import defaultdict
from contextlib import redirect_stdout
from typing import Any

from oslo_config import cfg
from oslo_policy import generator, policy

from roost.api.policy import rule_defaults
from roost.api.routes import ROUTES
from roost.configuration.settings import load_settings

_HEADER = """\
# The rules of the policy, with their defaults. Remove the sign of a comment to change a rule.
# A rule is a text: "role:admin", "rule:service_api", "@" (every caller), "!" (no caller).

"""


def list_rules() -> list[policy.RuleDefault]:
    """All rules with what they are for, as the entry point `oslo.policy.policies` gives them."""
    operations: dict[str, list[Any]] = defaultdict(list)
    for route in ROUTES:
        operation = {"method": route.method, "path": route.path}
        if route.rule is not None and operation not in operations[route.rule]:
            operations[route.rule].append(operation)
    return [_documented(rule, operations.get(rule.name, [])) for rule in rule_defaults()]


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


def _documented(rule: policy.RuleDefault, operations: list[Any]) -> policy.RuleDefault:
    if not operations:
        return rule
    return policy.DocumentedRuleDefault(
        name=rule.name,
        check_str=rule.check_str,
        description=_description(rule.name),
        operations=operations,
        scope_types=rule.scope_types,
    )


def _description(name: str) -> str:
    """What a rule is for, in the words of its name.

    >>> _description("placement:resource_providers:inventories:list")
    'resource providers, inventories: list.'
    """
    *nouns, verb = name.replace("_", " ").split(":")[1:]
    return f"{', '.join(nouns)}: {verb}." if nouns else f"{verb}."
