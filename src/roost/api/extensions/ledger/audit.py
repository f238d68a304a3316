"""`POST /roost/audit`: what is wrong with the cloud, and the requests that mend it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from roost.api.extensions.ledger.consumers import CONSUMERS
from roost.api.extensions.pages import NEXT, PAGE_PARAMETERS, Page, parse_page
from roost.api.extensions.parameters import refuse_rest, split_parameters
from roost.api.extensions.questions.question_turn import forest_aside, look_up_names, question_turn
from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import (
    COUNT,
    EXAMPLE_CONSUMER,
    PROVIDER_REFERENCE,
    SENTENCE,
    STRING,
    UUID,
    AnswerSchema,
    choice,
    described,
    flag,
    list_of,
    members,
    or_null,
    record,
    text,
)
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import JsonBody, QueryString, Route, Success, routes_of
from roost.api.services import Services
from roost.service.ledger.audit import (
    ONE_TIME_USE,
    AuditFinding,
    FindingKind,
    KnownConsumers,
    audit_forest,
    audit_rows,
    check_orphan_share,
    delete_orphans,
    mend_of,
)
from roost.store.connections.errors import (
    Busy,
    Contention,
    DatabaseAway,
    OutcomeUnknown,
    WriteRefused,
)
from roost.store.statements import chunks
from roost.turns import Turn

_LOG = logging.getLogger(__name__)

_AT_MOST_PERCENT = 5
# How many orphans one transaction deletes. It locks all that they hold.
_DELETED_AT_ONCE = 64

_OWN = QueryString.of(*PAGE_PARAMETERS)
_TYPE = text(r"^[A-Z0-9_]+$|^unknown$", minimum=1, maximum=255)
_TYPES = list_of(_TYPE, minimum=1) | {"maxItems": 1000}
_BODY = JsonBody(
    "AuditRequest",
    "The consumers that a program knows, and what to do about orphans. All members may be left "
    "out.",
    (
        "1.0",
        record(
            {},
            {
                "known_consumers": described(
                    list_of(STRING),
                    "The uuids of all consumers that exist. Without it, no consumer is an orphan.",
                ),
                "types": described(
                    _TYPES,
                    "Only consumers of these types can be orphans; of every type if it is left "
                    "out. `unknown` means: without a type.",
                ),
                "known_at": described(
                    STRING,
                    "When the list was begun, as 2026-11-18T12:00:00Z. Consumers that are newer, "
                    "or changed later, are no orphans.",
                ),
                "delete": flag("Delete the allocations of all orphans."),
                "at_most_percent": described(
                    {"type": "number", "minimum": 0, "maximum": 100},
                    "More orphans than so much of all consumers are not deleted: 409. The "
                    f"default is {_AT_MOST_PERCENT}.",
                ),
                "one_time_use_traits": described(
                    list_of(text(r"^[A-Z0-9_]+$", minimum=1, maximum=255)) | {"maxItems": 100},
                    f"The traits of devices for one use; {ONE_TIME_USE} if it is left out.",
                ),
                "dry_run": flag("The same answer, and nothing is deleted."),
            },
        ),
    ),
    example={"known_consumers": [EXAMPLE_CONSUMER], "types": ["INSTANCE"]},
)
_AUDIT = AnswerSchema.of(
    "Audit",
    "What is wrong.",
    members(
        {
            "findings": list_of(
                members(
                    {
                        "kind": choice(*FindingKind),
                        "provider": or_null(PROVIDER_REFERENCE),
                        "consumer": or_null(UUID),
                        "text": SENTENCE,
                        "mend": or_null(
                            members(
                                {
                                    "method": STRING,
                                    "path": STRING,
                                    "body": {"description": "JSON, or null for no body."},
                                }
                            ),
                            "The request that mends it; null if an operator has to decide.",
                        ),
                        "deleted": flag("Whether the orphan is deleted."),
                    }
                )
            ),
            "counts": described(
                {"type": "object", "additionalProperties": COUNT},
                "How many findings there are of each kind, on all pages.",
            ),
            "consumers": described(COUNT, "How many consumers were looked at."),
            "problem": or_null(STRING, "Why only some orphans are deleted; null otherwise."),
            "next": NEXT,
        }
    ),
)


@Route(
    "POST",
    "/roost/audit",
    rule="roost:audit:run",
    summary="Look for what is wrong",
    successes={200: Success("The findings.", _AUDIT)},
    refusals={
        400: "The body or a parameter is malformed.",
        409: "More orphans than `at_most_percent` of all consumers: nothing was deleted.",
    },
    queries=(_OWN,),
    body=_BODY,
)
def run_audit(services: Services, request: Request) -> Response:
    """Orphans, consumers that hold nothing, and inventories over their capacity.

    Devices that wait to be cleaned or have two providers, and sharing providers that reach no tree.
    Each finding has the request that mends it, if a request does. With `delete`, orphans are
    deleted unless they changed meanwhile.
    """
    parameters = split_parameters(request, _OWN.names)
    refuse_rest(parameters, _OWN.names)
    asked_page = parse_page(parameters)
    body = _BODY.parse(request)
    known = _known_consumers(body)
    one_time_use = body.get("one_time_use_traits", [ONE_TIME_USE])
    with question_turn(services, request) as turn:
        turn.enter()
        audited = services.survey(turn, audit_rows, known)
        forest = forest_aside(services, turn)
        findings = sorted(
            [*audited.findings, *audit_forest(forest, one_time_use)], key=attrgetter("key")
        )
        page = asked_page.cut(findings, attrgetter("key"))
        shown = _shown(services, turn, page)
        count = audited.consumer_count
    deleted: Collection[str] = ()
    problem: str | None = None
    if body.get("delete"):
        deleted, problem = _delete(services, request, body, findings, count)
    for entry in shown:
        entry["deleted"] = entry["kind"] == FindingKind.ORPHAN and entry["consumer"] in deleted
    return json_response(
        {
            "findings": shown,
            "counts": Counter(finding.kind.value for finding in findings),
            "consumers": count,
            "problem": problem,
            "next": page.next,
        }
    )


def _known_consumers(body: dict[str, Any]) -> KnownConsumers | None:
    if "known_consumers" not in body:
        if body.get("delete"):
            raise bad_value(
                "delete needs known_consumers: without the list, no consumer is an orphan."
            )
        return None
    known_at = body.get("known_at")
    return KnownConsumers.of(
        body["known_consumers"],
        body.get("types", ()),
        None if known_at is None else _parse_time(known_at),
    )


def _parse_time(value: str) -> datetime:
    try:
        time = datetime.fromisoformat(value)
        return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise bad_value(
            f"known_at is {value[:40]!r}. Send a time such as 2026-11-18T12:00:00Z."
        ) from None


def _shown(services: Services, turn: Turn, page: Page[AuditFinding]) -> list[dict[str, Any]]:
    uuids = [finding.provider_uuid for finding in page.members if finding.provider_uuid]
    names = look_up_names(services, turn, uuids)
    shown = []
    for finding in page.members:
        uuid = finding.provider_uuid
        name = "" if uuid is None else names.get(uuid, uuid)
        shown.append(
            {
                "kind": finding.kind,
                "provider": None if uuid is None else {"uuid": uuid, "name": name},
                "consumer": finding.consumer,
                "text": finding.text(name),
                "mend": _mend(services, finding),
            }
        )
        turn.pause()
    return shown


def _mend(services: Services, finding: AuditFinding) -> dict[str, Any] | None:
    if finding.kind is FindingKind.ORPHAN:
        # A page may have thousands of them.
        return {"method": "DELETE", "path": f"/allocations/{finding.consumer}", "body": None}
    return services.read(mend_of, finding)


def _delete(
    services: Services,
    request: Request,
    body: dict[str, Any],
    findings: Sequence[AuditFinding],
    consumer_count: int,
) -> tuple[Collection[str], str | None]:
    """The orphans that are deleted, or would be; and why not all of them are."""
    orphans = [finding for finding in findings if finding.kind is FindingKind.ORPHAN]
    at_most_percent = body.get("at_most_percent", _AT_MOST_PERCENT)
    check_orphan_share(len(orphans), consumer_count, at_most_percent)
    if body.get("dry_run"):
        return {orphan.consumer for orphan in orphans if orphan.consumer}, None
    deleted: set[str] = set()
    for chunk in chunks(orphans, _DELETED_AT_ONCE):
        try:
            released: set[str] = services.write(request, delete_orphans, chunk)
        except (Busy, Contention, DatabaseAway, WriteRefused) as error:
            if not deleted or isinstance(error, OutcomeUnknown):
                raise
            _LOG.warning("An audit stopped after %d deletions: %s", len(deleted), error)
            return deleted, (
                f"{len(deleted)} of {len(orphans)} orphans are deleted. Then the database refused "
                "to write. Send the request again to go on."
            )
        deleted |= released
    return deleted, None


ROUTES = routes_of(CONSUMERS, run_audit)
