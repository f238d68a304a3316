"""Declarations of three owners, Placement writes and claims, in any order, against a model."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.api.application import Application
from roost.store.checks.checks import check_database
from roost.store.checks.findings import Level
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for
from support.properties import many
from support.store.table_cleaning import clean_tables

pytestmark = pytest.mark.hypothesis

OWNERS = ("x", "y", "z")
ROOT, CHILDREN = "r", ("a", "b", "c")
CLASSES = ("VCPU", "DISK_GB")
TRAITS = ("CUSTOM_ONE", "CUSTOM_TWO")
AGGREGATES = (str(UUID(int=71)), str(UUID(int=72)))
UUIDS = {name: str(UUID(int=number)) for number, name in enumerate((ROOT, *CHILDREN), 1)}

# A trait, an aggregate, or the class of an inventory: its kind and its name. `CREATED` stands for
# the provider itself.
Part: TypeAlias = tuple[str, str]
CREATED: Part = ("created", "")


@dataclass
class ModelProvider:
    """A provider: its traits and aggregates, and its inventories with their totals."""

    parent: str | None
    totals: dict[str, int] = field(default_factory=dict)
    names: set[Part] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    # What each owner owns.
    owned: dict[str, set[Part]] = field(default_factory=dict)

    def others(self, owner: str, part: Part) -> list[str]:
        """The owners of a part, without this one."""
        return [name for name, parts in self.owned.items() if part in parts and name != owner]


class Refused(Exception):
    """The model expects a conflict."""


@dataclass(frozen=True)
class Declared:
    """A declared provider."""

    parent: str | None
    totals: dict[str, int]
    names: frozenset[Part]


class Model:
    """The tree, by the names of its providers."""

    def __init__(self) -> None:
        self.tree: dict[str, ModelProvider] = {}

    def below(self, name: str) -> list[str]:
        return [child for child, each in self.tree.items() if each.parent == name]

    def depth(self, name: str) -> int:
        parent = self.tree[name].parent
        return 0 if parent is None else 1 + self.depth(parent)

    def declare(self, owner: str, wanted: dict[str, Declared], force: bool) -> int:
        """Change the model as the owner declares; the number of parts that are kept."""
        kept = sum(self._place(owner, name, each.parent, force) for name, each in wanted.items())
        for name in sorted(self.tree, key=self.depth, reverse=True):
            provider = self.tree[name]
            if name in wanted:
                is_owned = any(CREATED in parts for parts in provider.owned.values())
                kept += self._update(owner, provider, wanted[name], is_owned, force)
            elif provider.owned.get(owner):
                kept += self._withdraw(owner, name, force)
        return kept

    def _place(self, owner: str, name: str, parent: str | None, force: bool) -> int:
        found = self.tree.get(name)
        if found is None:
            self.tree[name] = ModelProvider(parent, owned={owner: {CREATED}})
            return 0
        if parent is None or found.parent == parent:
            return 0
        above: str | None = parent
        while above is not None:
            if above == name:
                return 1
            above = self.tree[above].parent
        for creator in found.others(owner, CREATED):
            if not force:
                raise Refused
            found.owned[creator].discard(CREATED)
            found.owned.setdefault(owner, set()).add(CREATED)
        if CREATED not in found.owned.get(owner, set()):
            return 1
        found.parent = parent
        return 0

    def _withdraw(self, owner: str, name: str, force: bool) -> int:
        provider = self.tree[name]
        mine = provider.owned[owner]
        nothing = Declared(None, {}, frozenset())
        if CREATED not in mine or provider.others(owner, CREATED):
            return self._update(owner, provider, nothing, False, force)
        foreign = provider.totals.keys() - {part for kind, part in mine if kind == "class"}
        others = any(parts for each, parts in provider.owned.items() if each != owner)
        if not provider.used and not foreign and not others and not self.below(name):
            del self.tree[name]
            return 0
        return 1 + self._update(owner, provider, nothing, True, force)

    def _update(
        self, owner: str, provider: ModelProvider, declared: Declared, created: bool, force: bool
    ) -> int:
        mine, now = provider.owned.get(owner, set()), set[Part]()
        names = set(declared.names)
        if created:
            now.add(CREATED)
            names.add(("trait", f"CUSTOM_ROOST_OWNER_{owner.upper()}"))
        for part in names:
            if part in mine or part not in provider.names or provider.others(owner, part):
                now.add(part)
        gone = {
            part
            for part in mine - names - {CREATED}
            if part[0] != "class" and not provider.others(owner, part)
        }
        provider.names = (provider.names - gone) | names
        kept = self._withdraw_classes(owner, provider, declared, now)
        for name, total in declared.totals.items():
            part, before = ("class", name), provider.totals.get(name)
            others = provider.others(owner, part)
            if before is None or before != total or part in mine or others:
                now.add(part)
            if before not in (None, total):
                for each in others:
                    if not force:
                        raise Refused
                    provider.owned[each].discard(part)
            provider.totals[name] = total
        provider.owned[owner] = now
        return kept

    def _withdraw_classes(
        self, owner: str, provider: ModelProvider, declared: Declared, now: set[Part]
    ) -> int:
        kept = 0
        for part in provider.owned.get(owner, set()):
            kind, name = part
            is_there = kind == "class" and name in provider.totals
            if not is_there or name in declared.totals or provider.others(owner, part):
                continue
            if name in provider.used:
                kept += 1
                now.add(part)
            else:
                del provider.totals[name]
        return kept

    def shown(self) -> dict[str, Any]:
        """The tree, with the owners of the parts that are there."""
        found = {}
        for name, each in self.tree.items():
            there = each.names | {("class", part) for part in each.totals} | {CREATED}
            owned = {owner: parts & there for owner, parts in each.owned.items()}
            found[name] = {
                "parent": each.parent,
                "totals": each.totals,
                "names": each.names,
                "owned": {owner: parts for owner, parts in owned.items() if parts},
            }
        return found


def shown(api: ApiClient) -> dict[str, Any]:
    """The tree of the server, in the words of the model."""
    answer = api.get(f"/roost/trees/{ROOT}")
    if answer.status == 404:
        return {}
    found = {}
    for each in answer.json["providers"]:
        found[each["name"]] = {
            "parent": each.get("parent"),
            "totals": {name: fields["total"] for name, fields in each["inventories"].items()},
            "names": _names(each),
            "owned": {owner: _owned(parts) for owner, parts in each["owners"].items()},
        }
    return found


def _names(body: dict[str, Any]) -> set[Part]:
    traits = {("trait", name) for name in body["traits"]}
    return traits | {("aggregate", uuid) for uuid in body["aggregates"]}


def _owned(parts: dict[str, Any]) -> set[Part]:
    classes = {("class", name) for name in parts["inventories"]}
    return _names(parts) | classes | ({CREATED} if parts["created"] else set())


# -- what happens

_totals = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 2), max_size=2)
_parts = st.frozensets(
    st.sampled_from([("trait", name) for name in TRAITS] + [("aggregate", u) for u in AGGREGATES]),
    max_size=2,
)


@st.composite
def declarations(draw: st.DrawFn) -> dict[str, Declared]:
    """A tree: the root and some children, each below one that comes before it; or nothing."""
    if draw(st.integers(0, 3)) == 0:
        return {}
    found = {ROOT: Declared(None, draw(_totals), draw(_parts))}
    order = draw(st.permutations(CHILDREN))
    for name in order[: draw(st.integers(1, 3))]:
        parent = draw(st.sampled_from(list(found)))
        found[name] = Declared(parent, draw(_totals), draw(_parts))
    return found


_NAMES = st.sampled_from((ROOT, *CHILDREN))
_FORCES = st.sampled_from([0, 0, 0, 1])
_DECLARING = st.tuples(st.just("declare"), st.sampled_from(OWNERS), declarations(), _FORCES)
_CLAIMING = st.tuples(st.just("claim"), _NAMES, st.sampled_from(CLASSES))
_STEPS = st.one_of(
    _DECLARING,
    _DECLARING,
    _DECLARING,
    _CLAIMING,
    _CLAIMING,
    st.tuples(st.just("create"), st.sampled_from(CHILDREN), _NAMES),
    st.tuples(st.just("delete"), _NAMES),
    st.tuples(st.just("inventory"), _NAMES, st.sampled_from(CLASSES), st.integers(0, 2)),
    st.tuples(st.just("parts"), _NAMES, _parts),
    st.tuples(st.just("release")),
)
# Most interleavings without a beginning would be about an empty tree.
_BEGINNING = [
    ("declare", "x", {ROOT: Declared(None, {"VCPU": 1}, frozenset({("trait", TRAITS[0])}))}, 0),
    ("create", "a", ROOT),
]


class Play:
    """Does each step on the server and in the model, and compares both."""

    def __init__(self, api: ApiClient) -> None:
        self.api = api
        self.model = Model()
        self.uuids: dict[str, str] = {}
        self.consumers: list[str] = []

    def do(self, step: tuple[Any, ...]) -> None:
        getattr(self, step[0])(*step[1:])
        assert shown(self.api) == self.model.shown(), step
        answer = self.api.get("/resource_providers").json
        self.uuids = {each["name"]: each["uuid"] for each in answer["resource_providers"]}

    def declare(self, owner: str, wanted: dict[str, Declared], force: int) -> None:
        bodies = []
        for name, each in wanted.items():
            body: dict[str, Any] = {
                "name": name,
                "inventories": each.totals,
                "traits": [part for kind, part in each.names if kind == "trait"],
                "aggregates": [part for kind, part in each.names if kind == "aggregate"],
            }
            bodies.append(
                body | ({"uuid": UUIDS[ROOT]} if name == ROOT else {"parent": each.parent})
            )
        path = f"/roost/trees/{ROOT}?owner={owner}&force={'true' if force else 'false'}"
        tried = self.api.put(f"{path}&dry_run=true", {"providers": bodies})
        done = self.api.put(path, {"providers": bodies})
        assert tried.status == done.status
        if not wanted and not self.model.tree:
            assert done.status == 404
            return
        after = deepcopy(self.model)
        try:
            kept = after.declare(owner, wanted, bool(force))
        except Refused:
            assert done.status == 409, done.body
            assert done.json["errors"][0]["code"] == "roost.owned_by_another"
            return
        assert done.status == 200, done.body
        assert tried.json == {**done.json, "dry_run": True}
        assert len(done.json["trees"][0]["kept"]) == kept, done.body
        self.model = after

    def _path(self, name: str, part: str = "") -> str:
        return f"/resource_providers/{self.uuids[name]}{part}"

    def _generation(self, name: str) -> dict[str, int]:
        found = self.api.get(self._path(name)).json["generation"]
        return {"resource_provider_generation": found}

    def create(self, name: str, parent: str) -> None:
        if name in self.model.tree or parent not in self.model.tree:
            return
        body = {"name": name, "parent_provider_uuid": self.uuids[parent]}
        assert self.api.post("/resource_providers", body).status == 200
        self.model.tree[name] = ModelProvider(parent)

    def delete(self, name: str) -> None:
        if name not in self.model.tree:
            return
        may = not self.model.below(name) and not self.model.tree[name].used
        assert self.api.delete(self._path(name)).status == (204 if may else 409)
        if may:
            del self.model.tree[name]

    def inventory(self, name: str, resource_class: str, total: int) -> None:
        provider = self.model.tree.get(name)
        if provider is None or (not total and resource_class in provider.used):
            return
        totals = {**provider.totals, resource_class: total}
        provider.totals = {key: value for key, value in totals.items() if value}
        inventories = {key: {"total": value} for key, value in provider.totals.items()}
        body = {"inventories": inventories} | self._generation(name)
        assert self.api.put(self._path(name, "/inventories"), body).status == 200

    def parts(self, name: str, parts: frozenset[Part]) -> None:
        """Give a provider other traits and aggregates; the traits of owners stay."""
        provider = self.model.tree.get(name)
        if provider is None:
            return
        marks = {part for part in provider.names if "ROOST_OWNER" in part[1]}
        provider.names = marks | parts
        for kind in ("trait", "aggregate"):
            members = sorted(part for found, part in provider.names if found == kind)
            body = {f"{kind}s": members} | self._generation(name)
            for member in members if kind == "trait" else ():
                self.api.put(f"/traits/{member}")
            answer = self.api.put(self._path(name, f"/{kind}s"), body)
            assert answer.status == 200, answer.body

    def claim(self, name: str, resource_class: str) -> None:
        provider = self.model.tree.get(name)
        may = provider is not None and resource_class in provider.totals
        if provider is None or not may or resource_class in provider.used:
            return
        consumer = str(UUID(int=1000 + len(self.consumers)))
        body = {
            "allocations": {self.uuids[name]: {"resources": {resource_class: 1}}},
            "project_id": "lab",
            "user_id": "ann",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert self.api.put(f"/allocations/{consumer}", body).status == 204
        self.consumers.append(consumer)
        provider.used.add(resource_class)

    def release(self) -> None:
        for consumer in self.consumers:
            assert self.api.delete(f"/allocations/{consumer}").status == 204
        self.consumers.clear()
        for provider in self.model.tree.values():
            provider.used.clear()


def test_any_order_of_declarations_writes_and_claims_is_as_the_model_says(
    database: Database, tmp_path: Path
) -> None:
    @settings(
        max_examples=many(16),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.lists(_STEPS, min_size=12, max_size=16))
    def play(steps: list[tuple[Any, ...]]) -> None:
        database.write_at_once(clean_tables)
        acted = Play(application_client(Application(settings_for(database, tmp_path), database)))
        for step in (*_BEGINNING, *steps):
            acted.do(step)
        findings = database.read(check_database)
        assert [found for found in findings if found.level is not Level.OK] == []

    play()
