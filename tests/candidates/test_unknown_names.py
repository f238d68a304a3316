"""Unknown classes and traits are refused, whatever else the request says.

The reference service looks up names while it searches. So it notices an unknown name only if the
search gets that far. Roost always refuses an unknown name.
"""

from __future__ import annotations

import pytest

from support.worlds.case_tables import Case, table
from support.worlds.world import LATEST, Worlds

NO_CLASS = "Invalid resource class in resources parameter: No such resource class NOPE."
NO_TRAIT = "No such trait(s): NOPE."


@table(
    f"""
    World: H(VCPU 8)

    resources=VCPU:100&resources1=NOPE:1                            | 400 {NO_CLASS}
    resources1=NOPE:1&resources=VCPU:100                            | 400 {NO_CLASS}
    resources=VCPU:100&required=NOPE                                | 400 {NO_TRAIT}
    resources=VCPU:1&required=NOPE&member_of={{Z}}                  | 400 {NO_TRAIT}
    resources=VCPU:1&required=NOPE&in_tree=<unknown>                | 400 {NO_TRAIT}
    resources=NOPE:1&member_of={{Z}}                                | 400 {NO_CLASS}
    resources=VCPU:1&root_required=T1&required=NOPE                 | 400 {NO_TRAIT}
    resources=NOPE:1&root_required=NOPE                             | 400 {NO_TRAIT}
    resources=VCPU:1&resources1=VCPU:8&resources2=NOPE:1&group_policy=none    | 400 {NO_CLASS}
    """
)
def test_an_unknown_name_is_refused_whatever_the_providers_have(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 8)

    resources=VCPU:1,NOPE:1&resources1=VCPU:1&resources2=VCPU:1
        | 400 The "group_policy" parameter is required when specifying more than one
        "resources{N}" parameter.
    """
)
def test_the_form_of_the_request_is_checked_before_its_names(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    f"""
    World: H(VCPU 8, T1)

    VCPU:1&required=NOPE                  | 400 {NO_TRAIT}
    VCPU:1&required=!NOPE                 | 400 {NO_TRAIT}
    VCPU:1&required=in:T1,NOPE            | 400 {NO_TRAIT}
    VCPU:1&required=T1,NOPE               | 400 {NO_TRAIT}
    VCPU:1&required=!in:T1                | 400 No such trait(s): in:CUSTOM_T1.
    VCPU:1&root_required=NOPE             | 400 {NO_TRAIT}
    VCPU:1&root_required=!NOPE            | 400 {NO_TRAIT}
    VCPU:1&resources_X=VCPU:1&required_X=NOPE                       | 400 {NO_TRAIT}
    VCPU:1&required_X=NOPE&same_subtree=_X                          | 400 {NO_TRAIT}
    """
)
def test_an_unknown_trait_is_refused_in_every_parameter(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@table(
    """
    World: H(VCPU 8)

    resources=NOPE:1            | 400 No such resource class NOPE.
    resources=VCPU:1,NOPE:1     | 400 No such resource class NOPE.
    resources=vcpu:1            | 400 No such resource class vcpu.
    resources= VCPU:1           | 400 No such resource class  VCPU.
    resources=:1                | 400 No such resource class .
    resources_X=NOPE:1          | 400 Invalid resource class in resources parameter: No such
    """
)
def test_a_class_is_known_by_its_exact_name(worlds: Worlds, case: Case) -> None:
    case.hold(worlds(case.world))


@pytest.mark.parametrize("version", ["1.10", "1.22", "1.23", LATEST])
def test_the_texts_of_the_errors_are_the_same_at_every_version(
    worlds: Worlds, version: str
) -> None:
    world = worlds("H(VCPU 8)")
    answer = world.send("NOPE:1", version)
    assert answer.status == 400
    assert NO_CLASS in answer.detail
    if version != "1.10":
        answer = world.send("VCPU:1&required=NOPE", version)
        assert answer.status == 400
        assert NO_TRAIT in answer.detail
    shown = answer.error.get("code")
    assert shown == ("placement.undefined_code" if version in ("1.23", LATEST) else None)


def test_an_unknown_name_is_refused_without_any_provider(worlds: Worlds) -> None:
    world = worlds("")
    world.expect("VCPU:1", "none")
    world.expect("NOPE:1", f"400 {NO_CLASS}")
    world.expect("VCPU:1&required=NOPE", f"400 {NO_TRAIT}")
