"""Columns of inventories follow the capacity rule as single inventories do."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roost.model.inventory import INTEGER_MAX, Inventory
from roost.search.forest.block import InventoryColumns
from roost.search.forest.block_building import CAPACITY_MAX, capacities_of
from roost.search.forest.rows import InventoryRows, column

# Numbers near each other, near the limits, and any.
amounts = st.integers(1, 20) | st.integers(INTEGER_MAX - 2, INTEGER_MAX) | st.integers(1, 2**31 - 1)
units = st.integers(1, 5) | amounts
ratios = (
    st.sampled_from([0.0, 0.1, 0.9, 1.0, 1.1, 1.5, 4.0, -1.0, 3.4e38])
    | st.floats(-16, 16)
    | st.floats(0, 3.4e38)
)
inventories = st.builds(
    Inventory,
    resource_class=st.just("VCPU"),
    total=amounts,
    reserved=st.just(0) | amounts,
    min_unit=st.just(1) | units,
    max_unit=units,
    step_size=st.just(1) | units,
    allocation_ratio=ratios,
)
# What all consumers together hold may be more than one allocation can have.
usages = st.just(0) | st.integers(0, 20) | st.integers(0, 2**44)


def rows_of(found: list[Inventory]) -> InventoryRows:
    ids = column(range(len(found)))
    return InventoryRows(
        provider_ids=ids,
        class_ids=np.zeros(len(found), np.int64),
        total=column([inventory.total for inventory in found]),
        reserved=column([inventory.reserved for inventory in found]),
        min_unit=column([inventory.min_unit for inventory in found]),
        max_unit=column([inventory.max_unit for inventory in found]),
        step_size=column([inventory.step_size for inventory in found]),
        allocation_ratio=column([inventory.allocation_ratio for inventory in found], np.float64),
    )


def columns_of(found: list[Inventory], used: list[int]) -> InventoryColumns:
    rows = rows_of(found)
    return InventoryColumns.of(
        indexes=column(range(len(found)), np.int32),
        capacity=capacities_of(rows),
        min_unit=rows.min_unit,
        max_unit=rows.max_unit,
        step_size=rows.step_size,
        used=column(used),
        total=rows.total,
        reserved=rows.reserved,
        allocation_ratio=rows.allocation_ratio,
    )


@given(st.lists(st.tuples(inventories, usages), min_size=1, max_size=5), amounts)
def test_an_amount_fits_into_columns_as_into_single_inventories(
    stocked: list[tuple[Inventory, int]], amount: int
) -> None:
    found, used = map(list, zip(*stocked, strict=True))
    columns = columns_of(found, used)
    expected = [
        inventory.allows(amount) and inventory.fits(amount, held) for inventory, held in stocked
    ]
    assert columns.fits(amount).tolist() == expected
    assert columns_of(found, [0] * len(used)).with_used(column(used)).fits(amount).tolist() == (
        expected
    )


@given(st.lists(inventories, min_size=1, max_size=5))
def test_the_capacity_of_columns_is_that_of_single_inventories_cut_to_a_whole_number(
    found: list[Inventory],
) -> None:
    expected = [
        max(-CAPACITY_MAX, min(CAPACITY_MAX, int(inventory.capacity))) for inventory in found
    ]
    assert capacities_of(rows_of(found)).tolist() == expected
