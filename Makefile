# Two commands matter: `make demo` shows the product on real brokers, `make test` proves it.
# Both set up everything they need from Python 3.11+, Java 17+ and make.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# What draws the dashboards is no part of the product, nor of its tests.
DRAWING := build/drawing
DRAWING_READY := $(DRAWING)/.ready
# Nor is what makes a site of the pages.
SITE := build/site-maker
SITE_READY := $(SITE)/.ready
# Areas run side by side, as many as keep the cores busy: tests/areas.toml says how long each takes.
TEST := lint types layers unit property brokerless steady serving breaking losses faults story spark healthy applications-short
QUICK := lint types layers unit property smoke
AREAS := integration smoke $(TEST)
# Hundreds of processes are started, and each reads five hundred modules of ours.
unexport PYTHONDONTWRITEBYTECODE
# In CI alone a failed test has one more try. The summary names it and shows why it failed: a test
# that needed the second try is to be mended.
RERUNS := $(if $(filter true,$(CI)),--reruns 1 --rerun-show-tracebacks -r aR)
PYTEST := $(BIN)/python -m pytest -q --durations 10 --durations-min 5 $(RERUNS)

.PHONY: help setup demo test quick check $(AREAS) coverage bench baseline-quality applications variations versions quiet quiet-long quiet-clients ordinary-trouble loss-long returned-long tail-long jobs-long nightly-kills property-long runbooks fuzz attacks pictures docs golden lock kafka-lock format clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(READY) ## make the virtual environment (done by every other target)

# uv, which is among the pinned packages, installs the others in a third of pip's time. It does not know
# the index that pip was told of: where it finds none, pip installs them. Python compiles what is
# imported, when it is: the packages have thousands of modules that never are.
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-compile
$(READY): requirements.txt pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'Tidemark needs Python 3.11 or newer: apt-get install python3 python3-venv, or make PYTHON=/path/to/python3.11'; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo 'The venv module is missing: apt-get install python3-venv'; exit 1; }
	@echo 'Installing the pinned packages into $(VENV) (once, about a minute) ...'
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.txt >$(VENV)/uv.txt && $(PIP_INSTALL) -r $(VENV)/uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.txt \
	  || $(PIP_INSTALL) -r requirements.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## a story of faults, seen by Tidemark on real brokers (KEEP=1 leaves all running)
	@$(BIN)/tidemark sandbox demo $(if $(KEEP),--keep)

test: $(READY) ## everything: lint, types, layers, unit, property, integration, story, spark, healthy load, faults
	@$(BIN)/python -m tests.areas $(TEST)

quick: $(READY) ## lint, types, layers, unit, property, and a dozen tests on real brokers, in minutes
	@$(BIN)/python -m tests.areas $(QUICK)

check: lint types layers unit property ## what needs no broker

lint: $(READY) ## ruff: rules and format
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(READY) ## mypy, strict, code and tests
	@$(BIN)/mypy

layers: $(READY) ## import-linter: imports point downward
	@$(BIN)/lint-imports

unit: $(READY) ## pure tests
	@$(PYTEST) tests/unit

property: $(READY) ## laws, by Hypothesis, and damaged answers
	@$(PYTEST) tests/property tests/fuzz

ATTACKED_ELSEWHERE := tests/integration/test_hostile_broker.py tests/integration/history/test_failing_store.py \
  tests/integration/storage/test_rejected_rows.py tests/integration/scheduling/test_two_services.py tests/spark/test_surroundings.py

attacks: $(READY) ## attack a running service from outside: it answers, judges and delivers as before
	@$(BIN)/python -m pytest tests/attacks $(ATTACKED_ELSEWHERE) -q --timeout 600

property-long: $(READY) ## the same laws with a thousand new examples each
	@PROPERTY_PROFILE=long $(BIN)/python -m pytest tests/property -q --timeout 1800

fuzz: $(READY) ## a hundred times as many damaged answers, others each time (FUZZ_SEED=..., FUZZ_PART=1/8)
	@FUZZ_ANSWERS=100000 FUZZ_PROCESSES=2 FUZZ_SEED="$${FUZZ_SEED:-$$RANDOM}" $(BIN)/python -m pytest tests/fuzz -q -s --timeout 7200

integration: $(READY) ## real parts: the sandbox's brokers, PostgreSQL, Prometheus, sockets
	@$(PYTEST) tests/contract tests/integration

HEALTHY := tests/integration/test_quiet.py
ORDINARY := tests/integration/ordinary

# Needs no broker, and takes seconds to collect.
API := tests/integration/api
SERVE := tests/integration/serve

LOSSES := tests/integration/test_loss*.py

losses: $(READY) ## of these, what loses records and what only looks like it
	@$(PYTEST) $(LOSSES) -m 'breaking and not variation'

breaking: $(READY) ## what else kills and freezes brokers
	@$(PYTEST) tests/integration -m 'breaking and not variation' --ignore $(API) --ignore $(HEALTHY) --ignore $(ORDINARY) --ignore-glob '$(LOSSES)'

steady: $(READY) ## what leaves its brokers alone
	@$(PYTEST) tests/integration -m 'brokers and not (breaking or variation)' --ignore $(API) --ignore $(SERVE)

serving: $(READY) ## of these, what runs a whole service
	@$(PYTEST) $(SERVE) -m 'brokers and not (breaking or variation)'

brokerless: $(READY) ## and what needs none
	@$(PYTEST) tests/contract tests/integration -m 'not brokers'

smoke: $(READY) ## a dozen tests on real brokers, one for each part
	@$(PYTEST) tests/integration -m smoke

spark: $(READY) ## baseline runs on Spark: one core, two, a cluster, killed, damaged
	@$(PYTEST) tests/spark --timeout 1800

variations: $(READY) ## further variations of what other tests show on real brokers
	@$(PYTEST) tests/faults tests/integration -m variation
	@MOVES=4 $(PYTEST) tests/integration/test_loss_moves.py

nightly-kills: $(READY) ## a baseline run killed at ten random points, and made again: the same run, bit for bit
	@NIGHTLY_KILLS=10 $(BIN)/python -m pytest tests/spark/test_processes.py -q -k killed

healthy: $(READY) ## healthy load with all that ordinarily happens, and a little ordinary trouble: no false alarm
	@$(PYTEST) $(HEALTHY) $(ORDINARY)

runbooks: $(READY) ## every runbook with a fault, followed on real brokers
	@$(PYTEST) tests/integration/serve/test_runbooks.py

faults: $(READY) ## every fault of sequences on real brokers with real clients, judged by a running service
	@$(PYTEST) tests/faults -m 'not variation'

story: $(READY) ## the demo as a user runs it: to the end, interrupted, left running
	@$(PYTEST) tests/story

applications-short: $(READY) ## Kafka Streams and Connect for a minute, killed and back: no false alarm
	@$(PYTEST) tests/applications

coverage: $(READY) ## branch coverage of the unit and property tests
	@$(BIN)/coverage run -m pytest tests/unit tests/property -q && $(BIN)/coverage report

bench: $(READY) ## measure a round and the sandbox; prints speed and memory, asserts none
	@$(BIN)/python -m pytest tests/bench -q -s

baseline-quality: $(READY) ## what baselines find in simulated weeks, by class of incident, and what they report for nothing
	@$(BIN)/python -m pytest tests/bench/test_bench_quality.py -q -s

LOGGED := --log-cli-level=INFO --log-disable=httpx2
VERSIONS ?= 3.3.2 4.4.0
FAULT_FAMILIES := $(patsubst %,tests/integration/test_%.py, \
  faults loss loss_faults loss_returned loss_unseen lso_blockers transactions tx sequence_faults)

applications: $(READY) ## Kafka Streams, Connect and MirrorMaker 2 by themselves for 15 minutes each
	@APPLICATION_SECONDS=900 $(BIN)/python -m pytest tests/applications -q $(LOGGED)

versions: $(READY) ## the fault families on the oldest and the newest Kafka that the sandbox runs
	@failed=; for version in $(VERSIONS); do for tests in tests/faults '$(FAULT_FAMILIES)'; do \
	  echo "== Kafka $$version: $$tests"; \
	  SANDBOX_KAFKA_VERSION=$$version $(BIN)/python -m pytest -q $$tests || failed+=" $$version"; \
	done; done; test -z "$$failed" || { echo "FAILED on$$failed"; exit 1; }

QUIET := -m pytest $(HEALTHY) -q --log-cli-level=INFO --log-disable=httpx2

quiet: $(READY) ## 3 minutes of healthy load, with all that ordinarily happens: no breach
	@QUIET_SECONDS=180 $(BIN)/python $(QUIET)

quiet-long: $(READY) ## the same for 15 minutes
	@QUIET_SECONDS=900 $(BIN)/python $(QUIET)

quiet-clients: $(READY) ## 10 minutes of a healthy pipeline that restarts and rebalances: no client is named
	@EVIDENCE_SECONDS=600 $(BIN)/python -m pytest tests/integration/test_client_evidence.py -k healthy -q --log-cli-level=INFO --log-disable=httpx2

ordinary-trouble: $(READY) ## 40 minutes of freezes, moves, restarts, long transactions: no false alarm (ORDINARY_SEED=...)
	@ORDINARY_WHOLE=1 $(BIN)/python -m pytest $(ORDINARY) -q --log-cli-level=INFO --log-disable=httpx2

loss-long: $(READY) ## 20 leaders killed under load after their ISR shrank: what is reported holds the truth
	@LOSS_RUNS=20 $(BIN)/python -m pytest tests/integration/test_loss_under_load.py -q --log-cli-level=INFO --log-disable=httpx2

returned-long: $(READY) ## 20 killed leaders that come back: their log lines show exactly what is gone
	@LOSS_RUNS=20 $(BIN)/python -m pytest tests/integration/test_loss_returned.py -q --log-cli-level=INFO --log-disable=httpx2

jobs-long: $(READY) ## 20 days of jobs of two services on one database: every job of each runs
	@JOB_DAYS=20 $(BIN)/python -m pytest tests/integration/scheduling/test_two_services.py -q --timeout 3600

tail-long: $(READY) ## a gigabyte of log through rotations, its reader killed 40 times: every line once
	@TAIL_MB=1024 $(BIN)/python -m pytest tests/integration/storage/test_log_tail.py -q --log-cli-level=INFO

pictures: $(READY) $(DRAWING_READY) ## play the story of the demo, and draw every dashboard in docs/dashboards/ from its answers
	@$(BIN)/python -m tests.pictures.story
	@$(DRAWING)/bin/python -m tests.pictures.draw

$(DRAWING_READY): tests/pictures/requirements.txt
	@$(PYTHON) -m venv $(DRAWING)
	@$(DRAWING)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

docs: $(READY) $(SITE_READY) ## check the pages, and make a site of them in build/site, without the network
	@$(PYTEST) tests/unit/docs
	@$(SITE)/bin/mkdocs build --strict --clean

$(SITE_READY): requirements-docs.txt
	@$(PYTHON) -m venv $(SITE)
	@$(SITE)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

golden: $(READY) ## write the generated pages again
	@$(BIN)/python -m tests.golden

format: $(READY) ## format and fix what ruff can fix
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lock: $(READY) ## pin requirements.txt again from pyproject.toml, its part for the image, what draws pictures, and what makes the site
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --extra nightly --extra dev --upgrade --quiet pyproject.toml -o requirements.txt
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --extra nightly --constraint requirements.txt --upgrade --quiet pyproject.toml -o requirements-run.txt
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --constraint requirements.txt --upgrade --quiet \
	  --group pictures -o tests/pictures/requirements.txt
	@$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --constraint requirements.txt --upgrade --quiet \
	  --group docs -o requirements-docs.txt

kafka-lock: $(READY) ## pin the sandbox's Kafka jars again
	@$(BIN)/python -m service.sandbox.cluster.jars service/sandbox/cluster/locks/*.lock tests/applications/application-jars.lock

clean: ## remove the virtual environment and caches
	@rm -rf $(VENV) $(DRAWING) build/pictures $(SITE) build/site .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage *.egg-info
