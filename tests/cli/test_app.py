"""The group of commands: finding them, help, completion, and how errors end."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import click
import pytest

from dra_alloc import __version__, cli
from dra_alloc.cli import _app, kubectl_main
from dra_alloc.errors import DecodeError
from tests.cli.conftest import Run

MODULES = sorted(module.name for module in iter_modules(cli.__path__) if not module.name.startswith("_"))


def command_of(module: str) -> click.Command:
    command: click.Command = import_module(f"dra_alloc.cli.{module}").command
    return command


@pytest.mark.parametrize("module", MODULES)
def test_a_command_has_the_name_of_its_module_and_help_with_examples(module: str, run: Run) -> None:
    command = command_of(module)
    name = module.replace("_", "-")
    assert command.name == name
    shown = run(name, "--help")
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith(f"Usage: dra-alloc {name} ")
    assert "Examples:" in shown.out
    assert f"dra-alloc {name} " in shown.out.partition("Examples:")[2]


@pytest.mark.parametrize("module", MODULES)
def test_every_option_says_what_it_is_for(module: str) -> None:
    options = [parameter for parameter in command_of(module).params if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_help_lists_all_commands(run: Run) -> None:
    shown = run("--help")
    listed = [line.split()[0] for line in shown.out.partition("Commands:\n")[2].splitlines() if line.startswith("  ")]
    assert set(listed) >= {name.replace("_", "-") for name in MODULES}


def test_version(run: Run) -> None:
    assert run("--version").out == f"dra-alloc, version {__version__}\n"


def test_an_unknown_command_is_met_with_the_nearest(run: Run) -> None:
    shown = run("allocat")
    assert shown.status == 2
    assert "no such command 'allocat'; did you mean 'allocate'?" in shown.err


def test_a_command_by_the_name_of_its_page_is_met_with_its_own(run: Run) -> None:
    assert "no such command 'lint'; did you mean 'check'?" in run("lint").err


def test_what_cannot_be_written_is_not_called_the_input() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full here")
    with full.open("w") as nowhere:
        shown = subprocess.run(
            [sys.executable, "-m", "dra_alloc", "--version"], stdout=nowhere, stderr=subprocess.PIPE, text=True
        )
    assert (shown.returncode, shown.stderr) == (2, "error: output: No space left on device\n")


def test_an_unknown_command_that_is_near_to_none_is_met_with_all(run: Run) -> None:
    shown = run("frobnicate")
    assert shown.status == 2
    assert "there are: " in shown.err
    assert "allocate" in shown.err


def test_a_file_without_an_option_is_met_with_the_way_to_give_it(run: Run) -> None:
    shown = run("allocate", "-f", "-", "other.yaml")
    assert shown.status == 2
    assert "unexpected extra argument (other.yaml); each file needs an -f of its own, or give the folder" in shown.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str, run: Run) -> None:
    shown = run("completion", shell)
    assert shown.status == 0
    assert "_DRA_ALLOC_COMPLETE" in shown.out


def test_the_shell_is_told_commands_and_options() -> None:
    script = Path(sys.executable).with_name("dra-alloc")
    env = {**os.environ, "_DRA_ALLOC_COMPLETE": "bash_complete", "COMP_WORDS": "dra-alloc allo", "COMP_CWORD": "1"}
    done = subprocess.run([script], env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "plain,allocate\n"


def test_kubectl_is_the_name_of_the_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubectl_main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: kubectl dra ")


def _raising(error: BaseException) -> ModuleType:
    @click.command("allocate")
    def command() -> None:
        raise error

    module = ModuleType("dra_alloc.cli.allocate")
    module.command = command  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (
            DecodeError("a.yaml", "is no mapping", "write key: value"),
            2,
            "error: a.yaml: is no mapping (write key: value)\n",
        ),
        (KeyboardInterrupt(), 130, ""),
        (PermissionError(13, "Permission denied", "a.yaml"), 2, "error: a.yaml: Permission denied\n"),
    ],
)
def test_errors_become_messages(
    error: BaseException, status: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_app, "import_module", lambda _: _raising(error))
    assert _app.run("dra-alloc", ["allocate"]) == status
    assert capsys.readouterr().err.strip() == message.strip()


def test_faults_of_the_program_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_app, "import_module", lambda _: _raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        _app.run("dra-alloc", ["allocate"])


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    code = (
        "import sys, click; from dra_alloc.cli import _app\n"
        "@click.command('allocate')\n"
        "def command():\n"
        "    for _ in range(100_000): click.echo('x' * 100)\n"
        "class Module: pass\n"
        "Module.command = command\n"
        "_app.import_module = lambda _: Module\n"
        "sys.exit(_app.run('dra-alloc', ['allocate']))\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.readline()
    writer.stdout.close()
    assert writer.stderr.read() == ""
    assert writer.wait(timeout=60) == 141
    writer.stderr.close()
