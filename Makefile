# One entry for every chore. `make demo` and `make test` need python3 (3.11 or newer, with venv), a C++ compiler and make.
SHELL := /bin/bash
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(wildcard dra_alloc/*.pyx dra_alloc/*.pxi dra_alloc/*.pxd dra_alloc/*.h dra_alloc/*.hpp)

.PHONY: help env demo test quick smoke pythons sanitize bench bench-compare lint format docs links wheel lock changes release-check clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# The environment is made of the pinned versions in requirements-dev.lock and renewed when they change; a broken one
# (python moved away) is made anew.
$(VENV)/.deps: requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dra_alloc needs Python 3.11 or newer, set PYTHON=…")'
	@$(BIN)/python -c 'import pip' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	@touch $@

# The package itself, editable: its metadata and entry points follow pyproject.toml.
$(VENV)/.package: $(VENV)/.deps pyproject.toml setup.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

# The extension, built in place when its sources change.
$(VENV)/.extension: $(VENV)/.package setup.py $(SOURCES)
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

env: $(VENV)/.extension ## the environment in .venv, with the package and its extension

demo: env ## a small cluster, allocated and told line by line
	@$(BIN)/python examples/demo/demo.py

test: env ## all tests
	$(BIN)/python -m pytest -n 2 --dist loadgroup -p no:benchmark

quick: env ## the tests without the slow ones
	$(BIN)/python -m pytest -n 2 --dist loadgroup -p no:benchmark -m "not slow"

# Other interpreters that are at hand, on the path or installed by pyenv, one a minor version.
OTHERS = $(shell for python in python3.12 python3.13 python3.14 $(wildcard $(HOME)/.pyenv/versions/3.1[2-4].*/bin/python3); do \
	$$python -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)' 2>/dev/null; done | sort -u -k1,1 | tr ' ' '=')

smoke: ## install the source distribution with every supported Python at hand, and try it from outside
	@others="$(OTHERS)"; \
	[ -n "$$others" ] || echo "no other supported Python is at hand"; \
	bash .ci/smoke $(PYTHON) $$(printf '%s\n' $$others | cut -d= -f2-)

pythons: ## the quick tests with every other supported Python at hand, each in an environment of its own
	@others="$(OTHERS)"; \
	for other in $$others; do \
		echo "Python $${other%%=*}"; \
		$(MAKE) --no-print-directory quick VENV=.venv-$${other%%=*} PYTHON=$${other#*=} || exit 1; \
	done; \
	[ -n "$$others" ] || echo "no other supported Python is at hand"

# The extension with sanitizers lives in a copy of the tree, so that it never meets the ordinary one; processes that tests
# start find it there too. Python itself leaks at exit by design; leaks of the library are looked for by tests that count.
# Left out, by the marker `plain_build`: tests that count memory, and those of the distributions.
SANITIZED := build/sanitized
SANITIZED_TESTS ?= tests

sanitize: env ## all tests once more, the extension with AddressSanitizer and UndefinedBehaviorSanitizer
	rm -rf $(SANITIZED)
	mkdir -p $(SANITIZED)
	git ls-files -z --cached -- . | xargs -0 cp --parents -t $(SANITIZED)
	cd $(SANITIZED) && DRA_ALLOC_SANITIZE=address,undefined $(abspath $(BIN))/python setup.py --quiet build_ext --inplace
	cd $(SANITIZED) && ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
		PYTHONPATH=$(abspath $(SANITIZED)) HYPOTHESIS_PROFILE=sanitize \
		$(abspath $(BIN))/python -m pytest -n 2 --dist loadgroup -p no:benchmark -p no:cacheprovider --timeout 900 \
		-m "not plain_build" $(SANITIZED_TESTS)

bench: env ## the benchmarks, as a table; all figures go to bench/results/<commit>.json
	@mkdir -p bench/results
	$(BIN)/python -m pytest bench -q --benchmark-columns=min,median,rounds --benchmark-max-time 0.5 \
		--benchmark-json=bench/results/$$(git rev-parse --short HEAD).json

bench-compare: env ## two results of `make bench` side by side: make bench-compare OLD=… NEW=… (commits)
	$(BIN)/pytest-benchmark compare --group-by=fullname --columns=min,median \
		bench/results/$(OLD).json bench/results/$(NEW).json

lint: env ## style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: env ## mend style and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: env ## the documentation as a site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

links: env ## every page, example and link of the documentation
	$(BIN)/python -m pytest -p no:benchmark tests/docs

wheel: env ## source distribution and wheel in dist/
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

lock: ## pin the development environment anew after a change of dependencies in pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import uv' 2>/dev/null || $(BIN)/python -m pip install --quiet uv
	$(BIN)/python -m uv pip compile --quiet --universal --python-version 3.11 --all-extras --group dev \
		--no-header --no-annotate --output-file requirements-dev.lock $(LOCKFLAGS) pyproject.toml

changes: env ## CHANGES.md from the fragments in changes/, for the version in dra_alloc/__init__.py
	$(BIN)/towncrier build --yes

VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' dra_alloc/__init__.py)

release-check: env ## all that must hold before a release
	@test -z "$$(git status --porcelain)" || { echo "there are changes that are not committed" >&2; exit 1; }
	@! git rev-parse -q --verify refs/tags/v$(VERSION) >/dev/null || { echo "v$(VERSION) is tagged already" >&2; exit 1; }
	@grep -q "^## $(VERSION) " CHANGES.md || { echo "CHANGES.md does not tell of $(VERSION): make changes" >&2; exit 1; }
	@test -z "$$(find changes -name '*.md' 2>/dev/null)" || { echo "changes/ has notes that are not in CHANGES.md: make changes" >&2; exit 1; }
	bash .ci/run
	$(MAKE) --no-print-directory pythons smoke wheel
	@echo "ready: git tag v$(VERSION)"

clean: ## all that was built, the environment included
	rm -rf $(VENV) build dist site *.egg-info dra_alloc/*.c dra_alloc/*.cpp dra_alloc/*.so
