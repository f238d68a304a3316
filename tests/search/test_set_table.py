"""Set tables: a growth adds sets for later forests, and changes no table that a forest has."""

from __future__ import annotations

from roost.search.set_table import EMPTY_SET, SetTable

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
    assert growth.table.numbers_as(table)


def test_a_growth_without_a_new_set_has_the_same_table() -> None:
    table = table_of({GOLD})
    growth = table.growth()
    assert growth.set_number(frozenset({GOLD})) == 1
    assert growth.set_number(frozenset()) == EMPTY_SET
    assert growth.table is table


def test_a_set_of_a_growth_that_was_given_up_is_in_the_next_table() -> None:
    table = table_of({GOLD})
    table.growth().set_number(frozenset({OLD}))
    growth = table.growth()
    assert growth.set_number(frozenset({OLD})) == 2
    assert growth.set_number(frozenset({FAST})) == 3
    assert growth.table.with_any([OLD]).tolist() == [False, False, True, False]
    assert growth.table.with_any([FAST]).tolist() == [False, False, False, True]


def test_a_copy_has_the_sets_of_its_table_only_and_grows_alone() -> None:
    table = table_of({GOLD})
    later = table.growth()
    later.set_number(frozenset({FAST}))
    copy = table.copied()
    assert copy.with_any([GOLD, FAST]).tolist() == [False, True]
    growth = copy.growth()
    assert growth.set_number(frozenset({OLD})) == 2
    assert growth.table[2] == {OLD}
    assert later.table[2] == {FAST}
    assert later.table.with_any([OLD]).tolist() == [False, False, False]
    assert not growth.table.numbers_as(table)
