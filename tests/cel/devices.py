"""Devices for tests of expressions, written as short as they read."""

from __future__ import annotations

from typing import Any

from dra_alloc.cel import CelError, DeviceEnv, compile_selector, device_env_from_dict
from dra_alloc.cel.work import exhaust

DRIVER = "gpu.example.com"


def attribute(value: object) -> dict[str, Any]:
    """An attribute in Kubernetes JSON form; a string that begins with `v:` is a version."""
    if isinstance(value, list):
        kind = (
            "bools"
            if value and isinstance(value[0], bool)
            else "ints"
            if value and isinstance(value[0], int)
            else "strings"
        )
        if kind == "strings" and value and value[0].startswith("v:"):
            return {"versions": [text[2:] for text in value]}
        return {kind: value}
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    assert isinstance(value, str)
    return {"version": value[2:]} if value.startswith("v:") else {"string": value}


def device(
    attributes: dict[str, object] | None = None,
    capacity: dict[str, str] | None = None,
    *,
    driver: str = DRIVER,
    shared: bool = False,
) -> DeviceEnv:
    """The environment of a device."""
    return device_env_from_dict(
        driver,
        {
            "name": "dev",
            "attributes": {name: attribute(value) for name, value in (attributes or {}).items()},
            "capacity": {name: {"value": value} for name, value in (capacity or {}).items()},
            "allowMultipleAllocations": shared,
        },
    )


GPU = device(
    {
        "model": "A100-SXM4",
        "index": 3,
        "ecc": True,
        "driverVersion": "v:12.4.1",
        "numas": [0, 2, 5],
        "modes": ["mig", "vgpu"],
        "flags": [True, False],
        "fws": ["v:1.0.0", "v:2.1.0"],
        "empty": "",
        "topo.example.io/root": "pci0000:15",
        "topo.example.io/path": "node-7/rack-3/zone-é/😀",
    },
    {"memory": "40Gi", "cores": "1500m"},
)


def verdict(expression: str, env: DeviceEnv = GPU) -> bool | str:
    """True, False, `error` or `compile-error`; both evaluators must agree."""
    try:
        program = compile_selector(expression)
    except CelError:
        return "compile-error"
    exact, _ = program.evaluate_with_cost(env)
    found: bool | CelError
    exhaust()
    try:
        found = program.evaluate(env)
    except CelError as error:
        found = error
    if isinstance(found, CelError):
        assert isinstance(exact, CelError), f"{expression}: {found} against {exact!r}"
        return "error"
    assert exact is found, f"{expression}: {found} against {exact!r}"
    return bool(found)
