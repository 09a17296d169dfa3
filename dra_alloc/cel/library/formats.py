"""Named formats: `format.named(name)` and `format.<name>()`, each with the problems that it finds in a text.

The number of problems is that of the reference; the words are ours.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from functools import partial
from typing import Final

from dra_alloc.cel.declarations import FORMAT_NAMES
from dra_alloc.cel.library.network import is_url
from dra_alloc.cel.library.registry import OVERLOADS, implements
from dra_alloc.cel.values import NONE, NamedFormat, Optional

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_DNS1035: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_NAME: Final = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+\\/]{4})*(?:[A-Za-z0-9+\\/]{2}==|[A-Za-z0-9+\\/]{3}=|[A-Za-z0-9+\\/]{4})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _matching(text: str, pattern: re.Pattern[str], most: int, wanted: str) -> list[str]:
    problems = [f"must be no more than {most} characters"] if len(text.encode(errors="surrogatepass")) > most else []
    if not pattern.fullmatch(text):
        problems.append(f"must be {wanted}")
    return problems


def _unmasked(text: str) -> str:
    """A prefix of a name, with what makes it a name where it ends in a dash."""
    return text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text


def _label(text: str, prefix: bool = False) -> list[str]:
    wanted = "a lowercase RFC 1123 label: letters, digits and '-', with a letter or digit at both ends"
    return _matching(_unmasked(text) if prefix else text, _LABEL, 63, wanted)


def _subdomain(text: str, prefix: bool = False) -> list[str]:
    return _matching(
        _unmasked(text) if prefix else text, _SUBDOMAIN, 253, "a lowercase RFC 1123 subdomain: labels joined by '.'"
    )


def _dns1035(text: str, prefix: bool = False) -> list[str]:
    wanted = "a DNS-1035 label: letters, digits and '-', a letter first, a letter or digit last"
    return _matching(_unmasked(text) if prefix else text, _DNS1035, 63, wanted)


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return ["must be a name, with or without a DNS subdomain and '/' before it"]
    problems = []
    if slash:
        problems = [f"prefix part {problem}" for problem in _subdomain(prefix)] if prefix else ["prefix part is empty"]
    if not name:
        problems.append("name part is empty")
    problems += _matching(name, _NAME, 63, "letters, digits, '-', '_' or '.', with a letter or digit at both ends")
    return problems


def _label_value(text: str) -> list[str]:
    if not text:
        return []
    return _matching(text, _NAME, 63, "empty, or letters, digits, '-', '_' or '.', with a letter or digit at both ends")


def _uri(text: str) -> list[str]:
    return [] if is_url(text) else [f"{text!r} is neither an absolute URI nor an absolute path"]


def _uuid(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    return [] if _BASE64.fullmatch(text) else ["invalid base64"]


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        # Year 0 is a date to Go; the next leap year stands for it.
        datetime.date(int(text[:4]) or 4, int(text[5:7]), int(text[8:]))
    except ValueError:
        return False
    return True


def _date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    parts = text.lower().split("t")
    found = _TIME.fullmatch(parts[1]) if len(parts) > 1 else None
    valid = found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59" and _is_date(parts[0])
    return [] if valid else ["invalid datetime"]


#: The check of each format, and the length of the pattern that the reference counts for its cost.
_CHECKS: Final[dict[str, tuple[Callable[[str], list[str]], int]]] = {
    "dns1123Label": (_label, 30),
    "dns1123Subdomain": (_subdomain, 60),
    "dns1035Label": (_dns1035, 30),
    "qualifiedName": (_qualified_name, 60),
    "dns1123LabelPrefix": (partial(_label, prefix=True), 30),
    "dns1123SubdomainPrefix": (partial(_subdomain, prefix=True), 60),
    "dns1035LabelPrefix": (partial(_dns1035, prefix=True), 30),
    "labelValue": (_label_value, 40),
    "uri": (_uri, 1256),
    "uuid": (_uuid, 77),
    "byte": (_byte, 84),
    "date": (_date, 73),
    "datetime": (_datetime, 73),
}

FORMATS: Final = {name: NamedFormat(name, _CHECKS[name][1], _CHECKS[name][0]) for name in FORMAT_NAMES}


@implements("format-named")
def named(name: str) -> Optional:
    """`format.named(name)`."""
    found = FORMATS.get(name)
    return NONE if found is None else Optional(found)


@implements("format-validate")
def validate(value: NamedFormat, text: str) -> Optional:
    """`format.validate(text)`: the problems, none if it is valid."""
    problems = value.check(text)
    return Optional(tuple(problems)) if problems else NONE


def _constant(value: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: value


for _name, _format in FORMATS.items():
    OVERLOADS[f"format.{_name}"] = _constant(_format)
