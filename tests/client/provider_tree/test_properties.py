"""ProviderTree compared with a model that finds each provider by a walk, as Nova does."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.client.provider_tree import ProviderTree
from support.properties import many

# With few values, names often equal names and uuids of other providers.
NAMES = ["a", "v", "w"]
UUIDS = ["u", "v", "w", "x"]
# A root hides all children with its name or uuid, so few values of roots are among these.
ROOT_NAMES = ["r", "r", "r1", "a"]
ROOT_UUIDS = ["r1", "r2", "r3", "u"]
PARENTS = ["r1", "r2", "r", *UUIDS]
ADDRESSES = sorted({*NAMES, *UUIDS, *ROOT_NAMES, *ROOT_UUIDS})

ProviderDict: TypeAlias = dict[str, Any]


@dataclass(eq=False)
class Node:
    name: str
    uuid: str
    children: list[Node] = field(default_factory=list)

    def top_down(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.top_down()

    def search(self, address: str) -> Node | None:
        if address in (self.name, self.uuid):
            return self
        for child in self.children:
            if child.uuid == address:
                return child
        for child in self.children:
            if child.name == address:
                return child
            found = child.search(address)
            if found is not None:
                return found
        return None


@dataclass
class Model:
    """A forest without any index."""

    roots: list[Node] = field(default_factory=list)

    def top_down(self) -> list[Node]:
        return [node for root in self.roots for node in root.top_down()]

    def find(self, address: str) -> Node | None:
        for root in self.roots:
            if root.uuid == address:
                return root
        for root in reversed(self.roots):
            if root.name == address:
                return root
        for root in self.roots:
            found = root.search(address)
            if found is not None:
                return found
        return None

    def with_uuid(self, uuid: str) -> Node | None:
        return next((node for node in self.top_down() if node.uuid == uuid), None)

    def demand(self, address: str) -> Node:
        found = self.find(address)
        if found is None:
            raise ValueError(address)
        return found

    def demand_unknown(self, address: str) -> None:
        if self.find(address) is not None:
            raise ValueError(address)

    def drop(self, dropped: Node) -> None:
        for siblings in [self.roots, *(node.children for node in self.top_down())]:
            if dropped in siblings:
                siblings.remove(dropped)

    def new_root(self, name: str, uuid: str) -> None:
        self.demand_unknown(uuid)
        self.roots.append(Node(name, uuid))

    def new_child(self, name: str, parent: str, uuid: str) -> None:
        self.demand_unknown(uuid)
        self.demand(parent).children.append(Node(name, uuid))

    def check_child_without_uuid(self, name: str, parent: str) -> None:
        self.demand_unknown(name)
        self.demand(parent)

    def remove(self, address: str) -> None:
        self.drop(self.demand(address))

    def populate(self, dicts: list[ProviderDict]) -> None:
        waiting = {entry["uuid"]: entry for entry in dicts}
        staying = copy.deepcopy(self)
        for uuid in waiting:
            replaced = staying.with_uuid(uuid)
            if replaced is not None:
                staying.drop(replaced)
        for entry in waiting.values():
            parent = entry["parent_provider_uuid"]
            if parent is not None and parent not in waiting and not staying.with_uuid(parent):
                raise ValueError(parent)
        while waiting:
            ready = [
                entry for entry in waiting.values() if entry["parent_provider_uuid"] not in waiting
            ]
            if not ready:
                raise ValueError("a cycle")
            for entry in ready:
                del waiting[entry["uuid"]]
                self._put(entry)

    def _put(self, entry: ProviderDict) -> None:
        replaced = self.with_uuid(entry["uuid"])
        if replaced is not None:
            self.drop(replaced)
        parent = entry["parent_provider_uuid"]
        node = None if parent is None else self.with_uuid(parent)
        (self.roots if node is None else node.children).append(Node(entry["name"], entry["uuid"]))

    def subtree(self, address: str) -> Model:
        node = self.demand(address)
        if node not in self.roots:
            raise ValueError(address)
        return Model([node])


@dataclass
class Pair:
    """A tree and its model, which undergo the same steps."""

    tree: ProviderTree = field(default_factory=ProviderTree)
    model: Model = field(default_factory=Model)

    def new_root(self, name: str, uuid: str) -> None:
        self.both(
            lambda: self.tree.new_root(name, uuid),
            lambda: self.model.new_root(name, uuid),
        )

    def new_child(self, name: str, parent: str, uuid: str) -> None:
        self.both(
            lambda: self.tree.new_child(name, parent, uuid),
            lambda: self.model.new_child(name, parent, uuid),
        )

    def new_child_without_uuid(self, name: str, parent: str) -> None:
        expected = raises(lambda: self.model.check_child_without_uuid(name, parent))
        try:
            uuid = self.tree.new_child(name, parent)
        except ValueError:
            assert expected
        else:
            assert not expected
            self.model.new_child(name, parent, uuid)

    def remove(self, address: str) -> None:
        self.both(lambda: self.tree.remove(address), lambda: self.model.remove(address))

    def populate(self, dicts: list[ProviderDict]) -> None:
        self.both(
            lambda: self.tree.populate_from_iterable(dicts),
            lambda: self.model.populate(dicts),
        )

    def subtree(self, address: str) -> None:
        expected = raises(lambda: self.model.subtree(address))
        assert raises(lambda: self.tree.subtree(address)) is expected
        if not expected:
            self.tree, self.model = self.tree.subtree(address), self.model.subtree(address)

    def deepcopy(self) -> None:
        self.tree = copy.deepcopy(self.tree)

    def pickle(self) -> None:
        self.tree = pickle.loads(pickle.dumps(self.tree))

    def both(self, in_tree: Callable[[], object], in_model: Callable[[], object]) -> None:
        assert raises(in_tree) is raises(in_model)

    def compare(self) -> None:
        nodes = self.model.top_down()
        assert self.tree.get_provider_uuids() == uuids(nodes)
        assert [root.uuid for root in self.tree.roots] == uuids(self.model.roots)
        for address in {*ADDRESSES, *uuids(nodes)}:
            node = self.model.find(address)
            assert self.tree.exists(address) is (node is not None)
            if node is not None:
                data = self.tree.data(address)
                assert (data.uuid, data.name) == (node.uuid, node.name)
                assert self.tree.get_provider_uuids(address) == uuids(node.top_down())
                (tree,) = (root for root in self.model.roots if node in root.top_down())
                assert self.tree.get_provider_uuids_in_tree(address) == uuids(tree.top_down())


def raises(action: Callable[[], object]) -> bool:
    try:
        action()
    except ValueError:
        return True
    return False


def uuids(nodes: Iterable[Node]) -> list[str]:
    return [node.uuid for node in nodes]


names = st.sampled_from(NAMES)
new_uuids = st.sampled_from(UUIDS)
parents = st.sampled_from(PARENTS)
addresses = st.sampled_from(ADDRESSES)
entries = st.fixed_dictionaries(
    {
        "uuid": new_uuids,
        "name": names,
        "parent_provider_uuid": st.sampled_from(["r1", "r2", *UUIDS, None]),
    }
)
# The steps and their weights. Additions are frequent, because names meet only in large trees.
STEPS: dict[str, tuple[int, st.SearchStrategy[tuple[Any, ...]]]] = {
    "new_root": (1, st.tuples(st.sampled_from(ROOT_NAMES), st.sampled_from(ROOT_UUIDS))),
    "new_child": (12, st.tuples(names, parents, new_uuids)),
    "new_child_without_uuid": (2, st.tuples(names, parents)),
    "populate": (4, st.tuples(st.lists(entries, max_size=3))),
    "remove": (2, st.tuples(addresses)),
    "subtree": (1, st.tuples(addresses)),
    "deepcopy": (1, st.tuples()),
    "pickle": (1, st.tuples()),
}
STEP_NAMES = [name for name, (weight, _) in STEPS.items() for _ in range(weight)]


@st.composite
def steps(draw: st.DrawFn) -> tuple[str, tuple[Any, ...]]:
    name = draw(st.sampled_from(STEP_NAMES))
    return name, draw(STEPS[name][1])


@settings(max_examples=many(100))
@given(st.lists(steps(), min_size=10, max_size=30))
def test_the_tree_finds_the_provider_that_a_walk_finds(
    script: list[tuple[str, tuple[Any, ...]]],
) -> None:
    pair = Pair()
    pair.new_root("r", "r1")
    pair.new_root("s", "r2")
    for name, arguments in script:
        getattr(pair, name)(*arguments)
        pair.compare()
