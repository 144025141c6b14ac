# Every target makes .venv ready first (seconds once, milliseconds after that). Pass more to pytest with ARGS="-k word".

PYTHON_IN_VENV := .venv/bin/python
TESTS := tests
ARGS :=
# Test files that run side by side: one more than there are processors, since tests wait a lot. WORKERS=0: one after the other.
WORKERS := $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 7 ? n + 1 : 8)))
PYTEST := -m pytest -n $(WORKERS) --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help setup sandbox demo test soak escape check lint types imports drift fmt bench docs lock wheel release-check clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

setup: ## .venv with sandboxmcp and the development tools
	@sh scripts/setup.sh

sandbox: setup
	@sh scripts/sandbox.sh

demo: sandbox ## the main job on real input of this machine, through a real MCP client
	@$(PYTHON_IN_VENV) scripts/demo.py

test: setup ## every test (SANDBOXMCP_SANDBOX=required: a missing sandbox fails instead of skipping)
	@sh scripts/sandbox.sh || [ "$$SANDBOXMCP_SANDBOX" != required ]
	@$(PYTHON_IN_VENV) $(PYTEST) $(TESTS) $(ARGS)

soak: setup ## for some minutes: kill writers of a store at random points; 20,000 random scripts, of which bash runs only what was judged; 500 sessions
	@SANDBOXMCP_SCRIPTS=20000 $(PYTHON_IN_VENV) -m pytest tests/policy/test_shell_runs.py --timeout=1800 $(ARGS)
	@SANDBOXMCP_SOAK=100 $(PYTHON_IN_VENV) -m pytest tests/store/test_durability.py -k killed $(ARGS)
	@SANDBOXMCP_SOAK=1 $(PYTHON_IN_VENV) -m pytest tests/server/test_many_sessions.py -k come_and_go --timeout=1800 $(ARGS)

escape: sandbox ## only the tests that try to get out of the sandbox
	@$(PYTHON_IN_VENV) $(PYTEST) tests/escape $(ARGS)

check: lint types imports drift ## all that needs no sandbox: lint types imports drift

lint: setup ## ruff: rules and layout
	@$(PYTHON_IN_VENV) -m ruff check
	@$(PYTHON_IN_VENV) -m ruff format --check --quiet || { echo "Run: make fmt"; exit 1; }

types: setup ## mypy, strict
	@$(PYTHON_IN_VENV) -m mypy
	@$(PYTHON_IN_VENV) -m mypy --config-file scripts/mypy-guest.ini

imports: setup ## who may import whom (import-linter)
	@$(PYTHON_IN_VENV) .venv/bin/lint-imports --no-cache

drift: setup ## generated pages are what their source says
	@$(PYTHON_IN_VENV) scripts/reference.py --check

fmt: setup ## ruff repairs what it can
	@$(PYTHON_IN_VENV) -m ruff check --fix --quiet
	@$(PYTHON_IN_VENV) -m ruff format --quiet

bench: sandbox ## measurements, beside the peer when PEER names its folder
	@$(PYTHON_IN_VENV) benchmarks/spine.py

docs: setup ## write the generated pages again
	@$(PYTHON_IN_VENV) scripts/reference.py

lock: setup ## newest versions of everything into constraints-dev.txt
	@.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --group dev --extra bwrap --extra semantic --no-annotate \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file constraints-dev.txt pyproject.toml

wheel: setup ## dist/*.whl and dist/*.tar.gz
	@rm -rf dist
	@$(PYTHON_IN_VENV) -m build --no-isolation

release-check: check test wheel ## everything above on a clean tree, before a version is tagged
	@[ -z "$$(git status --porcelain)" ] || { echo "The tree is not clean: commit or remove what git status shows."; exit 1; }

clean: ## remove .venv and everything that was built
	@rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
