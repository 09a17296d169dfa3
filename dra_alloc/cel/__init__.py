"""CEL as Kubernetes evaluates it for devices: selectors and derived attributes.

    program = compile_selector('device.attributes["gpu.example.com"].model == "a100"')
    program.evaluate(device_env("gpu.example.com", device))      # True, False, or CelError

Public names are imported when they are first used: importing this package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dra_alloc.errors import CelError

if TYPE_CHECKING:
    from dra_alloc.cel.device import DeviceEnv, EnvTable, device_env, device_env_from_dict
    from dra_alloc.cel.program import (
        Program,
        VerdictCache,
        check_derived_costs,
        check_selector_cost,
        compile_derived,
        compile_selector,
    )
    from dra_alloc.cel.reads import Reads
    from dra_alloc.cel.values import Semver

__all__ = [
    "CelError",
    "DeviceEnv",
    "EnvTable",
    "Program",
    "Reads",
    "Semver",
    "VerdictCache",
    "check_derived_costs",
    "check_selector_cost",
    "compile_derived",
    "compile_selector",
    "device_env",
    "device_env_from_dict",
]

_MODULES = {
    "DeviceEnv": "device",
    "EnvTable": "device",
    "Program": "program",
    "Reads": "reads",
    "Semver": "values",
    "VerdictCache": "program",
    "check_derived_costs": "program",
    "check_selector_cost": "program",
    "compile_derived": "program",
    "compile_selector": "program",
    "device_env": "device",
    "device_env_from_dict": "device",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'dra_alloc.cel' has no attribute {name!r}")
    value: object = getattr(import_module(f"dra_alloc.cel.{module}"), name)
    globals()[name] = value
    return value
