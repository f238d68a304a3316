"""Versions of trees: a cache tells by them which trees have changed."""

from __future__ import annotations

import threading

from roost.search.forest.block import new_versions
from roost.search.forest.forest import Forest
from roost.search.forest.rows import UsageRows, column
from roost.search.forest.vocabulary import Vocabulary
from support.worlds.forests import CLASSES, Node, forest_of, rows_of

HOST = [Node(None, {"VCPU": 8}), Node(0, {"SRIOV_NET_VF": 4})]
TREES = 5


def versions(forest: Forest) -> dict[int, int]:
    """The version of each tree, by the id of its root."""
    return {
        id_: version
        for block in forest.blocks
        for id_, version in zip(
            block.ids[block.roots].tolist(), block.tree_versions.tolist(), strict=True
        )
    }


def changed(before: Forest, after: Forest) -> set[int]:
    """The roots of the trees that have another version than before, or are new."""
    old = versions(before)
    return {id_ for id_, version in versions(after).items() if version != old.get(id_)}


def test_every_tree_has_a_version_of_its_own() -> None:
    forests = [forest_of([HOST] * TREES) for _ in range(2)]
    found = [version for forest in forests for version in versions(forest).values()]
    assert len(set(found)) == 2 * TREES


def test_a_claim_changes_the_version_of_its_tree_only() -> None:
    before = forest_of([HOST] * TREES)
    child_of_third = 6
    used = UsageRows(column([child_of_third]), column([CLASSES["SRIOV_NET_VF"]]), column([1]))
    after = before.with_all_usages(used, [child_of_third])
    assert changed(before, after) == {5}
    assert len(set(versions(after).values())) == TREES


def test_trees_that_are_built_anew_change_their_versions_and_the_rest_keep_theirs() -> None:
    before = forest_of([HOST] * TREES)
    after = before.with_trees(rows_of([HOST]), gone_root_ids=[3])
    assert versions(after).keys() == {1, 5, 7, 9}
    assert changed(before, after) == {1}


def test_a_class_with_another_name_changes_all_versions_and_a_new_class_none() -> None:
    before = forest_of([HOST] * TREES)
    more = before.with_vocabulary(Vocabulary.of({**CLASSES, "CUSTOM_NEW": 10_000}, {}))
    assert changed(before, more) == set()
    renamed = {
        ("CUSTOM_NIC" if name == "SRIOV_NET_VF" else name): CLASSES[name] for name in CLASSES
    }
    after = before.with_vocabulary(Vocabulary.of(renamed, {}))
    assert changed(before, after) == {1, 3, 5, 7, 9}


def test_threads_never_get_the_same_version() -> None:
    found: list[int] = []

    def take() -> None:
        for _ in range(50):
            found.extend(new_versions(100).tolist())

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found)) == 8 * 50 * 100
