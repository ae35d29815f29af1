# make all    install everything and measure the study config/config.yaml: results/default/report.html
# make again  measure cells with temporary failures again, and cells that depend on them
#             (for another study: make all or again, CONFIGFILE=config/studies/paper.yaml)
# make test   install everything and run the unit and DAG tests (only style, types, imports: make lint)
# make test-servers  run the tests with real servers, and the tests that measure times
# make test-live    run searches and studies on real servers: 15 minutes on an idle machine
# make test-kills  kill studies fifty times at random, then complete them: 30 minutes; KILLS=, SEED=
# make test-slurm   run a study on a Slurm of this machine (needs root, slurm-wlm and munge of Debian)
# make test-debian13  run the study smoke and tests on a Debian 13 in a folder (root, debootstrap);
#                     the same on a Debian 12: make test-debian12
# make test-mlflow  test that results are logged to an MLflow store in a file
# make test-timm    test the export of networks of timm
# make test-open-inference  test the measurement of an MLServer, a server other than Triton
# make doctor check whether this machine has everything that Perseus needs
# make docs   build the documentation as a site: build/site/index.html
# make bench  install everything and run the benchmarks: docs/evidence/benchmarks.md
#             (only one part: make bench BENCH=client; or honesty, search, live, limit, coverage,
#             sharing, interference, ablation, repeats, repeatability, noise, planning, aggregation,
#             planner, compare, prediction)
#
# For another Python, run: make PYTHON=python3.12 all. For another study or more cores, run:
#   .venv/bin/snakemake --cores 8 all --configfile config/studies/paper.yaml

SHELL := /bin/bash
PYTHON ?= python3
CORES ?= 4
# With CONFIGFILE, make runs the study in that file instead of config/config.yaml.
STUDY := $(if $(CONFIGFILE),--configfile $(CONFIGFILE))
VENV := .venv
BIN := $(VENV)/bin
# The Python stub of Triton takes its packages from the first python3 on the path.
ON_PATH := PATH="$(CURDIR)/$(BIN):$$PATH"
# Several processes run the tests, each with one thread. Python caches compiled modules, even if the
# environment of a container forbids caching.
IN_PARALLEL := $(ON_PATH) OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= \
  $(BIN)/python -m pytest -m "not alone" --dist worksteal
# The packages of a study. `make environment WITHOUT=export` leaves out envs/export.txt.
PACKAGES := requirements.txt $(filter-out $(WITHOUT:%=envs/%.txt),envs/export.txt)
# The server is installed without the dependencies of its package.
SERVER := $(filter-out $(WITHOUT:%=envs/%.txt),envs/triton.txt)
WANTED := $(PACKAGES) $(SERVER)
# Show only the lines of pip about downloads and their sizes.
SHOW_DOWNLOADS := { grep --line-buffered -oE '(Downloading|Installing) .{1,80}' || true; }
# Environment with the packages of the cluster profiles, in front of .venv.
CLUSTERS := .venv-clusters
# Environment with the packages for `track: {mlflow: URI}`, in front of .venv.
MLFLOW := .venv-mlflow
# Environment with the packages for `architecture: timm/NAME`, in front of .venv.
TIMM := .venv-timm
# Separate environment with the MLServer that a test measures.
MLSERVER := .venv-mlserver
# Separate environment with the packages that build the documentation site.
DOCS := .venv-docs

export PYTHONUTF8 := 1
# Snakemake needs a user name, a home and a cache folder, which an account in a container may lack.
export USER ?= $(shell id -u)
export HOME ?= $(CURDIR)/.snakemake
export XDG_CACHE_HOME := $(shell cache="$(or $(XDG_CACHE_HOME),$(HOME)/.cache)"; \
  mkdir -p "$$cache" 2>/dev/null && test -w "$$cache" || cache="$(CURDIR)/.snakemake/cache"; \
  echo "$$cache")

.PHONY: all again doctor lint test test-servers test-live test-kills test-debian12 test-debian13 test-slurm test-mlflow test-timm test-open-inference docs bench environment development clean-environment
.NOTPARALLEL:

all: environment
	@echo "== snakemake --cores $(CORES) all: export, measure, tables, figures, report =="
	@$(ON_PATH) $(BIN)/snakemake --cores $(CORES) all $(STUDY)

again: environment
	@$(ON_PATH) $(BIN)/python scripts/again.py --cores $(CORES) $(STUDY)

doctor:
	@$(PYTHON) scripts/doctor.py

# One command per line: a test compares these commands with the commands in .pre-commit-config.yaml.
lint: development
	@echo "== ruff, mypy, import-linter, snakefmt, snakemake: style, types, layers, workflow =="
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/mypy scripts/backends/openvino/model.py
	@$(BIN)/mypy scripts/backends/perseus_tensors.py
	@env PYTHONPATH=scripts $(BIN)/lint-imports --no-logo
	@$(BIN)/snakefmt --check Snakefile rules
	@$(BIN)/snakemake --lint

test: lint
	@echo "== pytest: unit tests and the DAG, three at a time =="
	@$(IN_PARALLEL) -n 3 tests/unit tests/dag

test-servers: development
	@echo "== pytest: tests with servers but without timing, five at a time =="
	@$(IN_PARALLEL) -n 5 tests/e2e
	@echo "== pytest: tests that measure times, one at a time =="
	@$(ON_PATH) $(BIN)/python -m pytest -m alone

test-live: development
	@echo "== pytest: searches and studies on real servers, one at a time =="
	@$(ON_PATH) $(BIN)/python -m pytest tests/live --ignore=tests/live/test_killed_smoke.py

test-kills: development
	@echo "== pytest: studies that are killed at random moments, with stand-ins and on real servers =="
	@$(ON_PATH) KILLS=$${KILLS:-50} $(BIN)/python -m pytest -s tests/dag/test_killed_at_random.py \
	  tests/live/test_killed_smoke.py

test-slurm: development
	@$(call install_over,$(CLUSTERS),$(wildcard profiles/*/requirements.txt))
	@echo "== pytest: a study on a Slurm of one node =="
	@PATH="$(CURDIR)/$(CLUSTERS)/bin:$$PATH" tests/slurm/own_world.sh \
	  $(CLUSTERS)/bin/python -m pytest tests/slurm

test-debian12 test-debian13: test-debian%:
	@echo "== a Debian $* in build/debian$*: installation, a study and tests =="
	@tests/debian.sh $*

test-mlflow: development
	@$(call install_over,$(MLFLOW),envs/mlflow.txt)
	@echo "== pytest: results in an MLflow store of this machine =="
	@$(MLFLOW)/bin/python -m pytest tests/mlflow_store

test-timm: development
	@$(call install_over,$(TIMM),envs/timm.txt)
	@echo "== pytest: networks of timm =="
	@$(TIMM)/bin/python -m pytest tests/timm_networks

test-open-inference: development
	@$(call install_alone,$(MLSERVER),envs/mlserver.txt)
	@echo "== pytest: a study on an MLServer =="
	@$(ON_PATH) $(BIN)/python -m pytest tests/open_inference

docs:
	@$(call install_alone,$(DOCS),docs/site/requirements.txt)
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build

bench: environment
	@echo "== benchmarks: all benchmarks take about three hours on an idle machine =="
	@PYTHONPATH=scripts $(BIN)/python -m benchmarks $(BENCH)

# .venv/requirements.txt is a copy of the installed requirements. If this copy is up to date, make
# installs nothing. If the programs of .venv do not start (moved, incomplete, another Python), make
# replaces .venv.
environment:
	@works() { $(BIN)/pip --version >/dev/null 2>&1; }; set -o pipefail; \
	if ! cat $(WANTED) | cmp -s - $(VENV)/requirements.txt || ! works; then \
	  { $(PYTHON) scripts/doctor.py || true; } && \
	  echo "== Installing $(WANTED) into $(VENV): some GB and minutes, once ==" && \
	  { works || $(call make_venv,$(VENV)); } && \
	  $(PIP_INSTALL) $(patsubst %,-r %,$(PACKAGES)) | $(SHOW_DOWNLOADS) && \
	  $(if $(SERVER),$(PIP_INSTALL) --quiet --no-deps -r envs/triton.txt &&) \
	  cat $(WANTED) > $(VENV)/requirements.txt; \
	fi

# All packages of a study, and the packages of tests and lint.
development: environment
	@set -o pipefail; if ! cmp -s envs/development.txt $(VENV)/development.txt; then \
	  echo "== Installing envs/development.txt into $(VENV) ==" && \
	  $(PIP_INSTALL) -r envs/development.txt | $(SHOW_DOWNLOADS) && \
	  cp envs/development.txt $(VENV)/development.txt; \
	fi

clean-environment:
	rm -rf $(VENV) $(CLUSTERS) $(MLFLOW) $(TIMM) $(MLSERVER) $(DOCS)

# If uv is installed, uv gets a suitable Python and installs the packages, from the package indexes that
# the variables of pip name.
UV := $(shell command -v uv 2>/dev/null)
ifdef PIP_INDEX_URL
  export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
ifdef PIP_EXTRA_INDEX_URL
  export UV_EXTRA_INDEX_URL ?= $(PIP_EXTRA_INDEX_URL)
  export UV_INDEX_STRATEGY ?= unsafe-best-match
endif
ifdef PIP_FIND_LINKS
  export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
endif
PIP_INSTALL := $(if $(UV),uv pip install --python $(BIN)/python,\
  $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off)
# The Triton server has Python stubs for these versions of Python.
PYTHON_FITS := $(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'

# Make an environment in a folder, with only pip installed.
define make_venv
{ if [ -n "$(UV)" ]; then uv venv --quiet --clear --seed $(1) \
  --python $$($(PYTHON_FITS) 2>/dev/null && echo $(PYTHON) || echo 3.13); \
  else $(call require_python) && $(PYTHON) -m venv --clear $(1); fi; }
endef

define require_python
{ $(PYTHON_FITS) || { \
  echo "Perseus needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
       "Install a suitable Python and name it: make PYTHON=python3.13 $(MAKECMDGOALS)" >&2; \
  echo "Or install uv, with which make installs a Python: https://docs.astral.sh/uv/" >&2; exit 1; }; }
endef

# Make an environment in a folder, with only the packages of one file.
define install_alone
if ! cmp -s $(2) $(1)/requirements.txt; then \
  echo "== Installing $(2) into $(1) ==" && \
  $(call make_venv,$(1)) && \
  $(1)/bin/python -m pip install --quiet --disable-pip-version-check -r $(2) && \
  cp $(2) $(1)/requirements.txt; \
fi
endef

# Make an environment in a folder, with the packages of some files in front of the packages of .venv.
define install_over
if ! cat $(2) | cmp -s - $(1)/requirements.txt; then \
  echo "== Installing $(2) into $(1) ==" && \
  $(BIN)/python -m venv --clear --without-pip $(1) && \
  $(BIN)/python -c 'import site; print(site.getsitepackages()[0])' \
    > "$$(echo $(1)/lib/python3*/site-packages)/perseus.pth" && \
  $(BIN)/python -m pip --python $(1)/bin/python install --quiet --disable-pip-version-check \
    $(patsubst %,-r %,$(2)) && \
  cat $(2) > $(1)/requirements.txt; \
fi
endef

# A test compares docs/reference/data.md with the code.
.PHONY: docs/reference/data.md
docs/reference/data.md: | environment
	PYTHONPATH=scripts $(BIN)/python -m perseus.results.dictionary > $@.new
	mv $@.new $@

# The pinned versions fit CPU and CUDA builds of torch. Run this target with Python 3.11.
.PHONY: requirements.txt
requirements.txt:
	@$(call require_python)
	rm -rf .venv-resolve
	$(PYTHON) -m venv .venv-resolve
	.venv-resolve/bin/python -m pip install --quiet -r requirements.in
	.venv-resolve/bin/python envs/split_pins.py
	rm -rf .venv-resolve
	@cat requirements.txt envs/export.txt | while read -r pin; do \
	  sed -i -E "s/^( *- $${pin%%==*})==.*/\1==$${pin##*==}/" envs/perseus.yaml; done

# Update the facts of torchvision about its networks if envs/export.txt has another torchvision.
architectures: | environment
	PYTHONPATH=scripts $(BIN)/python -m perseus.models.torchvision_facts > scripts/perseus/study/architectures.csv

.PHONY: architectures

config/README.md config/schema.json: scripts/perseus/study/*.py scripts/perseus/study/experiments/*.py | environment
	PYTHONPATH=scripts $(BIN)/python -m perseus.study.generated_docs $(@F) > $@
