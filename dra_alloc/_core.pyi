"""Types of the search in C; what everything means is told in `_core.pyx`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, final

CODE_NO: int
CODE_OK: int
CODE_BROKEN: int
CODE_MALFORMED: int
CODE_BARRED: int
CODE_SMALL: int
CODE_USELESS: int

Answer = list[tuple[int, list[tuple[int, int]]]]
Outcome = tuple[Literal["found", "none", "error", "spent"], Any]
Wide = tuple[
    list[int],
    dict[int, list[tuple[int, int]]],
    dict[int, tuple[list[int], dict[int, list[tuple[int, int]]]]],
]

class Tables:
    types: int
    value_tables: int
    limit: int
    claims: int
    any_every: bool
    any_privileged: bool
    def __init__(self, types: int, value_tables: int, claims: int, limit: int) -> None: ...
    def add_constraint(self, claim: int, distinct: bool) -> int: ...
    def add_slot(
        self, claim: int, alternatives: Iterable[tuple[int, int, bool, bool, Iterable[tuple[int, int]]]]
    ) -> int: ...
    def add_values(self, values: Iterable[int]) -> int: ...
    def add_row(
        self,
        codes: Iterable[int],
        values: Iterable[int],
        multi: bool,
        room: Iterable[int],
        amounts: Iterable[Iterable[int]],
    ) -> int: ...
    def is_wanted(self, row: int) -> bool: ...

class PoolRows:
    tables: Tables
    columns: int
    sets: int
    blocks: int
    def __init__(
        self, tables: Tables, block_of_column: Sequence[int], block_of_set: Sequence[int], blocks: int
    ) -> None: ...
    def add(
        self,
        index: int,
        slice_index: int,
        row: int,
        block: int,
        draws: Iterable[tuple[int, int]],
        memberships: Iterable[tuple[int, Iterable[int]]],
        impossible: bool,
    ) -> None: ...
    def add_plain(self, rows: list[int], slice_of: tuple[int, ...]) -> None: ...
    def __len__(self) -> int: ...
    def signature(self, visible: bytes | None, elsewhere: bytes | None, held: bytes | None) -> bytes: ...

@final
class Cancel:
    """A flag that ends searches from another thread: give it to a call, then `set` it."""

    def __init__(self) -> None: ...
    def set(self) -> None:
        """End the searches that were given this flag, as soon as they look."""
    def is_set(self) -> bool:
        """Whether `set` was called."""

@final
class Search:
    tables: Tables
    steps: int
    def __init__(self, tables: Tables) -> None: ...
    def add_pool(
        self,
        rows: PoolRows,
        visible: bytes | None,
        elsewhere: bytes | None,
        held: bytes | None,
        available: Iterable[int],
        vanished: bool,
        shares: Mapping[int, Sequence[int]] | None,
        wide: Wide | None,
    ) -> None: ...
    def join_groups(self, set_index: int, groups: Iterable[int]) -> None: ...
    def prepare(self) -> None: ...
    def every_list(self, slot: int, alternative: int) -> list[tuple[int, int, int]]: ...
    def run(
        self,
        max_steps: int = ...,
        deadline: float = ...,
        max_memory: int = ...,
        cancel: Cancel | None = ...,
        light_steps: int = ...,
    ) -> Outcome: ...
    def visit(
        self,
        visitor: Callable[[Answer], bool],
        max_steps: int = ...,
        deadline: float = ...,
        cancel: Cancel | None = ...,
    ) -> Outcome: ...
    def hard_slots(self) -> list[tuple[int, int]]: ...

@final
class Postings:
    def __len__(self) -> int: ...
    def __contains__(self, name: str) -> bool: ...
    def shapes(self) -> int: ...
    def names(self) -> list[str]: ...
    def get(self, name: str) -> Any: ...
    def put(self, name: str, item: Any, own: list[str], shared: tuple[str, ...]) -> None: ...
    def remove(self, name: str) -> bool: ...
    def has(self, key: str) -> bool: ...
    def find(self, keys: Iterable[str]) -> list[Any]: ...
