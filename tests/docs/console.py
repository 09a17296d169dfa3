"""Running the console blocks of pages: `$ command` lines, each followed by what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT, Block

#: Where the commands of the environment under test lie.
_BIN = Path(sys.executable).parent
#: Variables that would make output depend on who runs the tests.
_DROPPED = {"COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"}


@dataclass(frozen=True)
class Step:
    """A command of a console block and the lines that the page shows for it."""

    line: int
    command: str
    expected: list[str]


def steps(block: Block) -> list[Step]:
    """The commands of a block. A line that ends with a backslash goes on in the next, which may begin with `> `."""
    found: list[Step] = []
    continued = False
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        if continued:
            last = found[-1]
            found[-1] = Step(last.line, last.command + "\n" + line.removeprefix("> "), [])
        elif line.startswith("$ "):
            found.append(Step(number, line.removeprefix("$ "), []))
        elif found:
            found[-1].expected.append(line)
        else:
            raise ValueError(f"line {number}: a console block begins with a line `$ command`")
        continued = line.endswith("\\") and (continued or line.startswith("$ "))
    return found


def run(command: str) -> list[str]:
    """What the command prints (both streams) when its output is no terminal."""
    env = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    env |= {"PATH": f"{_BIN}{os.pathsep}{env.get('PATH', '')}", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return done.stdout.splitlines()


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether the lines are the expected ones, trailing blanks and empty lines at the end aside.

    An expected line `...` stands for any lines, also none.
    """
    want, have = _trimmed(expected), _trimmed(actual)
    # reachable[i]: the first i expected lines can stand for the actual lines seen so far.
    reachable = [True] + [False] * len(want)
    for index, line in enumerate(want):
        reachable[index + 1] = reachable[index] and line == "..."
    for line in have:
        following = [False] * (len(want) + 1)
        for index, pattern in enumerate(want):
            if pattern == "...":
                following[index + 1] = following[index] or reachable[index + 1] or reachable[index]
            else:
                following[index + 1] = reachable[index] and pattern == line
        reachable = following
    return reachable[-1]


def _trimmed(lines: list[str]) -> list[str]:
    trimmed = [line.rstrip() for line in lines]
    while trimmed and not trimmed[-1]:
        trimmed.pop()
    return trimmed
