"""The policy: rules that say what a caller may do, and the decisions by oslo.policy.

A decision takes oslo.policy about 0.3 ms, longer than most requests take in all. It depends on the
rule, the caller and the target only, so it is remembered until a policy file changes.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from oslo_policy import policy

from roost.api.http.errors import HttpError
from roost.api.http.requests import Caller
from roost.api.routes import ROUTES
from roost.api.routing import Route
from roost.configuration.regular_files import check_not_special
from roost.configuration.settings import ConfigurationError

_LOG = logging.getLogger(__name__)

# The memory for decisions. Usual callers need a kilobyte or less for each.
_DECISIONS_BYTES = 4 * 2**20
# A larger decision, about a caller with very many roles or long names, is not remembered.
_DECISION_BYTES_MAX = 8 * 2**10
# What an entry takes beside its texts: the tuple, the caller and the slot of the table.
_ENTRY_BYTES = 400
# A change of a known file takes effect at once, a new file after this time.
_LOOK_FOR_FILES_SECONDS = 1.0

_BASE = {
    "admin_api": "role:admin",
    "service_api": "role:service",
    "admin_or_service_api": "role:admin or role:service",
    "project_reader_api": "role:reader and project_id:%(project_id)s",
    "admin_or_project_reader_or_service_api": (
        "role:admin or rule:project_reader_api or role:service"
    ),
}
# The rule before services had roles. Without `enforce_new_defaults`, it lets callers pass as well.
_LEGACY = "rule:admin_api"

_Question: TypeAlias = tuple[str, Caller, str | None]
"""A rule, the caller, and the project that the rule is about."""
# No refusal has this text.
_UNKNOWN = "\0"


class Policy:
    """Decides whether a caller may do something."""

    def __init__(self, conf: Any) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._paths: tuple[str, ...] = ()
        self._look_for_files_at = 0.0
        # With a broken file the service does not start.
        self._fingerprint = self._files()
        self._rules = _Rules(self._load())
        wanted = conf.oslo_policy.policy_file
        if wanted != "policy.yaml" and not conf.find_file(wanted):
            _LOG.warning("The policy file %s does not exist: the defaults hold", wanted)

    def authorize(self, rule: str, caller: Caller, target_project: str | None) -> None:
        """Raise 403 unless the rule allows this to the caller."""
        self._reload_if_changed()
        refusal = self._rules.refusal(rule, caller, target_project)
        if refusal is not None:
            raise HttpError(403, refusal)

    def _load(self) -> policy.Enforcer:
        """The rules in the files at this moment."""
        enforcer = policy.Enforcer(self._conf)
        enforcer.suppress_default_change_warnings = True
        enforcer.suppress_deprecation_warnings = True
        enforcer.register_defaults(rule_defaults())
        try:
            for path in self._find_files():
                check_not_special(path)
            enforcer.load_rules(force_reload=True)
            _check_kinds(enforcer)
            enforcer.check_rules(raise_on_violation=True)
        except Exception as error:
            files = ", ".join(self._paths) or "the defaults"
            raise ConfigurationError(f"The policy ({files}) cannot be used: {error}") from error
        # Otherwise oslo.policy looks at the files again at each decision.
        enforcer.use_conf = False
        return enforcer

    def _reload_if_changed(self) -> None:
        fingerprint = self._files()
        if fingerprint == self._fingerprint:
            return
        with self._lock:
            if fingerprint == self._fingerprint:
                return
            self._fingerprint = fingerprint
            try:
                self._rules = _Rules(self._load())
            except ConfigurationError as error:
                _LOG.error("%s The previous rules stay in force.", error)

    def _files(self) -> object:
        """The names and times of all policy files at this moment."""
        now = time.monotonic()
        if now >= self._look_for_files_at:
            self._paths = self._find_files()
            self._look_for_files_at = now + _LOOK_FOR_FILES_SECONDS
        return self._paths, *map(_modified, self._paths)

    def _find_files(self) -> tuple[str, ...]:
        options = self._conf.oslo_policy
        found = [self._conf.find_file(options.policy_file)]
        for name in options.policy_dirs:
            directory = self._conf.find_file(name)
            if directory:
                found += [str(path) for path in sorted(Path(directory).iterdir())]
        return tuple(path for path in found if path)


class _Rules:
    """The rules of one state of the policy files, and the decisions made by them."""

    def __init__(self, enforcer: policy.Enforcer) -> None:
        self._enforcer = enforcer
        self._lock = threading.Lock()
        self._decisions: dict[_Question, str | None] = {}
        self._bytes = 0
        # A rule that asks another server is not remembered.
        self._cacheable = not any(
            remote in str(check)
            for check in enforcer.rules.values()
            for remote in ("http:", "https:")
        )

    def refusal(self, rule: str, caller: Caller, target_project: str | None) -> str | None:
        """`None` if the rule allows it, else the text of the refusal."""
        question = rule, caller, target_project
        # One lookup, because another thread may clear the table between two.
        decision = self._decisions.get(question, _UNKNOWN)
        if decision is not _UNKNOWN:
            return decision
        decision = self._decide(*question)
        if self._cacheable:
            self._remember(question, decision)
        return decision

    def _remember(self, question: _Question, decision: str | None) -> None:
        size = _size(question, decision)
        if size > _DECISION_BYTES_MAX:
            return
        with self._lock:
            if self._bytes + size > _DECISIONS_BYTES:
                self._decisions.clear()
                self._bytes = 0
            if question not in self._decisions:
                self._decisions[question] = decision
                self._bytes += size

    def _decide(self, rule: str, caller: Caller, target_project: str | None) -> str | None:
        credentials = {
            "user_id": caller.user,
            "project_id": caller.project,
            "roles": list(caller.roles),
            "system_scope": caller.system_scope,
            "domain_id": caller.domain,
            "user_domain_id": caller.user_domain,
            "project_domain_id": caller.project_domain,
            # oslo.policy looks into lists, and not into tuples.
            **{
                name: list(value) if isinstance(value, tuple) else value
                for name, value in caller.attributes
            },
        }
        target = {"project_id": target_project, "user_id": caller.user}
        try:
            self._enforcer.authorize(rule, target, credentials, do_raise=True)
        except policy.InvalidScope:
            return rule
        except policy.PolicyNotAuthorized:
            return f"Policy does not allow {rule} to be performed."
        return None


def _size(question: _Question, decision: str | None) -> int:
    """About how many bytes a remembered decision takes."""
    _, caller, target = question
    scope = (caller.project, caller.system_scope, caller.domain, caller.project_domain)
    texts = (caller.user, caller.user_domain, *scope, target, decision)
    return (
        _ENTRY_BYTES
        + sys.getsizeof(caller.roles)
        + sum(map(sys.getsizeof, caller.roles))
        + sum(sys.getsizeof(text) for text in texts if text is not None)
        + sum(sys.getsizeof(name) + sys.getsizeof(value) for name, value in caller.attributes)
    )


def _check_kinds(enforcer: policy.Enforcer) -> None:
    """Refuse rules of the files that are neither text nor list.

    To oslo.policy, null, false and 0 are the empty rule, which every caller passes.
    """
    for name, rule in enforcer.file_rules.items():
        if not isinstance(rule.check_str, str | list):
            raise ConfigurationError(
                f"the rule {name} is {json.dumps(rule.check_str, default=str)}, which is no rule. "
                'Write a text such as "role:admin"; "!" lets no caller pass, "@" every caller.'
            )


def _modified(name: str) -> tuple[int, int] | None:
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def rule_defaults() -> list[policy.RuleDefault]:
    """All rules, as they are where no policy file names them."""
    base = [_base_rule(name, check) for name, check in _BASE.items()]
    return [*base, *_route_rules(ROUTES)]


def _route_rules(routes: Iterable[Route]) -> list[policy.DocumentedRuleDefault]:
    """The rule of each route, with the requests that it is for."""
    found: dict[str, policy.DocumentedRuleDefault] = {}
    for route in routes:
        if route.rule is None:
            continue
        operation: Any = {"method": route.method, "path": route.path}
        known = found.get(route.rule)
        if known is None:
            found[route.rule] = policy.DocumentedRuleDefault(
                name=route.rule,
                check_str=route.rule_default,
                description=_description(route.rule),
                operations=[operation],
                scope_types=["project"],
            )
        elif known.check_str != route.rule_default:
            raise ValueError(f"two routes disagree about the default of {route.rule}")
        elif operation not in known.operations:
            known.operations.append(operation)
    return list(found.values())


def _description(name: str) -> str:
    """What a rule is for, in the words of its name.

    >>> _description("placement:resource_providers:inventories:list")
    'resource providers, inventories: list.'
    """
    *nouns, verb = name.replace("_", " ").split(":")[1:]
    return f"{', '.join(nouns)}: {verb}." if nouns else f"{verb}."


def _base_rule(name: str, check: str) -> policy.RuleDefault:
    if f"rule:{name}" == _LEGACY:
        return policy.RuleDefault(name, check)
    return policy.RuleDefault(
        name,
        check,
        deprecated_rule=policy.DeprecatedRule(
            name,
            _LEGACY,
            deprecated_reason="Services and readers have roles of their own.",
            deprecated_since="1.0",
        ),
    )
