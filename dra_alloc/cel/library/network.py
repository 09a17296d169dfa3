"""IP addresses, CIDRs and URLs."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote, unquote_to_bytes

from dra_alloc.cel.library.registry import implements
from dra_alloc.cel.values import CIDR, IP, URL, Fault, Value

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(text: str) -> _Address:
    """An address without zone that is not an IPv4 one in IPv6. Raises Fault."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise Fault(f"IP Address {text!r} parse error during conversion from string") from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise Fault(f"IP address {text!r} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise Fault(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return address


def canonical(address: _Address) -> str:
    """The one canonical text of an address."""
    return str(address)


@implements("string_to_ip")
def ip(text: str) -> IP:
    """`ip(text)`."""
    return IP(_address(text))


@implements("is_ip")
def is_ip(text: str) -> bool:
    """`isIP(text)`."""
    try:
        _address(text)
    except Fault:
        return False
    return True


@implements("ip_is_canonical")
def is_canonical(text: str) -> bool:
    """`ip.isCanonical(text)`; an error if it is no address."""
    return canonical(_address(text)) == text


@implements("ip_family")
def family(value: IP) -> int:
    """`ip.family()`: 4 or 6."""
    return int(value.address.version)


@implements("ip_is_unspecified")
def is_unspecified(value: IP) -> bool:
    """`ip.isUnspecified()`: 0.0.0.0 or ::."""
    return value.address.is_unspecified


@implements("ip_is_loopback")
def is_loopback(value: IP) -> bool:
    """`ip.isLoopback()`: 127.0.0.0/8 or ::1."""
    return value.address.is_loopback


_LINK_LOCAL_MULTICAST = ipaddress.ip_network("224.0.0.0/24")


@implements("ip_is_link_local_multicast")
def is_link_local_multicast(value: IP) -> bool:
    """`ip.isLinkLocalMulticast()`: 224.0.0.0/24 or ff02::/16 whatever the flags."""
    address = value.address
    if isinstance(address, ipaddress.IPv4Address):
        return address in _LINK_LOCAL_MULTICAST
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


@implements("ip_is_link_local_unicast")
def is_link_local_unicast(value: IP) -> bool:
    """`ip.isLinkLocalUnicast()`: 169.254.0.0/16 or fe80::/10."""
    return value.address.is_link_local


@implements("ip_is_global_unicast")
def is_global_unicast(value: IP) -> bool:
    """`ip.isGlobalUnicast()`: none of the other kinds; private addresses are global too."""
    address = value.address
    broadcast = isinstance(address, ipaddress.IPv4Address) and int(address) == 2**32 - 1
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (broadcast or special)


@implements("ip_to_string")
def ip_to_string(value: IP) -> str:
    """`string(ip)`."""
    return canonical(value.address)


# CIDRs --------------------------------------------------------------------------------------------------------------

_BITS = re.compile(r"0|[1-9][0-9]{0,2}")


@implements("string_to_cidr")
def cidr(text: str) -> CIDR:
    """`cidr(text)`; bits behind the prefix may be set."""
    host, slash, bits = text.rpartition("/")
    if not slash or not _BITS.fullmatch(bits) or "%" in host:
        raise Fault(f"network address parse error during conversion from string: {text!r}")
    address = _address(host)
    if int(bits) > address.max_prefixlen:
        raise Fault(f"network address parse error during conversion from string: {text!r}: prefix length out of range")
    return CIDR(address, int(bits))


@implements("is_cidr")
def is_cidr(text: str) -> bool:
    """`isCIDR(text)`."""
    try:
        cidr(text)
    except Fault:
        return False
    return True


def _prefix(address: _Address, bits: int) -> int:
    return int(address) >> (address.max_prefixlen - bits)


def _contains(outer: CIDR, address: _Address) -> bool:
    return address.version == outer.address.version and _prefix(address, outer.bits) == _prefix(
        outer.address, outer.bits
    )


@implements("cidr_contains_ip_ip")
def contains_ip(value: CIDR, address: IP) -> bool:
    """`cidr.containsIP(ip)`."""
    return _contains(value, address.address)


@implements("cidr_contains_ip_string")
def contains_ip_text(value: CIDR, text: str) -> bool:
    """`cidr.containsIP("10.0.0.1")`."""
    return _contains(value, _address(text))


@implements("cidr_contains_cidr")
def contains_cidr(value: CIDR, inner: CIDR) -> bool:
    """`cidr.containsCIDR(cidr)`."""
    return value.bits <= inner.bits and _contains(value, inner.address)


@implements("cidr_contains_cidr_string")
def contains_cidr_text(value: CIDR, text: str) -> bool:
    """`cidr.containsCIDR("10.0.0.0/24")`."""
    return contains_cidr(value, cidr(text))


@implements("cidr_ip")
def cidr_ip(value: CIDR) -> IP:
    """`cidr.ip()`: the address as written."""
    return IP(value.address)


@implements("cidr_prefix_length")
def prefix_length(value: CIDR) -> int:
    """`cidr.prefixLength()`."""
    return value.bits


@implements("cidr_masked")
def masked(value: CIDR) -> CIDR:
    """`cidr.masked()`: bits behind the prefix cleared."""
    shift = value.address.max_prefixlen - value.bits
    return CIDR(type(value.address)(int(value.address) >> shift << shift), value.bits)


@implements("cidr_to_string")
def cidr_to_string(value: CIDR) -> str:
    """`string(cidr)`."""
    return f"{canonical(value.address)}/{value.bits}"


# URLs ---------------------------------------------------------------------------------------------------------------

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_PORT = re.compile(r":[0-9]*")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;%=@]*")
_HOST = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"\x80-\U0010ffff%]*")
_HOST_ESCAPE = re.compile(r"%(?:25|[89a-fA-F][0-9a-fA-F])")

#: Characters that stay in a path, and those that a path may hold in the spelling of its author.
_PATH_SAFE = "$&+,/:;=@-_.~"
_PATH_VALID = re.compile(r"[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]%]*")


def _bad_url(text: str, why: str) -> Fault:
    return Fault(f"URL parse error during conversion from string: {text!r}: {why}")


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")


def _raw(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _check_escapes(text: str, part: str) -> None:
    if _BAD_ESCAPE.search(part):
        raise _bad_url(text, "invalid URL escape")


def parse_url(text: str) -> URL:
    """A URL that is absolute or an absolute path, as Go's `url.ParseRequestURI` and `url.Parse` take it."""
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        raise _bad_url(text, "invalid control character in URL")
    if not text:
        raise _bad_url(text, "empty url")
    if text.startswith(":"):
        raise _bad_url(text, "missing protocol scheme")
    _split_url(text, text, request=True)
    whole, _, fragment = text.partition("#")
    _check_escapes(text, fragment)
    return _split_url(text, whole, request=False, fragment=fragment)


def _split_url(text: str, whole: str, *, request: bool, fragment: str = "") -> URL:
    if whole == "*":
        return URL(whole + (f"#{fragment}" if fragment else ""), "", "", "*", ())
    found = _SCHEME.match(whole)
    scheme = found[1].lower() if found else ""
    rest = whole[found.end() :] if found else whole
    rest, mark, query = rest.partition("?")
    tail = (f"?{query}" if mark else "") + (f"#{fragment}" if fragment else "")
    if not rest.startswith("/"):
        if scheme:
            return URL(f"{scheme}:{rest}{tail}", scheme, "", "", _query(query))
        if request or ":" in rest.partition("/")[0]:
            raise _bad_url(text, "invalid URI for request")
    user, host = "", ""
    if rest.startswith("//") and (scheme or (not request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, at, host = authority.rpartition("@")
        if not _USER.fullmatch(user):
            raise _bad_url(text, "invalid userinfo")
        _check_escapes(text, user)
        host = _checked_host(text, host)
        user += at
    _check_escapes(text, rest)
    escaped = _escaped_path(rest)
    lead = f"{scheme}:" if scheme else ""
    if host or user or (scheme and rest.startswith("/")):
        lead += f"//{user}{host}"
    return URL(f"{lead}{escaped}{tail}", scheme, host, escaped, _query(query))


def _checked_host(text: str, host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise _bad_url(text, "missing ']' in host")
        port = host[end + 1 :]
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
    if port and not _PORT.fullmatch(port):
        raise _bad_url(text, f"invalid port {port!r} after host")
    if not _HOST.fullmatch(host) or any(not _HOST_ESCAPE.match(host, i) for i, c in enumerate(host) if c == "%"):
        raise _bad_url(text, "invalid character in host name")
    return _text(unquote_to_bytes(_raw(host)))


def _escaped_path(path: str) -> str:
    """The path as its author spelled it where that is valid, else escaped anew."""
    if _PATH_VALID.fullmatch(path):
        return path
    return quote(unquote_to_bytes(_raw(path)), safe=_PATH_SAFE)


def _query(query: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Keys and values, unescaped; what is malformed is left out."""
    found: dict[str, list[str]] = {}
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        found.setdefault(_unplus(key), []).append(_unplus(value))
    return tuple((key, tuple(values)) for key, values in found.items())


def _unplus(text: str) -> str:
    return _text(unquote_to_bytes(_raw(text.replace("+", " "))))


@implements("string_to_url")
def url(text: str) -> URL:
    """`url(text)`."""
    return parse_url(text)


@implements("is_url_string")
def is_url(text: str) -> bool:
    """`isURL(text)`."""
    try:
        parse_url(text)
    except Fault:
        return False
    return True


@implements("url_get_scheme")
def scheme(value: URL) -> str:
    """`url.getScheme()`."""
    return value.scheme


@implements("url_get_host")
def host(value: URL) -> str:
    """`url.getHost()`: with the port."""
    return value.host


def _host_and_port(value: URL) -> tuple[str, str]:
    name, colon, port = value.host.rpartition(":")
    if not colon or not _PORT.fullmatch(colon + port):
        name, port = value.host, ""
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name, port


@implements("url_get_hostname")
def hostname(value: URL) -> str:
    """`url.getHostname()`: without the port and without brackets."""
    return _host_and_port(value)[0]


@implements("url_get_port")
def port(value: URL) -> str:
    """`url.getPort()`."""
    return _host_and_port(value)[1]


@implements("url_get_escaped_path")
def escaped_path(value: URL) -> str:
    """`url.getEscapedPath()`."""
    return value.escaped_path


@implements("url_get_query")
def query(value: URL) -> Value:
    """`url.getQuery()`: a list of values by key."""
    return dict(value.query)
