"""The library opens no file and no connection, and starts no process, but for what its user names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: What Python and the libraries that the package stands on ask the system for: time zones, and what kind of terminal.
_SYSTEM = ("/usr/share/zoneinfo/", "/usr/share/terminfo", "/etc/terminfo", "/dev/null", "/proc/sys/kernel/osrelease")

#: Tells every file that is opened for reading outside of where Python and the package live, every file written, every
#: connection and process, once the modules that the program needs are imported.
_WATCH = """
import json, os, sys
sys.path.insert(0, {root!r})
{imports}
seen = []
python = {{*sys.path[1:], sys.prefix, sys.base_prefix, {package!r}}} - {{{root!r}}}
system = {system!r} + tuple(os.path.realpath(path) for path in python if path)

def hook(name, args):
    if name == "open":
        path, mode, flags = args
        if isinstance(path, int):
            return
        path = os.path.realpath(os.fsdecode(path))
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if isinstance(flags, int) else 0
        if writes or not path.startswith(system):
            seen.append(["write" if writes else "read", path])
    elif name.partition(".")[0] in {{"socket", "subprocess", "shutil", "tempfile", "urllib", "http"}} or name in (
        "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.listdir", "os.scandir", "os.remove",
        "os.rename", "os.mkdir", "os.rmdir", "glob.glob",
    ):
        path = str(args[0]) if args else ""
        if not (name in ("os.listdir", "os.scandir") and os.path.realpath(path or ".").startswith(system)):
            seen.append([name, path])

sys.addaudithook(hook)
{program}
print(json.dumps(seen))
"""


def seen(program: str, tmp_path: Path, imports: str = "import dra_alloc as dra") -> list[list[str]]:
    """What a program touched, run in an empty folder."""
    code = _WATCH.format(
        system=_SYSTEM, root=str(ROOT), package=str(ROOT / "dra_alloc"), imports=imports, program=program
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_watch_sees_what_it_should(tmp_path: Path) -> None:
    found = seen("open('x', 'w').close(); import socket; socket.socket().close(); os.listdir('/')", tmp_path)
    assert ["write", str(tmp_path / "x")] in found
    assert "os.listdir" in [name for name, _ in found]
    assert any(name.startswith("socket.") for name, _ in found)


def test_reading_opens_the_files_that_are_named_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("kind: Node\napiVersion: v1\nmetadata: {name: n}\n", encoding="utf-8")
    (tmp_path / "two.yaml").write_text("kind: Node\napiVersion: v1\nmetadata: {name: m}\n", encoding="utf-8")
    assert seen("dra.load('one.yaml')", tmp_path) == [["read", str(tmp_path / "one.yaml")]]


@pytest.mark.parametrize(
    "text",
    [
        "kind: Node\napiVersion: v1\nmetadata: !!python/object/apply:os.system ['touch x']\n",
        "kind: Node\napiVersion: v1\nmetadata: !include /etc/passwd\n",
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
    ],
)
def test_text_cannot_make_the_reader_open_anything(text: str, tmp_path: Path) -> None:
    program = f"import io\ntry:\n    dra.load(io.StringIO({text!r}))\nexcept dra.DecodeError:\n    pass"
    assert seen(program, tmp_path, "import dra_alloc as dra, dra_alloc.codec.sources, dra_alloc.codec.yamltext") == []
    assert list(tmp_path.iterdir()) == []


def test_answers_touch_nothing(tmp_path: Path) -> None:
    program = """
work = workloads.fleet(3)
cluster = dra.Cluster.from_objects(work.objects)
allocator = dra.Allocator(cluster, features=dra.Features.all())
nodes = allocator.feasible_nodes(work.claims, parallel=2)
found = allocator.allocate(work.claims, node=nodes[0])
cluster.commit(work.claims[0], found[0])
allocator.explain(work.claims, node=nodes[-1]).text()
dra.validate(work.claims[0])
cluster.fork().release(work.claims[0])
[item.to_dict() for item in cluster]
"""
    assert seen(program, tmp_path, "import dra_alloc as dra\nfrom bench import workloads") == []
    assert list(tmp_path.iterdir()) == []


def test_importing_everything_touches_nothing(tmp_path: Path) -> None:
    program = "for name in dra.__all__:\n    getattr(dra, name)\nimport dra_alloc.api, dra_alloc.cel, dra_alloc.lint"
    assert seen(program, tmp_path) == []


def test_commands_open_what_is_named(tmp_path: Path) -> None:
    demo = ROOT / "examples" / "demo"
    program = f"""
import contextlib, io
from dra_alloc.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    assert main(["allocate", "-f", {str(demo / "cluster.yaml")!r}, "-f", {str(demo / "workloads.yaml")!r}]) in (0, 1)
"""
    named = {str(demo / "cluster.yaml"), str(demo / "workloads.yaml")}
    found = seen(program, tmp_path, "import dra_alloc as dra, dra_alloc.cli._app")
    assert {path for name, path in found if name == "read"} == named
    assert [name for name, _ in found if name != "read"] == []
