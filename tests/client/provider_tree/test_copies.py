"""ProviderTree: copies, pickles, subtrees, the lock, and large or deep trees."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from roost.client.provider_tree import ProviderSubTree, ProviderTree

DEPTH = 3000


@pytest.fixture
def tree() -> ProviderTree:
    tree = ProviderTree()
    tree.new_root("host", "host-uuid", generation=1)
    tree.new_child("cell", "host", "cell-uuid")
    tree.new_root("storage", "storage-uuid")
    tree.update_inventory("cell", {"VCPU": {"total": 8, "tags": ["a"]}, "DISK_GB": {"total": 1}})
    tree.add_traits("cell", "CUSTOM_CELL")
    tree.add_aggregates("cell", "aggregate")
    tree.update_resources("cell", {"PCPU": {(1, 2)}})
    return tree


def everything(tree: ProviderTree) -> list[Any]:
    return [tree.data(uuid) for uuid in tree.get_provider_uuids()]


def change_everything(tree: ProviderTree) -> None:
    # The methods replace values; only the stored objects can be changed in place. Nova's tests use
    # `_find_with_lock` as well.
    for root in tree.roots:
        root.generation = 99
    cell = tree._find_with_lock("cell")
    cell.inventory["VCPU"]["tags"].append("b")
    cell.inventory["DISK_GB"]["total"] = 2
    cell.inventory["VGPU"] = {}
    cell.resources["PCPU"].add((3, 4))
    tree.add_traits("cell", "CUSTOM_MORE")
    tree.add_aggregates("cell", "more")
    tree.new_child("new", "cell", "new-uuid")
    tree.remove("storage")
    tree.new_root("another", "another-uuid")


def pickled(tree: ProviderTree) -> ProviderTree:
    copied: ProviderTree = pickle.loads(pickle.dumps(tree))
    return copied


COPIES: dict[str, Callable[[ProviderTree], ProviderTree]] = {
    "deepcopy": copy.deepcopy,
    "pickle": pickled,
    "copy": copy.copy,
}
EACH_COPY = pytest.mark.parametrize("way", COPIES)


# -- copies


@EACH_COPY
def test_a_copy_equals_the_tree(tree: ProviderTree, way: str) -> None:
    copied = COPIES[way](tree)
    assert type(copied) is ProviderTree
    assert everything(copied) == everything(tree)
    assert [root.uuid for root in copied.roots] == ["host-uuid", "storage-uuid"]
    assert copied.get_provider_uuids_in_tree("cell") == ["host-uuid", "cell-uuid"]


@EACH_COPY
def test_a_change_of_the_tree_does_not_change_its_copy(tree: ProviderTree, way: str) -> None:
    before = everything(tree)
    copied = COPIES[way](tree)
    change_everything(tree)
    assert everything(copied) == before
    assert not copied.exists("new")
    assert copied.exists("storage")


@EACH_COPY
def test_a_copy_can_be_changed_like_any_tree(tree: ProviderTree, way: str) -> None:
    before = everything(tree)
    copied = COPIES[way](tree)
    change_everything(copied)
    assert copied.get_provider_uuids() == ["host-uuid", "cell-uuid", "new-uuid", "another-uuid"]
    assert everything(tree) == before


@EACH_COPY
def test_an_empty_tree_can_be_copied(way: str) -> None:
    assert COPIES[way](ProviderTree()).get_provider_uuids() == []


@EACH_COPY
def test_a_copy_keeps_the_order_of_roots_and_siblings(tree: ProviderTree, way: str) -> None:
    for parent in ("cell", "host", "cell", "storage"):
        tree.new_child("same", parent, f"{len(tree.get_provider_uuids())}")
    tree.populate_from_iterable([{"uuid": "host-uuid", "name": "host"}])
    tree.new_child("same", "host", "last")
    copied = COPIES[way](tree)
    assert copied.get_provider_uuids() == tree.get_provider_uuids()
    assert copied.data("same") == tree.data("same")


@EACH_COPY
def test_a_copy_of_a_subtree_is_a_subtree(tree: ProviderTree, way: str) -> None:
    subtree = tree.subtree("host-uuid")
    copied = COPIES[way](subtree)
    assert isinstance(copied, ProviderSubTree)
    assert copied.scope_rp_uuid == "host-uuid"
    assert everything(copied) == everything(subtree)


def test_a_reference_to_the_tree_itself_becomes_one_to_the_copy() -> None:
    class SelfReferring(ProviderTree):
        def __init__(self) -> None:
            super().__init__()
            self.itself = self

    copied = copy.deepcopy(SelfReferring())
    assert copied.itself is copied


def test_two_references_to_a_tree_become_two_references_to_one_copy(tree: ProviderTree) -> None:
    first, second = copy.deepcopy([tree, tree])
    assert first is second


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_tree_can_be_pickled_with_every_protocol(tree: ProviderTree, protocol: int) -> None:
    assert everything(pickle.loads(pickle.dumps(tree, protocol))) == everything(tree)


# -- subtrees


@pytest.mark.parametrize("root", ["host-uuid", "host"])
def test_a_subtree_has_one_tree_and_the_given_scope(tree: ProviderTree, root: str) -> None:
    subtree = tree.subtree(root)
    assert isinstance(subtree, ProviderSubTree)
    assert subtree.scope_rp_uuid == root
    assert everything(subtree) == everything(tree)[:2]


def test_a_subtree_leaves_out_sharing_providers(tree: ProviderTree) -> None:
    tree.add_traits("storage", "MISC_SHARES_VIA_AGGREGATE")
    tree.add_aggregates("storage", "aggregate")
    subtree = tree.subtree("host")
    assert not subtree.exists("storage")
    assert not subtree.exists("storage-uuid")


def test_a_change_of_a_subtree_does_not_change_the_tree(tree: ProviderTree) -> None:
    subtree = tree.subtree("host")
    before = everything(subtree)
    change_everything(tree)
    assert everything(subtree) == before


def test_only_a_root_has_a_subtree(tree: ProviderTree) -> None:
    with pytest.raises(ValueError, match=r"cell is not a root.*host-uuid"):
        tree.subtree("cell")


def test_the_scope_of_a_subtree_cannot_be_assigned() -> None:
    subtree = ProviderSubTree(scope_rp_uuid="host-uuid")
    assert subtree.get_provider_uuids() == []
    read_only = "scope_rp_uuid"
    with pytest.raises(AttributeError):
        setattr(subtree, read_only, "another")


# -- the lock


def test_all_trees_of_the_process_have_the_same_lock(tree: ProviderTree) -> None:
    others = [ProviderTree(), tree.subtree("host"), *(way(tree) for way in COPIES.values())]
    assert all(other.lock is tree.lock for other in others)


def test_other_threads_wait_for_the_lock(tree: ProviderTree) -> None:
    entered: list[bool] = []

    def enter() -> None:
        entered.append(tree.lock.acquire(blocking=False))

    with ProviderTree().lock:
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert entered == [False]


class NotedLock:
    """A lock that counts how often it is held."""

    def __init__(self) -> None:
        self.depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


class Witness(str):
    """A name that records at each lookup whether the lock is held."""

    lock: NotedLock
    held: list[bool]

    def __hash__(self) -> int:
        self.held.append(self.lock.depth > 0)
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> NotedLock:
    lock = NotedLock()
    monkeypatch.setattr(ProviderTree, "lock", lock)
    return lock


CALLS: dict[str, Callable[[ProviderTree, str], object]] = {
    "get_provider_uuids": lambda tree, cell: tree.get_provider_uuids(cell),
    "get_provider_uuids_in_tree": lambda tree, cell: tree.get_provider_uuids_in_tree(cell),
    "exists": lambda tree, cell: tree.exists(cell),
    "data": lambda tree, cell: tree.data(cell),
    "new_root": lambda tree, cell: tree.new_root("new", cell),
    "new_child": lambda tree, cell: tree.new_child("new", cell),
    "remove": lambda tree, cell: tree.remove(cell),
    "move": lambda tree, cell: tree.move(cell, "new"),
    "populate_from_iterable": lambda tree, cell: tree.populate_from_iterable(
        [{"uuid": cell, "name": "new"}]
    ),
    "has_inventory": lambda tree, cell: tree.has_inventory(cell),
    "has_inventory_changed": lambda tree, cell: tree.has_inventory_changed(cell, {}),
    "update_inventory": lambda tree, cell: tree.update_inventory(cell, {}),
    "has_sharing_provider": lambda tree, cell: tree.has_sharing_provider(cell),
    "has_traits": lambda tree, cell: tree.has_traits(cell, []),
    "have_traits_changed": lambda tree, cell: tree.have_traits_changed(cell, []),
    "update_traits": lambda tree, cell: tree.update_traits(cell, []),
    "add_traits": lambda tree, cell: tree.add_traits(cell, "CUSTOM_A"),
    "remove_traits": lambda tree, cell: tree.remove_traits(cell, "CUSTOM_A"),
    "in_aggregates": lambda tree, cell: tree.in_aggregates(cell, []),
    "have_aggregates_changed": lambda tree, cell: tree.have_aggregates_changed(cell, []),
    "update_aggregates": lambda tree, cell: tree.update_aggregates(cell, []),
    "add_aggregates": lambda tree, cell: tree.add_aggregates(cell, "aggregate"),
    "remove_aggregates": lambda tree, cell: tree.remove_aggregates(cell, "aggregate"),
    "update_resources": lambda tree, cell: tree.update_resources(cell, {}),
    "subtree": lambda tree, cell: tree.subtree(cell),
}


def test_the_table_of_calls_has_all_public_methods() -> None:
    public = {name for name, value in vars(ProviderTree).items() if callable(value)}
    assert {name for name in public if not name.startswith("_")} == CALLS.keys()


@pytest.mark.parametrize("method", CALLS)
def test_every_method_holds_the_lock_until_it_returns_or_raises(
    tree: ProviderTree, lock: NotedLock, method: str
) -> None:
    cell = Witness("cell")
    cell.lock, cell.held = lock, []
    try:
        CALLS[method](tree, cell)
    except ValueError:
        assert method in ("new_root", "move", "subtree")
    assert set(cell.held) == {True}
    assert lock.depth == 0


class CopyWitness:
    """An opaque resource that records at each copy whether the lock is held."""

    def __init__(self, lock: NotedLock) -> None:
        self.lock = lock
        self.held: list[bool] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> CopyWitness:
        self.held.append(self.lock.depth > 0)
        return self

    def __reduce__(self) -> tuple[type[str], tuple[()]]:
        return str, ()


@EACH_COPY
def test_copying_holds_the_lock(tree: ProviderTree, lock: NotedLock, way: str) -> None:
    witness = CopyWitness(lock)
    tree.update_resources("cell", {"VGPU": {witness}})
    COPIES[way](tree)
    assert witness.held == [True, True]
    assert lock.depth == 0


# -- size and depth


class CountedName(str):
    """A name that counts its comparisons."""

    compared = 0

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        self.compared += 1
        return super().__eq__(other)


@pytest.mark.parametrize("address", ["name 1999", "1999", "missing"])
def test_finding_a_provider_takes_a_few_comparisons(address: str) -> None:
    tree = ProviderTree()
    tree.new_root("host", "0")
    for number in range(1, 2000):
        tree.new_child(f"name {number}", f"{(number - 1) // 8}", f"{number}")
    name = CountedName(address)
    assert tree.exists(name) is (address != "missing")
    assert name.compared <= 4


@pytest.fixture(scope="module")
def chain() -> ProviderTree:
    """A tree with more levels than Python can recurse; each provider but the last has one child."""
    tree = ProviderTree()
    tree.new_root("top", "0")
    for number in range(1, DEPTH):
        tree.new_child("same" if number in (10, DEPTH - 1) else "", str(number - 1), str(number))
    return tree


CHAIN = [str(number) for number in range(DEPTH)]


def test_a_deep_tree_is_listed(chain: ProviderTree) -> None:
    assert chain.get_provider_uuids() == CHAIN
    assert chain.get_provider_uuids_in_tree(CHAIN[-1]) == CHAIN
    assert chain.data("same").uuid == "10"


@EACH_COPY
def test_a_deep_tree_is_copied(chain: ProviderTree, way: str) -> None:
    copied = COPIES[way](chain)
    assert copied.get_provider_uuids() == CHAIN
    assert copied.data(CHAIN[-1]).parent_uuid == CHAIN[-2]


def test_a_deep_tree_is_populated_and_removed(chain: ProviderTree) -> None:
    tree = ProviderTree()
    tree.populate_from_iterable(
        {"uuid": uuid, "name": uuid, "parent_provider_uuid": chain.data(uuid).parent_uuid}
        for uuid in reversed(CHAIN)
    )
    assert tree.get_provider_uuids() == CHAIN
    tree.remove("1")
    assert tree.get_provider_uuids() == ["0"]


def test_a_deep_tree_has_a_subtree(chain: ProviderTree) -> None:
    assert chain.subtree("top").get_provider_uuids() == CHAIN
