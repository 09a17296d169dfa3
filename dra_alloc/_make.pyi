"""Types of the maker of models; what everything means is told in `_make.pyx`."""

from typing import Any, Generic, TypeVar

_M = TypeVar("_M")

class Maker(Generic[_M]):
    def __init__(self, cls: type[_M]) -> None: ...
    def __call__(self, *values: Any) -> _M: ...
