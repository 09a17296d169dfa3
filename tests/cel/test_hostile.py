"""Whatever an expression is, it costs little time and memory and ends in a value or a CelError."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dra_alloc.cel import CelError, Program, compile_derived, compile_selector
from tests.cel.devices import GPU, device

ATTRIBUTES = 'device.attributes["gpu.example.com"]'
KIB = 1024


def _filled(opening: str, closing: str = "", core: str = "true") -> str:
    """An expression of nearly 10 KiB that repeats an opening and a closing."""
    times = (10 * KIB - len(core)) // (len(opening) + len(closing))
    return opening * times + core + closing * times


DEEP = {
    "parentheses": _filled("(", ")"),
    "negations": _filled("!"),
    "minuses": _filled("- ", "", "1 == 1"),
    "lists": _filled("[", "]"),
    "maps": _filled("{1:", "}"),
    "open lists": _filled("["),
    "closed lists": _filled("", "]"),
    "indices": "[]" + "[0]" * 3000,
    "selections": "device" + ".a" * 4000,
    "optional selections": "{}" + ".?a" * 3000,
    "calls": _filled("size(", ")", "1"),
    "methods": "[]" + ".size()" * 1400,
    "conditions": _filled("true ? false : "),
    "conditions within": _filled("true ? ", " : false"),
    "ors": _filled("true || "),
    "ands": _filled("true && "),
    "sums": _filled("1 + ", "", "1 == 1"),
    "equalities": _filled("true == "),
    "ins": _filled("1 in "),
    "macros": _filled("[1].all(x, ", ")"),
    "optional macros": "optional.of(1)" + ".optMap(x, x)" * 700,
    "optional macros within": _filled("optional.of(1).optMap(x, ", ")"),
    "binds": _filled("cel.bind(x, true, ", ")"),
    "types": _filled("optional.of(", ")", "1"),
    "ors and ands": _filled("true || (false && ", ")"),
    "backslashes": "'" + "\\" * 10000,
    "quotes": "'" * 10000,
    "names": "a" * 10000,
    "digits": "9" * 10000,
    "double digits": "1." + "9" * 10000 + " == 1.0",
    "exponent": "1e" + "9" * 1000 + " > 1.0",
    "comments": "//" * 5000,
    "text": "'" + "a" * 10000 + "' == ''",
    "list of texts": "[" + "'a'," * 2500 + "].size() > 0",
    "list of terms": "[" + ",".join(["device.driver"] * 700) + "].size() > 0",
    "map of terms": "{" + ",".join(f"'{n}': device.driver" for n in range(400)) + "}.size() > 0",
    "format": "'" + "%s" * 3000 + "'.format([1]) == ''",
}


def _compiled(compile_: Callable[[str], Program], expression: str) -> Program | CelError:
    try:
        return compile_(expression)
    except CelError as error:
        return error


@pytest.mark.parametrize("expression", DEEP.values(), ids=DEEP)
def test_ten_kibibytes_of_anything(expression: str) -> None:
    assert len(expression) <= 10 * KIB
    for compile_ in (compile_selector, compile_derived):
        program = _compiled(compile_, expression)
        if isinstance(program, CelError):
            assert program.expression == expression
            assert len(str(program)) < 2 * KIB
            continue
        assert program.max_cost >= 0
        value, _ = program.evaluate_with_cost(GPU)
        assert value is not None
        try:
            assert program.evaluate(GPU) == value
        except CelError:
            assert isinstance(value, CelError)


def _doubling(times: int) -> str:
    """A list that doubles with each step."""
    body = "x.size() > 0"
    for _ in range(times):
        body = f"cel.bind(x, x + x, {body})"
    return f"cel.bind(x, {ATTRIBUTES}.numas, {body})"


def _growing(times: int) -> str:
    """A text that grows tenfold with each step."""
    body = "x.size() > 0"
    for _ in range(times):
        body = f'cel.bind(x, x.replace("", "0123456789"), {body})'
    return f'cel.bind(x, "0123456789", {body})'


def _shared(times: int) -> str:
    """A list of lists that share their elements: small in memory, exponential when it is walked."""
    body = "x == y"
    for _ in range(times):
        body = f"cel.bind(x, dyn([x, x]), cel.bind(y, dyn([y, y]), {body}))"
    return f"cel.bind(x, dyn([1]), cel.bind(y, dyn([1]), {body}))"


BOMBS = {
    "reversed": "cel.bind(x, lists.range(100000), lists.range(50000).all(i, x.reverse().size() > 0))",
    "formatted": "cel.bind(x, lists.range(100000), lists.range(50000).all(i, '%s'.format([x]).size() > 0))",
    "added": "cel.bind(x, lists.range(100000), lists.range(50000).all(i, (x + x).size() > 0))",
    "flattened": "cel.bind(x, lists.range(100000), lists.range(50000).all(i, [x].flatten().size() > 0))",
    "compared within": "cel.bind(x, lists.range(100000), lists.range(50000).all(i, [x] == [x]))",
    "included": "cel.bind(x, lists.range(100000), lists.range(50000).all(i, !dyn(x).includes(-1)))",
    "many matches": "cel.bind(x, lists.range(50000).map(i, 'a').join(), lists.range(9).all(i, x.findAll('a') != []))",
    "texts put together": "'%s'.format([" + "'" + "a" * 500 + "'.replace('', '" + "b" * 1000 + "')]).size() > 0",
    "text many times": 'cel.bind(x, "aaaaaaaaaa".replace("", "' + "b" * 1000 + '").replace("", "' + "c" * 400 + '"), '
    "'" + "%s" * 1000 + "'.format([" + "x," * 1000 + "]).size() > 0)",
    "doubling": _doubling(60),
    "growing": _growing(20),
    "shared": _shared(40),
    "loops": "".join(f"lists.range(1000).all({v}, " for v in "abcdef") + "true" + ")" * 6,
    "range": "lists.range(9223372036854775807).size() > 0",
    "map of ranges": "lists.range(1000000).map(x, lists.range(1000000)).size() > 0",
    "joined": f'lists.range(100000).map(x, "{"a" * 1000}").join().size() > 0',
    "precision": '"%.999999999f".format([1.0]).size() > 0',
    "precision within": '"%.1000f".format([1.0]).size() > 0',
    "product": "[1, 2, 3].map(x, 9223372036854775807 * x).size() > 0",
    "flatten": "lists.range(1000).map(x, lists.range(1000)).flatten().size() > 0",
    "depth of flatten": "dyn([[1]]).flatten(9223372036854775807).size() > 0",
    "sort": "lists.range(1000000).reverse().sort()[0] == 0",
    "distinct": "lists.range(100000).distinct().size() > 0",
    "sets": "sets.equivalent(lists.range(10000), lists.range(10000))",
    "regex": '"' + "a" * 5000 + '!".matches("^(a+)+$")',
    "regex of counts": '"a".matches("((a{0,100}){0,100}){0,100}")',
    "regex of the device": f'{ATTRIBUTES}.model.matches("(x+x+)+y")',
    "findAll": '"' + "a" * 5000 + '".findAll("a*?").size() > 0',
    "split": '"' + "a" * 5000 + '".split("").map(x, "' + "a" * 100 + '".split("")).flatten().size() > 0',
    "quantity": 'quantity("1e999999999").isInteger()',
    "quantity of digits": f'quantity("{"9" * 5000}").isInteger()',
    "quantity sums": 'lists.range(1000).map(x, quantity("9E").add(9223372036854775807)).size() > 0',
    "semver": f'semver("{"9" * 3000}.0.0").major() > 0',
    "semver of parts": f'isSemver("1.0.0-{".".join(["a"] * 2000)}")',
    "ip": f'isIP("{"0" * 9000}1.0.0.1")',
    "url": f'isURL("https://{"a/" * 4000}")',
    "duration": f'duration("{"1h" * 3000}") > duration("1s")',
    "timestamp": f'timestamp("{"9" * 5000}") > timestamp(0)',
    "format of lists": f'"%s".format([{"[" * 40}1{"]" * 40}]).size() > 0',
}


@pytest.mark.parametrize("expression", BOMBS.values(), ids=BOMBS)
def test_bombs(expression: str) -> None:
    try:
        program = compile_selector(expression)
    except CelError:
        return
    value, _ = program.evaluate_with_cost(GPU)
    assert isinstance(value, (bool, CelError))
    try:
        assert program.evaluate(GPU) is value
    except CelError:
        assert isinstance(value, CelError)


#: Pieces that texts are made of, so that many of them come far.
PIECES = (
    *("device", ".", "attributes", "[", "]", '"a"', "(", ")", "{", "}", "?", ":", ",", "&&", "||", "==", "!", "-", "+"),
    *(
        "1",
        "1u",
        "1.5",
        "0x",
        "'",
        '"""',
        "\\",
        "r'",
        "b'",
        "in",
        "has",
        "all",
        "map",
        "x",
        " ",
        "\n",
        "//",
        "optional",
    ),
    *(".?", "[?", "cel.bind", "true", "null", "%", "\x00", "é", "\ud800", "😀", "`", "@", "#", "$", ";", "__result__"),
)


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.text(max_size=40)))
@example("\x00")
@example("\ud800")
@example("'\ud800' == ''")
@example("'\\ud800' == ''")
@example("a.b.c.d")
@example("__result__")
@example("@result == 1")
@example("[1].all(__result__, true)")
def test_any_text(text: str) -> None:
    for compile_ in (compile_selector, compile_derived):
        program = _compiled(compile_, text)
        if isinstance(program, CelError):
            assert program.offset is None or 0 <= program.offset <= len(text)
            assert str(program)
        else:
            assert program.evaluate_with_cost(GPU)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_texts_of_devices_are_only_texts(model: str, other: str) -> None:
    env = device({"model": model, "other": other})
    program = compile_selector(f"{ATTRIBUTES}.model == {ATTRIBUTES}.other")
    assert program.evaluate(env) is (model == other)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30).filter(lambda text: text.isprintable() and not set(text) & set('\\"\n')))
def test_literals_are_never_code(text: str) -> None:
    env = device({"model": text})
    assert compile_selector(f'{ATTRIBUTES}.model == "{text}"').evaluate(env) is True
    assert compile_selector(f'{ATTRIBUTES}.?model.orValue("") == "{text}"').evaluate(env) is True
    assert compile_derived(f'["{text}"]').evaluate(env) == (text,)
