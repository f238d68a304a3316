"""Bad input of every kind: the server does not fail, names the error, and writes no row."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote
from uuid import UUID, uuid4

import jsonschema
import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from roost.api.candidates.schemas import EXTENDED
from roost.api.handlers.resource_classes import NAME_IN_PATH
from roost.api.http.validation import Schema
from roost.api.routes import ROUTES
from roost.model.identifiers import is_uuid
from roost.store import tables
from roost.store.database import Database
from support.api_client import Answer, ApiClient
from support.properties import many
from support.store.setup_cache import SetupCache
from support.store.table_cleaning import clean_tables

# PostgreSQL and MariaDB differ only in how the database itself treats odd values.
EXAMPLES = {"sqlite": 30, "postgresql": 5, "mariadb": 5}
VERSIONS = tuple(f"1.{minor}" for minor in range(40))
METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS")

# Tables whose rows may stay after the request that wrote them is refused.
LASTING = {"projects", "users", "consumer_types"}
TABLES = [
    table
    for table in tables.metadata.sorted_tables
    if not table.name.startswith("roost_") and table.name not in LASTING
]

Json: TypeAlias = Any
Dump: TypeAlias = dict[str, frozenset[tuple[Any, ...]]]
# The version, method, path and body of a request that the server accepts.
Good: TypeAlias = tuple[str, str, str, Json]

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def examples(kind: str, share: float = 1.0) -> settings:
    return settings(
        max_examples=many(math.ceil(EXAMPLES[kind] * share)),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )


def dump(database: Database) -> Dump:
    """The rows that a refused request must not change, as the driver returns them."""

    def read(connection: Connection) -> Dump:
        return {
            table.name: frozenset(
                map(tuple, connection.exec_driver_sql(f"SELECT * FROM {table.name}"))
            )
            for table in TABLES
        }

    return database.read(read)


@dataclass
class RequestTarget:
    """A provider with inventories and an aggregate, its child, and a consumer."""

    api: ApiClient
    database: Database
    provider: str
    child: str
    consumer: str
    aggregate: str
    rows: Dump
    is_as_made: bool = True

    def send(self, version: str, method: str, path: str, body: Any, **headers: str) -> Answer:
        """The answer to a request. Any request must get a good answer."""
        before, was_as_made, self.is_as_made = self.rows, self.is_as_made, False
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.api.at(version).request(method, path, body, names)
        check_answer(answer, method)
        self.rows = dump(self.database)
        if answer.status >= 400:
            assert self.rows == before, f"a request refused with {answer.status} changed rows"
        self.is_as_made = was_as_made and self.rows == before
        return answer


def check_answer(answer: Answer, method: str = "GET") -> None:
    """The answer is no failure of the server, and a refusal has a specific text."""
    assert 200 <= answer.status < 500, answer.body
    if answer.status < 400 or method == "HEAD":
        return
    if answer.headers["content-type"] != "application/json":
        assert str(answer.status).encode() in answer.body
        return
    if answer.status == 401:
        assert answer.json["message"]
        return
    error = answer.error
    assert error["status"] == answer.status
    assert error["title"]
    assert error["request_id"] == answer.headers["x-openstack-request-id"]
    general, _, specific = error["detail"].partition("\n\n")
    assert general
    # The general sentence is enough for an unknown path or method.
    assert specific.strip() or answer.status in (404, 405)


def make_target(api: ApiClient) -> tuple[str, str, str, str]:
    """Fill the tables, and return the uuids of provider, child, consumer and aggregate."""
    provider, child, consumer, aggregate = (str(uuid4()) for _ in range(4))
    api.put("/traits/CUSTOM_TRAIT")
    api.put("/resource_classes/CUSTOM_CLASS")
    for uuid, parent in ((provider, None), (child, provider)):
        body = {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent}
        assert api.post("/resource_providers", body).status == 200
    path = f"/resource_providers/{provider}"
    records = {"VCPU": {"total": 8}, "CUSTOM_CLASS": {"total": 8}}
    generation = {"resource_provider_generation": 0}
    assert api.put(f"{path}/inventories", {"inventories": records} | generation).status == 200
    assert api.at("1.1").put(f"{path}/aggregates", [aggregate]).status == 200
    body = claim({provider: {"resources": {"VCPU": 2}}})
    assert api.put(f"/allocations/{consumer}", body).status == 204
    return provider, child, consumer, aggregate


@pytest.fixture
def new_target(
    api: ApiClient, database: Database, setup_cache: SetupCache
) -> Callable[[], RequestTarget]:
    """A maker of targets. The maker keeps a target until a request changes its rows."""
    kept: list[RequestTarget] = []

    def make() -> RequestTarget:
        if not kept or not kept[0].is_as_made:
            database.write_at_once(clean_tables)
            uuids = setup_cache.once(make_target, api)
            kept[:] = [RequestTarget(api, database, *uuids, dump(database))]
        return kept[0]

    return make


def claim(allocations: Json, generation: int | None = None) -> dict[str, Any]:
    return {
        "allocations": allocations,
        "project_id": "a project",
        "user_id": "a user",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def good_requests(target: RequestTarget) -> list[Good]:
    """One request for each route that takes a body, in each of its forms."""
    provider, path = target.provider, f"/resource_providers/{target.provider}"
    inventory = {
        "total": 8,
        "reserved": 1,
        "min_unit": 1,
        "max_unit": 8,
        "step_size": 1,
        "allocation_ratio": 1.5,
    }
    generation = {"resource_provider_generation": 2}
    by_provider = {provider: {"resources": {"VCPU": 1, "CUSTOM_CLASS": 2}, "generation": 1}}
    listed = [{"resource_provider": {"uuid": provider}, "resources": {"VCPU": 1}}]
    owner = {"project_id": "a project", "user_id": "a user"}
    held = claim(by_provider, generation=1) | {"mappings": {"1": [provider]}}
    fresh = claim({provider: {"resources": {"VCPU": 1}}})
    inventories = {"inventories": {"VCPU": inventory, "CUSTOM_CLASS": {"total": 9}}} | generation
    new = str(uuid4())
    return [
        ("1.0", "POST", "/resource_providers", {"name": new, "uuid": new}),
        ("1.39", "POST", "/resource_providers", {"name": new, "parent_provider_uuid": provider}),
        ("1.39", "PUT", path, {"name": new, "parent_provider_uuid": None}),
        ("1.39", "POST", "/resource_classes", {"name": "CUSTOM_OTHER"}),
        ("1.6", "PUT", "/resource_classes/CUSTOM_CLASS", {"name": "CUSTOM_OTHER"}),
        ("1.39", "POST", f"{path}/inventories", inventory | {"resource_class": "DISK_GB"}),
        ("1.39", "PUT", f"{path}/inventories", inventories),
        ("1.39", "PUT", f"{path}/inventories/VCPU", inventory | generation),
        ("1.1", "PUT", f"{path}/aggregates", [target.aggregate, new]),
        ("1.39", "PUT", f"{path}/aggregates", {"aggregates": [new]} | generation),
        ("1.39", "PUT", f"{path}/traits", {"traits": ["CUSTOM_TRAIT"]} | generation),
        ("1.0", "PUT", f"/allocations/{new}", {"allocations": listed}),
        ("1.8", "PUT", f"/allocations/{target.consumer}", {"allocations": listed} | owner),
        ("1.12", "PUT", f"/allocations/{new}", {"allocations": by_provider} | owner),
        ("1.39", "PUT", f"/allocations/{target.consumer}", held),
        ("1.13", "POST", "/allocations", {new: {"allocations": by_provider} | owner}),
        ("1.39", "POST", "/allocations", {target.consumer: held, new: fresh}),
        (
            "1.39",
            "POST",
            "/reshaper",
            {"inventories": {provider: inventories}, "allocations": {target.consumer: held}},
        ),
    ]


# --- odd values


def spell(uuid: str, form: int) -> str:
    """A UUID in one of its spellings, right or wrong."""
    plain = uuid.replace("-", "")
    return (
        uuid,
        uuid.upper(),
        plain,
        plain.upper(),
        f"{{{uuid}}}",
        f"urn:uuid:{uuid}",
        f"{plain[:5]}-{plain[5:]}",
        f" {plain[1:]}",
        f"{plain[:-1]}\n",
        f"0x{plain[2:]}",
        f"+{plain[1:]}",
        f"{plain[0]}_{plain[2:]}",
        plain.translate({ord("0"): "\u0660", ord("1"): "\u0661"}),
        f"{uuid}\n",
        f"{uuid}0",
        plain[:-1],
        "-" * 36,
        plain + "-" * 4,
    )[form % 18]


uuids = st.builds(spell, st.uuids().map(str), st.integers(0, 17))
odd_texts = st.one_of(
    st.sampled_from([
        "", " ", "\0", "a\0b", "VCPU\n", "vcpu", "CUSTOM_", "CUSTOM_\u00e9", "\u00e9", "\U0001f426",
        "\ud800", "\udfff x", "\ufeff", "\u202e", "x" * 201, "X" * 256, "X" * 5_000, "%s", "%00",
        "'; --", "<b>bold</b>", "{}", "null", "in:", "!", "!in:", ",", ":", "__proto__", "0" * 36,
    ]),
    st.text(max_size=20),
    uuids,
)  # fmt: skip
odd_numbers = st.one_of(
    st.sampled_from([
        0, -1, 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**63 - 1, 2**63, 2**64, 10**30, -(10**30),
        10**400, 1.0, 0.5, -0.0, 1e-320, 1e308, 3.5e38, -1e38, math.nan, math.inf, -math.inf,
    ]),
    st.integers(),
    st.floats(),
)  # fmt: skip
odd_values: st.SearchStrategy[Json] = st.recursive(
    st.one_of(st.none(), st.booleans(), odd_numbers, odd_texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(odd_texts, inner, max_size=3)
    ),
    max_leaves=6,
)


@dataclass(frozen=True)
class Mutation:
    """A change at one place of a JSON value, counted modulo the number of places."""

    place: int
    action: str
    key: str
    value: Json

    def apply(self, value: Json) -> Json:
        places = list(_places(value))
        return _changed(value, places[self.place % len(places)], self)


def _places(value: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _places(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _places(member, (*path, index))


def _changed(value: Json, path: tuple[Any, ...], mutation: Mutation) -> Json:
    """A copy of the value that differs at the path."""
    if not path:
        if mutation.action == "add" and isinstance(value, dict):
            return {**value, mutation.key: mutation.value}
        if mutation.action == "add" and isinstance(value, list):
            return [*value, mutation.value]
        if mutation.action == "wrap":
            return [value]
        return mutation.value
    first, rest = path[0], path[1:]
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    changed = []
    for key, member in pairs:
        if key != first:
            changed.append((key, member))
        elif rest or mutation.action in ("replace", "add", "wrap"):
            changed.append((key, _changed(member, rest, mutation)))
        elif mutation.action == "rename":
            changed.append((mutation.key, member))
        elif mutation.action == "double":
            changed += [(key, member), (f"{key}0", member)]
    return dict(changed) if isinstance(value, dict) else [member for _, member in changed]


mutations = st.lists(
    st.builds(
        Mutation,
        place=st.integers(0, 60),
        action=st.sampled_from(["replace", "replace", "add", "remove", "rename", "double", "wrap"]),
        key=odd_texts,
        value=odd_values,
    ),
    min_size=1,
    max_size=2,
)


def mutated(value: Json, changes: Sequence[Mutation]) -> Json:
    for change in changes:
        value = change.apply(value)
    return value


def spoil(data: bytes, how: str, at: int) -> bytes:
    """The bytes of a body, damaged in one way."""
    at %= len(data) + 1
    pieces = {
        "truncated": data[:at],
        "not UTF-8": data[:at] + b"\xff" + data[at:],
        "encoded surrogate": data[:at] + b"\xed\xa0\x80" + data[at:],
        "NUL": data[:at] + b"\0" + data[at:],
        "escaped NUL": data.replace(b'"', b'"\\u0000', 1),
        "byte order mark": b"\xef\xbb\xbf" + data,
        "UTF-16": data.decode().encode("utf-16"),
        "repeated": data + data,
        "trailing comma": data[:-1] + b"," + data[-1:],
        "comment": b"/* */" + data,
        "single quotes": data.replace(b'"', b"'"),
        "doubled keys": data[:-1] + b',"allocations":5,"allocations":5}',
        "empty": b"",
        "blank": b" \n",
        "not a number": data.replace(b"1", b"NaN"),
        "infinite": data.replace(b"1", b"-Infinity"),
        "leading zero": data.replace(b"1", b"01"),
        "exponent": data.replace(b"1", b"1e999"),
    }
    return pieces[how]


SPOILS = (
    "truncated", "not UTF-8", "encoded surrogate", "NUL", "escaped NUL", "byte order mark",
    "UTF-16", "repeated", "trailing comma", "comment", "single quotes", "doubled keys", "empty",
    "blank", "not a number", "infinite", "leading zero", "exponent",
)  # fmt: skip


@pytest.mark.hypothesis
class TestBodies:
    def test_mutated_bodies_get_a_good_answer(
        self, new_target: Callable[[], RequestTarget], kind: str
    ) -> None:
        @examples(kind, share=1.5)
        @given(which=st.integers(0, 17), changes=mutations)
        def check(which: int, changes: list[Mutation]) -> None:
            target = new_target()
            version, method, path, body = good_requests(target)[which]
            data = json.dumps(mutated(body, changes)).encode()
            target.send(version, method, path, data)

        check()

    def test_bodies_without_a_mutation_are_accepted(
        self, new_target: Callable[[], RequestTarget]
    ) -> None:
        """A mutation of a body that is refused anyway tests little."""
        for which in range(18):
            target = new_target()
            version, method, path, body = good_requests(target)[which]
            answer = target.send(version, method, path, body)
            assert answer.status < 300, (method, path, answer.body)

    @on_sqlite
    def test_bodies_of_another_request_get_a_good_answer(
        self, new_target: Callable[[], RequestTarget]
    ) -> None:
        @examples("sqlite")
        @given(
            path_of=st.integers(0, 17),
            body_of=st.integers(0, 17),
            version=st.sampled_from(VERSIONS),
        )
        def check(path_of: int, body_of: int, version: str) -> None:
            target = new_target()
            good = good_requests(target)
            _, method, path, _ = good[path_of]
            target.send(version, method, path, good[body_of][3])

        check()

    def test_arbitrary_json_gets_a_good_answer(
        self, new_target: Callable[[], RequestTarget], kind: str
    ) -> None:
        @examples(kind, share=0.5)
        @given(which=st.integers(0, 17), body=odd_values)
        def check(which: int, body: Json) -> None:
            target = new_target()
            version, method, path, _ = good_requests(target)[which]
            target.send(version, method, path, json.dumps(body).encode())

        check()

    @on_sqlite
    def test_arbitrary_bytes_are_refused(self, new_target: Callable[[], RequestTarget]) -> None:
        @examples("sqlite", share=0.5)
        @given(which=st.integers(0, 17), data=st.binary(max_size=60))
        def check(which: int, data: bytes) -> None:
            target = new_target()
            version, method, path, _ = good_requests(target)[which]
            assert target.send(version, method, path, data).status == 400

        check()

    @on_sqlite
    @pytest.mark.parametrize("how", SPOILS)
    def test_spoilt_bytes_get_a_good_answer(
        self, new_target: Callable[[], RequestTarget], how: str
    ) -> None:
        @settings(max_examples=many(6))
        @given(which=st.integers(0, 17), at=st.integers(0, 400))
        def check(which: int, at: int) -> None:
            target = new_target()
            version, method, path, body = good_requests(target)[which]
            target.send(version, method, path, spoil(json.dumps(body).encode(), how, at))

        check()

    @on_sqlite
    @pytest.mark.parametrize("depth", [200, 400, 600, 1000, 1024, 1025, 100_000])
    @pytest.mark.parametrize(
        "nest",
        [
            lambda depth: b"[" * depth + b"]" * depth,
            lambda depth: b'{"allocations":' * depth + b"{}" + b"}" * depth,
            lambda depth: b'{"a":[' * (depth // 2) + b"null" + b"]}" * (depth // 2),
            lambda depth: b"[" * depth + b'"\\u0000"' + b"]" * depth,
            lambda depth: b'{"a":' * depth + b'"\\u0000"' + b"}" * depth,
            lambda depth: b"[" * depth + b" " * 100_000 + b"]" * depth,
        ],
        ids=["lists", "objects", "both", "lists around NUL", "objects around NUL", "wide lists"],
    )
    def test_a_deeply_nested_body_is_refused(
        self, api: ApiClient, nest: Callable[[int], bytes], depth: int
    ) -> None:
        answer = api.put(f"/allocations/{uuid4()}", nest(depth))
        check_answer(answer)
        assert answer.status == 400

    @on_sqlite
    @pytest.mark.parametrize("depth", [100, 600, 1000])
    def test_a_deeply_nested_member_is_refused(self, api: ApiClient, depth: int) -> None:
        data = b'{"name": "x", "odd": ' + b"[" * depth + b"]" * depth + b"}"
        answer = api.post("/resource_providers", data)
        check_answer(answer)
        assert answer.status == 400

    @on_sqlite
    @pytest.mark.parametrize(
        "body",
        [
            {"name": "x" * 1_000_000},
            {"name": "x", "odd": list(range(100_000))},
            {"name": "x", **{f"odd {number}": 1 for number in range(20_000)}},
            [{"name": "x"}] * 50_000,
        ],
        ids=["text", "list", "members", "records"],
    )
    def test_an_error_does_not_repeat_a_large_body(self, api: ApiClient, body: Json) -> None:
        answer = api.post("/resource_providers", body)
        assert answer.status == 400
        assert len(answer.body) < 100_000

    @on_sqlite
    def test_the_last_of_duplicate_keys_counts(self, api: ApiClient) -> None:
        data = b'{"name": "first", "name": "last"}'
        assert api.post("/resource_providers", data).json["name"] == "last"

    @on_sqlite
    @pytest.mark.parametrize(
        "literal", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1" + b"0" * 400, b"1" * 5_000]
    )
    def test_a_number_outside_json_is_refused(
        self, new_target: Callable[[], RequestTarget], literal: bytes
    ) -> None:
        target = new_target()
        data = b'{"resource_class": "DISK_GB", "total": 1, "allocation_ratio": ' + literal + b"}"
        answer = target.send(
            "1.39", "POST", f"/resource_providers/{target.provider}/inventories", data
        )
        assert answer.status == 400


@pytest.mark.hypothesis
class TestSpellingsOfUuids:
    @staticmethod
    def reading(text: str) -> str | None:
        """The canonical form of a UUID in any correct spelling, or `None`."""
        plain = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
        return str(UUID(plain)) if re.fullmatch(r"[0-9a-fA-F]{32}", plain) else None

    def test_a_provider_gets_the_canonical_form_of_its_uuid(
        self, new_target: Callable[[], RequestTarget], kind: str
    ) -> None:
        @examples(kind, share=0.5)
        @given(text=uuids)
        def check(text: str) -> None:
            target = new_target()
            body = {"name": "spelt", "uuid": text}
            answer = target.send("1.39", "POST", "/resource_providers", body)
            expected = self.reading(text)
            assert answer.status == (400 if expected is None else 200)
            assert expected is None or answer.json["uuid"] == expected

        check()

    def test_a_consumer_gets_the_canonical_form_of_its_uuid(
        self, new_target: Callable[[], RequestTarget], api: ApiClient, kind: str
    ) -> None:
        @examples(kind, share=0.5)
        @given(text=uuids)
        def check(text: str) -> None:
            target = new_target()
            body = claim({target.provider: {"resources": {"VCPU": 1}}})
            answer = target.send("1.39", "PUT", f"/allocations/{quote(text, safe='')}", body)
            expected = self.reading(text)
            assert answer.status == (400 if expected is None else 204)
            found = api.get(f"/resource_providers/{target.provider}/allocations").json
            assert expected is None or expected in found["allocations"]

        check()

    def test_aggregates_are_stored_in_canonical_form(
        self, new_target: Callable[[], RequestTarget], api: ApiClient, kind: str
    ) -> None:
        @examples(kind, share=0.5)
        @given(text=uuids)
        def check(text: str) -> None:
            target = new_target()
            path = f"/resource_providers/{target.child}/aggregates"
            answer = target.send("1.1", "PUT", path, [text])
            expected = self.reading(text)
            assert answer.status == (400 if expected is None else 200)
            shown = api.at("1.1").get(path).json["aggregates"]
            assert shown == ([] if expected is None else [expected])

        check()

    def test_spellings_in_paths_and_bodies_get_a_good_answer(
        self, new_target: Callable[[], RequestTarget], kind: str
    ) -> None:
        @examples(kind)
        @given(which=st.integers(0, 17), forms=st.lists(st.integers(0, 17), min_size=4, max_size=4))
        def check(which: int, forms: list[int]) -> None:
            target = new_target()
            version, method, path, body = good_requests(target)[which]
            data = json.dumps(body)
            known = (target.provider, target.child, target.consumer, target.aggregate)
            for uuid, form in zip(known, forms, strict=True):
                path = path.replace(uuid, quote(spell(uuid, form), safe=""))
                data = data.replace(uuid, json.dumps(spell(uuid, form))[1:-1])
            target.send(version, method, path, data.encode())

        check()


@pytest.mark.hypothesis
class TestQueries:
    KEYS = (
        "name", "uuid", "member_of", "resources", "in_tree", "required", "associated", "project_id",
        "user_id", "consumer_type", "limit", "foo", "", "__class__",
    )  # fmt: skip

    def test_odd_queries_get_a_good_answer(
        self, new_target: Callable[[], RequestTarget], kind: str
    ) -> None:
        values = st.one_of(
            odd_texts.map(lambda text: quote(text, safe="", errors="surrogatepass")),
            st.binary(max_size=12).map(lambda data: quote(data, safe="")),
            st.sampled_from([
                "VCPU:1", "VCPU:0", f"VCPU:{'9' * 5000}", "VCPU:-1", "VCPU:1,VCPU", "VCPU:%D9%A1",
                "in:CUSTOM_TRAIT", "!CUSTOM_TRAIT", "startswith:CUSTOM", "startswith:%25", "TRUE",
                "all", "unknown", "a&b", "=", "%", "%zz",
            ]),
            st.integers(1, 100_000).map(lambda length: "x" * length),
        )  # fmt: skip
        pairs = st.lists(
            st.tuples(st.one_of(st.sampled_from(self.KEYS), odd_texts), values), max_size=4
        )
        target = new_target()
        paths = (
            "/resource_providers",
            "/traits",
            "/usages",
            f"/resource_providers/{target.provider}",
            f"/resource_providers/{target.provider}/usages",
            f"/allocations/{target.consumer}",
            "/",
        )

        @examples(kind)
        @given(path=st.sampled_from(paths), pairs=pairs, version=st.sampled_from(VERSIONS))
        def check(path: str, pairs: list[tuple[str, str]], version: str) -> None:
            query = "&".join(
                f"{quote(key, safe='', errors='surrogatepass')}={value}" for key, value in pairs
            )
            target.send(version, "GET", f"{path}?{query}", None)

        check()

    @on_sqlite
    def test_arbitrary_queries_get_a_good_answer(
        self, new_target: Callable[[], RequestTarget]
    ) -> None:
        target = new_target()
        raw = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"))

        @examples("sqlite", share=0.5)
        @given(
            path=st.sampled_from(["/resource_providers", "/traits", "/usages"]),
            query=raw,
            version=st.sampled_from(VERSIONS),
        )
        def check(path: str, query: str, version: str) -> None:
            target.send(version, "GET", f"{path}?{query}", None)

        check()


@pytest.mark.hypothesis
class TestPaths:
    def test_odd_names_in_known_paths_get_a_good_answer(
        self, new_target: Callable[[], RequestTarget], kind: str
    ) -> None:
        templates = (
            "/resource_providers/{}", "/resource_providers/{}/inventories",
            "/resource_providers/{}/inventories/{}", "/resource_providers/{}/usages",
            "/resource_providers/{}/aggregates", "/resource_providers/{}/traits",
            "/resource_providers/{}/allocations", "/resource_classes/{}", "/traits/{}",
            "/allocations/{}", "/{}", "/{}/{}", "/resource_providers/{}/{}",
        )  # fmt: skip
        segments = st.one_of(
            odd_texts.map(lambda text: quote(text, safe="", errors="surrogatepass")),
            st.binary(max_size=8).map(lambda data: quote(data, safe="")),
            st.sampled_from(["VCPU", "vcpu", "CUSTOM_CLASS", "CUSTOM_TRAIT", "HW_CPU_X86_VMX"]),
            st.sampled_from(["provider", "child", "consumer"]).map("={}".format),
        )

        @examples(kind)
        @given(
            template=st.sampled_from(templates),
            names=st.tuples(segments, segments),
            method=st.sampled_from(METHODS),
            version=st.sampled_from(VERSIONS),
            body=st.sampled_from([None, b"{}", b"[]", b'{"name": "CUSTOM_OTHER"}']),
        )
        def check(
            template: str, names: tuple[str, str], method: str, version: str, body: bytes | None
        ) -> None:
            target = new_target()
            known = (getattr(target, name[1:]) if name.startswith("=") else name for name in names)
            target.send(version, method, template.format(*known), body)

        check()


@pytest.mark.hypothesis
class TestHeaders:
    # The characters that a WSGI server accepts in the value of a header.
    TEXT = st.text(
        st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30
    )
    VERSION = st.one_of(
        st.sampled_from([
            "", "placement", "placement 1", "placement 1.", "placement .1", "placement 1.40",
            "placement 2.0", "placement -1.-1", "placement 1.4 x", "placement 1.2.3",
            "placement latest", "placement LATEST", "latest", "compute 2.1", ",,,",
            "compute 2.1, placement 1.39", f"placement 1.{'9' * 5000}", "placement \xb2.\xb9",
            "PLACEMENT\t1.10", "placement 1_0.1",
        ]),
        TEXT.map("placement {}".format),
        TEXT,
    )  # fmt: skip
    ACCEPT = st.one_of(
        st.sampled_from([
            "", "*/*", "text/html", "text/*", "application/json;q=0", "application/json;q=x", ";;",
            "text/plain;q=0.5,*/*;q=0.1", "image/png", ",", "/", "a/b/c", "application/json" * 500,
        ]),
        TEXT,
    )  # fmt: skip
    CONTENT_TYPE = st.one_of(
        st.sampled_from([
            "", "application/json", "application/json; charset=utf-16", "APPLICATION/JSON", ";",
            "text/plain", "application/json-patch+json", "application/jsonx", " application/json ",
        ]),
        TEXT,
    )  # fmt: skip
    CONTENT_LENGTH = st.one_of(
        st.sampled_from(["", "0", "1", "-1", "+1", "1.0", "x", "\xb2", " 1", "1 ", "0x1", "1_0"]),
        st.integers(0, 2**70).map(str),
        TEXT,
    )

    @on_sqlite
    def test_odd_headers_get_a_good_answer(self, new_target: Callable[[], RequestTarget]) -> None:
        @examples("sqlite", share=1.5)
        @given(
            which=st.integers(0, 17),
            headers=st.fixed_dictionaries(
                {},
                optional={
                    "openstack_api_version": self.VERSION,
                    "accept": self.ACCEPT,
                    "content_type": self.CONTENT_TYPE,
                    "content_length": self.CONTENT_LENGTH,
                    "x_auth_token": self.TEXT,
                    "x_roles": self.TEXT,
                    "x_project_id": self.TEXT,
                    "openstack_system_scope": self.TEXT,
                    "x_openstack_request_id": self.TEXT,
                    "host": self.TEXT,
                },
            ),
            reads=st.booleans(),
        )
        def check(which: int, headers: dict[str, str], reads: bool) -> None:
            target = new_target()
            version, method, path, body = good_requests(target)[which]
            if reads:
                target.send(version, "GET", path, None, **headers)
            else:
                target.send(version, method, path, body, **headers)

        check()

    @on_sqlite
    @pytest.mark.parametrize("digits", [20, 4_300, 4_301, 70_000])
    def test_a_length_of_thousands_of_digits_is_refused(self, api: ApiClient, digits: int) -> None:
        answer = api.post("/resource_providers", {"name": "x"}, content_length="9" * digits)
        check_answer(answer)
        assert answer.status in (400, 413)

    @on_sqlite
    @pytest.mark.parametrize("digits", [20, 4_301])
    def test_a_version_of_thousands_of_digits_is_refused(self, api: ApiClient, digits: int) -> None:
        answer = api.get("/resource_providers", openstack_api_version=f"placement 1.{'9' * digits}")
        check_answer(answer)
        assert answer.status in (400, 406)


def all_schemas() -> Iterator[tuple[str, Schema]]:
    """Every schema whose refusals clients get in the words of the Python validator."""
    yield "a name in a path", NAME_IN_PATH
    yield "the query of /roost/candidates", EXTENDED
    for route in ROUTES:
        if route.path.startswith("/roost/"):
            continue
        parts = [query.schemas for query in route.queries]
        parts += [] if route.body is None else [route.body.schemas]
        for number, versions in enumerate(parts):
            for since, schema in versions.entries:
                yield f"{route.id} {number} {since}", schema


def python_validator(schema: Schema) -> jsonschema.Draft7Validator:
    """The Python library's validator of a schema."""
    formats = jsonschema.FormatChecker(formats=())
    formats.checks("uuid")(lambda value: not isinstance(value, str) or is_uuid(value))
    return jsonschema.Draft7Validator(schema.document, format_checker=formats)


SCHEMAS = [(name, schema, python_validator(schema)) for name, schema in all_schemas()]


def valid_instances(document: dict[str, Any], drawn: random.Random) -> Json:
    """A value that the document describes. The keywords of the schemas are supported."""
    kinds = document.get("type", "object")
    kind = drawn.choice(kinds) if isinstance(kinds, list) else kinds
    make: dict[str, Callable[[], Json]] = {
        "null": lambda: None,
        "integer": lambda: drawn.choice([document.get("minimum", 0), 1, 7, 3.0]),
        "number": lambda: drawn.choice([1, 1.5, 0, -2]),
        "string": lambda: _valid_text(document, drawn),
        "array": lambda: [
            valid_instances(document["items"], drawn) for _ in range(drawn.randint(1, 2))
        ],
        "object": lambda: _valid_object(document, drawn),
    }
    return make[kind]()


def _valid_text(document: dict[str, Any], drawn: random.Random) -> str:
    if document.get("format") == "uuid":
        return str(UUID(int=drawn.getrandbits(128)))
    if "enum" in document:
        return str(drawn.choice(document["enum"]))
    pattern = document.get("pattern", "")
    if pattern.startswith("^[1-9]"):
        return str(drawn.randint(1, 10**30))
    name = drawn.choice(["X", "A_B", "0", "VCPU", "_"])
    return f"CUSTOM_{name}" if pattern.startswith("^CUSTOM_") else name


def _valid_object(document: dict[str, Any], drawn: random.Random) -> Json:
    members = {}
    for name, member in document.get("properties", {}).items():
        if name in document["required"] or drawn.random() < 0.7:
            members[name] = valid_instances(member, drawn)
    for pattern, member in document.get("patternProperties", {}).items():
        for _ in range(drawn.randint(1, 2)):
            members[_valid_key(pattern, drawn)] = valid_instances(member, drawn)
    return members


def _valid_key(pattern: str, drawn: random.Random) -> str:
    if "{36}" in pattern:
        return str(UUID(int=drawn.getrandbits(128)))
    # A key that may have a suffix.
    if pattern.endswith(")?$"):
        word, _, _ = pattern.removeprefix("^").partition("(")
        return word + drawn.choice(["", "1", "42"])
    return drawn.choice(["VCPU", "DISK_GB", "CUSTOM_X"])


def _ends_with_line_feed(value: Json) -> bool:
    if isinstance(value, dict):
        return any(_ends_with_line_feed(item) for pair in value.items() for item in pair)
    if isinstance(value, list):
        return any(map(_ends_with_line_feed, value))
    return isinstance(value, str) and value.endswith("\n")


class TestTheTwoValidators:
    """The native validator decides. The Python validator words the refusal, so both must agree."""

    @examples("sqlite", share=2 / 3)
    @given(seed=st.integers(0, 2**16), changes=st.one_of(st.just([]), mutations))
    def test_both_validators_agree(self, seed: int, changes: list[Mutation]) -> None:
        """Each change is tried on every schema, because a new change takes longer than a check."""
        for name, schema, python in SCHEMAS:
            sent = mutated(valid_instances(schema.document, random.Random(seed)), changes)
            try:
                instance = orjson.loads(json.dumps(sent))
            except orjson.JSONDecodeError:
                continue
            if _ends_with_line_feed(instance):
                continue
            valid = python.is_valid(instance)
            assert changes or valid, f"{name} refuses a value that its document describes"
            # The native validator alone decides whether there is a problem.
            assert (schema.problem(instance) is None) == valid, name

    @pytest.mark.parametrize("name", ["CUSTOM_X\n", "CUSTOM_\n"])
    def test_a_line_feed_at_the_end_of_a_name_is_refused_with_a_text(
        self, api: ApiClient, name: str
    ) -> None:
        answer = api.post("/resource_classes", {"name": name})
        check_answer(answer)
        assert answer.status == 400
