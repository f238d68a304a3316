"""Set tables: a growth adds sets for later forests, and changes no table that a forest has."""

from __future__ import annotations

from roost.search.forest.set_table import EMPTY_SET, SetTable

GOLD, OLD, FAST = 1, 2, 3


def table_of(*sets: set[int]) -> SetTable[int]:
    growth = SetTable[int]().growth()
    for members in sets:
        growth.set_number(frozenset(members))
    return growth.table


def test_a_table_stays_as_it_is_while_another_one_grows_out_of_it() -> None:
    table = table_of({GOLD}, {OLD})
    growth = table.growth()
    assert growth.set_number(frozenset({GOLD, FAST})) == 3
    assert len(table) == 3
    assert table.with_any([GOLD, FAST]).tolist() == [False, True, False]
    assert growth.table.with_any([GOLD]).tolist() == [False, True, False, True]
    assert growth.table.with_any([FAST]).tolist() == [False, False, False, True]
    assert table.set_number(frozenset({GOLD, FAST})) is None
    assert growth.table.set_number(frozenset({GOLD, FAST})) == 3
    assert [growth.table[number] for number in range(3)] == [set(), {GOLD}, {OLD}]


def test_a_growth_without_a_new_set_has_the_same_table() -> None:
    table = table_of({GOLD})
    growth = table.growth()
    assert growth.set_number(frozenset({GOLD})) == 1
    assert growth.set_number(frozenset()) == EMPTY_SET
    assert growth.table is table


def test_a_growth_that_is_given_up_leaves_nothing() -> None:
    table = table_of({GOLD})
    table.growth().set_number(frozenset({OLD}))
    growth = table.growth()
    assert growth.set_number(frozenset({FAST})) == 2
    assert growth.table.with_any([OLD]).tolist() == [False, False, False]
    assert growth.table.with_any([FAST]).tolist() == [False, False, True]


def test_two_growths_of_one_table_know_nothing_of_each_other() -> None:
    table = table_of({GOLD})
    one, two = table.growth(), table.growth()
    assert one.set_number(frozenset({GOLD, FAST})) == two.set_number(frozenset({GOLD, OLD})) == 2
    assert one.table[2] == {GOLD, FAST}
    assert two.table[2] == {GOLD, OLD}
    assert one.table.with_any([OLD]).tolist() == [False, False, False]
    assert two.table.with_any([GOLD]).tolist() == [False, True, True]
    assert table.with_any([GOLD]).tolist() == [False, True]


def test_a_growth_knows_its_sets_before_and_after_a_table_has_them() -> None:
    growth = table_of({GOLD}).growth()
    number = growth.set_number(frozenset({OLD}))
    assert growth[number] == {OLD}
    table = growth.table
    later = growth.set_number(frozenset({FAST}))
    assert growth[number] == {OLD}
    assert growth[later] == {FAST}
    assert len(table) == later
