# Tidemark. `make` or `make help` lists every target.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The tags of builds and tests; without lambda.norpc the linker keeps html/template. What is shipped (infra/image) is built
# with noauditv1 too, which leaves the methods with Kubernetes' audit types out of shared/queue.
TAGS   := lambda.norpc,grpcnotrace
GO     ?= go
BIN    := bin
GOLANGCI := v2.15.0
LAMBDA_RIE := v0.0.0-20261030222936-bef5c4ba774d
GOBUILD := CGO_ENABLED=0 $(GO) build -tags $(TAGS) -trimpath -ldflags '-s -w'

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build every package
	$(GO) build -tags $(TAGS) ./...

.PHONY: tools
tools: $(BIN)/tools/aws-lambda-rie ## Install what the tests need beside Go: the Lambda Runtime Interface Emulator

$(BIN)/tools/aws-lambda-rie:
	GOBIN=$(CURDIR)/$(BIN)/tools $(GO) install github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@$(LAMBDA_RIE)

.PHONY: test
test: tools ## Run the tests but the long ones (make soak); finds or installs the redis-server they need
	$(GO) test -tags $(TAGS) -short ./...

.PHONY: soak
soak: ## Run the long form of the tests that race and break things on purpose
	SOAK=1 $(GO) test -tags $(TAGS) -count=1 -timeout 30m ./shared/gitcommit/... ./functions/watchcommit

SESSION ?= events/samples/sessions/story

.PHONY: demo
demo: ## Play a recorded cluster and show the history that comes of it; needs Go and git only (SESSION=DIR)
	@echo "Building the all-in-one; the first time takes a few minutes."
	@CGO_ENABLED=0 $(GO) build -tags $(TAGS) -o $(BIN)/allinone ./functions/allinone/local
	@CGO_ENABLED=0 $(GO) build -tags $(TAGS) -o $(BIN)/demo ./functions/allinone/demo
	@$(BIN)/demo -program $(BIN)/allinone -session "$(SESSION)"

.PHONY: lint
lint: ## Check formatting, vet and lint
	@out=$$(git ls-files '*.go' | xargs -r gofmt -l); [ -z "$$out" ] || { echo "gofmt would change:"; echo "$$out"; exit 1; }
	GOBIN=$(CURDIR)/$(BIN)/tools $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	$(BIN)/tools/golangci-lint run --allow-parallel-runners ./...

.PHONY: kube-servers
kube-servers: ## Build the etcd, kube-apiserver and kube-controller-manager of the tests, where missing
	@shared/kubetest/servers/build.sh

.PHONY: e2e
e2e: kube-servers ## Run the tests that need a real control plane
	$(GO) test -tags $(TAGS),e2e -count=1 -timeout 30m ./shared/kube ./shared/kubetest ./shared/kubetest/e2e

# Images and packages carry the commit's time, so that one commit gives one digest.
IMAGE := SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 0) $(GO) run ./infra/image
ARCH  ?= amd64,arm64

.PHONY: images
images: ## Build an OCI layout, a tarball and an SBOM a function (FUNCTIONS=, ARCH=)
	$(IMAGE) oci -out dist/images -arch $(ARCH) -functions "$(FUNCTIONS)" -revision "$$(git rev-parse HEAD 2>/dev/null)"

.PHONY: lambda-zips
lambda-zips: ## Build the packages for AWS Lambda and their SBOMs (FUNCTIONS=, ARCH=)
	$(IMAGE) zips -out dist/lambda -arch $(ARCH) -functions "$(FUNCTIONS)"

.PHONY: tf-check
tf-check: ## Format, validate and test the Terraform code (TF_OFFLINE= a program that checks without a registry)
	@terraform/check.sh

.PHONY: bench
bench: ## Measure beside what a user would do instead (BENCH_OUT=file.json, BENCH_QUICK=1, BENCH_AREAS=ingest,…)
	BENCH_OUT="$(abspath $(BENCH_OUT))" BENCH_QUICK="$(BENCH_QUICK)" BENCH_AREAS="$(BENCH_AREAS)" \
	$(GO) test -tags $(TAGS),bench -count=1 -v -timeout 120m -run '^TestBench$$' ./shared/bench

# Sessions to measure; a folder is one or holds some.
SESSIONS ?= events/samples/sessions functions/allinone/accuracy/testdata

.PHONY: accuracy
accuracy: ## Replay recorded sessions over a real Redis and count right and wrong names; SESSIONS="DIR…"
	$(GO) run -tags $(TAGS) ./functions/allinone/accuracy $(SESSIONS)

KUSTOMIZE := v5.8.1

.PHONY: knative-check
knative-check: kube-servers ## Apply the Knative manifests, the stack and the audit flags to a real API server
	@GO=$(GO) KUSTOMIZE_VERSION=$(KUSTOMIZE) TAGS=$(TAGS) infra/knative/check.sh
