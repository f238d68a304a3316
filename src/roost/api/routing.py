"""A route: all there is to know about one method of one path; and the way from a path to it.

The route table, the rules of the policy, the OpenAPI document, the `allow` headers and the labels
of metrics come from these declarations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from roost.api.http.errors import OverLimit
from roost.api.http.json_schemas import STRING, AnswerSchema, ByVersion, Document, Versions, record
from roost.api.http.microversions import MAX_VERSION, MIN_VERSION, Microversion
from roost.api.http.requests import Request
from roost.api.http.responses import Response
from roost.api.http.validation import Schema, check_query, parse_body
from roost.api.services import Services
from roost.model.limits import Limits

Handler: TypeAlias = Callable[[Services, Request], Response]

JSON = "application/json"
LINES = "application/x-ndjson"
EVENTS = "text/event-stream"
CACHED = ("cached",)
# What a 404 means on most routes of a provider.
UNKNOWN_PROVIDER = "No provider has this uuid."


@dataclass(frozen=True, slots=True)
class Success:
    """An answer with a status that means: done."""

    text: str
    schema: AnswerSchema | None = None
    # The names of its own headers, as `openapi/components.py` lists them.
    headers: tuple[str, ...] = ()
    media_type: str = JSON
    # The schema of each line, if clients may ask for a JSON document a line; `None` if not.
    lines: AnswerSchema | None = None
    # The schema of each event, if clients may ask for server-sent events; `None` if not.
    events: AnswerSchema | None = None
    # The versions that have it.
    since: Microversion = MIN_VERSION
    until: Microversion = MAX_VERSION


@dataclass(frozen=True, slots=True)
class RequestParameter:
    """A parameter of a query string or a header of a request: what it means, and a valid value."""

    name: str
    text: str
    example: str
    schema: Document = field(default_factory=lambda: STRING)
    is_required: bool = False
    # The first version that knows the parameter.
    since: Microversion = MIN_VERSION
    # The first version that lets a client send the parameter several times.
    repeated_since: Microversion | None = None


@dataclass(frozen=True, slots=True)
class QueryString:
    """The parameters that a route takes."""

    parameters: Sequence[RequestParameter]
    schemas: ByVersion[Schema]
    # What the parameters of request groups are together; empty if no parameter takes a suffix.
    groups_text: str = ""
    # Routes share the parameters by this name; empty if only one route has them.
    shared_name: str = ""
    # The version that counts, whatever version a client sends; `None` for that of the client.
    fixed: Microversion | None = None
    # What a status means on routes with these parameters.
    refusals: Mapping[int, str] = field(
        default_factory=lambda: {400: "A parameter is unknown or malformed."}
    )

    @classmethod
    def of(cls, *parameters: RequestParameter) -> QueryString:
        """A query string with these parameters, each from its first version on."""
        schemas = Versions(
            *(
                (str(version), _record_at(parameters, version))
                for version in sorted({parameter.since for parameter in parameters})
            )
        )
        return cls(parameters, schemas)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    def parse(self, request: Request) -> dict[str, str]:
        """The last value of each parameter; 400 if one is unknown or malformed."""
        return check_query(request.query(), self.schemas.at(request.version))


def _record_at(parameters: Sequence[RequestParameter], version: Microversion) -> Document:
    known = [parameter for parameter in parameters if parameter.since <= version]
    return record(
        {parameter.name: parameter.schema for parameter in known if parameter.is_required},
        {parameter.name: parameter.schema for parameter in known if not parameter.is_required},
    )


class BodyLimit(NamedTuple):
    """How much one body may have: the option of `[roost]` that says it, what counts, and how."""

    option: str
    kind: str
    count: Callable[[Any], int]

    def check(self, body: Any, limits: Limits) -> None:
        """400 if the body has more than the operator allows."""
        count, maximum = self.count(body), getattr(limits, self.option)
        if count > maximum:
            raise OverLimit(
                400,
                f"The request has {count} {self.kind}; {maximum} are allowed "
                f"([roost]{self.option}). Send fewer in one request, or raise the option.",
                self.option,
            )


class JsonBody:
    """The body that a route takes."""

    def __init__(
        self,
        name: str,
        text: str,
        *versions: tuple[str, Document],
        limits: tuple[BodyLimit, ...] = (),
        example: Any = None,
    ) -> None:
        """A version has its number and its schema. The example is valid in all versions."""
        self.name = name
        self.text = text
        self.limits = limits
        self.schemas = Versions(*versions)
        self.example = example

    def parse(self, request: Request) -> Any:
        """The body of a request; 400 with the reason if it is no JSON, not valid or too much."""
        body = parse_body(request.body(), self.schemas.at(request.version))
        for limit in self.limits:
            limit.check(body, request.limits)
        return body


def _no_handler(_services: Services, _request: Request) -> Response:
    """The handler of a declaration that decorates no function yet."""
    raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One method of one path. As a decorator, it completes itself with its handler."""

    method: str
    path: str
    handler: Handler = _no_handler
    _: KW_ONLY
    # The policy rule; `None` if the route is open to every client, even without a token.
    rule: str | None
    # The answers by status.
    successes: Mapping[int, Success]
    # The name that generators of clients use, and sentences: name and docstring of the handler.
    id: str = ""
    text: str = ""
    # A few words, unless the name has them; and the kind of route.
    summary: str = ""
    tag: str = ""
    # What a status means on this route, if the general sentence for the status says too little.
    # A provider in the path and a query string add theirs.
    refusals: dict[int, str] = field(default_factory=dict)
    # What a request has: parameters, a body, headers that only this route reads.
    queries: tuple[QueryString, ...] = ()
    body: JsonBody | None = None
    headers: tuple[RequestParameter, ...] = ()
    since: Microversion = MIN_VERSION
    until: Microversion = MAX_VERSION
    # What the rule is where no policy file names it.
    rule_default: str = "rule:admin_or_service_api"
    # The project that the rule is about; the caller's own if this is `None`.
    target_project: Callable[[Request], str | None] | None = None
    # Media types are checked before the version.
    media_first: bool = False
    # The status for a version without this route.
    unknown_status: int = 404
    # Programs ask it every few seconds: an answer without an error is no line in the log.
    is_probe: bool = False
    # It takes a body, and writes nothing.
    only_asks: bool = False
    # The request must have a JSON body (else 415), or the client must accept one (else 406).
    takes_json: bool = field(init=False)
    gives_json: bool = field(init=False)
    # The media types of which the client must accept one; empty if any will do.
    media_types: tuple[str, ...] = field(init=False)

    def __call__(self, handler: Handler) -> Route:
        """The route of this handler, which has its name and its sentences."""
        name = self.id or handler.__name__
        return replace(
            self,
            handler=handler,
            id=name,
            text=inspect.getdoc(handler) or "",
            summary=self.summary or name.replace("_", " ").capitalize(),
        )

    def __post_init__(self) -> None:
        shared = {404: UNKNOWN_PROVIDER} if "/{uuid}" in self.path else {}
        for query in self.queries:
            shared |= query.refusals
        object.__setattr__(self, "refusals", shared | self.refusals)
        object.__setattr__(self, "takes_json", self.body is not None)
        # Programs that watch the service get an answer whatever they accept.
        gives_json = self.method == "GET" and self.rule is not None and self._has_schema
        object.__setattr__(self, "gives_json", gives_json)
        lines = (LINES,) if any(each.lines for each in self.successes.values()) else ()
        events = (EVENTS,) if any(each.events for each in self.successes.values()) else ()
        object.__setattr__(self, "media_types", (JSON, *lines, *events) if gives_json else ())

    @property
    def writes(self) -> bool:
        """Whether a request may change the database."""
        return self.method != "GET" and not self.only_asks

    @property
    def _has_schema(self) -> bool:
        return any(success.schema is not None for success in self.successes.values())


def routes_of(tag: str, *routes: Route, since: Microversion = MIN_VERSION) -> tuple[Route, ...]:
    """The routes of a noun: each has its tag, and no version before its first one."""
    return tuple(
        replace(route, tag=route.tag or tag, since=max(since, route.since)) for route in routes
    )


class Match(NamedTuple):
    """All routes of a path by method, and the variable parts of the path."""

    # The path of the table.
    path: str
    by_method: Mapping[str, Sequence[Route]]
    parameters: Mapping[str, str]

    @property
    def allow(self) -> str:
        """The methods of the path, in any version."""
        return ", ".join(self.by_method)


class _Pattern(NamedTuple):
    """Paths with the same number of parts, and variable parts at the same places."""

    variable: tuple[int, ...]
    # Takes the fixed parts out of all parts.
    fixed: Callable[[Sequence[str]], Any]
    # By the fixed parts: the path of the table, its variable parts with their places, its routes.
    paths: dict[Any, tuple[str, Sequence[tuple[str, int]], dict[str, list[Route]]]]


class Router:
    """Finds the routes of a path.

    Paths with the same number of parts may have variable parts at several places. Each choice of
    places is a pattern, which costs one look into its table.
    Patterns with fewer variable parts come first: `/a/state` is found before `/a/{name}`.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        # By the number of parts.
        self._patterns: dict[int, list[_Pattern]] = {}
        for route in routes:
            parts = route.path.split("/")
            pattern = self._pattern(parts)
            names = [(parts[place][1:-1], place) for place in pattern.variable]
            fixed = pattern.fixed(parts)
            path, _, by_method = pattern.paths.setdefault(fixed, (route.path, names, {}))
            if path != route.path:
                raise ValueError(f"{route.path} has other names than an equal path")
            by_method.setdefault(route.method, []).append(route)

    def _pattern(self, parts: list[str]) -> _Pattern:
        variable = tuple(place for place, part in enumerate(parts) if part.startswith("{"))
        patterns = self._patterns.setdefault(len(parts), [])
        for pattern in patterns:
            if pattern.variable == variable:
                return pattern
        fixed = itemgetter(*(place for place in range(len(parts)) if place not in variable))
        pattern = _Pattern(variable, fixed, {})
        patterns.append(pattern)
        patterns.sort(key=lambda one: (len(one.variable), [-place for place in one.variable]))
        return pattern

    def find(self, path: str) -> Match | None:
        """The routes of this path; `None` if there is no such path."""
        parts = path.split("/")
        for _, fixed, paths in self._patterns.get(len(parts), ()):
            found = paths.get(fixed(parts))
            if found is not None:
                template, names, by_method = found
                parameters = {name: parts[place] for name, place in names}
                if "" not in parameters.values():
                    return Match(template or "/", by_method, parameters)
        return None
