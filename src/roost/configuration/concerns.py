"""What an operator should know about a configuration: names without effect, and dangers."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from roost.configuration.config_file import ConfigFile, read_config_file
from roost.configuration.keystone_options import GROUP
from roost.configuration.settings import Settings, options_without_effect
from roost.configuration.unknown_names import KnownOption, options_by_name, unknown_names
from roost.model.limits import Limits

# A limit this many times above or below its default protects nothing, or refuses real clients.
_EXTREME = 100
# Options of libraries that are not installed everywhere, so their own marks are not at hand.
_SECRET_NAMES = frozenset({"password", "memcache_secret_key", "admin_password", "admin_token"})


class Severity(StrEnum):
    """How much a concern matters."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILURE = "failure"


class ConcernKind(StrEnum):
    """What a concern is about."""

    UNKNOWN = "unknown"
    IGNORED = "ignored"
    DEPRECATED = "deprecated"
    DANGEROUS = "dangerous"
    UNUSABLE = "unusable"
    CONNECTION = "connection"


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing to look at: what it is, and what to do."""

    kind: ConcernKind
    severity: Severity
    message: str


def needs_mending(concerns: list[Concern], *, strict: bool) -> bool:
    """Whether a concern is a warning or worse; notes count if the check is strict.

    >>> note = Concern(ConcernKind.IGNORED, Severity.NOTE, "")
    >>> needs_mending([note], strict=False), needs_mending([note], strict=True)
    (False, True)
    """
    severities = {concern.severity for concern in concerns}
    grave = {Severity.WARNING, Severity.FAILURE} | ({Severity.NOTE} if strict else set())
    return bool(severities & grave)


def name_concerns(settings: Settings) -> Iterator[Concern]:
    """A concern for each name that has no effect, or that a later version may not know."""
    for sentence in unknown_names(settings):
        yield Concern(ConcernKind.UNKNOWN, Severity.WARNING, sentence)
    for name in options_without_effect(settings):
        text = f"{name} is an option of the reference that has no effect in Roost. Remove it."
        yield Concern(ConcernKind.IGNORED, Severity.NOTE, text)
    yield from _deprecated(settings)


def _deprecated(settings: Settings) -> Iterator[Concern]:
    known = options_by_name()
    for path in settings.config_files:
        file = read_config_file(path)
        for group, name in dict.fromkeys(file.options):
            option = known.get(group, {}).get(name)
            text = f"{path}:{file.lines[group, name]}: [{group}]{name} is"
            if option is not None and (group, name) != option.names[0]:
                text += f" the old name of {option}."
            elif option is not None and option.option.deprecated_for_removal:
                text += " deprecated by its library. Remove it."
            else:
                continue
            yield Concern(ConcernKind.DEPRECATED, Severity.NOTE, text)


def dangers(settings: Settings) -> list[Concern]:
    """A warning for each option, or file, that an operator should not keep."""
    files = [read_config_file(path) for path in settings.config_files]
    texts = [
        *_identity(settings),
        *_database(settings),
        *_files(settings, files),
        *_requests(settings),
        *_limits(settings),
    ]
    return [Concern(ConcernKind.DANGEROUS, Severity.WARNING, text) for text in texts]


def _identity(settings: Settings) -> Iterator[str]:
    if settings.auth_strategy == "noauth2":
        yield (
            "[api]auth_strategy = noauth2 believes every client. `roost serve` offers it on "
            "loopback only; behind uwsgi or gunicorn, no check helps. Set keystone."
        )
    if GROUP not in settings.oslo:
        return
    group = settings.oslo[GROUP]
    if not group.www_authenticate_uri:
        yield (
            f"[{GROUP}]www_authenticate_uri is missing: a client without token is not told "
            "where to get one. Set the public address of Keystone."
        )
    account = group.auth_section or GROUP
    for section, name in ((account, "auth_url"), (GROUP, "www_authenticate_uri")):
        parts = urlsplit(getattr(settings.oslo[section], name, None) or "")
        if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            yield (
                f"[{section}]{name} begins with http: tokens and the password of the service "
                "cross the network in clear text. Use https."
            )
    if group.insecure:
        yield f"[{GROUP}]insecure accepts any certificate. Set cafile instead."


def _database(settings: Settings) -> Iterator[str]:
    options = settings.database
    if options.url.startswith("sqlite"):
        if not options.sqlite_synchronous:
            yield (
                "[placement_database]sqlite_synchronous = false: claims that were answered are "
                "lost when the machine crashes. Remove it."
            )
        if settings.auth_strategy == "keystone":
            yield (
                "[placement_database]connection is an SQLite file: only one host may serve it. "
                "For several hosts use PostgreSQL or MariaDB."
            )
    if options.echo:
        yield (
            "[placement_database]connection_debug = 50 or more logs every "
            "statement, which slows all requests and fills the log. Set 0."
        )


def _files(settings: Settings, files: list[ConfigFile]) -> Iterator[str]:
    known = options_by_name(settings.oslo)
    for file in files:
        secrets = [
            f"[{group}]{name}"
            for (group, name), value in file.values.items()
            if value and _is_secret(name, known.get(group, {}).get(name))
            if name != "connection" or _has_password(value)
        ]
        if secrets and _others_can_read(file.path):
            yield (
                f"{file.path} has {', '.join(secrets)}, and every user of this machine can read "
                f"it. Say: chmod o= {file.path}"
            )
    tokens_file = settings.tokens_file
    if tokens_file and _others_can_read(tokens_file):
        yield (
            f"[roost]tokens_file = {tokens_file} can be read by every user of this machine. Say: "
            f"chmod o= {tokens_file}"
        )


def _is_secret(name: str, known: KnownOption | None) -> bool:
    return name in _SECRET_NAMES or (known is not None and known.option.secret)


def _has_password(url: str) -> bool:
    try:
        return bool(make_url(url.replace("$$", "$")).password)
    except (ArgumentError, ValueError):
        return True


def _others_can_read(path: str) -> bool:
    try:
        return bool(Path(path).stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _requests(settings: Settings) -> Iterator[str]:
    if settings.oslo.debug:
        yield "[DEFAULT]debug = true writes many lines for each request. Remove it."
    if settings.parse_proxy_headers:
        trusted = ", ".join(settings.oslo.roost.trusted_proxies)
        yield (
            "[oslo_middleware]enable_proxy_headers_parsing believes X-Forwarded-* of "
            f"[roost]trusted_proxies = {trusted}. Keep it only if each of them is a proxy that "
            "replaces these headers."
        )
    if settings.cors is not None and "*" in settings.cors.allowed_origins:
        yield "[cors]allowed_origin = * lets every web page use the API. Name the origins."


def _limits(settings: Settings) -> Iterator[str]:
    for field in fields(Limits):
        value, usual = getattr(settings.limits, field.name), getattr(Limits(), field.name)
        if not usual / _EXTREME <= value <= usual * _EXTREME:
            yield (
                f"[roost]{field.name} = {value} is far from its default, {usual}. Beyond that, a "
                "limit protects nothing, or refuses real clients."
            )
    if settings.candidate_order.maximum is None:
        yield (
            "[placement]max_allocation_candidates = -1: one request can ask for millions of "
            "candidates. Set a maximum."
        )
