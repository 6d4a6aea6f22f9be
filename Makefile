# Voxbridge. Each target sets up what it needs; on a fresh machine python3 and make are enough.
PYTHON ?= python3
BIN := .venv/bin
SETUP := @$(PYTHON) deploy/bootstrap.py

# deploy/testrun/tiers.py says which tests are in which of the three tiers.
RUN := @$(BIN)/python -m deploy.testrun

.DEFAULT_GOAL := help
.PHONY: help setup up test-quick test test-all test-long check bench bench-peers clean

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## install what is locked, build the browser bundles, have git check the subjects of commits
	$(SETUP)
	@git config core.hooksPath .githooks 2>/dev/null || true

up: ## start everything on 127.0.0.1:8420; Ctrl-C stops it
	$(SETUP)
	@exec $(BIN)/voxbridge up

test-quick: ## the tests without a server, a network or a model: 90 seconds
	$(SETUP)
	$(RUN) quick $(ARGS)

test: ## the tests that decide whether a change is taken: ten minutes
	$(SETUP)
	@$(BIN)/voxbridge models get
	@$(PYTHON) deploy/browser.py
	$(RUN) test $(ARGS)

test-all: ## every test, with new draws: 45 minutes
	$(SETUP)
	@$(BIN)/voxbridge models get
	@$(PYTHON) deploy/browser.py
	$(RUN) all $(ARGS)

test-long: ## simulations and fuzzing in bulk, with fresh seeds: what `make test` does a little of
	$(SETUP)
	$(BIN)/pytest --timeout 3600 $(LONG) $(ARGS)

check: ## linters, types, licences, sizes: two minutes, and the first that continuous integration runs
	$(SETUP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m deploy.gates
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/npm run --silent check

bench: ## measure, and write bench/out/
	$(SETUP)
	@$(BIN)/voxbridge models get
	$(BIN)/python -m bench $(ARGS)

bench-peers: ## measure Pipecat, RoomKit and LiveKit AgentSession beside it; installs them below .voxbridge/peers
	$(SETUP)
	$(BIN)/python -m bench.peers $(ARGS)

clean: ## remove what was installed and built; the event log stays
	rm -rf .venv node_modules client/dist studio/dist bench/out .mypy_cache .ruff_cache .pytest_cache .hypothesis .voxbridge/bin .voxbridge/peers
