"""Reading and writing Kubernetes objects.

`load` reads files, streams, dicts and objects of client libraries; `decode` one object; `encode` writes one in any API
version that can hold it, and `dump_yaml` makes text of that.
"""

from __future__ import annotations

from dra_alloc.codec.convert import decode, decode_as, encode, structure, unstructure
from dra_alloc.codec.sources import DecodeWarning, Loaded, load
from dra_alloc.codec.yamldump import dump_yaml

__all__ = ["DecodeWarning", "Loaded", "decode", "decode_as", "dump_yaml", "encode", "load", "structure", "unstructure"]
