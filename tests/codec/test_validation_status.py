"""Validation of the status of claims: allocation, reservations, reports of drivers (KEP-4817)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_alloc import Features
from tests.codec.validation_objects import (
    ALL,
    Json,
    allocated,
    alternatives,
    claim,
    condition,
    consumer,
    exactly,
    problems,
    reported,
    result,
)

RESULT = "status.allocation.devices.results[0]"
DEVICE = "status.devices[0]"
SHARE = "01234567-89ab-cdef-0123-456789abcdef"
OTHER = "11111111-2222-3333-4444-555555555555"


def claimed(status: Json) -> Json:
    return claim(exactly(), alternatives({"name": "big"}, name="nic"), status=status)


def report(**fields: Any) -> Json:
    return claimed(allocated(result(), devices=[reported(**fields)]))


def network(**fields: Any) -> Json:
    return report(networkData=fields)


def opaque(**fields: Any) -> Json:
    return {"source": "FromClass", "opaque": {"driver": "d", "parameters": {}}, **fields}


VALID: dict[str, Json] = {
    "allocation": claimed(
        allocated(
            result(
                adminAccess=True,
                tolerations=[{"operator": "Exists"}],
                bindingConditions=["a"],
                bindingFailureConditions=["b"],
                shareID=SHARE,
                consumedCapacity={"memory": "1"},
                skipNodeOperations=["*"],
            ),
            result(request="nic/big"),
            result(request="nic"),
            *[result("same")] * 29,
            config=[opaque(requests=["nic/big"]), opaque(source="FromClaim"), *[opaque()] * 62],
            allocation={
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
                        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                    ]
                }
            },
            reservedFor=[consumer(index) for index in range(256)],
        )
    ),
    "reports": report(
        conditions=[condition(f"C{index}", observedGeneration=0) for index in range(8)],
        data={"a": 1},
        networkData={
            "interfaceName": "x" * 256,
            "hardwareAddress": "y" * 128,
            "ips": ["192.0.2.5/24", "2001:db8::5/64", *(f"10.0.0.{index}/8" for index in range(14))],
        },
    ),
    "example A: a share": claimed(
        allocated(result(shareID=SHARE), result(shareID=OTHER), devices=[reported(shareID=SHARE)])
    ),
}


@pytest.mark.parametrize("obj", VALID.values(), ids=VALID)
def test_valid_status_has_no_problems(obj: Json) -> None:
    assert problems(obj) == []


INVALID: dict[str, tuple[Json, list[str]]] = {
    "33 results": (
        claimed(allocated(*[result()] * 33)),
        ["status.allocation.devices.results: has 33 entries, too many"],
    ),
    "65 configurations": (
        claimed(allocated(result(), config=[opaque()] * 65)),
        ["status.allocation.devices.config: has 65 entries, too many"],
    ),
    "result": (
        claimed(allocated({"request": "x", "driver": "", "pool": "A", "device": "a.b", "shareID": SHARE.upper()})),
        [
            f"{RESULT}.request: 'x' is no request of the claim",
            f"{RESULT}.driver: is required",
            f"{RESULT}.pool: 'A' is no pool name",
            f"{RESULT}.device: 'a.b' is no DNS label",
            f"{RESULT}.shareID: {SHARE.upper()!r} is no UUID in lower case",
        ],
    ),
    "parts of a result": (
        claimed(
            allocated(
                result(
                    tolerations=[{"operator": "Never"}],
                    bindingConditions=["a"],
                    skipNodeOperations=["NodePrepareResources"],
                )
            )
        ),
        [
            f"{RESULT}.bindingFailureConditions: is required",
            f"{RESULT}.tolerations[0].operator: 'Never' is not supported",
            f"{RESULT}.skipNodeOperations: skips NodePrepareResources alone",
        ],
    ),
    "configuration": (
        claimed(allocated(result(), config=[{"source": "", "requests": ["gpu", "gpu"]}, opaque(source="FromPod")])),
        [
            "status.allocation.devices.config[0].source: is required",
            "status.allocation.devices.config[0].requests[1]: 'gpu' is there already",
            "status.allocation.devices.config[0].opaque: is required",
            "status.allocation.devices.config[1].source: 'FromPod' is not supported",
        ],
    ),
    "node selector": (
        claimed(
            allocated(
                result(),
                allocation={
                    "nodeSelector": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "a", "operator": "In"},
                                    {"key": "b", "operator": "Exists", "values": ["x"]},
                                    {"key": "c", "operator": "Gt", "values": ["1", "2"]},
                                    {"key": "-", "operator": "Is"},
                                    {"key": "d", "operator": "NotIn", "values": ["a b"]},
                                ],
                                "matchFields": [{"key": "spec", "operator": "Exists"}],
                            }
                        ]
                    }
                },
            )
        ),
        [
            f"status.allocation.nodeSelector.nodeSelectorTerms[0].{text}"
            for text in (
                "matchExpressions[0].values: has 0 values for operator In",
                "matchExpressions[1].values: has 1 values for operator Exists",
                "matchExpressions[2].values: has 2 values for operator Gt",
                "matchExpressions[3].key: '-' is no label name",
                "matchExpressions[3].operator: 'Is' is not supported",
                "matchExpressions[4].values[0]: 'a b' is no label value",
                "matchFields[0].key: 'spec' is no field of nodes to select by",
                "matchFields[0].operator: 'Exists' is not supported",
                "matchFields[0].values: has 0 values",
            )
        ],
    ),
    "257 reservations": (
        claimed(allocated(result(), reservedFor=[consumer(index) for index in range(257)])),
        ["status.reservedFor: has 257 entries, too many"],
    ),
    "reservation": (
        claimed(allocated(result(), reservedFor=[{}, consumer(), consumer()])),
        [
            "status.reservedFor[0].resource: is required",
            "status.reservedFor[0].name: is required",
            "status.reservedFor[0].uid: is required",
            "status.reservedFor[2]: 'uid-0' is there already",
        ],
    ),
    "reserved without allocation": (
        claimed({"reservedFor": [consumer()]}),
        ["status.reservedFor: is set on a claim that is not allocated"],
    ),
    "example A: without the share": (
        claimed(allocated(result(shareID=SHARE), devices=[reported()])),
        [f"{DEVICE}: gpu.example.com/pool/gpu-0 is not allocated to the claim"],
    ),
    "example A: the share twice": (
        claimed(allocated(result(shareID=SHARE), devices=[reported(shareID=SHARE)] * 2)),
        [f"status.devices[1]: 'gpu.example.com/pool/gpu-0, share {SHARE}' is there already"],
    ),
    "report without allocation": (
        claimed({"devices": [reported()]}),
        [f"{DEVICE}: gpu.example.com/pool/gpu-0 is not allocated to the claim"],
    ),
    "report on a device with a bad name": (
        claimed(allocated(result(), devices=[reported("", shareID="1")])),
        [
            f"{DEVICE}.device: is required",
            f"{DEVICE}.shareID: '1' is no UUID in lower case",
            f"{DEVICE}: gpu.example.com/pool/, share 1 is not allocated to the claim",
        ],
    ),
    "9 conditions": (
        report(conditions=[condition(f"C{index}") for index in range(9)]),
        [f"{DEVICE}.conditions: has 9 entries, too many"],
    ),
    "conditions": (
        report(
            conditions=[
                condition(""),
                condition("a", status="Yes", observedGeneration=-1, lastTransitionTime=None),
                condition("a", reason="", message="x" * 32769),
                condition("b", reason="1"),
                condition("c", reason="a" * 1025),
                condition("d", reason="a:b,C_", message="x" * 32768),
            ]
        ),
        [
            f"{DEVICE}.conditions[0].type: is required",
            f"{DEVICE}.conditions[1].status: 'Yes' is not supported",
            f"{DEVICE}.conditions[1].observedGeneration: -1 is negative",
            f"{DEVICE}.conditions[1].lastTransitionTime: is required",
            f"{DEVICE}.conditions[2].reason: is required",
            f"{DEVICE}.conditions[2].message: is 32769 bytes long",
            f"{DEVICE}.conditions[3].reason: '1' is no reason",
            f"{DEVICE}.conditions[4].reason: is 1025 bytes long",
            f"{DEVICE}.conditions[2]: 'a' is there already",
        ],
    ),
    "data": (report(data=[1]), [f"{DEVICE}.data: is list, not a JSON object"]),
    "data above 10 KiB": (report(data={"a": "x" * (10 * 1024 - 7)}), [f"{DEVICE}.data: is 10241 bytes long"]),
    "long interface": (
        network(interfaceName="x" * 257, hardwareAddress="y" * 129),
        [
            f"{DEVICE}.networkData.interfaceName: is 257 bytes long",
            f"{DEVICE}.networkData.hardwareAddress: is 129 bytes long",
        ],
    ),
    "17 addresses": (
        network(ips=[f"10.0.0.{index}/33" for index in range(17)]),
        [f"{DEVICE}.networkData.ips: has 17 entries, too many"],
    ),
    "example B": (
        network(ips=["10.0.0.5/24", "2001:DB8::5/64"]),
        [f"{DEVICE}.networkData.ips[1]: '2001:DB8::5/64' is not in canonical form"],
    ),
    **{
        f"address {ip}": (network(ips=[ip]), [f"{DEVICE}.networkData.ips[0]: {ip!r} is no address in CIDR notation"])
        for ip in ("10.0.0.0/33", "10.0.0.1", "010.0.0.1/8", "10.0.0.1/255.0.0.0", "fe80::1%eth0/64", "10.0.0.1/-1", "")
    },
    **{
        f"address {ip}": (network(ips=[ip]), [f"{DEVICE}.networkData.ips[0]: {ip!r} is not in canonical form"])
        for ip in ("2001:db8:0:0:0:0:0:5/64", "10.0.0.1/08")
    },
    "IPv4 as IPv6": (
        network(ips=["::ffff:10.0.0.1/104"]),
        [f"{DEVICE}.networkData.ips[0]: '::ffff:10.0.0.1/104' is an IPv4 address written as IPv6"],
    ),
    "address twice": (
        network(ips=["10.0.0.1/8", "10.0.0.1/8"]),
        [f"{DEVICE}.networkData.ips[1]: '10.0.0.1/8' is there already"],
    ),
}


@pytest.mark.parametrize(("obj", "expected"), INVALID.values(), ids=INVALID)
def test_each_broken_rule_is_told_where_it_is_broken(obj: Json, expected: list[str]) -> None:
    assert problems(obj) == expected


# Updates


def test_an_allocation_is_set_or_removed_and_not_changed() -> None:
    first, second = claimed(allocated(result())), claimed(allocated(result("gpu-1")))
    assert problems(first, claimed({})) == []
    assert problems(claimed({}), first) == []
    assert problems(second, first) == ["status.allocation: is immutable"]


def test_a_stored_allocation_is_not_checked_again() -> None:
    broken = claimed(allocated(*[result("not valid")] * 33))
    assert problems(broken, broken) == []


def test_reports_on_devices_that_are_released_go_with_them() -> None:
    before = claimed(allocated(result(), devices=[reported()]))
    assert problems(claimed({"devices": [reported()]}), before) == []
    assert problems(claimed({"devices": [reported("gpu-1")]}), before) == [
        f"{DEVICE}: gpu.example.com/pool/gpu-1 is not allocated to the claim"
    ]


def test_a_claim_that_is_being_deleted_gets_no_new_reservations() -> None:
    def deleted(*consumers: Json) -> Json:
        obj = claimed(allocated(result(), reservedFor=list(consumers)))
        return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}

    before = deleted(consumer(0), consumer(1))
    assert problems(deleted(consumer(1)), before) == []
    assert problems(deleted(consumer(1), consumer(2)), before) == [
        "status.reservedFor: has new entries although the claim is being deleted"
    ]


def test_admin_access_is_checked_when_it_is_allocated() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    obj = claimed(allocated(result(), result(adminAccess=True)))
    assert problems(obj, claimed({}), namespace=namespace) == [
        "status.allocation.devices.results[1].adminAccess: is not allowed in namespace 'default'"
    ]
    assert problems(obj, obj, namespace=namespace) == []


# Gates


def test_fields_of_gates_that_are_off_are_dropped() -> None:
    obj = claim(
        exactly(),
        status=allocated(
            result(
                shareID="wrong",
                tolerations=[{"operator": "wrong"}],
                bindingConditions=["wrong "],
                skipNodeOperations=["wrong"],
            ),
            devices=[reported("nothing of this is stored")],
        ),
    )
    assert len(problems(obj)) == 7
    assert problems(obj, features=Features.none()) == []


def test_shares_are_dropped_together() -> None:
    obj = claimed(allocated(result(shareID=SHARE), devices=[reported(shareID=SHARE)]))
    assert problems(obj, features=ALL.replace(DRAConsumableCapacity=False)) == []
