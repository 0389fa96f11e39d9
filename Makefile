# Tidemark. `make` or `make help` lists every target.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The tags every shipped binary is built with; without lambda.norpc the linker keeps html/template.
TAGS   := lambda.norpc,grpcnotrace
GO     ?= go
BIN    := bin
GOBUILD := CGO_ENABLED=0 $(GO) build -tags $(TAGS) -trimpath -ldflags '-s -w'

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build every package
	$(GO) build -tags $(TAGS) ./...

.PHONY: test
test: ## Run the tests; finds or installs the redis-server they need
	$(GO) test -tags $(TAGS) ./...

.PHONY: lint
lint: ## Check formatting and vet
	@out=$$(git ls-files '*.go' | xargs -r gofmt -l); [ -z "$$out" ] || { echo "gofmt would change:"; echo "$$out"; exit 1; }
	$(GO) vet -tags $(TAGS) ./...
