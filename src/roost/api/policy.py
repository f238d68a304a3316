"""Who may do what: the rules, and the decisions by oslo.policy.

Deciding costs about 0.3 ms in oslo.policy, more than most requests cost in all. Decisions depend
on nothing but the rule, the caller and the target, so they are remembered until a policy file
changes.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, TypeAlias, cast

from oslo_policy import policy

from roost.api.context import Context
from roost.api.errors import HttpError
from roost.configuration.settings import ConfigurationError

_LOG = logging.getLogger(__name__)

_ADMIN_OR_SERVICE = "rule:admin_or_service_api"
# All decisions that are remembered take about this much memory, several thousand of usual callers.
_DECISIONS_BYTES = 4 * 2**20
# A decision about a caller with more roles, or longer names, than callers have is made anew.
_DECISION_BYTES_MAX = 8 * 2**10
# The tuple, the context and the place in the table, beside the texts.
_ENTRY_BYTES = 400
# A change of a known file shows at once; a new file is noticed after this time.
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
# What these were before service roles: without `enforce_new_defaults`, admin passes as well.
_LEGACY = {
    "service_api": "rule:admin_api",
    "project_reader_api": "rule:admin_api",
    "admin_or_service_api": "rule:admin_api",
    "admin_or_project_reader_or_service_api": "rule:admin_api",
}
_RULES = {
    "placement:usages": "rule:admin_or_project_reader_or_service_api",
    "placement:reshaper:reshape": "rule:service_api",
    **{
        f"placement:{name}": _ADMIN_OR_SERVICE
        for name in (
            "resource_providers:list",
            "resource_providers:create",
            "resource_providers:show",
            "resource_providers:update",
            "resource_providers:delete",
            "resource_classes:list",
            "resource_classes:create",
            "resource_classes:show",
            "resource_classes:update",
            "resource_classes:delete",
            "resource_providers:inventories:list",
            "resource_providers:inventories:create",
            "resource_providers:inventories:show",
            "resource_providers:inventories:update",
            "resource_providers:inventories:delete",
            "resource_providers:aggregates:list",
            "resource_providers:aggregates:update",
            "resource_providers:usages",
            "traits:list",
            "traits:show",
            "traits:update",
            "traits:delete",
            "resource_providers:traits:list",
            "resource_providers:traits:update",
            "resource_providers:traits:delete",
            "allocations:manage",
            "allocations:list",
            "allocations:update",
            "allocations:delete",
            "resource_providers:allocations:list",
            "allocation_candidates:list",
        )
    },
}


class Policy:
    """Decides whether a caller may do something."""

    def __init__(self, conf: Any) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._paths: tuple[str, ...] = ()
        self._look_for_files_at = 0.0
        # A broken file stops the service from starting.
        self._fingerprint = self._files()
        self._rules = _Rules(self._load())
        wanted = conf.oslo_policy.policy_file
        if wanted != "policy.yaml" and not conf.find_file(wanted):
            _LOG.warning("The policy file %s does not exist: the defaults hold", wanted)

    def authorize(self, rule: str, context: Context, target_project: str | None) -> None:
        """Raise 403 unless the caller may."""
        self._reload_if_changed()
        refusal = self._rules.refusal(rule, context, target_project)
        if refusal is not None:
            raise HttpError(403, refusal)

    def _load(self) -> policy.Enforcer:
        """The rules as the files have them now."""
        enforcer = policy.Enforcer(self._conf)
        enforcer.suppress_default_change_warnings = True
        enforcer.suppress_deprecation_warnings = True
        enforcer.register_defaults(_defaults())
        try:
            enforcer.load_rules(force_reload=True)
            _check_kinds(enforcer)
            enforcer.check_rules(raise_on_violation=True)
        except Exception as error:
            files = ", ".join(self._paths) or "the defaults"
            raise ConfigurationError(f"The policy ({files}) cannot be used: {error}") from error
        # It would look at the files again at each decision.
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
                _LOG.error("%s The rules before stay in force.", error)

    def _files(self) -> object:
        """Names and times of all policy files that there are now."""
        now = time.monotonic()
        if now >= self._look_for_files_at:
            self._paths = self._find_files()
            self._look_for_files_at = now + _LOOK_FOR_FILES_SECONDS
        return tuple((path, _modified(path)) for path in self._paths)

    def _find_files(self) -> tuple[str, ...]:
        options = self._conf.oslo_policy
        found = [self._conf.find_file(options.policy_file)]
        for name in options.policy_dirs:
            directory = self._conf.find_file(name)
            if directory:
                found += [str(path) for path in sorted(Path(directory).iterdir())]
        return tuple(path for path in found if path)


_Question: TypeAlias = tuple[str, Context, str | None]
"""A rule, the context of the request, and the project that it is about."""
_UNKNOWN = object()


class _Rules:
    """The rules of one state of the policy files, and the decisions made by them."""

    def __init__(self, enforcer: policy.Enforcer) -> None:
        self._enforcer = enforcer
        self._lock = threading.Lock()
        self._decisions: dict[_Question, str | None] = {}
        self._bytes = 0
        # What another server decides must be asked each time.
        self._cacheable = not any(
            remote in str(check)
            for check in enforcer.rules.values()
            for remote in ("http:", "https:")
        )

    def refusal(self, rule: str, context: Context, target_project: str | None) -> str | None:
        """Nothing if allowed, else the text of the refusal."""
        question = rule, context, target_project
        # One look: another thread may clear the table between two.
        known: Any = self._decisions.get(question, _UNKNOWN)
        if known is not _UNKNOWN:
            return cast("str | None", known)
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

    def _decide(self, rule: str, context: Context, target_project: str | None) -> str | None:
        credentials = {
            "user_id": context.user,
            "project_id": context.project,
            "roles": list(context.roles),
            "system_scope": context.system_scope,
            "domain_id": context.domain,
        }
        target = {"project_id": target_project, "user_id": context.user}
        try:
            self._enforcer.authorize(rule, target, credentials, do_raise=True)
        except policy.InvalidScope:
            return rule
        except policy.PolicyNotAuthorized:
            return f"Policy does not allow {rule} to be performed."
        return None


def _size(question: _Question, decision: str | None) -> int:
    """About how many bytes a remembered decision takes."""
    _, context, target = question
    texts = (context.user, context.project, context.system_scope, context.domain, target, decision)
    return (
        _ENTRY_BYTES
        + sys.getsizeof(context.roles)
        + sum(map(sys.getsizeof, context.roles))
        + sum(sys.getsizeof(text) for text in texts if text is not None)
    )


def _check_kinds(enforcer: policy.Enforcer) -> None:
    """Refuse rules of the files that are neither text nor list.

    oslo.policy takes null, false and 0 for the empty rule, which every caller passes.
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


def _defaults() -> list[policy.RuleDefault]:
    return [_base_rule(name, check) for name, check in _BASE.items()] + [
        policy.RuleDefault(name, check, scope_types=["project"]) for name, check in _RULES.items()
    ]


def _base_rule(name: str, check: str) -> policy.RuleDefault:
    if name not in _LEGACY:
        return policy.RuleDefault(name, check)
    return policy.RuleDefault(
        name,
        check,
        deprecated_rule=policy.DeprecatedRule(
            name,
            _LEGACY[name],
            deprecated_reason="Roles of services and readers are told apart now.",
            deprecated_since="1.0",
        ),
    )
