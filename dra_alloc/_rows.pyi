"""Types of the loops over devices in C; what everything means is told in `_rows.pyx`."""

from collections.abc import Callable, Iterable, Sequence

from dra_alloc.api import Device, DeviceAttribute, DeviceTaint

def scan(devices: Sequence[Device]) -> tuple[dict[str, int], bytes | None, bool]: ...
def has_groups(devices: Sequence[Device]) -> bool: ...

class Reader:
    def __init__(
        self, columns: Iterable[tuple[str, str]], reads_all: bool, is_sound: Callable[[DeviceAttribute], bool]
    ) -> None: ...
    def __len__(self) -> int: ...
    def keys(
        self, driver: str, devices: Sequence[Device], taints: Sequence[tuple[DeviceTaint, ...]]
    ) -> list[tuple[object, ...]]: ...
