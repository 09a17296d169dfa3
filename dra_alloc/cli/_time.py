"""The time that a command works with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

__all__ = ["now_option", "shown"]

Function = TypeVar("Function", bound=Callable[..., Any])


def now_option(function: Function) -> Function:
    """The option `--now`, passed as `now`: an aware time, by default the present."""

    @click.option(
        "--now",
        "text",
        metavar="TIME",
        help="The time to answer for, as in 2026-09-01T12:00:00Z (default: the present).",
    )
    @functools.wraps(function)
    def wrapper(*, text: str | None, **rest: Any) -> Any:
        return function(now=_parse(text), **rest)

    return wrapper  # type: ignore[return-value]


def _parse(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no time; for instance 2026-09-01T12:00:00Z", param_hint="--now"
        ) from None
    if found.tzinfo is None:
        raise click.BadParameter(f"{text!r} has no time zone; for instance {text}Z", param_hint="--now")
    return found.astimezone(UTC)


def shown(time: datetime) -> str:
    """A time as Kubernetes writes it."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
