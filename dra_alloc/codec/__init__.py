"""Reading and writing Kubernetes objects.

`load` reads files, streams, dicts and objects of client libraries; `decode` one object; `encode` writes one in any API
version that can hold it.
"""

from __future__ import annotations

from dra_alloc.codec.convert import decode, encode, structure, unstructure
from dra_alloc.codec.sources import DecodeWarning, Loaded, load

__all__ = ["DecodeWarning", "Loaded", "decode", "encode", "load", "structure", "unstructure"]
