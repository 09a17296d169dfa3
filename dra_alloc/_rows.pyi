"""Types of the loop over devices in C; what everything means is told in `_rows.pyx`."""

from collections.abc import Callable, Iterable, Sequence

from dra_alloc.api import Device, DeviceAttribute, DeviceTaint

class Reader:
    def __init__(
        self, columns: Iterable[tuple[str, str]], reads_all: bool, is_sound: Callable[[DeviceAttribute], bool]
    ) -> None: ...
    def __len__(self) -> int: ...
    def keys(
        self, driver: str, devices: Sequence[Device], taints: Sequence[tuple[DeviceTaint, ...]]
    ) -> list[bytes]: ...
    def rows(
        self,
        driver: str,
        devices: Sequence[Device],
        taints: Sequence[tuple[DeviceTaint, ...]],
        known: dict[bytes, int],
        compile_row: Callable[[str, Device, tuple[DeviceTaint, ...]], int],
    ) -> list[int]: ...
