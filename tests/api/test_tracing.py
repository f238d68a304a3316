"""Spans of requests, as an exporter of OpenTelemetry gets them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from roost.api.candidates import handler
from roost.api.observation import tracing
from support.api_client import ApiClient

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SPAN_ID = "b7ad6b7169203331"
QUERY = "/allocation_candidates?resources=VCPU:1"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What is exported, while a provider is configured."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr(tracing.LOOK, "due", 0.0)
    yield exporter
    provider.shutdown()


def server_span(exporter: InMemorySpanExporter) -> ReadableSpan:
    (found,) = [
        span for span in exporter.get_finished_spans() if span.kind is trace.SpanKind.SERVER
    ]
    return found


def test_a_request_is_a_span_with_the_attributes_of_http(
    api: ApiClient, spans: InMemorySpanExporter
) -> None:
    answer = api.get("/resource_providers/c0ffee00-0000-0000-0000-000000000001")
    span = server_span(spans)
    assert span.name == "GET /resource_providers/{uuid}"
    attributes = dict(span.attributes or {})
    assert attributes["http.request.method"] == "GET"
    assert attributes["http.route"] == "/resource_providers/{uuid}"
    assert attributes["http.response.status_code"] == answer.status == 404
    assert attributes["http.response.body.size"] == len(answer.body)
    assert attributes["url.path"] == "/resource_providers/c0ffee00-0000-0000-0000-000000000001"
    assert attributes["url.scheme"] == "http"
    assert attributes["openstack.request_id"] == answer.headers["x-openstack-request-id"]
    assert attributes["openstack.api.version"] == "1.39"
    assert span.status.status_code is trace.StatusCode.UNSET


def test_the_span_continues_the_trace_of_the_client(
    api: ApiClient, spans: InMemorySpanExporter
) -> None:
    api.get("/traits", traceparent=f"00-{TRACE_ID}-{SPAN_ID}-01")
    span = server_span(spans)
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == TRACE_ID
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == SPAN_ID


def test_stages_are_children_within_the_time_of_the_request(
    api: ApiClient, spans: InMemorySpanExporter
) -> None:
    api.get(QUERY)
    server = server_span(spans)
    stages = [span for span in spans.get_finished_spans() if span is not server]
    assert {span.name for span in stages} >= {"authentication", "freshness", "search", "render"}
    assert server.context is not None
    for span in stages:
        assert span.parent is not None
        assert span.parent.span_id == server.context.span_id
        assert server.start_time is not None
        assert span.start_time is not None
        assert span.end_time is not None
        assert server.end_time is not None
        assert server.start_time <= span.start_time <= span.end_time <= server.end_time


def test_after_a_request_its_span_is_not_the_current_one(
    api: ApiClient, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "_CANDIDATES_AT_ONCE_MAX", -1)
    api.get(QUERY)
    assert not trace.get_current_span().get_span_context().is_valid
    assert server_span(spans).end_time is not None


def test_without_a_provider_there_is_no_span(api: ApiClient) -> None:
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    assert api.get("/traits").status == 200
    assert not trace.get_current_span().get_span_context().is_valid
