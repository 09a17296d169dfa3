"""Writing YAML that every reader takes for the same values, those of YAML 1.1 and 1.2 and of kubectl included."""

from __future__ import annotations

import re

import yaml

from dra_alloc.api import Model
from dra_alloc.codec.yamltext import is_text

__all__ = ["dump_yaml"]

#: What some reader or other takes for a number, a time or a word of its own.
_AMBIGUOUS = re.compile(r"[-+]?[0-9][0-9_]*|[-+]?[0-9._]+[eE][-+]?[0-9]+|[-+]?0[oObBxX][0-9a-fA-F_]+|[yYnN]|=")


def dump_yaml(*documents: object, width: int = 80, compact: bool = False) -> str:
    """YAML documents of API objects (in their preferred version), or of JSON values such as those of `encode`.

    Text that could be read as something else is in quotes, text of several lines is a block. Equal objects are written
    in full, without anchors. width: where long text is folded. compact: lists and objects without others in them take
    one line. Raises TypeError for what JSON does not have.
    """
    try:
        return str(
            yaml.dump_all(
                [document.to_dict() if isinstance(document, Model) else document for document in documents],
                Dumper=_Dumper,
                sort_keys=False,
                allow_unicode=True,
                width=width,
                default_flow_style=None if compact else False,
            )
        )
    except yaml.representer.RepresenterError as error:
        what = type(error.args[-1]).__name__
        raise TypeError(f"{what} cannot be written as YAML; give API objects, or JSON values") from None


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if not text.replace("\n", "").isprintable():
        style = '"'
    elif "\n" in text.strip("\n") and not text[0].isspace() and " \n" not in text:
        style = "|"
    elif not is_text(text) or _AMBIGUOUS.fullmatch(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
