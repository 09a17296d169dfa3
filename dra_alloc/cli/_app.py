"""The group of all commands, and what happens when one fails."""

from __future__ import annotations

import difflib
import os
import sys
from importlib import import_module
from pkgutil import iter_modules

import click

import dra_alloc
from dra_alloc import cli
from dra_alloc.errors import DraError

__all__ = ["app", "run"]

#: What a shell sees of a process that SIGINT or SIGPIPE ended.
_INTERRUPTED, _BROKEN_PIPE = 130, 141

#: What commands are called elsewhere: pages, packages and other programs.
_ALSO = {"lint": "check", "validate": "check", "why": "explain", "preempt": "whatif", "schedule": "allocate"}

#: How click begins to tell of words that no option and no argument takes.
_TOO_MANY = "Got unexpected extra argument"


class _ReaderGone(Exception):
    """Nobody reads what is printed (`… | head`). click would take a BrokenPipeError for "does not fit"."""


class _Commands(click.Group):
    """All commands of the package, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (module.name for module in iter_modules(cli.__path__))
        return sorted(name.replace("_", "-") for name in names if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"dra_alloc.cli.{cmd_name.replace('-', '_')}").command
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            result: object = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise _ReaderGone from None
        except click.UsageError as error:
            # Files behind one -f, as a wildcard of the shell gives them.
            options = error.ctx.command.params if error.ctx is not None else []
            if error.message.startswith(_TOO_MANY) and any(option.name == "files" for option in options):
                hint = "each file needs an -f of its own, or give the folder"
                raise click.UsageError(f"{error.message}; {hint}", error.ctx) from None
            raise
        return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            near = [_ALSO[args[0]]] if args[0] in _ALSO else difflib.get_close_matches(args[0], known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
            ctx.fail(f"no such command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(dra_alloc.__version__, prog_name="dra-alloc")
def app() -> None:
    """Which devices each ResourceClaim gets, decided as Kubernetes decides it, without a cluster.

    Commands read manifests or dumps (`-f FILE`, `-f -` for standard input). Exit status: 0 it fits, 1 it does not,
    2 the question could not be answered.
    """


def run(name: str, arguments: list[str]) -> int:
    """Run a command line; errors of the library become a message, never a traceback."""
    try:
        status = app.main(arguments, prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return 2
    except click.exceptions.Abort:
        return _INTERRUPTED
    except DraError as error:
        click.echo(f"error: {error}", err=True)
        return 2
    except _ReaderGone:
        # What is still buffered must not fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except OSError as error:
        click.echo(f"error: {error.filename or 'output'}: {error.strerror or error}", err=True)
        return 2
    return status if isinstance(status, int) else 0
