"""The formats of names and values. Each check gives no problem for a text that is right.

Names repeat a thousandfold in a cluster, so verdicts are cached; only texts within their limits get that far.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from functools import lru_cache

from dra_alloc.codec.validation._problems import Problem, byte_length, invalid, required, too_long

__all__ = [
    "driver_name",
    "extended_resource_name",
    "fully_qualified_name",
    "interface_address",
    "label",
    "label_name",
    "label_value",
    "pool_name",
    "qualified_name",
    "share_id",
    "subdomain",
    "text",
    "version",
]

LABEL_MAX = 63
SUBDOMAIN_MAX = 253
IDENTIFIER_MAX = 32
ATTRIBUTE_TEXT_MAX = 64

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LABEL_RE = re.compile(_LABEL)
_SUBDOMAIN_RE = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_IDENTIFIER_RE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD_RE = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UUID_RE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER = r"(?:0|[1-9][0-9]*)"
_PRERELEASE = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION_RE = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)

_LABEL_HINT = "a DNS label: lower-case letters, digits and '-', beginning and ending with a letter or digit"
_SUBDOMAIN_HINT = "a DNS subdomain: DNS labels joined by '.'"
_POOL_HINT = "DNS subdomains joined by '/'"
_QUALIFIED_HINT = "a C identifier, or a domain and a C identifier joined by '/'"
_FULL_HINT = "a domain and a C identifier joined by '/', as in example.com/numaNode"
_WORD_HINT = "letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"

Verdict = tuple[Problem, ...]
_RIGHT: Verdict = ()


def _within(limit: int) -> Callable[[Callable[[str], Verdict]], Callable[[str], Verdict]]:
    """Refuse what is longer than `limit` bytes before it is looked at, and remember verdicts on the rest."""

    def wrap(check: Callable[[str], Verdict]) -> Callable[[str], Verdict]:
        cached = lru_cache(maxsize=1 << 14)(check)

        def checked(text: str) -> Verdict:
            if len(text) > limit:
                return (too_long(byte_length(text), limit),)
            return cached(text)

        checked.__doc__ = check.__doc__
        return checked

    return wrap


@_within(LABEL_MAX)
def label(text: str) -> Verdict:
    """A DNS label, required."""
    if not text:
        return (required(_LABEL_HINT),)
    return _RIGHT if _LABEL_RE.fullmatch(text) else (invalid(text, "is no DNS label", _LABEL_HINT),)


@_within(SUBDOMAIN_MAX)
def subdomain(text: str) -> Verdict:
    """A DNS subdomain, required."""
    if not text:
        return (required(_SUBDOMAIN_HINT),)
    return _RIGHT if _SUBDOMAIN_RE.fullmatch(text) else (invalid(text, "is no DNS subdomain", _SUBDOMAIN_HINT),)


@_within(LABEL_MAX)
def driver_name(text: str) -> Verdict:
    """The name of a driver, required: a DNS subdomain of at most 63 bytes in which upper case passes."""
    if not text:
        return (required(_SUBDOMAIN_HINT),)
    if text.isascii() and _SUBDOMAIN_RE.fullmatch(text.lower()):
        return _RIGHT
    return (invalid(text, "is no driver name", _SUBDOMAIN_HINT),)


@_within(SUBDOMAIN_MAX)
def pool_name(text: str) -> Verdict:
    """The name of a pool, required."""
    if not text:
        return (required(_POOL_HINT),)
    if all(_SUBDOMAIN_RE.fullmatch(part) for part in text.split("/")):
        return _RIGHT
    return (invalid(text, "is no pool name", _POOL_HINT),)


@_within(LABEL_MAX + 1 + IDENTIFIER_MAX)
def qualified_name(text: str) -> Verdict:
    """The name of an attribute or capacity, with or without a domain."""
    parts = text.split("/")
    domain, name = ("/".join(parts[:-1]), parts[-1])
    if len(parts) > 2:
        return (invalid(text, "has more than one '/'", _QUALIFIED_HINT),)
    found: list[Problem] = []
    if len(parts) == 2 and (not domain or driver_name(domain)):
        found.append(invalid(text, f"has the domain {domain!r}, which is none", _SUBDOMAIN_HINT))
    if len(name) > IDENTIFIER_MAX:
        found.append(invalid(text, f"has a name of {len(name)} bytes", f"at most {IDENTIFIER_MAX} bytes"))
    elif not _IDENTIFIER_RE.fullmatch(name):
        found.append(invalid(text, "is no qualified name", _QUALIFIED_HINT))
    return tuple(found)


def fully_qualified_name(text: str) -> Verdict:
    """The name of an attribute with its domain, required."""
    if not text:
        return (required(_FULL_HINT),)
    if "/" not in text and not qualified_name(text):
        return (invalid(text, "has no domain", _FULL_HINT),)
    return qualified_name(text)


@_within(SUBDOMAIN_MAX + 1 + LABEL_MAX)
def label_name(text: str) -> Verdict:
    """The key of a label or taint, or the type of a condition, required: a name, or a DNS subdomain, '/' and a name."""
    prefix, slash, name = text.rpartition("/")
    if not text:
        return (required(f"a label name: {_WORD_HINT}"),)
    if slash and (not prefix or subdomain(prefix)):
        return (invalid(text, "has a prefix that is no DNS subdomain", _SUBDOMAIN_HINT),)
    if len(name) > LABEL_MAX:
        return (invalid(text, f"has a name of {len(name)} bytes", f"at most {LABEL_MAX} bytes after the prefix"),)
    return _RIGHT if _WORD_RE.fullmatch(name) else (invalid(text, "is no label name", _WORD_HINT),)


@_within(LABEL_MAX)
def label_value(text: str) -> Verdict:
    """The value of a label or taint; may be empty."""
    return _RIGHT if not text or _WORD_RE.fullmatch(text) else (invalid(text, "is no label value", _WORD_HINT),)


def share_id(text: str) -> Verdict:
    """The ID of a share: a UUID in lower case."""
    if _UUID_RE.fullmatch(text):
        return _RIGHT
    return (invalid(text, "is no UUID in lower case", "32 hexadecimal digits as 8-4-4-4-12"),)


def text(value: str) -> Verdict:
    """The text of an attribute."""
    length = byte_length(value)
    return (too_long(length, ATTRIBUTE_TEXT_MAX),) if length > ATTRIBUTE_TEXT_MAX else _RIGHT


def version(value: str) -> Verdict:
    """The version of an attribute: semantic versioning 2.0.0."""
    if length := text(value):
        return length
    if _VERSION_RE.fullmatch(value):
        return _RIGHT
    return (invalid(value, "is no semantic version", "three numbers without leading zeros or 'v', as in 1.2.3"),)


def extended_resource_name(name: str) -> Verdict:
    """The name of an extended resource (KEP-5004)."""
    native = "/" not in name or "kubernetes.io/" in name
    if native or name.startswith("requests.") or label_name(f"requests.{name}"):
        return (invalid(name, "is no extended resource name", "a domain outside of kubernetes.io, '/' and a name"),)
    return _RIGHT


def interface_address(address: str) -> Verdict:
    """An address with its prefix length in canonical form."""
    hint = "an address and its prefix length, as in 192.0.2.5/24 or 2001:db8::5/64"
    ip, _, prefix = address.partition("/")
    if len(address) > LABEL_MAX or not (prefix.isascii() and prefix.isdigit()) or "%" in ip:
        return (invalid(address, "is no address in CIDR notation", hint),)
    try:
        parsed = ipaddress.ip_interface(address)
    except ValueError:
        return (invalid(address, "is no address in CIDR notation", hint),)
    if isinstance(parsed, ipaddress.IPv6Interface) and parsed.ip.ipv4_mapped is not None:
        return (invalid(address, "is an IPv4 address written as IPv6", f"must be written as {parsed.ip.ipv4_mapped}"),)
    if parsed.with_prefixlen != address:
        return (invalid(address, "is not in canonical form", f"must be {parsed.with_prefixlen}"),)
    return _RIGHT
