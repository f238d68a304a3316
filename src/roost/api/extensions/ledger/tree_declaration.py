"""`PUT /roost/trees/{provider}`: an owner declares a whole tree."""

from __future__ import annotations

from typing import Any

from roost.api.candidates.schemas import NO_SUCH_PROVIDER
from roost.api.extensions.ledger.tree_body import TREE_BODY, TreeBody, parse_tree_body
from roost.api.extensions.parameters import Parameters, refuse_rest, split_parameters
from roost.api.http.errors import bad_value
from roost.api.http.json_schemas import (
    COUNT,
    EXAMPLE_PROVIDER,
    PARENT,
    STRING,
    AnswerSchema,
    choice,
    described,
    flag,
    list_of,
    members,
    or_null,
)
from roost.api.http.requests import Request
from roost.api.http.responses import Response, json_response
from roost.api.routing import QueryString, RequestParameter, Route, Success, routes_of
from roost.api.services import Services
from roost.model.trees.difference import AssociationKind
from roost.model.trees.owner_names import OWNER_LENGTH_MAX, canonical_owner
from roost.service.ledger.declarations import DeclaredTree, TreeRequest, declare_tree

_FLAG = choice("true", "false")
_OWN = QueryString.of(
    RequestParameter(
        "owner", "The owner that declares the tree, unless the body names it.", "network-team"
    ),
    RequestParameter("dry_run", "true: the same answer, and nothing is written.", "true", _FLAG),
    RequestParameter("force", "true: take over what belongs to another owner.", "true", _FLAG),
)

_NAMED = {"uuid": STRING, "name": STRING}
_DIFFERENCE = members(
    creations=list_of(members(_NAMED, parent_uuid=PARENT, parent_name=PARENT)),
    moves=list_of(
        members(_NAMED, before_uuid=or_null(STRING), parent_uuid=STRING, parent_name=STRING)
    ),
    changes=described(
        list_of(
            members(
                _NAMED,
                kind=choice(*(kind.value for kind in AssociationKind)),
                before={"type": ["array", "object"]},
                after={"type": ["array", "object"]},
            )
        ),
        "All inventories, traits or aggregates of a provider, before and after.",
    ),
    deletions=list_of(members(_NAMED)),
    ignored=described(list_of({"type": "object"}), "Empty: the server leaves nothing out."),
)
_EXAMPLE = {
    "owner": "network-team",
    "dry_run": False,
    "trees": [
        {
            "tree": "compute-1",
            "difference": {
                "creations": [],
                "moves": [],
                "changes": [
                    {
                        "uuid": EXAMPLE_PROVIDER,
                        "name": "compute-1",
                        "kind": "traits",
                        "before": ["CUSTOM_GOLD"],
                        "after": ["CUSTOM_GOLD", "CUSTOM_RACK_7"],
                    }
                ],
                "deletions": [],
                "ignored": [],
            },
            "kept": ["compute-1_numa0: inventory VCPU not removed, in use"],
        }
    ],
    "failures": [],
    "not_begun": 0,
}
_DECLARED = AnswerSchema.of(
    "DeclaredTrees",
    "What the declaration changed, as `roost tree diff --json` prints it.",
    members(
        owner=STRING,
        dry_run=flag("Nothing was written."),
        trees=list_of(
            members(
                tree=described(STRING, "The name of the declared root."),
                difference=_DIFFERENCE,
                kept=described(
                    list_of(STRING), "A sentence for each part that cannot be made true, and why."
                ),
            )
        ),
        failures=described(list_of({"type": "object"}), "Empty: a failure is an error."),
        not_begun=COUNT,
    ),
    example=_EXAMPLE,
)


@Route(
    "PUT",
    "/roost/trees/{provider}",
    rule="roost:trees:update",
    summary="Declare a whole tree",
    successes={200: Success("The tree is as declared, but for `kept`.", _DECLARED)},
    refusals={
        400: "A part of the declaration is malformed, or names an unknown trait or class.",
        404: NO_SUCH_PROVIDER,
        409: "Another owner has declared a part otherwise (`roost.owned_by_another`). Or a "
        "provider of another tree has a name or uuid, or a provider another generation.",
    },
    queries=(_OWN,),
    body=TREE_BODY,
)
def update_tree(services: Services, request: Request) -> Response:
    """Declare a whole tree for an owner: created, changed and withdrawn in one transaction.

    What the owner has declared before, and declares no more, is withdrawn. What other owners have
    declared, or no owner, stays. The uuid or the name of any provider in the tree leads to it. A
    name that no provider has makes a new tree.
    """
    parameters = split_parameters(request, _OWN.names)
    refuse_rest(parameters, _OWN.names)
    dry_run, force = (_flag(parameters, name) for name in ("dry_run", "force"))
    body = parse_tree_body(request.body())
    owner = _owner(parameters, body)
    wanted = TreeRequest(owner, body.declaration, body.generations, force)
    reference = request.parameters["provider"]
    if dry_run:
        done = services.rehearse(declare_tree, reference, wanted)
    else:
        done = services.write(request, declare_tree, reference, wanted)
    return json_response(_content(owner, done, dry_run=dry_run))


def _flag(parameters: Parameters, name: str) -> bool:
    value = parameters.own.get(name, "false")
    if value not in ("true", "false"):
        raise bad_value(f"{name} is {value[:40]!r}. Send true or false.")
    return value == "true"


def _owner(parameters: Parameters, body: TreeBody) -> str:
    """The owner of the request, in its one spelling."""
    named = parameters.own.get("owner"), body.owner
    given = [text for text in named if text is not None]
    if not given:
        raise bad_value("The declaration has no owner. Send ?owner=NAME; any name will do.")
    names = {canonical_owner(text) for text in given}
    if None in names:
        wrong = next(text for text in given if canonical_owner(text) is None)
        raise bad_value(
            f"owner is {wrong[:120]!r}. Send up to {OWNER_LENGTH_MAX} letters, digits, '_', '.' "
            "and '-', and begin with a letter or a digit."
        )
    if len(names) > 1:
        raise bad_value(
            f"The parameter names the owner {given[0]!r}, and the body {given[1]!r}. Send one."
        )
    return next(name for name in names if name is not None)


def _content(owner: str, done: DeclaredTree, *, dry_run: bool) -> dict[str, Any]:
    return {
        "owner": owner,
        "dry_run": dry_run,
        "trees": [
            {
                "tree": done.name,
                "difference": done.difference.as_json(),
                "kept": list(done.kept),
            }
        ],
        "failures": [],
        "not_begun": 0,
    }


ROUTES = routes_of("Trees", update_tree)
