"""What programs ask that watch the service; the version document; the OpenAPI document."""

from __future__ import annotations

from roost.api.openapi.operation import Operation, ParameterText, QueryString, Success
from roost.api.schemas.building import Versions, record, text
from roost.api.schemas.responses import operating as answers
from roost.metrics.exposition import CONTENT_TYPE as METRICS_TYPE

_TAG = "Operating"
_VERSION = QueryString(
    Versions(("1.0", record({}, {"version": text(r"^([0-9]{1,3}\.[0-9]{1,3}|latest)$")}))),
    {
        "version": ParameterText(
            "The microversion to describe, or `latest`. Without it, the document has all versions.",
            "1.39",
        )
    },
)

OPERATIONS = {
    "GET /": Operation(
        "show_versions",
        _TAG,
        "Show the microversions",
        "The oldest and the newest microversion of the service.",
        {200: Success("The versions.", answers.VERSIONS, headers=("cached",))},
    ),
    "GET /healthz": Operation(
        "show_health",
        _TAG,
        "Look whether the process lives",
        "The process answers, without a look at the database.",
        {200: Success("The process lives.", answers.HEALTH)},
    ),
    "GET /readyz": Operation(
        "show_readiness",
        _TAG,
        "Look whether the process can answer requests",
        "Checks the database, its schema and the forest. All clients of a second share one answer.",
        {
            200: Success("The process can answer requests.", answers.READINESS),
            503: Success("The process cannot answer requests now.", answers.READINESS),
        },
    ),
    "GET /metrics": Operation(
        "show_metrics",
        _TAG,
        "Show metrics",
        "The metrics of all workers, in the text format of Prometheus.",
        {200: Success("The metrics.", media_type=METRICS_TYPE)},
        {404: "The operator has turned metrics off."},
    ),
    "GET /roost/server": Operation(
        "show_server",
        _TAG,
        "Show the identity of the server",
        "A uuid that tells the database of the server from all others. All servers of a database "
        "have the same identity. A restored backup keeps it, and so does a copy, unless "
        "`roost db identity --renew` gives the copy another one.",
        {200: Success("The identity.", answers.SERVER)},
    ),
    "GET /roost/openapi.json": Operation(
        "show_openapi",
        _TAG,
        "Show this document",
        "The whole service as an OpenAPI document: every microversion, or a single one.",
        {
            200: Success("The document.", answers.OPENAPI, headers=("etag",)),
            304: Success("The client has this document: `If-None-Match` names its ETag."),
        },
        {400: "The version does not exist."},
        queries=(_VERSION,),
    ),
}
