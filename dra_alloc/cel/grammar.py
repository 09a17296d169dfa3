"""The grammar: that of cel-python, with what Kubernetes' CEL has beyond it.

Each change names the text that it replaces and asserts that it stands there exactly once, so that a release of
cel-python with another grammar is noticed at once, not by a wrong parse.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

__all__ = ["grammar_text"]

_ESCAPES: Final = r"\\[abfnrtv'`?\"\\]|\\[0-3][0-7][0-7]|\\[xX][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}"

#: What is replaced, and by what. Rules with `?` vanish from the tree where they have a single child, which is most
#: of them; the tokens stay in it for their positions.
_CHANGES: Final[tuple[tuple[str, str], ...]] = (
    # Operators: one node where there is an operator, none where there is not.
    (
        'expr           : conditionalor ["?" conditionalor ":" expr]',
        '?expr          : conditionalor | conditionalor "?" conditionalor ":" expr -> conditional',
    ),
    (
        'conditionalor  : [conditionalor "||"] conditionaland',
        '?conditionalor : conditionaland | conditionaland ("||" conditionaland)+ -> logical_or',
    ),
    (
        'conditionaland : [conditionaland "&&"] relation',
        '?conditionaland : relation | relation ("&&" relation)+ -> logical_and',
    ),
    ("\nrelation       : [", "\n?relation       : ["),
    ('relation_in    : relation "in"', "relation_in    : relation IN"),
    ("\naddition       : [", "\n?addition       : ["),
    ("\nmultiplication : [", "\n?multiplication : ["),
    # As many signs as there are, but of one kind; numbers have none of their own, since `1-1` is a subtraction.
    (
        "unary          : member\n               | unary_not unary\n               | unary_neg unary",
        "?unary         : member | unary_not | unary_neg",
    ),
    ('unary_not      : "!"', 'unary_not      : "!"+ member | "!"+ "-" member'),
    ('unary_neg      : "-"', 'unary_neg      : "-"+ member'),
    ("\nmember         : member_dot", "\n?member         : member_dot"),
    # Optional selection and index; fields in backticks.
    ('member_dot     : member "." IDENT', 'member_dot     : member "." ["?"] (IDENT | ESCAPED_IDENT)'),
    ('member_index   : member "[" expr "]"', 'member_index   : member "[" ["?"] expr "]"'),
    ('member_object  : member "{" [fieldinits] "}"', 'member_object  : member "{" [fieldinits] [","] "}"'),
    ("\nprimary        : literal", "\n?primary        : literal"),
    # Trailing commas and optional entries.
    ('list_lit       : "[" [exprlist] "]"', 'list_lit       : "[" [listinits] [","] "]"'),
    ('map_lit        : "{" [mapinits] "}"', 'map_lit        : "{" [mapinits] [","] "}"'),
    (
        'exprlist       : expr ("," expr)*',
        'exprlist       : expr ("," expr)*\n\n'
        'listinits      : optexpr -> first_element | listinits "," optexpr -> next_element\n\n'
        '?optexpr       : expr | "?" expr -> optional_expr',
    ),
    (
        'fieldinits     : IDENT ":" expr ("," IDENT ":" expr)*',
        'fieldinits     : ["?"] IDENT ":" expr | fieldinits "," ["?"] IDENT ":" expr',
    ),
    (
        'mapinits       : expr ":" expr ("," expr ":" expr)*',
        'mapinits       : optexpr ":" expr -> first_entry | mapinits "," optexpr ":" expr -> next_entry',
    ),
    # Terminals. The lexer of Lark takes the first that matches, by priority; the words `in`, `true`, … are never names.
    ("INT_LIT        : /-?/ /0x/ HEXDIGIT+ | /-?/ DIGIT+", "INT_LIT.1      : /0x[0-9a-fA-F]+|[0-9]+/"),
    ("UINT_LIT       : INT_LIT /[uU]/", "UINT_LIT.2     : /(?:0x[0-9a-fA-F]+|[0-9]+)[uU]/"),
    (
        'FLOAT_LIT      : /-?/ DIGIT+ "." DIGIT* EXPONENT? | /-?/ DIGIT* "." DIGIT+ EXPONENT? | /-?/ DIGIT+ EXPONENT',
        r"FLOAT_LIT.3    : /[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+/",
    ),
    ("DIGIT          : /[0-9]/\n", ""),
    ("HEXDIGIT       : /[0-9abcdefABCDEF]/\n", ""),
    ("EXPONENT       : /[eE]/ /[+-]?/ DIGIT+\n", ""),
    (
        r"""STRING_LIT     : /[rR]?"(?:\\[abfnrtv"'\\]|\\\d{3}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4-8}|.)*?"/"""
        "\n               | "
        r"""/[rR]?'(?:\\[abfnrtv"'\\]|\\\d{3}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|.)*?'/""",
        rf"""STRING_LIT.4   : /(?:"(?:{_ESCAPES}|[^"\\\n\r])*"|'(?:{_ESCAPES}|[^'\\\n\r])*'"""
        r"""|[rR]"[^"\n\r]*"|[rR]'[^'\n\r]*')/""",
    ),
    (
        "MLSTRING_LIT   : "
        r"""/[rR]?"""
        r'''"""(?:\\[abfnrtv"'\\]|\\\d{3}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4-8}|\r\n|\r|\n|.)*?"""/'''
        "\n               | /[rR]?"
        r"""'''(?:\\[abfnrtv"'\\]|\\\d{3}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\r\n|\r|\n|.)*?'''/""",
        rf'''MLSTRING_LIT.5 : /(?:"""(?:{_ESCAPES}|[^\\])*?"""'''
        rf"""|'''(?:{_ESCAPES}|[^\\])*?'''"""
        r'''|[rR]"""[\s\S]*?"""'''
        r"""|[rR]'''[\s\S]*?''')/""",
    ),
    (
        "BYTES_LIT      : /[bB]/ MLSTRING_LIT | /[bB]/ STRING_LIT",
        "BYTES_LIT.6    : /[bB]/ MLSTRING_LIT | /[bB]/ STRING_LIT",
    ),
    ('BOOL_LIT       : "true" | "false"', "BOOL_LIT.2     : /(?:true|false)(?![_a-zA-Z0-9])/"),
    ('NULL_LIT       : "null"', "NULL_LIT.2     : /null(?![_a-zA-Z0-9])/\n\nIN.2           : /in(?![_a-zA-Z0-9])/"),
    (
        "IDENT          : /[_a-zA-Z][_a-zA-Z0-9]*/",
        "IDENT          : /(?!(?:in|true|false|null)(?![_a-zA-Z0-9]))[_a-zA-Z][_a-zA-Z0-9]*/\n\n"
        "ESCAPED_IDENT  : /`[a-zA-Z0-9_.\\-\\/ ]+`/",
    ),
)


def grammar_text() -> str:
    """The grammar for Lark. Raises RuntimeError if cel-python's grammar is not the one that this was written for."""
    # Importing cel-python would run its evaluator's modules, which take longer than all the rest.
    spec = find_spec("celpy")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("cel-python is not installed")
    text = (Path(spec.submodule_search_locations[0]) / "cel.lark").read_text(encoding="utf-8")
    for old, new in _CHANGES:
        if text.count(old) != 1:
            raise RuntimeError(
                f"the grammar of the installed cel-python is not the expected one: {old!r} not found once"
            )
        text = text.replace(old, new)
    return text
