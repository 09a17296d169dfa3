"""Validation of ResourceClaims and templates: requests, constraints, configuration."""

from __future__ import annotations

from typing import Any

import pytest

from dra_alloc import Features
from tests.codec.validation_objects import ALL, Json, alternatives, claim, exactly, problems, template

REQUEST = "spec.devices.requests[0]"
EXACTLY = f"{REQUEST}.exactly"
MATCH = {"matchAttribute": "example.com/numa"}


def selector(expression: str = "true") -> Json:
    return {"cel": {"expression": expression}}


def opaque(driver: str = "gpu.example.com", parameters: Any = None, **fields: Any) -> Json:
    return {"opaque": {"driver": driver, "parameters": {"a": 1} if parameters is None else parameters}, **fields}


def many(count: int) -> list[Json]:
    return [exactly(f"r{index}") for index in range(count)]


def derived(name: str = "derived/numa", expression: str = "1") -> Json:
    return {"name": name, "expression": expression}


VALID: dict[str, Json] = {
    "nothing asked for": claim(),
    "the least": claim(exactly()),
    "32 requests": claim(*many(32)),
    "8 alternatives": claim(alternatives(*({"name": f"a{index}"} for index in range(8)))),
    "32 selectors": claim(exactly(selectors=[selector()] * 32)),
    "modes": claim(
        exactly("a", allocationMode="All"),
        exactly("b", allocationMode="ExactCount", count=1),
        exactly("c", count=0),
        exactly("d", count=1000),
        exactly("e", allocationMode="All", count=0),
    ),
    "16 tolerations": claim(exactly(tolerations=[{"operator": "Exists"}] * 16)),
    "tolerations": claim(
        exactly(
            tolerations=[
                {},
                {"key": "example.com/k", "operator": "Equal", "value": "v", "effect": "NoExecute"},
                {"key": "k", "operator": "Exists", "effect": "None", "tolerationSeconds": -1},
            ]
        )
    ),
    "capacity under any name": claim(exactly(capacity={"requests": {"memory": "1Gi", "a/b/c": "1"}})),
    "constraints": claim(
        exactly(),
        alternatives({"name": "big"}, {"name": "small"}, name="nic"),
        constraints=[
            MATCH,
            {"requests": ["gpu", "nic", "nic/big"], "distinctAttribute": "example.com/id"},
            *[MATCH] * 30,
        ],
        config=[opaque(requests=["nic/small"]), opaque(), *[opaque()] * 30],
    ),
    "admin access": claim(exactly(adminAccess=True)),
    "derived attributes": claim(
        exactly(derivedAttributes=[derived("derived/a"), derived("derived/b", '"x"')]),
        alternatives(
            {"name": "big", "derivedAttributes": [derived("derived/c")]},
            {"name": "small", "derivedAttributes": [derived("derived/d"), derived("derived/a")]},
            name="nic",
        ),
        constraints=[
            {"matchAttribute": "derived/a"},
            {"requests": ["gpu"], "distinctAttribute": "derived/b"},
            {"requests": ["nic"], "matchAttribute": "derived/c"},
            {"requests": ["nic/small"], "matchAttribute": "derived/d"},
        ],
    ),
    "parameters of 10 KiB": claim(exactly(), config=[opaque(parameters={"a": "x" * (10 * 1024 - 8)})]),
}


@pytest.mark.parametrize("obj", VALID.values(), ids=VALID)
def test_valid_claims_have_no_problems(obj: Json) -> None:
    assert problems(obj) == []


INVALID: dict[str, tuple[Json, list[str]]] = {
    "33 requests": (claim(*many(33)), ["spec.devices.requests: has 33 entries, too many"]),
    "request twice": (claim(exactly(), exactly()), ["spec.devices.requests[1]: 'gpu' is there already"]),
    "request name": (claim(exactly("GPU")), [f"{REQUEST}.name: 'GPU' is no DNS label"]),
    "neither": (claim({"name": "gpu"}), [f"{REQUEST}: asks for nothing"]),
    "both": (
        claim({**exactly(), **alternatives({"name": "a"})}),
        [f"{REQUEST}: has both exactly and firstAvailable"],
    ),
    "9 alternatives": (
        claim(alternatives(*({"name": f"a{index}"} for index in range(9)))),
        [f"{REQUEST}.firstAvailable: has 9 entries, too many"],
    ),
    "alternative twice": (
        claim(alternatives({"name": "a"}, {"name": "a"})),
        [f"{REQUEST}.firstAvailable[1]: 'a' is there already"],
    ),
    "alternative without name": (
        claim(alternatives({"name": ""})),
        [f"{REQUEST}.firstAvailable[0].name: is required"],
    ),
    "no class": (claim(exactly(deviceClassName="")), [f"{EXACTLY}.deviceClassName: is required"]),
    "class name": (claim(exactly(deviceClassName="a_b")), [f"{EXACTLY}.deviceClassName: 'a_b' is no DNS subdomain"]),
    "33 selectors": (
        claim(exactly(selectors=[selector()] * 33)),
        [f"{EXACTLY}.selectors: has 33 entries, too many"],
    ),
    "unknown selector": (claim(exactly(selectors=[{}])), [f"{EXACTLY}.selectors[0].cel: is required"]),
    "empty selector": (
        claim(exactly(selectors=[selector(" ")])),
        [f"{EXACTLY}.selectors[0].cel.expression: is required"],
    ),
    "long selector": (
        claim(exactly(selectors=[selector("true" + " " * (10 * 1024 - 3))])),
        [f"{EXACTLY}.selectors[0].cel.expression: is 10241 bytes long"],
    ),
    "example A: all and a count": (
        claim(exactly(allocationMode="All", count=1)),
        [f"{EXACTLY}.count: 1 is set with allocationMode All"],
    ),
    "unknown mode": (
        claim(exactly(allocationMode="Some")),
        [f"{EXACTLY}.allocationMode: 'Some' is not supported"],
    ),
    "negative count": (claim(exactly(count=-1)), [f"{EXACTLY}.count: -1 is not greater than zero"]),
    "17 tolerations": (
        claim(exactly(tolerations=[{}] * 17)),
        [f"{EXACTLY}.tolerations: has 17 entries, too many"],
    ),
    "toleration": (
        claim(exactly(tolerations=[{"key": "a b", "operator": "In", "effect": "Never"}])),
        [
            f"{EXACTLY}.tolerations[0].key: 'a b' is no label name",
            f"{EXACTLY}.tolerations[0].operator: 'In' is not supported",
            f"{EXACTLY}.tolerations[0].effect: 'Never' is not supported",
        ],
    ),
    "exists with a value": (
        claim(exactly(tolerations=[{"key": "k", "operator": "Exists", "value": "v"}])),
        [f"{EXACTLY}.tolerations[0].value: 'v' is set with operator Exists"],
    ),
    "equal with a bad value": (
        claim(exactly(tolerations=[{"key": "k", "value": "a b"}])),
        [f"{EXACTLY}.tolerations[0].value: 'a b' is no label value"],
    ),
    "33 constraints": (
        claim(exactly(), constraints=[MATCH] * 33),
        ["spec.devices.constraints: has 33 entries, too many"],
    ),
    "constraint on nothing": (claim(exactly(), constraints=[{}]), ["spec.devices.constraints[0]: is required"]),
    "constraint on a bare name": (
        claim(exactly(), constraints=[{"matchAttribute": "numa"}, {"distinctAttribute": ""}]),
        [
            "spec.devices.constraints[0].matchAttribute: 'numa' has no domain",
            "spec.devices.constraints[1].distinctAttribute: is required",
        ],
    ),
    "constraint on unknown requests": (
        claim(
            exactly(),
            alternatives({"name": "big"}, name="nic"),
            constraints=[{"requests": ["gpu/big", "nic/large", "nic/big/x", "nic", "nic"], **MATCH}],
        ),
        [
            "spec.devices.constraints[0].requests[0]: 'gpu/big' is no request of the claim",
            "spec.devices.constraints[0].requests[1]: 'nic/large' is no request of the claim",
            "spec.devices.constraints[0].requests[2]: 'nic/big/x' is no request of the claim",
            "spec.devices.constraints[0].requests[4]: 'nic' is there already",
        ],
    ),
    "33 references": (
        claim(exactly(), constraints=[{"requests": ["gpu"] * 33, **MATCH}]),
        ["spec.devices.constraints[0].requests: has 33 entries, too many"],
    ),
    "33 configurations": (
        claim(exactly(), config=[opaque()] * 33),
        ["spec.devices.config: has 33 entries, too many"],
    ),
    "configuration": (
        claim(exactly(), config=[{}, opaque("a_b", [1], requests=["other"])]),
        [
            "spec.devices.config[0].opaque: is required",
            "spec.devices.config[1].requests[0]: 'other' is no request of the claim",
            "spec.devices.config[1].opaque.driver: 'a_b' is no driver name",
            "spec.devices.config[1].opaque.parameters: is list, not a JSON object",
        ],
    ),
    "parameters above 10 KiB": (
        claim(exactly(), config=[opaque(parameters={"a": "x" * (10 * 1024 - 7)})]),
        ["spec.devices.config[0].opaque.parameters: is 10241 bytes long"],
    ),
    "derived attribute that nothing uses": (
        claim(
            exactly(derivedAttributes=[derived()]),
            exactly("nic"),
            constraints=[{"requests": ["nic"], "matchAttribute": "derived/numa"}],
        ),
        [f"{EXACTLY}.derivedAttributes[0].name: 'derived/numa' is used by no constraint"],
    ),
    "derived attribute of another alternative": (
        claim(
            alternatives({"name": "a", "derivedAttributes": [derived()]}, {"name": "b"}),
            constraints=[{"requests": ["gpu/b"], "matchAttribute": "derived/numa"}],
        ),
        [f"{REQUEST}.firstAvailable[0].derivedAttributes[0].name: 'derived/numa' is used by no constraint"],
    ),
    "derived attribute twice": (
        claim(exactly(derivedAttributes=[derived(), derived()]), constraints=[{"matchAttribute": "derived/numa"}]),
        [f"{EXACTLY}.derivedAttributes[1]: 'derived/numa' is there already"],
    ),
    "derived attribute without domain": (
        claim(exactly(derivedAttributes=[derived("numa")]), constraints=[{"matchAttribute": "numa"}]),
        [
            f"{EXACTLY}.derivedAttributes[0].name: 'numa' has no domain",
            "spec.devices.constraints[0].matchAttribute: 'numa' has no domain",
        ],
    ),
    "33 derived attributes": (
        claim(exactly(derivedAttributes=[derived(f"d/a{index}") for index in range(33)])),
        [f"{EXACTLY}.derivedAttributes: has 33 entries, too many"],
    ),
}


@pytest.mark.parametrize(("obj", "expected"), INVALID.values(), ids=INVALID)
def test_each_broken_rule_is_told_where_it_is_broken(obj: Json, expected: list[str]) -> None:
    assert problems(obj) == expected


@pytest.mark.parametrize(("obj", "expected"), INVALID.values(), ids=INVALID)
def test_templates_have_the_same_rules_one_level_deeper(obj: Json, expected: list[str]) -> None:
    deeper = {**template(), "spec": {"spec": obj["spec"]}}
    assert problems(deeper) == [text.replace("spec.", "spec.spec.", 1) for text in expected]


def test_the_hint_names_the_request_that_was_meant() -> None:
    from dra_alloc import validate

    (problem,) = validate(claim(exactly("gpu-0"), constraints=[{"requests": ["gpu0"], **MATCH}]))
    assert problem.hint == "did you mean 'gpu-0'?"


# Expressions


def test_expressions_compile_to_a_bool() -> None:
    found = problems(claim(exactly(selectors=[selector("device.driver =="), selector("1 + 1"), selector("true")])))
    assert [text.partition(":")[0] for text in found] == [
        f"{EXACTLY}.selectors[0].cel.expression",
        f"{EXACTLY}.selectors[1].cel.expression",
    ]
    assert all("does not compile" in text for text in found)


def test_derived_expressions_compile_to_a_value() -> None:
    def kinds(expression: str) -> list[str]:
        attributes = [derived(expression=expression)]
        return problems(claim(exactly(derivedAttributes=attributes), constraints=[{"matchAttribute": "derived/numa"}]))

    for right in ("1", '"a"', "true", 'semver("1.2.3")', "[1, 2]"):
        assert kinds(right) == []
    for wrong in ("1.5", "{}", "device", "1 +"):
        (text,) = kinds(wrong)
        assert text.startswith(f"{EXACTLY}.derivedAttributes[0].expression: does not compile")


def nested(depth: int) -> str:
    """An expression that looks at all tuples of domains; each level costs some two hundred times the last."""
    return "true" if not depth else f"device.attributes.all(x{depth}, {nested(depth - 1)})"


def test_expressions_have_a_cost_limit() -> None:
    assert problems(claim(exactly(selectors=[selector(nested(3))]))) == []
    (text,) = problems(claim(exactly(selectors=[selector(nested(4))])))
    assert text.startswith(f"{EXACTLY}.selectors[0].cel.expression: is too complex, its estimated cost is ")


def test_derived_attributes_of_a_claim_share_a_cost_limit() -> None:
    attributes = [derived(f"derived/a{index}", nested(3)) for index in range(12)]
    constraints = [{"matchAttribute": item["name"]} for item in attributes]
    few = claim(exactly(derivedAttributes=attributes[:2]), constraints=constraints[:2])
    assert problems(few) == []
    (text,) = problems(claim(exactly(derivedAttributes=attributes), constraints=constraints))
    assert text.startswith("spec.devices: derives attributes at an estimated cost of ")


# Metadata of templates


def test_templates_copy_labels_and_annotations_alone() -> None:
    assert problems(template(exactly(), metadata={"labels": {"a": "b"}, "annotations": {"c": "any text"}})) == []
    assert problems(template(exactly(), metadata={"name": "x", "finalizers": ["example.com/f"]})) == [
        "spec.metadata.name: must not be set",
        "spec.metadata.finalizers: must not be set",
    ]
    assert problems(template(exactly(), metadata={"labels": {"a b": "c d"}})) == [
        "spec.metadata.labels: 'a b' is no label name",
        "spec.metadata.labels[a b]: 'c d' is no label value",
    ]


# Updates


def test_the_specification_is_immutable_and_not_checked_again() -> None:
    broken = claim(exactly(allocationMode="All", count=1))
    assert problems(broken, broken) == []
    assert problems(claim(exactly()), broken) == ["spec: is immutable"]
    assert problems(template(exactly()), template()) == ["spec: is immutable"]


def test_names_are_immutable() -> None:
    renamed = {**claim(), "metadata": {"name": "other", "namespace": "else"}}
    assert problems(renamed, claim()) == ["metadata.name: is immutable", "metadata.namespace: is immutable"]


def test_an_update_keeps_its_kind() -> None:
    assert problems(template(), claim()) == ["kind: is immutable"]


# Admin access (KEP-5018)


def namespace(**labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}


def test_admin_access_needs_the_label_of_the_namespace() -> None:
    obj = claim(exactly("plain"), exactly("first", adminAccess=True), exactly("second", adminAccess=True))
    refused = ["spec.devices.requests[1].exactly.adminAccess: is not allowed in namespace 'default'"]
    assert problems(obj) == []
    assert problems(obj, namespace=namespace()) == refused
    assert problems(obj, namespace=namespace(**{"resource.kubernetes.io/admin-access": "True"})) == refused
    assert problems(obj, namespace=namespace(**{"resource.kubernetes.io/admin-access": "true"})) == []
    assert problems(obj, obj, namespace=namespace()) == []
    assert problems({**template(), "spec": {"spec": obj["spec"]}}, namespace=namespace()) == [
        f"spec.spec.{refused[0].removeprefix('spec.')}"
    ]


# Gates


@pytest.mark.parametrize(
    ("gate", "obj"),
    [
        ("DRAAdminAccess", claim(exactly(adminAccess=True))),
        ("DRADeviceTaints", claim(exactly(tolerations=[{"operator": "Exists", "value": "x"}]))),
        ("DRAConsumableCapacity", claim(exactly(capacity={"requests": {"memory": "1"}}))),
        ("DRADerivedAttributes", claim(exactly(derivedAttributes=[derived("unused")]))),
    ],
)
def test_fields_of_a_gate_that_is_off_are_dropped(gate: str, obj: Json) -> None:
    off = ALL.replace(**{gate: False})
    assert problems(obj, features=off) == []


def test_what_is_left_without_the_dropped_field_must_be_valid() -> None:
    off = Features.none()
    assert problems(claim(alternatives({"name": "a"})), features=off) == [f"{REQUEST}: asks for nothing"]
    distinct = claim(exactly(), constraints=[{"distinctAttribute": "example.com/id"}])
    assert problems(distinct, features=off) == ["spec.devices.constraints[0].matchAttribute: is required"]


def test_a_field_stays_where_the_stored_object_uses_it() -> None:
    stored = claim(exactly(adminAccess=True))
    assert problems(stored, stored, features=Features.none()) == []
    assert problems(stored, claim(exactly()), features=Features.none()) == []
    assert problems(claim(exactly()), stored, features=Features.none()) == ["spec: is immutable"]
