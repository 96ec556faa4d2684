# Everything a contributor runs, and all that CI runs. `make help` lists it.
#
# Programs land in .bin/, pinned tools in .bin/tools/; nothing is installed
# outside this folder.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:

BIN := .bin
TOOLS := $(BIN)/tools

GOLANGCI_LINT_VERSION := v2.15.0
WORKFLOWCHECK_VERSION := v0.6.0

# The version is part of the file name: a changed pin installs anew.
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
WORKFLOWCHECK := $(TOOLS)/workflowcheck-$(WORKFLOWCHECK_VERSION)

# Go commands for the dev server run in its own module, and with the flag that
# buildserver compiles it with: otherwise its 200 modules are compiled once more.
IN_SERVER = cd testsuite/devserver && GOFLAGS="$$(go env GOFLAGS) -trimpath"

# The apcore standard's repository, for its conformance fixtures. A test says
# how to get it when it is missing.
ifneq ($(wildcard ../shared/apcore),)
APCORE_SPEC_REPO ?= $(abspath ../shared/apcore)
endif
ifdef APCORE_SPEC_REPO
export APCORE_SPEC_REPO
endif

# The race detector needs a C compiler. `make test RACE=` leaves it out.
RACE ?= $(shell [ "$$(go env CGO_ENABLED)" = 1 ] && command -v "$$(go env CC)" >/dev/null && echo -race)

# Flags for every go test, such as TESTFLAGS='-run TestApproval -v'.
TESTFLAGS ?=

# Which benchmarks `make bench` runs.
BENCH ?= .

# How often `make bench-temporal` lets both sides take their turn.
ROUNDS ?= 20

# How long `make fuzz` runs each target.
FUZZTIME ?= 30s

# Where `make devserver` listens, and its SQLite file (in memory when empty).
PORT ?= 7233
UI_PORT ?= 8233
DB ?=

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build all packages, and the CLI and the examples into .bin/
	go build ./...
	go build -o $(BIN)/apcore-temporal ./cmd/apcore-temporal
	go build -o $(BIN)/refund-worker ./examples/refund/worker
	go build -o $(BIN)/refund-starter ./examples/refund/starter
	go build -o $(BIN)/refund-demo ./examples/refund/demo

.PHONY: server
server: # Build the dev server; the first time takes minutes and shows progress
	@go run ./testsuite/buildserver

.PHONY: demo
demo: server build ## Run the refund example on a real server, with a killed worker (KEEP=1 keeps it running)
	$(BIN)/refund-demo

.PHONY: test
test: server ## Run all tests: unit, Temporal's test environment, a real dev server
	go test $(RACE) -count=1 -timeout=20m $(TESTFLAGS) ./...
	$(IN_SERVER) go test -count=1 -timeout=10m $(TESTFLAGS) ./...

.PHONY: soak
soak: server ## Run the long tests at their full length, which the race detector makes too slow
	go test -count=1 -timeout=15m -run='Storm|LongLoop|DecisionsOverManyRuns|FiftyMegabytes|DefaultLimitsPass' ./temporal ./worker ./durable

.PHONY: test-short
test-short: ## Run the tests that need no server and no fixtures
	go test -short $(TESTFLAGS) ./...

.PHONY: bench
bench: server ## Run benchmarks (BENCH=regexp)
	go test -run='^$$' -bench='$(BENCH)' -benchmem $(TESTFLAGS) ./...

.PHONY: bench-tasks
bench-tasks: server ## Measure the task store and tasks beside raw Temporal calls (TASK_BENCH_SIZES=1000,10000)
	go test -run='^$$' -bench=BenchmarkTasks -benchtime=60x -timeout=2h -v $(TESTFLAGS) ./temporal

.PHONY: bench-temporal
bench-temporal: server ## Measure calls against hand-written activities on a real server (ROUNDS=20)
	go test -run='^$$' -bench='^BenchmarkTemporal' -benchtime=$(ROUNDS)x -timeout=20m $(TESTFLAGS) ./worker/

.PHONY: fuzz
fuzz: ## Run every fuzz target for a while (FUZZTIME=30s)
	@for package in $$(go list ./apcore/... ./durable/...); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep ^Fuzz || true); do \
	    echo "$$package $$target"; \
	    go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=5x $$package; \
	  done; \
	done

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint over both modules
	$(GOLANGCI_LINT) run --allow-parallel-runners ./...
	$(IN_SERVER) $(abspath $(GOLANGCI_LINT)) run --allow-parallel-runners --config=$(abspath .golangci.yml) ./...

.PHONY: vet
vet: ## Run go vet over both modules
	go vet ./...
	$(IN_SERVER) go vet ./...

.PHONY: workflowcheck
workflowcheck: $(WORKFLOWCHECK) ## Look for what must not be in workflow code: clocks, goroutines, map order
	$(WORKFLOWCHECK) -config=.workflowcheck.yml ./temporal/... ./workflows/... ./examples/...

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format all Go files
	$(GOLANGCI_LINT) fmt ./...

.PHONY: fmt-check
fmt-check: $(GOLANGCI_LINT) ## Fail if a Go file is not formatted
	$(GOLANGCI_LINT) fmt --diff ./...

.PHONY: tidy-check
tidy-check: ## Fail if a go.mod or go.sum is not tidy
	go mod tidy -diff
	$(IN_SERVER) go mod tidy -diff

.PHONY: devserver
devserver: ## Run a dev server with web UI in the foreground (PORT=, UI_PORT=, DB=file)
	@server=$$(go run ./testsuite/buildserver); \
	echo "web UI: http://127.0.0.1:$(UI_PORT)   stop: Ctrl-C" >&2; \
	exec "$$server" server start-dev --port=$(PORT) --ui-port=$(UI_PORT) $(if $(DB),--db-filename='$(DB)')

.PHONY: tools
tools: $(GOLANGCI_LINT) $(WORKFLOWCHECK) ## Install the pinned tools into .bin/tools/

.PHONY: clean
clean: ## Remove what was built and installed here
	rm -rf $(BIN)

$(GOLANGCI_LINT):
	$(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION))

$(WORKFLOWCHECK):
	$(call install,go.temporal.io/sdk/contrib/tools/workflowcheck@$(WORKFLOWCHECK_VERSION))

# $(call install,package@version) builds a tool as $@. The version's own go.mod
# decides what it is built from, so a tool never changes this module's build.
define install
	@echo "installing $(1), once" >&2
	@mkdir -p $(TOOLS)
	@dir=$$(mktemp -d $(abspath $(TOOLS))/install.XXXXXX); \
	trap 'rm -rf "$$dir"' EXIT; \
	GOBIN=$$dir go install $(1); \
	mv "$$dir"/* $@
endef
