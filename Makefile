# Two commands matter: `make demo` and `make test`. Both set everything up by themselves.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help install demo shell test check wheel-test format docs gallery bench bench-realmlp results picture constraints clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

install: $(INSTALLED) ## create .venv with the package and all extras, pinned by constraints.txt

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed, but $(PYTHON) is older; set PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[all]"
	@touch $(INSTALLED)

demo: install ## compare six models on three data sets and write a page about each
	$(BIN)/cocoloss demo
	@echo
	@echo "next: a file of made-up customers who stay or leave; yours will do as well"
	@echo "    $(BIN)/cocoloss report examples/customers.csv --target churned --out churn.html"
	@echo "('make shell' opens a shell in which 'cocoloss' alone is enough)"

shell: install ## open a shell in which cocoloss and its Python come first
	@printf '%s\n' 'test -r ~/.bashrc && . ~/.bashrc' '. "$(CURDIR)/$(BIN)/activate"' > .venv/shell.bash
	@case "$$SHELL" in \
		*/bash) exec "$$SHELL" --init-file .venv/shell.bash -i ;; \
		*) VIRTUAL_ENV="$(CURDIR)/.venv" PATH="$(CURDIR)/$(BIN):$$PATH" exec "$${SHELL:-/bin/sh}" -i ;; \
	esac

# One more than there are cores, at most four: some tests wait for processes that they have started.
TESTERS := $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 3 ? cores + 1 : 4)))

test: install ## run every test: the package, its docstrings, the README and the docs
	$(BIN)/pytest --numprocesses $(TESTERS) --dist worksteal src tests
	$(BIN)/pytest --numprocesses $(TESTERS) --dist loadfile README.md docs # a page is read from top to bottom

check: install ## ruff, formatting, mypy --strict and the layer test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_layers.py

# The sdist, the wheel from it, and that alone in an environment: no extras, nothing of this folder.
WHEEL_TEST := build/wheel-test
wheel-test: install ## build sdist and wheel, and try the wheel in an empty environment
	rm -rf $(WHEEL_TEST) && mkdir -p $(WHEEL_TEST)
	$(BIN)/python -m build --outdir $(WHEEL_TEST)/dist > $(WHEEL_TEST)/log || { cat $(WHEEL_TEST)/log; exit 1; }
	tar -xf $(WHEEL_TEST)/dist/*.tar.gz -C $(WHEEL_TEST)
	$(PYTHON) -m venv $(WHEEL_TEST)/env
	$(WHEEL_TEST)/env/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt $(WHEEL_TEST)/dist/*.whl
	cd / && env -u PYTHONPATH $(CURDIR)/$(WHEEL_TEST)/env/bin/python -P $(CURDIR)/$(WHEEL_TEST)/cocoloss-*/tests/smoke.py

format: install ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

gallery: install ## draw the pictures of the examples anew
	for file in examples/[0-9]*.py; do \
		$(BIN)/python $$file --out docs/images/gallery/$$(basename $$file .py).png || exit 1; \
	done

bench: install ## measure speed and memory beside the peers (several minutes)
	$(BIN)/python bench/losses.py
	$(BIN)/python bench/memory.py
	$(BIN)/python bench/estimators.py
	$(BIN)/python bench/command_line.py
	$(BIN)/python bench/comparisons.py

bench-realmlp: ## measure beside pytabkit's RealMLP, in .venv-realmlp (several minutes)
	$(PYTHON) -m venv .venv-realmlp
	.venv-realmlp/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	.venv-realmlp/bin/pip install --quiet --disable-pip-version-check pytabkit rich --editable .
	.venv-realmlp/bin/python bench/realmlp.py

results: install ## make docs/results.md and the pages of experiments again from the rows in results/
	rm -f build/results.sqlite
	$(BIN)/python results/page.py
	$(BIN)/cocoloss bench report build/results.sqlite --out build/results --experiments paper

picture: install ## draw the README's picture
	$(BIN)/python examples/02_collapse.py --out docs/images/gallery/02_collapse.png

constraints: ## resolve the open ranges anew and pin what comes out
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[all]"
	@echo "# Made by 'make constraints': one set of versions that is known to work together." > constraints.txt
	$(BIN)/pip freeze --exclude-editable | sed -E 's/\+cpu$$//' >> constraints.txt
	@touch $(INSTALLED)

clean: ## remove the environment and everything that tools left behind
	rm -rf .venv .venv-realmlp cocoloss-demo site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
