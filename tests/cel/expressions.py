"""A strategy for expressions over the device of `devices.GPU`: templates filled with each other, many well typed."""

from __future__ import annotations

from hypothesis import strategies as st

ATTRIBUTES = 'device.attributes["gpu.example.com"]'
NAMES = ("model", "index", "ecc", "driverVersion", "numas", "modes", "flags", "fws", "empty", "nope")

LEAVES = (
    *(
        "true",
        "false",
        "null",
        "0",
        "1",
        "3",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "1u",
        "0u",
        "1.5",
        "0.0",
    ),
    *(
        '""',
        '"a"',
        '"A100-SXM4"',
        '"1.2.3"',
        '"10.0.0.1"',
        '"1Gi"',
        '"é"',
        "b'a'",
        '"5s"',
        '"[a-z]+"',
        '"model"',
        '"0:x"',
    ),
    *("[]", "[1, 2, 3]", '["a", "b"]', "[true]", "{}", '{"a": 1}', "{1: 2u}", "optional.none()", "optional.of(1)"),
    *('semver("1.2.3")', 'quantity("1Gi")', 'duration("1m")', 'timestamp("2026-01-01T00:00:00Z")', "int", "1.0 / 0.0"),
    *("1 / 0", "dyn(1)", 'dyn("a")', "dyn([1, 2])", "device.allowMultipleAllocations", "device.attributes", "device"),
    *(
        'device.capacity["gpu.example.com"].memory',
        'device.capacity["gpu.example.com"]',
        ATTRIBUTES,
        "x",
        "y",
        "device.driver",
    ),
    *(f"{ATTRIBUTES}.{name}" for name in NAMES),
    *(f'{ATTRIBUTES}["{name}"]' for name in NAMES),
    *(f"{ATTRIBUTES}.?{name}" for name in NAMES),
    'device.attributes["topo.example.io"].root',
    'device.attributes["nope.io"].x',
)

_BINARY = ("==", "!=", "<", "<=", ">", ">=", "&&", "||", "+", "-", "*", "/", "%", "in")
_METHODS = (
    *(
        "startsWith",
        "endsWith",
        "contains",
        "matches",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "includes",
        "indexOf",
    ),
    *(
        "split",
        "join",
        "find",
        "findAll",
        "or",
        "orValue",
        "lastIndexOf",
        "charAt",
        "substring",
        "add",
        "sub",
        "flatten",
    ),
)
_PLAIN_METHODS = (
    *(
        "size",
        "lowerAscii",
        "upperAscii",
        "trim",
        "sort",
        "sum",
        "min",
        "max",
        "isSorted",
        "major",
        "hasValue",
        "value",
    ),
    *(
        "first",
        "last",
        "reverse",
        "distinct",
        "flatten",
        "getSeconds",
        "getHours",
        "asInteger",
        "isInteger",
        "unwrapOpt",
    ),
)
_FUNCTIONS = (
    *("size", "string", "int", "double", "uint", "bool", "type", "dyn", "bytes", "duration", "timestamp", "quantity"),
    *(
        "semver",
        "isSemver",
        "optional.of",
        "optional.ofNonZeroValue",
        "isIP",
        "ip",
        "cidr",
        "isQuantity",
        "sign",
        "!",
        "-",
    ),
)
_MACROS = ("all", "exists", "exists_one", "map", "filter", "sortBy")
_TWO = ("all", "exists", "existsOne", "transformList", "transformMap")

TEMPLATES = (
    *(f"({{0}} {operator} {{1}})" for operator in _BINARY),
    *(f"({{0}} {operator} {{1}})" for operator in ("==", "&&", "||", "&&", "||")),
    *(f"{{0}}.{method}({{1}})" for method in _METHODS),
    *(f"{{0}}.{method}()" for method in _PLAIN_METHODS),
    *(f"{function}({{0}})" for function in _FUNCTIONS),
    *(f"{{0}}.{macro}(x, {{1}})" for macro in _MACROS),
    *(f"{{0}}.{macro}(y, x, {{1}})" for macro in _TWO),
    "{0}.map(x, {1}, {2})",
    "({0} ? {1} : {2})",
    "cel.bind(x, {0}, {1})",
    "{0}.optMap(x, {1})",
    "{0}.optFlatMap(x, {1})",
    "[{0}, {1}]",
    "[?{0}, {1}]",
    "{{{0}: {1}}}",
    "{{?{0}: {1}}}",
    "{0}[{1}]",
    "{0}[?{1}]",
    "{0}.a",
    "{0}.?a",
    "{0}.?model",
    "has({0}.a)",
    "has({0}.model)",
    "({0} ? {1} : {2}).a",
    '"%s-%d".format([{0}, {1}])',
    "sets.contains({0}, {1})",
    "dyn({0})",
    "dyn({0})",
)


def expressions(max_leaves: int = 12) -> st.SearchStrategy[str]:
    """Expressions, many of which compile."""
    return st.recursive(
        st.sampled_from(LEAVES),
        lambda inner: st.tuples(st.sampled_from(TEMPLATES), inner, inner, inner).map(lambda t: t[0].format(*t[1:])),
        max_leaves=max_leaves,
    )
