"""Room for one class on one provider: capacity, usage, units and steps."""

from __future__ import annotations

from support.worlds.case_tables import Case, table
from support.worlds.world import Worlds


@table(
    """
    World: P(VCPU 7 reserved 2 ratio 1.5)
    VCPU:7   | P[VCPU:7] {''=P}
    VCPU:8   | none

    World: P(DISK 100 ratio 0.29)
    DISK:28  | P[DISK:28] {''=P}
    DISK:29  | none

    World: P(MEM 10 ratio 1.1)
    MEM:11   | P[MEM:11] {''=P}
    MEM:12   | none
    """
)
def test_capacity_is_total_less_reserved_times_ratio(worlds: Worlds, case: Case) -> None:
    # 100 * 0.29 is 28.999..., and the fraction is cut off.
    case.hold(worlds(case.world))


@table(
    """
    World: P(VCPU 4 used 1)
    VCPU:3   | P[VCPU:3] {''=P}
    VCPU:4   | none

    World: P(VCPU 8 used 1+2)
    VCPU:5   | P[VCPU:5] {''=P}
    VCPU:6   | none
    """
)
def test_usage_takes_room(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: P(VCPU 20 min 4 max 8 step 4)
    VCPU:4   | P[VCPU:4] {''=P}
    VCPU:8   | P[VCPU:8] {''=P}
    VCPU:2   | none
    VCPU:6   | none
    VCPU:12  | none

    World: P(VCPU 20 min 4 max 8)
    VCPU:3   | none
    VCPU:4   | P[VCPU:4] {''=P}
    VCPU:8   | P[VCPU:8] {''=P}
    VCPU:9   | none

    World: P(DISK 10 min 3 step 2)
    DISK:4   | P[DISK:4] {''=P}
    DISK:3   | none
    """
)
def test_an_amount_keeps_to_units_and_steps(worlds: Worlds, case: Case) -> None:
    # Steps are counted from zero, not from the least unit.
    case.hold(worlds(case.world))


@table(
    """
    World: P(VCPU 4)
    MEM:1    | none
    VCPU:4   | P[VCPU:4] {''=P}

    World: P(VCPU 4 reserved 4, MEM 4)
    VCPU:1   | none
    MEM:1    | P[MEM:1] {''=P}
    """
)
def test_a_class_that_is_absent_or_reserved_never_fits(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: P(VCPU 7 reserved 2 ratio 1.5), Q(VCPU 4 used 1), S(VCPU 20 min 4 max 8 step 4)
    resources_X=VCPU:3    | P[VCPU:3] {_X=P}; Q[VCPU:3] {_X=Q}
    resources_X=VCPU:4    | P[VCPU:4] {_X=P}; S[VCPU:4] {_X=S}
    resources_X=VCPU:7    | P[VCPU:7] {_X=P}
    resources_X=VCPU:8    | S[VCPU:8] {_X=S}
    """
)
def test_room_is_the_same_for_a_suffixed_group(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))
