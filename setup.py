"""Build of the C extensions; everything else is in pyproject.toml."""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

#: `DRA_ALLOC_SANITIZE=address,undefined` builds the extensions with these sanitizers (see `make sanitize`).
SANITIZE = os.environ.get("DRA_ALLOC_SANITIZE", "")
FLAGS = ["-std=c++17", "-O3"] if os.name != "nt" else ["/std:c++17", "/O2"]
LINK: list[str] = []
if SANITIZE:
    FLAGS = ["-std=c++17", "-O1", "-g", "-fno-omit-frame-pointer", f"-fsanitize={SANITIZE}"]
    LINK = [f"-fsanitize={SANITIZE}"]


def extension(name: str) -> Extension:
    return Extension(
        f"dra_alloc.{name}",
        [f"dra_alloc/{name}.pyx"],
        language="c++",
        extra_compile_args=FLAGS,
        extra_link_args=LINK,
    )


setup(
    ext_modules=cythonize(
        [extension(name) for name in ("_cow", "_make", "_rows", "_waiting", "inventory", "_core")],
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "freethreading_compatible": True,
        },
    )
)
