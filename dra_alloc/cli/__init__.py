"""The command line: `dra-alloc`, `python -m dra_alloc`, and `kubectl dra`.

Each command is a module of this package that has a click command named `command`; the module's name is the command's,
with `_` for `-`. Modules whose names begin with an underscore are shared by the commands. A command is imported when
it is run or listed, so that none pays for another.

Exit status: 0 it fits (or: done, nothing found), 1 it does not fit (or: findings), 2 the question could not be
answered, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["kubectl_main", "main"]

#: Packages of the `cli` extra, as imported.
_EXTRA = frozenset({"click", "rich"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `dra-alloc` with these arguments (default: those of the process) and return its exit status."""
    return _run("dra-alloc", arguments)


def kubectl_main(arguments: Sequence[str] | None = None) -> int:
    """Run as the plugin `kubectl dra`: the same commands under the name that a user of kubectl types."""
    return _run("kubectl dra", arguments)


def _run(name: str, arguments: Sequence[str] | None) -> int:
    try:
        from dra_alloc.cli._app import run

        return run(name, sys.argv[1:] if arguments is None else list(arguments))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        print(
            f'{name}: the command line needs the package {package!r}; install it with: pip install "dra-alloc[cli]"',
            file=sys.stderr,
        )
        return 2
