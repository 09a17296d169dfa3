"""`dra-alloc completion`: completion of commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  eval "$(dra-alloc completion bash)"                                        in ~/.bashrc
  eval "$(dra-alloc completion zsh)"                                         in ~/.zshrc
  dra-alloc completion fish > ~/.config/fish/completions/dra-alloc.fish
"""


@click.command("completion", epilog=_EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that teaches a SHELL to complete dra-alloc."""
    from dra_alloc.cli._app import app

    kind = get_completion_class(shell)
    assert kind is not None, "click knows all shells of the choice"
    click.echo(kind(app, {}, "dra-alloc", "_DRA_ALLOC_COMPLETE").source())
