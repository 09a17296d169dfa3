"""Build of the C extension; everything else is in pyproject.toml."""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

#: `DRA_ALLOC_SANITIZE=address,undefined` builds the extension with these sanitizers (see `make sanitize`).
SANITIZE = os.environ.get("DRA_ALLOC_SANITIZE", "")
FLAGS = ["-std=c++17", "-O3"] if os.name != "nt" else ["/std:c++17", "/O2"]
LINK: list[str] = []
if SANITIZE:
    FLAGS = ["-std=c++17", "-O1", "-g", "-fno-omit-frame-pointer", f"-fsanitize={SANITIZE}"]
    LINK = [f"-fsanitize={SANITIZE}"]

core = Extension(
    "dra_alloc._core",
    ["dra_alloc/_core.pyx"],
    language="c++",
    extra_compile_args=FLAGS,
    extra_link_args=LINK,
)

inventory = Extension(
    "dra_alloc.inventory", ["dra_alloc/inventory.pyx"], extra_compile_args=FLAGS[1:], extra_link_args=LINK
)

rows = Extension(
    "dra_alloc._rows", ["dra_alloc/_rows.pyx"], language="c++", extra_compile_args=FLAGS, extra_link_args=LINK
)

setup(
    ext_modules=cythonize(
        [core, inventory, rows],
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
