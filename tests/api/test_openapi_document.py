"""The OpenAPI document is valid and complete, in every version."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from roost.api.http.microversions import HISTORY, MAX_VERSION, Microversion
from roost.api.routes import ROUTES
from support.documented_answers import document_at, operations, parsed, references, whole_schema

VERSIONS = [str(version) for version, _ in HISTORY]


# The document is valid.


def problems(document: dict[str, Any]) -> list[str]:
    return [str(error.message)[:500] for error in OpenAPIV31SpecValidator(document).iter_errors()]


def test_the_document_of_all_versions_is_valid() -> None:
    document = deepcopy(document_at(None))
    assert problems(document) == []
    # The validator does find what is wrong.
    del document["paths"]["/traits/{name}"]["get"]["parameters"][0]
    assert problems(document)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_the_document_of_each_version_is_valid(version: str) -> None:
    assert problems(document_at(parsed(version))) == []


def test_references_lead_to_components() -> None:
    for version, _ in HISTORY:
        document = document_at(version)
        for reference in references(document):
            found: Any = document
            for part in reference.removeprefix("#/").split("/"):
                found = found[part]


def test_a_schema_names_the_versions_whose_documents_have_it() -> None:
    whole = document_at(None)["components"]["schemas"]
    for version, _ in HISTORY:
        for name, schema in document_at(version)["components"]["schemas"].items():
            choices = [part for title, part in whole.items() if title.startswith(f"{name}-")]
            (choice,) = [part for part in choices if holds(part, version)] or [whole[name]]
            assert bare(choice) == bare(schema), f"{name} at {version}"


def holds(part: dict[str, Any], version: Microversion) -> bool:
    bounds = part["x-openstack-microversions"]
    return parsed(bounds["min"]) <= version <= parsed(bounds.get("max", str(MAX_VERSION)))


def bare(schema: dict[str, Any]) -> dict[str, Any]:
    added = ("title", "description", "x-openstack-microversions")
    return {key: value for key, value in schema.items() if key not in added}


# The document is complete.


def test_every_route_is_an_operation_in_each_of_its_versions() -> None:
    for route in ROUTES:
        for version, _ in HISTORY:
            methods = document_at(version)["paths"].get(route.path or "/", {})
            exists = any(
                other.since <= version <= other.until
                for other in ROUTES
                if (other.path, other.method) == (route.path, route.method)
            )
            assert (route.method.lower() in methods) == exists, f"{route.method} {route.path}"


def test_every_operation_says_what_it_does_and_what_it_answers() -> None:
    for path, method, content in operations(None):
        what = f"{method} {path}"
        assert content["summary"], what
        assert content["description"].endswith("."), what
        assert any(status.startswith(("2", "3")) for status in content["responses"]), what
        assert all(
            parameter.get("description") or "$ref" in parameter
            for parameter in content["parameters"]
        ), what
        assert ("401" in content["responses"]) == (content.get("security") != []), what


def test_no_two_operations_have_one_name() -> None:
    names = [content["operationId"] for _, _, content in operations(None)]
    assert len(names) == len(set(names))
    # The root has two paths.
    assert len({route.id for route in ROUTES}) == len(ROUTES) - 1


@pytest.mark.parametrize("version", [None, *VERSIONS])
def test_examples_are_valid(version: str | None) -> None:
    document = document_at(parsed(version) if version else None)
    for path, method, content in operations(version):
        for where, schema, example in examples(document, content):
            validator = jsonschema_rs.Draft202012Validator(whole_schema(document, schema))
            assert validator.is_valid(example), f"{method} {path} {where} at {version}: {example}"


def examples(
    document: dict[str, Any], content: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Each example of an operation, with its schema."""
    parts = [("body", content.get("requestBody", {})), *content["responses"].items()]
    for where, part in parts:
        name = part.get("$ref", "").rsplit("/", 1)[-1]
        media = (document["components"]["responses"][name] if name else part).get("content", {})
        for entry in media.values():
            if "example" in entry:
                yield where, entry["schema"], entry["example"]
            for example in entry.get("examples", {}).values():
                yield where, entry["schema"], example["value"]
    for parameter in content["parameters"]:
        if "$ref" not in parameter:
            yield parameter["name"], parameter["schema"], parameter["example"]
