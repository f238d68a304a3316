# Everything sets itself up: Python 3.11+, make and a package index are enough.
PYTHON ?= python3
VENV := .venv
REFERENCE := .venv-reference
KEYSTONE := .venv-keystone
NOVA := .venv-nova
# Which databases `make conformance` runs on.
CONFORMANCE_DATABASES ?= sqlite postgresql
# Programs beside the product. Each is a folder of modules that import each other by name.
TOOLS := conformance differential bench cluster
SERVE ?= --demo
PYTEST ?=
# How many processes run the tests. Many tests wait, so two for each core are fastest.
TEST_PROCESSES ?= $(shell expr 2 \* $$(nproc))
BENCH ?=
DIFFERENTIAL ?=
CLUSTER ?=

.PHONY: help run test test-long check browser screenshots format release deb conformance bench differential cluster clean

help: ## Show what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

run: $(VENV)/.serves ## Serve a demo cloud at http://127.0.0.1:8778 (SERVE='...' for other options)
	$(VENV)/bin/roost serve $(SERVE)

# Each process of a test run imports a thousand modules. Most of that time goes to compilation, which
# the next run saves if the environment lets Python keep the result.
test test-long: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/.develops $(REFERENCE)/.installed $(KEYSTONE)/.installed page-tools ## Run the tests but long and slow ones, on every database that this machine has
	$(VENV)/bin/pytest -n $(TEST_PROCESSES) --dist worksteal $(PYTEST)

test-long: $(VENV)/.develops $(REFERENCE)/.installed $(KEYSTONE)/.installed $(NOVA)/.installed ## Run the tests that take minutes, and properties with new examples
	$(VENV)/bin/pytest -n $(TEST_PROCESSES) --dist worksteal -m "(hypothesis or slow) and not long" --hypothesis-profile=long $(PYTEST)
	$(VENV)/bin/pytest -m long --hypothesis-profile=long $(PYTEST)

check: $(VENV)/.develops ## Format, lint, types, layers
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(foreach tool,$(TOOLS),MYPYPATH=$(tool) $(VENV)/bin/mypy $(tool) &&) true
	$(VENV)/bin/lint-imports
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory node_modules/.installed && \
		node_modules/.bin/tsc -p src/roost/web/tsconfig.json; \
	elif [ -n "$$ROOST_TEST_REQUIRE" ]; then echo "npm is missing, so the scripts of the pages cannot be checked"; exit 1; \
	else echo "NOT CHECKED: the types of the scripts of the pages. Install node and npm for that."; fi

browser: ## Install Debian's chromium, node and npm for the tests of the pages, if they are missing
	@missing="$$(for name in chromium npm; do command -v $$name >/dev/null || echo $$name; done)"; \
	if [ -n "$$missing" ]; then \
		{ [ "$$(id -u)" = 0 ] && apt-get update && apt-get install -y --no-install-recommends $$missing; } || \
		{ echo "Missing:" $$missing. "Run make browser as root, or install them by other means."; exit 1; }; \
	fi

screenshots: $(VENV)/.develops ## Make the pictures of the pages in docs/pictures/ (needs chromium)
	$(VENV)/bin/python docs/pictures/make.py

# axe-core for the tests of the pages. Without npm, a run says what it did not show.
.PHONY: page-tools
page-tools:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory node_modules/.installed; fi

node_modules/.installed: package.json package-lock.json
	npm ci --no-audit --no-fund
	@touch $@

format: $(VENV)/.develops ## Format the code and mend what the linter can
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

release: $(VENV)/.develops ## Build wheel and sdist into dist/, and check them
	rm -rf dist
	$(VENV)/bin/python -m build --outdir dist .
	$(VENV)/bin/python deploy/check_release.py dist

deb: ## Build the Debian package roost-agent into build/deb/ (needs debhelper and python3-venv)
	rm -rf build/deb && mkdir -p build/deb/roost/docs
	cp -r pyproject.toml README.md LICENSE src deploy build/deb/roost/
	cp docs/concepts.md build/deb/roost/docs/
	cp -r deploy/debian build/deb/roost/debian
	find build/deb/roost -name __pycache__ -prune -exec rm -rf {} +
	cd build/deb/roost && dpkg-buildpackage --build=binary --no-sign
	rm -rf build/deb/roost && ls build/deb/*.deb

conformance: $(VENV)/.serves $(REFERENCE)/.installed ## Run the reference's API suite against Roost
	$(REFERENCE)/bin/python conformance/schema.py --roost $(VENV)/bin/roost \
		$(foreach kind,$(CONFORMANCE_DATABASES),--database $(kind))
	$(REFERENCE)/bin/python conformance/run.py --roost $(VENV)/bin/roost \
		$(foreach kind,$(CONFORMANCE_DATABASES),--database $(kind))

bench: $(VENV)/.serves $(REFERENCE)/.measures ## Measure Roost against the reference (BENCH=--quick for a selection)
	$(REFERENCE)/bin/python bench/run.py --roost $(VENV)/bin/roost $(BENCH)

differential: $(VENV)/.serves $(REFERENCE)/.compares ## Ask Roost and the reference the same
	$(REFERENCE)/bin/python differential/run.py --roost $(VENV)/bin/roost $(DIFFERENTIAL)

cluster: $(VENV)/.serves ## Kill servers behind haproxy under load, and upgrade them (CLUSTER='--part faults' for one part)
	$(VENV)/bin/python cluster/run.py --roost $(VENV)/bin/roost $(CLUSTER)

clean: ## Remove what was set up
	rm -rf $(VENV) $(REFERENCE) $(KEYSTONE) $(NOVA) .*_cache .hypothesis build dist

$(VENV)/bin/python:
	@echo "== Making a virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Roost needs Python 3.11 or newer; choose one with: make run PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); \
		echo "Python has no working venv module; on Debian: apt install python3-venv"; exit 1; }

$(VENV)/.serves: pyproject.toml | $(VENV)/bin/python
	@echo "== Installing Roost (once; about half a minute)"
	$(VENV)/bin/python -m pip install --disable-pip-version-check -e '.[postgresql,mysql,keystone]' || \
		{ echo "pip could not install Roost; is a package index reachable (PIP_INDEX_URL)?"; exit 1; }
	@touch $@

$(VENV)/.develops: pyproject.toml $(VENV)/.serves
	@echo "== Installing the tools of development (once; about a minute)"
	$(VENV)/bin/python -m pip install --disable-pip-version-check -e '.[dev]'
	@touch $@

$(REFERENCE)/.installed: conformance/requirements.txt
	@echo "== Installing the reference for comparison (once; about a minute)"
	$(PYTHON) -m venv $(REFERENCE)
	$(REFERENCE)/bin/python -m pip install --disable-pip-version-check -r $<
	@touch $@

$(KEYSTONE)/.installed: tests/keystone-requirements.txt tests/support/servers/keystone_program.py
	@echo "== Installing Keystone for the tests (once; about a minute)"
	$(PYTHON) -m venv $(KEYSTONE)
	$(KEYSTONE)/bin/python -m pip install --disable-pip-version-check -r $<
	@rm -rf $(KEYSTONE)/template
	$(KEYSTONE)/bin/python -W ignore tests/support/servers/keystone_program.py template $(KEYSTONE)/template
	@touch $@

$(NOVA)/.installed: tests/nova-requirements.txt pyproject.toml
	@echo "== Installing Nova for a test (once; about a minute)"
	$(PYTHON) -m venv $(NOVA)
	$(NOVA)/bin/python -m pip install --disable-pip-version-check -r $< -e .
	@touch $@

$(REFERENCE)/.measures: bench/requirements.txt $(REFERENCE)/.installed
	$(REFERENCE)/bin/python -m pip install --disable-pip-version-check -r $<
	@touch $@

$(REFERENCE)/.compares: differential/requirements.txt $(REFERENCE)/.measures
	$(REFERENCE)/bin/python -m pip install --disable-pip-version-check -r $<
	@touch $@
