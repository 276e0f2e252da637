# All tasks of this repository. They need Go, git, gcc and make; other tools are built from pinned sources.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

COMMA := ,
# Programs are static, as in images. What tests and demo stand on is compiled once this way; the race detector alone needs gcc.
export CGO_ENABLED := 0
# One set of compile flags for the product, its tests and the control planes' programs: what is compiled for one serves all.
export GOFLAGS := -trimpath -buildvcs=false
# What is built from source once, for all clones: TRELLIS_CACHE names another folder.
CACHE := $(or $(TRELLIS_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/trellis)
TOOLS := $(CACHE)/tools/$(shell cat hack/tools/go.mod hack/tools/go.sum | sha256sum | cut -c 1-12)
# Images and releases are the same bytes with this release of Go only.
TOOLCHAIN := $(shell awk '$$1 == "toolchain" {print $$2}' go.mod)
CONTROLLER_GEN := $(abspath $(TOOLS)/controller-gen)
GOLANGCI_LINT := $(abspath $(TOOLS)/golangci-lint)

# one-of refuses other values of a variable before anything is built.
one-of = $(if $(filter-out $(2),$($(1))),$(error $(1)=$($(1)): use one of: $(2)))

##@ Try it

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Run the main story on real API servers and exit. MINORS=2, CLUSTERS=cluster-api, DOWNLOAD=1: see deploy/sandbox/README.md.
	@$(call one-of,MINORS,1 2)$(call one-of,CLUSTERS,kkp cluster-api all)hack/ready.sh
	@go run ./hack/controlplanes $(BUILD) -own ./hack/demo $(NEEDS)
	@exec .cache/run/demo -minors $(or $(MINORS),1) -clusters $(or $(CLUSTERS),kkp)

.PHONY: demo-all
demo-all: ## Run every story: on two Kubernetes minors, and the upgrade with Cluster API.
	@$(MAKE) --no-print-directory demo MINORS=2 CLUSTERS=all

.PHONY: sandbox
sandbox: ## Start a master, two seeds and four user clusters to play with; runs until interrupted. MINORS, CLUSTERS and DOWNLOAD as above.
	@$(call one-of,MINORS,1 2)$(call one-of,CLUSTERS,kkp cluster-api)hack/ready.sh
	@go run ./hack/controlplanes $(BUILD) -own ./hack/sandbox $(NEEDS)
	@exec .cache/run/sandbox -minors $(or $(MINORS),1) -clusters $(or $(CLUSTERS),kkp)

.PHONY: sandbox-down
sandbox-down: ## Stop the sandbox.
	@go run ./hack/sandbox down

# The groups of programs that demo and sandbox run, and where these come from.
NEEDS = base $(if $(filter 2,$(MINORS))$(filter cluster-api all,$(CLUSTERS)),older) $(if $(filter cluster-api all,$(CLUSTERS)),cluster-api)
BUILD = $(if $(filter-out 0,$(DOWNLOAD)),-download)

##@ Work on it

.PHONY: build
build: ## Build both managers, the web view and kubectl-addons into bin/.
	go build -buildvcs=auto -o bin/ ./cmd/...
	@install -m 755 cmd/kubectl-addons/kubectl_complete-addons bin/

.PHONY: plugin
plugin: ## Build kubectl-addons, static, into bin/plugin for PLATFORMS, by default Linux, macOS and Windows on amd64 and arm64.
	@for platform in $(subst $(COMMA), ,$(or $(PLATFORMS),$(PLUGIN_PLATFORMS))); do \
		export GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
		if [ $$GOOS = windows ]; then end=.exe; else end=; fi; \
		go build -buildvcs=auto -ldflags='-s -w' -o bin/plugin/kubectl-addons-$$GOOS-$$GOARCH$$end ./cmd/kubectl-addons; \
	done
	@install -m 755 cmd/kubectl-addons/kubectl_complete-addons bin/plugin/

PLUGIN_PLATFORMS := linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64

.PHONY: binaries
binaries: ## Build the programs for tests (minutes, once). NEED=name,name: some of base, older, cluster-api, clusterctl, promql, cert-manager, ocm.
	@hack/ready.sh $(READY)
	@go run ./hack/controlplanes $(BUILD) $(or $(subst $(COMMA), ,$(NEED)),base older cluster-api promql)

.PHONY: download-sums
download-sums: ## Read the checksums that projects publish of the programs' releases into hack/controlplanes/downloads.json.
	go run ./hack/controlplanes -sums

# The race detector needs gcc, and some of the long parts every program. A tenth has none of these.
test test-long bench check release-check: READY := gcc
test-long bench release-check: NEED := $(if $(TENTH),,base,older,cluster-api,clusterctl,promql,cert-manager,ocm)

# A program of its own, so that an interrupt of make reaches what runs the tests.
.PHONY: .cache/run/tests
.cache/run/tests:
	@go build -o $@ ./hack/tests

.PHONY: check
check: binaries .cache/run/tests ## Check the changes since BASE, by default since main, and the packages that import them.
	@exec .cache/run/tests check -base '$(BASE)'

.PHONY: test
test: binaries .cache/run/tests ## Run all tests in their short form. JSON=file also keeps what `go test -json` says.
	@$(if $(PART)$(TENTH)$(WITHIN)$(LIST)$(ARGS),$(error PART, TENTH, WITHIN, LIST and ARGS are for make test-long))exec .cache/run/tests -json '$(JSON)'

.PHONY: test-web
test-web: binaries ## Test the web view in Chromium: the main job with mouse and keys, accessibility, sizes. Pictures of all pages go to bin/pictures.
	TRELLIS_PICTURES='$(or $(TRELLIS_PICTURES),$(CURDIR)/bin/pictures)' go test -tags browser -count=1 -timeout 15m -run '^TestBrowser' ./test/web

.PHONY: test-long
test-long: $(if $(LIST),,binaries) .cache/run/tests ## Run all tests in full, in parts: LIST=1, PART=name ARGS='...', TENTH=0 to 9, or commit, WITHIN=12m. JSON=file as above.
	@exec .cache/run/tests long $(if $(LIST),-list) -part '$(PART)' -tenth '$(TENTH)' -within '$(or $(WITHIN),0)' -json '$(JSON)' -- $(ARGS)

.PHONY: bench
bench: binaries .cache/run/tests ## Measure CPU, memory, writes and times against their bars.
	@exec .cache/run/tests long -part 'bench-*'

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Check style and the architecture rules.
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
	if [ -n "$$unformatted" ]; then printf 'not gofmt-ed:\n%s\n' "$$unformatted"; exit 1; fi
	go test -count=1 ./test/laws
	# -trimpath is for what is built: the linter reads files by their paths.
	GOFLAGS=-buildvcs=false $(GOLANGCI_LINT) run ./...
	cd apis && GOFLAGS=-buildvcs=false $(GOLANGCI_LINT) run ./...

.PHONY: catalogue-check
catalogue-check: ## Validate a catalogue repository: FOLDER=path; TYPE=Core for core add-ons; FETCH=1 looks at each source too.
	go run ./hack/cataloguecheck -folder '$(or $(FOLDER),.)' -type '$(or $(TYPE),Custom)' $(if $(FETCH),-fetch)

.PHONY: kkp-check
kkp-check: kkp-folder binaries ## Compare the Core catalogue with KKP's add-ons, render all and install what the rules select: FOLDER=path of addons in a checkout of KKP 2.31.
	go test -v -count=1 -timeout 20m -run '^TestKKP|^TestManagersWorkWithTheirRights$$' ./test/charts -args -kkp-addons '$(abspath $(FOLDER))'

# Asked for before anything is built.
.PHONY: kkp-folder
kkp-folder:
	@test -d '$(or $(FOLDER),$(error FOLDER names the folder addons in a checkout of KKP))' || { echo 'FOLDER: $(FOLDER) is no folder'; exit 1; }

.PHONY: images
images: ## Build images of the managers and the web view into bin/images; PUSH=host/path pushes them, VERSION and PLATFORMS say which.
	GOTOOLCHAIN=$(TOOLCHAIN) go run ./hack/images -out bin/images -version '$(VERSION)' -push '$(PUSH)' -platforms '$(or $(PLATFORMS),linux/amd64$(COMMA)linux/arm64)'

.PHONY: images-check
images-check: images ## Look at each image of bin/images, and build them all again elsewhere with an empty cache: the digests are the same.
	go test -count=1 -run TestImagesHoldOneProgram ./hack/images -args -made $(abspath bin/images)
	GOTOOLCHAIN=$(TOOLCHAIN) hack/images/again.sh bin/images/digests.txt '$(VERSION)' '$(or $(PLATFORMS),linux/amd64$(COMMA)linux/arm64)'

.PHONY: release-check
release-check: images-check binaries .cache/run/tests ## Run all checks of a release beside the tests; FORMER is the release before.
	.cache/run/tests long -part upgrade-last -- $(if $(FORMER),-former $(FORMER))
	.cache/run/tests long -part install,cert-manager,clusterctl,ocm,bench-installing,bench-tracing

.PHONY: release
release: ## Write images, charts, CRDs, clusterctl files, checksums and notes into bin/release/VERSION; VERSION, PUSH, PLATFORMS as above.
	GOTOOLCHAIN=$(TOOLCHAIN) go run ./hack/release -out bin/release -version '$(VERSION)' -push '$(PUSH)' -platforms '$(or $(PLATFORMS),linux/amd64$(COMMA)linux/arm64)'

.PHONY: docs
docs: ## Build the documentation as a site into bin/docs.
	go run ./hack/docs -out bin/docs

# Templates that are the same in all charts, and in the managers' (ADR 126).
SHARED := _names.tpl _settings.tpl metrics.yaml poddisruptionbudget.yaml serviceaccount.yaml
MANAGERS := _managers.tpl _tasks.tpl dashboards.yaml tasks.yaml

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Regenerate deep copies, CRDs, the charts' READMEs, shared templates, rights and dashboards, and docs/reference.
	cd apis && $(CONTROLLER_GEN) object paths=./...
	cd apis && $(CONTROLLER_GEN) crd paths=./kubermatic/... output:crd:dir=../charts/trellis-seed/crds
	cd apis && $(CONTROLLER_GEN) crd paths=./kkp/... output:crd:dir=../deploy/standalone/crds
	rm deploy/standalone/crds/kubermatic.k8c.io_ipamallocations.yaml deploy/standalone/crds/kubermatic.k8c.io_kubermaticconfigurations.yaml # KKP only
	cp charts/trellis-seed/crds/kubermatic.k8c.io_addoncatalogues.yaml charts/trellis-seed/crds/kubermatic.k8c.io_addonsets.yaml charts/trellis-master/crds/
	cp $(patsubst %,charts/trellis-seed/templates/%,$(SHARED) $(MANAGERS)) charts/trellis-master/templates/
	cp $(SHARED:%=charts/trellis-seed/templates/%) charts/trellis-web/templates/
	go run ./hack/chartreadme charts/trellis-master charts/trellis-seed charts/trellis-web
	go run ./hack/chartrights
	go run ./hack/dashboards
	go run ./hack/reference

.PHONY: verify
verify: generate ## Check that generated files and modules are up to date.
	git diff --exit-code -- apis charts deploy docs/reference docs/spec/dashboards.md
	@untracked=$$(git ls-files -o --exclude-standard -- apis charts deploy docs/reference docs/spec/dashboards.md); \
	if [ -n "$$untracked" ]; then printf 'generated and not committed:\n%s\n' "$$untracked"; exit 1; fi
	go mod tidy -C apis -diff
	go mod tidy -diff
	go vet -C hack/promql ./... # the linter vets all else

# The tools are built again when their versions change.
$(abspath $(TOOLS))/%: hack/tools/go.mod hack/tools/go.sum
	@mkdir -p $(TOOLS)
	@echo "building $* from source (minutes, once) ..."
	go build -C hack/tools -trimpath -o $(abspath $(TOOLS))/$* $$(go list -C hack/tools -f '{{.ImportPath}}' tool | grep '/$*$$')
	@touch $@
