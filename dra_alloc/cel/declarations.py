"""The functions of the environment: every overload with its types, as Kubernetes v1.37 declares them to expressions.

`TABLE` is the list itself, in the order in which calls on `dyn` values try the overloads. An overload of a library
names the Kubernetes version that brought it to device selectors (DRA has CEL since v1.31).
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from dra_alloc.cel import static
from dra_alloc.cel.static import StaticType

__all__ = ["Overload", "functions", "overloads"]


class Overload(NamedTuple):
    """One signature of a function. For a method, the first argument is what it is called on."""

    id: str
    function: str
    member: bool
    arguments: tuple[StaticType, ...]
    result: StaticType
    generic: bool
    library: str


#: Types that `sort`, `min` and the like take, and those that `sum` takes, with their names in overload ids.
COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
SUMMABLE: Final = ("int", "uint", "double", "duration")


def _each(template: str, names: tuple[str, ...]) -> str:
    return "\n".join(template.replace("$", name) for name in names)


#: Names by which the extension lists of CEL call the types in overload ids.
_LONG = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


def _sorts(template: str) -> str:
    return "\n".join(template.replace("$$", _LONG.get(n, n)).replace("$", n) for n in COMPARABLE)


def _orders(word: str, operator: str) -> str:
    """The overloads of one of the four order operators."""
    names = {"int": "int64", "uint": "uint64", "double": "double"}
    lines = [f"{word}_bool: {operator}(bool, bool) -> bool"]
    for left, left_id in names.items():
        for right, right_id in names.items():
            suffix = left_id if left == right else f"{left_id}_{right_id}"
            lines.append(f"{word}_{suffix}: {operator}({left}, {right}) -> bool")
    lines += [f"{word}_{t}: {operator}({t}, {t}) -> bool" for t in ("string", "bytes", "timestamp", "duration")]
    return "\n".join(lines)


def _times(function: str, result: str) -> str:
    return (
        f"timestamp_to_{result}: timestamp.{function}() -> int\n"
        f"timestamp_to_{result}_with_tz: timestamp.{function}(string) -> int"
    )


_STANDARD = f"""
conditional: _?_:_(bool, A, A) -> A
logical_and: _&&_(bool, bool) -> bool
logical_or: _||_(bool, bool) -> bool
logical_not: !_(bool) -> bool
not_strictly_false: @not_strictly_false(bool) -> bool
equals: _==_(A, A) -> bool
not_equals: _!=_(A, A) -> bool
add_bytes: _+_(bytes, bytes) -> bytes
add_double: _+_(double, double) -> double
add_duration_duration: _+_(duration, duration) -> duration
add_duration_timestamp: _+_(duration, timestamp) -> timestamp
add_timestamp_duration: _+_(timestamp, duration) -> timestamp
add_int64: _+_(int, int) -> int
add_list: _+_(list(A), list(A)) -> list(A)
add_string: _+_(string, string) -> string
add_uint64: _+_(uint, uint) -> uint
divide_double: _/_(double, double) -> double
divide_int64: _/_(int, int) -> int
divide_uint64: _/_(uint, uint) -> uint
modulo_int64: _%_(int, int) -> int
modulo_uint64: _%_(uint, uint) -> uint
multiply_double: _*_(double, double) -> double
multiply_int64: _*_(int, int) -> int
multiply_uint64: _*_(uint, uint) -> uint
negate_double: -_(double) -> double
negate_int64: -_(int) -> int
subtract_double: _-_(double, double) -> double
subtract_duration_duration: _-_(duration, duration) -> duration
subtract_int64: _-_(int, int) -> int
subtract_timestamp_duration: _-_(timestamp, duration) -> timestamp
subtract_timestamp_timestamp: _-_(timestamp, timestamp) -> duration
subtract_uint64: _-_(uint, uint) -> uint
{_orders("less", "_<_")}
{_orders("less_equals", "_<=_")}
{_orders("greater", "_>_")}
{_orders("greater_equals", "_>=_")}
index_list: _[_](list(A), int) -> A
index_map: _[_](map(A, B), A) -> B
in_list: _in_(A, list(A)) -> bool
in_map: _in_(A, map(A, B)) -> bool
size_bytes: size(bytes) -> int
bytes_size: bytes.size() -> int
size_list: size(list(A)) -> int
list_size: list(A).size() -> int
size_map: size(map(A, B)) -> int
map_size: map(A, B).size() -> int
size_string: size(string) -> int
string_size: string.size() -> int
type: type(A) -> type(A)
bool_to_bool: bool(bool) -> bool
string_to_bool: bool(string) -> bool
bytes_to_bytes: bytes(bytes) -> bytes
string_to_bytes: bytes(string) -> bytes
double_to_double: double(double) -> double
int64_to_double: double(int) -> double
string_to_double: double(string) -> double
uint64_to_double: double(uint) -> double
duration_to_duration: duration(duration) -> duration
string_to_duration: duration(string) -> duration
to_dyn: dyn(A) -> dyn
int64_to_int64: int(int) -> int
double_to_int64: int(double) -> int
duration_to_int64: int(duration) -> int
string_to_int64: int(string) -> int
timestamp_to_int64: int(timestamp) -> int
uint64_to_int64: int(uint) -> int
string_to_string: string(string) -> string
bool_to_string: string(bool) -> string
bytes_to_string: string(bytes) -> string
double_to_string: string(double) -> string
duration_to_string: string(duration) -> string
int64_to_string: string(int) -> string
timestamp_to_string: string(timestamp) -> string
uint64_to_string: string(uint) -> string
timestamp_to_timestamp: timestamp(timestamp) -> timestamp
int64_to_timestamp: timestamp(int) -> timestamp
string_to_timestamp: timestamp(string) -> timestamp
uint64_to_uint64: uint(uint) -> uint
double_to_uint64: uint(double) -> uint
int64_to_uint64: uint(int) -> uint
string_to_uint64: uint(string) -> uint
contains_string: string.contains(string) -> bool
ends_with_string: string.endsWith(string) -> bool
starts_with_string: string.startsWith(string) -> bool
matches: matches(string, string) -> bool
matches_string: string.matches(string) -> bool
{_times("getFullYear", "year")}
{_times("getMonth", "month")}
{_times("getDayOfYear", "day_of_year")}
{_times("getDayOfMonth", "day_of_month")}
{_times("getDate", "day_of_month_1_based")}
{_times("getDayOfWeek", "day_of_week")}
{_times("getHours", "hours")}
duration_to_hours: duration.getHours() -> int
{_times("getMinutes", "minutes")}
duration_to_minutes: duration.getMinutes() -> int
{_times("getSeconds", "seconds")}
duration_to_seconds: duration.getSeconds() -> int
{_times("getMilliseconds", "milliseconds")}
duration_to_milliseconds: duration.getMilliseconds() -> int
"""

_OPTIONALS = """
optional_of: optional.of(V) -> optional(V)
optional_ofNonZeroValue: optional.ofNonZeroValue(V) -> optional(V)
optional_none: optional.none() -> optional(V)
optional_value: optional(V).value() -> V
optional_hasValue: optional(V).hasValue() -> bool
optional_or_optional: optional(V).or(optional(V)) -> optional(V)
optional_orValue_value: optional(V).orValue(V) -> V
select_optional_field: _?._(dyn, string) -> optional(V)
list_optindex_optional_int: _[?_](list(V), int) -> optional(V)
optional_list_optindex_optional_int: _[?_](optional(list(V)), int) -> optional(V)
map_optindex_optional_value: _[?_](map(K, V), K) -> optional(V)
optional_map_optindex_optional_value: _[?_](optional(map(K, V)), K) -> optional(V)
optional_list_index_int: _[_](optional(list(V)), int) -> optional(V)
optional_map_index_value: _[_](optional(map(K, V)), K) -> optional(V)
list_last: list(V).last() -> optional(V)
list_first: list(V).first() -> optional(V)
optional_unwrap: optional.unwrap(list(optional(V))) -> list(V)
optional_unwrapOpt: list(optional(V)).unwrapOpt() -> list(V)
"""

_STRINGS = """
string_char_at_int: string.charAt(int) -> string
string_index_of_string: string.indexOf(string) -> int
string_index_of_string_int: string.indexOf(string, int) -> int
string_last_index_of_string: string.lastIndexOf(string) -> int
string_last_index_of_string_int: string.lastIndexOf(string, int) -> int
string_lower_ascii: string.lowerAscii() -> string
string_replace_string_string: string.replace(string, string) -> string
string_replace_string_string_int: string.replace(string, string, int) -> string
string_split_string: string.split(string) -> list(string)
string_split_string_int: string.split(string, int) -> list(string)
string_substring_int: string.substring(int) -> string
string_substring_int_int: string.substring(int, int) -> string
string_trim: string.trim() -> string
string_upper_ascii: string.upperAscii() -> string
string_format: string.format(list(dyn)) -> string
strings_quote: strings.quote(string) -> string
list_join: list(string).join() -> string
list_join_string: list(string).join(string) -> string
"""

_SETS = """
list_sets_contains_list: sets.contains(list(T), list(T)) -> bool
list_sets_equivalent_list: sets.equivalent(list(T), list(T)) -> bool
list_sets_intersects_list: sets.intersects(list(T), list(T)) -> bool
"""

_TWO_VARIABLES = """
@mapInsert_map_key_value: cel.@mapInsert(map(K, V), K, V) -> map(K, V)
@mapInsert_map_map: cel.@mapInsert(map(K, V), map(K, V)) -> map(K, V)
"""

_LISTS = f"""
list_slice: list(T).slice(int, int) -> list(T)
list_flatten: list(list(T)).flatten() -> list(T)
list_flatten_int: list(dyn).flatten(int) -> list(dyn)
{_sorts("list_$$_sort: list($).sort() -> list($)")}
{_sorts("list_$$_sortByAssociatedKeys: list(T).@sortByAssociatedKeys(list($)) -> list(T)")}
lists_range: lists.range(int) -> list(int)
list_reverse: list(T).reverse() -> list(T)
list_distinct: list(T).distinct() -> list(T)
"""

_KUBERNETES_LISTS = f"""
{_each("list_$_is_sorted_bool: list($).isSorted() -> bool", COMPARABLE)}
{_each("list_$_sum_$: list($).sum() -> $", SUMMABLE)}
{_each("list_$_max_$: list($).max() -> $", COMPARABLE)}
{_each("list_$_min_$: list($).min() -> $", COMPARABLE)}
list_a_index_of_int: list(A).indexOf(A) -> int
list_a_last_index_of_int: list(A).lastIndexOf(A) -> int
"""

_LIST_ATTRIBUTES = """
list_includes_dyn_dyn: dyn.includes(dyn) -> bool
"""

_REGEX = """
string_find_string: string.find(string) -> string
string_find_all_string: string.findAll(string) -> list(string)
string_find_all_string_int: string.findAll(string, int) -> list(string)
"""

_URLS = """
string_to_url: url(string) -> URL
is_url_string: isURL(string) -> bool
url_get_scheme: URL.getScheme() -> string
url_get_host: URL.getHost() -> string
url_get_hostname: URL.getHostname() -> string
url_get_port: URL.getPort() -> string
url_get_escaped_path: URL.getEscapedPath() -> string
url_get_query: URL.getQuery() -> map(string, list(string))
"""

_QUANTITIES = """
string_to_quantity: quantity(string) -> Quantity
is_quantity_string: isQuantity(string) -> bool
quantity_sign: sign(Quantity) -> int
quantity_is_greater_than: Quantity.isGreaterThan(Quantity) -> bool
quantity_is_less_than: Quantity.isLessThan(Quantity) -> bool
quantity_compare_to: Quantity.compareTo(Quantity) -> int
quantity_get_float: Quantity.asApproximateFloat() -> double
quantity_get_int: Quantity.asInteger() -> int
quantity_is_integer: Quantity.isInteger() -> bool
quantity_add: Quantity.add(Quantity) -> Quantity
quantity_add_int: Quantity.add(int) -> Quantity
quantity_sub: Quantity.sub(Quantity) -> Quantity
quantity_sub_int: Quantity.sub(int) -> Quantity
"""

_NETWORK = """
string_to_ip: ip(string) -> IP
is_ip: isIP(string) -> bool
ip_is_canonical: ip.isCanonical(string) -> bool
ip_family: IP.family() -> int
ip_is_unspecified: IP.isUnspecified() -> bool
ip_is_loopback: IP.isLoopback() -> bool
ip_is_link_local_multicast: IP.isLinkLocalMulticast() -> bool
ip_is_link_local_unicast: IP.isLinkLocalUnicast() -> bool
ip_is_global_unicast: IP.isGlobalUnicast() -> bool
ip_to_string: string(IP) -> string
string_to_cidr: cidr(string) -> CIDR
is_cidr: isCIDR(string) -> bool
cidr_contains_ip_string: CIDR.containsIP(string) -> bool
cidr_contains_ip_ip: CIDR.containsIP(IP) -> bool
cidr_contains_cidr_string: CIDR.containsCIDR(string) -> bool
cidr_contains_cidr: CIDR.containsCIDR(CIDR) -> bool
cidr_ip: CIDR.ip() -> IP
cidr_prefix_length: CIDR.prefixLength() -> int
cidr_masked: CIDR.masked() -> CIDR
cidr_to_string: string(CIDR) -> string
"""

#: The names that `format.named` knows; each is a function `format.<name>()` too.
FORMAT_NAMES: Final = (
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)

_FORMATS = f"""
format-validate: NamedFormat.validate(string) -> optional(list(string))
format-named: format.named(string) -> optional(NamedFormat)
{_each("format.$: format.$() -> NamedFormat", FORMAT_NAMES)}
"""

_SEMVERS = """
string_to_semver: semver(string) -> Semver
string_bool_to_semver: semver(string, bool) -> Semver
is_semver_string: isSemver(string) -> bool
is_semver_string_bool: isSemver(string, bool) -> bool
semver_is_greater_than: Semver.isGreaterThan(Semver) -> bool
semver_is_less_than: Semver.isLessThan(Semver) -> bool
semver_compare_to: Semver.compareTo(Semver) -> int
semver_major: Semver.major() -> int
semver_minor: Semver.minor() -> int
semver_patch: Semver.patch() -> int
"""

#: Authorization checks are declared in every environment of the API server. Device selectors have no authorizer, so
#: a call can only compile on `dyn`, and always fails; without the declarations it would not compile.
_AUTHORIZER = """
authorizer_path: Authorizer.path(string) -> PathCheck
authorizer_group: Authorizer.group(string) -> GroupCheck
authorizer_serviceaccount: Authorizer.serviceAccount(string, string) -> Authorizer
groupcheck_resource: GroupCheck.resource(string) -> ResourceCheck
resourcecheck_subresource: ResourceCheck.subresource(string) -> ResourceCheck
resourcecheck_namespace: ResourceCheck.namespace(string) -> ResourceCheck
resourcecheck_name: ResourceCheck.name(string) -> ResourceCheck
pathcheck_check: PathCheck.check(string) -> Decision
resourcecheck_check: ResourceCheck.check(string) -> Decision
decision_errored: Decision.errored() -> bool
decision_error: Decision.error() -> string
decision_allowed: Decision.allowed() -> bool
decision_reason: Decision.reason() -> string
resourcecheck_fieldselector: ResourceCheck.fieldSelector(string) -> ResourceCheck
resourcecheck_labelselector: ResourceCheck.labelSelector(string) -> ResourceCheck
"""

#: Library, the Kubernetes version that brought it to device selectors, overloads. In the order of declaration.
TABLE: Final[tuple[tuple[str, str, str], ...]] = (
    ("standard", "1.31", _STANDARD),
    ("urls", "1.31", _URLS),
    ("regex", "1.31", _REGEX),
    ("kubernetes-lists", "1.31", _KUBERNETES_LISTS),
    ("authorizer", "1.31", _AUTHORIZER),
    ("optionals", "1.31", _OPTIONALS),
    ("quantities", "1.31", _QUANTITIES),
    ("strings", "1.31", _STRINGS),
    ("sets", "1.31", _SETS),
    ("network", "1.31", _NETWORK),
    ("formats", "1.31", _FORMATS),
    ("two-variables", "1.32", _TWO_VARIABLES),
    ("semvers", "1.31", _SEMVERS),
    ("lists", "1.34", _LISTS),
    ("list-attributes", "1.36", _LIST_ATTRIBUTES),
)

#: Overloads that came later than the rest of their library.
LATER: Final[dict[str, str]] = {
    "string_bool_to_semver": "1.33",
    "is_semver_string_bool": "1.33",
    "list_last": "1.34",
    "list_first": "1.34",
    "optional_unwrap": "1.34",
    "optional_unwrapOpt": "1.34",
}

_BASIC: Final[dict[str, StaticType]] = {
    "bool": static.BOOL,
    "bytes": static.BYTES,
    "double": static.DOUBLE,
    "duration": static.DURATION,
    "dyn": static.DYN,
    "int": static.INT,
    "string": static.STRING,
    "timestamp": static.TIMESTAMP,
    "uint": static.UINT,
    "Quantity": static.object_type("kubernetes.Quantity"),
    "Semver": static.object_type("kubernetes.Semver"),
    "URL": static.object_type("kubernetes.URL"),
    "NamedFormat": static.object_type("kubernetes.NamedFormat"),
    "IP": static.object_type("net.IP"),
    "CIDR": static.object_type("net.CIDR"),
    "Authorizer": static.object_type("kubernetes.authorization.Authorizer"),
    "PathCheck": static.object_type("kubernetes.authorization.PathCheck"),
    "GroupCheck": static.object_type("kubernetes.authorization.GroupCheck"),
    "ResourceCheck": static.object_type("kubernetes.authorization.ResourceCheck"),
    "Decision": static.object_type("kubernetes.authorization.Decision"),
    **{name: static.parameter(name) for name in "ABKTV"},
}

QUANTITY: Final = _BASIC["Quantity"]
SEMVER: Final = _BASIC["Semver"]


def _split(text: str) -> list[str]:
    """Split at the commas that are not inside of parentheses."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


@cache
def _read_type(text: str) -> StaticType:
    basic = _BASIC.get(text)
    if basic is not None:
        return basic
    name, rest = text.split("(", 1)
    inner = [_read_type(part) for part in _split(rest[:-1])]
    if name == "list":
        return static.list_type(inner[0])
    if name == "map":
        return static.map_type(inner[0], inner[1])
    if name == "optional":
        return static.optional_type(inner[0])
    return static.type_type(inner[0])


def _read(line: str, library: str) -> Overload:
    """Read `id: target.function(arguments) -> result`; a target is a type, anything else before a dot is a name."""
    identity, signature = line.split(": ", 1)
    call, result = signature.rsplit(" -> ", 1)
    opened = _opening(call)
    head, arguments = call[:opened], _split(call[opened + 1 : -1])
    target, dot, function = head.rpartition(".")
    # `format.uri`, `sets.contains`, … are names with a dot; the target of a method is a type.
    member = bool(dot) and ("(" in target or target in _BASIC)
    types = [_read_type(text) for text in ([target, *arguments] if member else arguments)]
    found = _read_type(result)
    generic = found.has_parameters or any(t.has_parameters for t in types)
    return Overload(identity, function if member else head, member, tuple(types), found, generic, library)


def _opening(call: str) -> int:
    """Where the parenthesis of the arguments opens: the partner of the last character."""
    depth = 0
    for index in range(len(call) - 1, -1, -1):
        depth += (call[index] == ")") - (call[index] == "(")
        if not depth:
            return index
    raise ValueError(call)


@cache
def overloads(list_attributes: bool = True) -> tuple[Overload, ...]:
    """All overloads of the environment, with or without the functions of list attributes (KEP-5491)."""
    return tuple(
        _read(line, library)
        for library, _, lines in TABLE
        if list_attributes or library != "list-attributes"
        for line in lines.split("\n")
        if line
    )


@cache
def functions(list_attributes: bool = True) -> dict[str, tuple[Overload, ...]]:
    """The overloads of the environment by function."""
    found: dict[str, list[Overload]] = {}
    for overload in overloads(list_attributes):
        found.setdefault(overload.function, []).append(overload)
    return {name: tuple(items) for name, items in found.items()}


def since(overload: Overload) -> str:
    """The Kubernetes version that brought the overload to device selectors."""
    return LATER.get(overload.id) or next(version for name, version, _ in TABLE if name == overload.library)
