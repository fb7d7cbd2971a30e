# Everything a user or a developer does with Fairway. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
# Statically linked, so that it runs on any Linux and in an empty container.
BINARY := target/$(HOST)/release/fairway
# The daemon, and the plugin that container runtimes start.
PROGRAMS := --package fairway --package fairway-cni --bin fairway --bin fairway-cni
# For tests.
DAEMON := target/stages/fairway
# Runs the stages of tests/tiers.toml.
STAGES := $(CARGO) build --quiet --locked --workspace --bin stages && target/debug/stages
# What runs tests that need root: they make network namespaces and talk to a container engine.
SUDO := $(shell [ "$$(id -u)" = 0 ] && echo env || echo sudo -E)
RUNNER := CARGO_TARGET_$(shell echo '$(HOST)' | tr 'a-z-' 'A-Z_')_RUNNER
CONFIG ?=
CASE ?=
STAGE ?=
RESUME ?=
IMAGE ?= fairway:$(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
IMAGE_FRR ?= $(subst fairway:,fairway-frr:,$(IMAGE))
# The time of all that is packed: that of the commit.
DATE := $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)
# Of `make dist`; all if it is empty.
ARCHITECTURES ?=
PREFIX ?= /usr/local
DESTDIR ?=
# `SECONDS` is a variable of bash, too: only what make was told counts.
SECONDS_OF_FUZZING := $(if $(filter command line,$(origin SECONDS)),$(SECONDS),3600)

.PHONY: help image-frr run build static daemon daemon-of-suites test test-all attack test-unit test-netlink test-fuzz test-cluster sim-cluster fuzz test-demo test-live test-corpus test-soak \
	test-vtysh test-layer2 test-attack test-frr test-crds test-deploy test-interop test-restart test-kubernetes test-metallb kubernetes bench-kubernetes bench-metallb bench-proxy bench-layer2 bench-ui test-ui ui-pictures test-walk test-compose corpus-bird interop interop-frr restart vm compose sim mutants bench soak docs book image manifests \
	lint setup install uninstall deb dist test-dist krew test-service clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

run: ## See it work: two daemons on loopback (or: make run CONFIG=FOLDER)
	@scripts/setup.sh rust
	$(CARGO) build --locked --bin fairway
	target/debug/fairway $(if $(CONFIG),run --config $(CONFIG),demo)

build: ## The release binary, statically linked
	@scripts/setup.sh rust
	CARGO='$(CARGO)' scripts/build.sh $(HOST)

static: build ## The same, where the container build looks for it
	install -D -m 0755 $(BINARY) docker/bin/fairway
	install -m 0755 $(BINARY)-cni docker/bin/fairway-cni

test: ## What CI runs: in less than 15 minutes (root or sudo; make test STAGE="walk vtysh", RESUME=1)
	@scripts/setup.sh rust
	$(STAGES) test $(STAGE) $(if $(RESUME),--resume)

test-all: ## All of it and more, on the binary that `make deb` packs: below two hours (root or sudo; STAGE=, RESUME=1)
	@scripts/setup.sh rust
	$(STAGES) all $(STAGE) $(if $(RESUME),--resume)

test-unit: ## Tests that need no root
	$(STAGES) unit

daemon: ## The daemon for tests, with every assertion
	@scripts/setup.sh rust
	$(CARGO) build --locked $(PROGRAMS)
	@$(MAKE) --no-print-directory daemon-of-suites

# A copy, which no later build changes while a test runs it; and another build, to upgrade to.
daemon-of-suites:
	@install -D target/debug/fairway $(DAEMON)
	@install target/debug/fairway-cni $(DAEMON)-cni
	@strip -o $(DAEMON)-next $(DAEMON)
	@ls -l $(DAEMON) $(DAEMON)-next

test-netlink: ## Links, addresses, routes and neighbours of this kernel, in network namespaces (root or sudo)
	$(RUNNER)="$(SUDO)" $(CARGO) test --locked --package fairway-netlink --test namespaces

test-fuzz: ## Ten million messages that no good neighbour sends; a second decoder
	$(CARGO) test --locked --package fairway-fuzzing --profile fuzzing --test oracle
	$(CARGO) run --locked --package fairway-fuzzing --profile fuzzing -- --inputs 10000000

fuzz: ## The same for longer, with new seeds each time (SECONDS=3600)
	$(CARGO) run --locked --package fairway-fuzzing --profile fuzzing -- --seconds $(SECONDS_OF_FUZZING) --first-seed $$(date +%s)

test-cluster: ## Ten thousand clusters that fail in every way; mistakes that must be noticed
	$(CARGO) test --locked --package fairway-cluster-simulation --profile fuzzing
	$(CARGO) run --locked --package fairway-cluster-simulation --profile fuzzing -- --schedules 10000

sim-cluster: ## A million of them, with new seeds each time
	$(CARGO) run --locked --package fairway-cluster-simulation --profile fuzzing -- --schedules 1000000 --first-seed $$(date +%s)

test-demo: daemon ## The demo, to its end
	timeout 60 $(DAEMON) demo --once

test-live: daemon ## Every field of every kind, changed under a running daemon
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(CARGO) test --locked --test live

test-corpus: daemon ## Malformed and malicious input, entry by entry, against a daemon of its own
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(CARGO) test --locked --test corpus

attack: test-attack test-kubernetes ## Everything of docs/attacks.md, against routers and an API server; writes the page (root or sudo)
	$(CARGO) test --locked --test attack -- --document

corpus-bird: ## The same bytes to BIRD; where it answers otherwise
	$(CARGO) test --locked --test corpus -- --bird

test-soak: daemon ## Ten seconds of flapping peers and strangers; BFD beside FRR and beside busy loops (root or sudo)
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test soak -- --short

test-vtysh: daemon ## FRR's vtysh and an exporter's questions, against FRR's own answers (root or sudo)
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test vtysh

test-layer2: daemon ## Who answers on a segment: arping, ndisc6 and other kernels as witnesses (root or sudo)
	@scripts/setup.sh network
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test layer2

test-attack: daemon ## A lost volume, pipes, leases, signals, silent clients: what is around Fairway breaks (root or sudo)
	@scripts/setup.sh routers network
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test attack

test-frr: daemon ## FRR 8.4 and 10.3 as the speaker: what it is told, what it forgets, what breaks and heals (root or sudo)
	@scripts/setup.sh routers trixie network
	$(RUNNER)="$(SUDO)" $(CARGO) test --locked --package fairway-frr
	$(RUNNER)="$(SUDO)" $(CARGO) test --locked --test frr -- --all
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test frr_faults

test-crds: daemon ## A real Kubernetes API server takes our definitions and objects; builds it once, from Go's modules
	@scripts/setup.sh kubernetes
	assets=$$(scripts/kube-apiserver.sh) && KUBEBUILDER_ASSETS=$$assets FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(CARGO) test --locked --test crds -- --required

test-deploy: static ## What is in deploy/: chart, manifests, alerts, permissions on a real API server, the image (root or sudo)
	@scripts/setup.sh kubernetes deploy docker
	assets=$$(scripts/kube-apiserver.sh) && KUBEBUILDER_ASSETS=$$assets $(SUDO) tests/deploy/run.sh

test-interop: daemon ## Real routers in network namespaces (root or sudo)
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test interop -- --short
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test interop -- --short --bgp frr8
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test interop -- --short --bgp frr10

test-restart: daemon ## Restarts beside four routers, each way once (root or sudo)
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) FAIRWAY_NEXT=$(CURDIR)/$(DAEMON)-next $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test restart -- --short

test-walk: daemon ## The tutorial, and pages about neighbors section by section, as they are printed (root or sudo)
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test walk --test tutorial

# Without a real API server on this machine only the cases on the model are run.
test-kubernetes: daemon ## A cluster: API server, speakers, controllers, FRR and BIRD; each story once (root or sudo)
	@scripts/setup.sh routers network
	FAIRWAY_BIN=$(CURDIR)/$(DAEMON) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test kubernetes -- --short

test-metallb: daemon ## MetalLB's own programs and Fairway in turn on one API server (root or sudo)
	@scripts/setup.sh kubernetes routers network trixie
	assets=$$(scripts/kube-apiserver.sh) && scripts/metallb.sh >/dev/null && KUBEBUILDER_ASSETS=$$assets FAIRWAY_BIN=$(CURDIR)/$(DAEMON) \
		$(RUNNER)="$(SUDO)" $(CARGO) test --locked --test metallb -- --required

kubernetes: build test-crds test-deploy ## All of its stories, an API server away for five minutes, and what is in deploy/ (root or sudo)
	@scripts/setup.sh kubernetes routers network
	assets=$$(scripts/kube-apiserver.sh) && KUBEBUILDER_ASSETS=$$assets FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" \
		$(CARGO) test --locked --test kubernetes -- --long --required

bench-kubernetes: build ## Latency from an endpoint to the router, 5,000 Services at once, 100 nodes (root or sudo)
	@scripts/setup.sh kubernetes routers network
	for what in --bench '--bench --many-nodes'; do \
		assets=$$(scripts/kube-apiserver.sh) && KUBEBUILDER_ASSETS=$$assets FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" \
			$(CARGO) test --locked --test kubernetes -- $$what || exit 1; \
	done

bench-metallb: build ## 2,000 Services beside MetalLB: time, CPU, memory, and an endpoint that moves (root or sudo)
	@scripts/setup.sh kubernetes routers network trixie
	assets=$$(scripts/kube-apiserver.sh) && scripts/metallb.sh >/dev/null && KUBEBUILDER_ASSETS=$$assets \
		FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test metallb -- --bench

bench-proxy: build ## kube-proxy beside the service proxy on an emulated machine: 1,000 Services, 20 minutes
	@scripts/setup.sh network vm kubernetes
	@scripts/kube-apiserver.sh >/dev/null && scripts/kube-proxy.sh >/dev/null
	suite=$$($(CARGO) test --locked --test vm --no-run --message-format=json | grep -oE '[^"]*/deps/vm-[^"]*' | sort -u); \
		FAIRWAY_BIN=$(CURDIR)/$(BINARY) tests/vm/with_api_server.sh --seconds 3000 $$suite --bench

test-service: deb ## The package under a real systemd: start, reload, watchdog, upgrade, purge (root or sudo)
	@scripts/setup.sh trixie network
	FAIRWAY_DEBS=$(CURDIR)/target/debian $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test service

test-compose: static ## The compose lab, for real (root or sudo)
	$(RUNNER)="$(SUDO)" $(CARGO) test --locked --test compose

interop: build ## The whole matrix; writes the table of docs/interop.md
	@scripts/setup.sh routers trixie network
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test interop -- --table $(CURDIR)/target/interop.md
	scripts/table.sh target/interop.md docs/interop.md
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test vtysh -- --all

interop-frr: build ## The matrix with FRR 8.4 and FRR 10.3 as the speaker; writes the tables of docs/frr.md
	@scripts/setup.sh routers trixie network
	for who in frr8 frr10; do \
		FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test interop -- --bgp $$who --table $(CURDIR)/target/interop-$$who.md || exit 1; \
		MARK=interop-$$who scripts/table.sh target/interop-$$who.md docs/frr.md || exit 1; \
	done

restart: build daemon ## kill -9, SIGTERM and upgrade, ten times each: a thousand routes, a probe every 10 ms
	@scripts/setup.sh routers trixie network
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) FAIRWAY_NEXT=$(CURDIR)/$(DAEMON) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test restart

vm: build ## VRF, TCP-AO and IPVS, the sections of docs/peers.md about them, and the import with VRFs, on an emulated machine that has all
	@scripts/setup.sh routers trixie network vm kubernetes
	@scripts/kube-apiserver.sh >/dev/null && scripts/kube-proxy.sh >/dev/null
	FAIRWAY_TCP_AO=1 $(RUNNER)="$(CURDIR)/scripts/vm.sh" $(CARGO) test --locked -p fairway-sessions --lib
	$(RUNNER)="$(CURDIR)/scripts/vm.sh" $(CARGO) test --locked -p fairway-dataplane --test ipvs -- --ignored --test-threads=1
	suites=$$($(CARGO) test --locked --test vm --test walk --test import --no-run --message-format=json | \
		grep -oE '[^"]*/deps/(import|vm|walk)-[^"]*' | sort -u); \
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) tests/vm/with_api_server.sh --seconds 2400 bash -c \
		'status=0; "$$1" $(CASE) || status=1; $(if $(CASE),,"$$2" --vm || status=1; "$$0" vrf || status=1;) exit $$status' $$suites

# With all floods at once there is a webhook, which needs an API server.
soak: NEEDS_API_SERVER = $(if $(CASE),$(findstring flood,$(CASE)),yes)
soak: build ## Promises that need real time, routers and floods (root or sudo; make soak CASE=flood)
	@scripts/setup.sh routers network $(if $(NEEDS_API_SERVER),kubernetes)
	$(if $(CASE),,$(MAKE) sim-cluster)
	$(if $(NEEDS_API_SERVER),assets=$$(scripts/kube-apiserver.sh) && KUBEBUILDER_ASSETS=$$assets) \
		FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test soak -- $(CASE)

image: static ## The container image for clusters (IMAGE=registry.example/fairway:0.1.0)
	@scripts/docker.sh engine && scripts/docker.sh base
	docker build -f docker/kubernetes/host.Dockerfile -t $(IMAGE) .

image-frr: static ## The image of FRR with the agent, for `speaker.frr.enabled` (IMAGE_FRR=registry.example/fairway-frr:0.1.0)
	@scripts/docker.sh engine && scripts/docker.sh base
	docker build -f crates/frr/docker/host.Dockerfile -t $(IMAGE_FRR) .

manifests: ## What is made from the Helm chart: deploy/base, deploy/components, tables of docs/kubernetes.md
	scripts/manifests.sh

compose: ## Bring the compose lab up and leave it running
	scripts/compose.sh up

bench-layer2: build ## How long an address is not answered for when its owner goes, beside keepalived (root or sudo; CASE=)
	@scripts/setup.sh network rivals
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test layer2 -- --bench $(CASE)

test-ui: build ## The looking glass in Chromium: by keyboard, in the dark, without scripts, on a small screen (root or sudo)
	@scripts/setup.sh browser routers network
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test looking_glass -- --browser

ui-pictures: build ## Pictures of the looking glass, by Chromium, into docs/pictures (root or sudo)
	@scripts/setup.sh browser routers network
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test looking_glass -- --pictures docs/pictures

bench-ui: build ## The delay of a change alone and beside 200 viewers of the looking glass (root or sudo)
	@scripts/setup.sh routers network
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test looking_glass -- --bench

bench: build ## README's three commands to a first route; latency from a file's rename to the router, by FRR too; 500 peers; moving tables; allocation and plan; addresses of Pods; size and memory (root or sudo)
	@scripts/setup.sh routers trixie network
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test first_steps -- --bench
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) bench --locked --bench latency
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) bench --locked --bench peers
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) bench --locked --bench tables
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) bench --locked --bench frr
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) bench --locked --bench frr -- --starts
	$(CARGO) bench --locked --bench allocation --bench plan
	$(CARGO) bench --locked -p fairway-proxy --bench planning
	scripts/cni-plugins.sh && scripts/kube-apiserver.sh
	FAIRWAY_BIN=$(CURDIR)/$(BINARY) $(RUNNER)="$(SUDO)" $(CARGO) test --locked --test cni -- --bench
	FAIRWAY_NODES=1000 $(CARGO) test --locked --profile fuzzing -p fairway-ipam --lib traffic -- --nocapture

docs: ## docs/conformance.md from the annotations of the tests; pages and deploy/crds from the source
	FAIRWAY_WRITE=1 $(CARGO) test --locked --test conformance --test pages --test rules
	FAIRWAY_WRITE=1 $(CARGO) test --locked -p fairway-resources --lib metallb_page
	$(CARGO) test --locked --test corpus -- --document
	$(CARGO) test --locked --test attack -- --document

book: ## The documentation as a book, in target/book/docs (needs mdbook)
	scripts/book.sh target/book

sim: ## A million random schedules and histories, a hundred thousand worlds in transit, every order of ten events
	FAIRWAY_SEEDS=1000000 FAIRWAY_DEPTH=10 $(CARGO) test --locked --profile fuzzing -p fairway-bgp --lib sim:: -- --nocapture --skip transit
	FAIRWAY_SEEDS=100000 $(CARGO) test --locked --profile fuzzing -p fairway-bgp --lib transit -- --nocapture
	FAIRWAY_SEEDS=1000000 $(CARGO) test --locked --profile fuzzing -p fairway-bgp --lib passing_on -- --nocapture
	FAIRWAY_SEEDS=1000000 $(CARGO) test --locked --profile fuzzing -p fairway-cluster --lib reflector
	FAIRWAY_SEEDS=100000 $(CARGO) test --locked --profile fuzzing -p fairway-members --lib whatever_fails
	FAIRWAY_SEEDS=100000 $(CARGO) test --locked --profile fuzzing -p fairway-proxy --lib whatever_fails
	FAIRWAY_SEEDS=100000 $(CARGO) test --locked --profile fuzzing -p fairway-ipam --lib -- histories schedules

mutants: ## Breaks state machines and removes guards on purpose: each mistake must be noticed (root or sudo)
	@scripts/setup.sh routers network
	$(CARGO) test --locked --workspace --no-run --test mutants --test attack
	$(RUNNER)="$(SUDO)" $(CARGO) test --locked --workspace --test mutants

lint: ## Format, clippy (warnings are errors), and what crates may be part of Fairway (deny.toml)
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	CARGO='$(CARGO)' scripts/deny.sh

setup: ## Install what the tests need (root or sudo)
	scripts/setup.sh rust routers trixie network docker

install: ## Into the system, below PREFIX=/usr/local (root; after `make build`; DESTDIR for packages)
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' FAIRWAY_BIN=$(BINARY) scripts/install.sh

uninstall: ## Out of the system; configuration and state stay (root)
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install.sh --uninstall

deb: build ## A Debian package, in target/debian
	@scripts/setup.sh deb
	SOURCE_DATE_EPOCH=$(DATE) CARGO='$(CARGO)' scripts/deb.sh

dist: build ## A release, in dist/: archives, packages, images, chart, bill of materials, checksums (ARCHITECTURES=amd64)
	@scripts/setup.sh deb
	SOURCE_DATE_EPOCH=$(DATE) CARGO='$(CARGO)' ARCHITECTURES='$(ARCHITECTURES)' scripts/dist.sh

test-dist: build ## What is in a release: programs that run, archives, images, chart, bill of materials (root or sudo)
	@scripts/setup.sh deb deploy docker
	$(SUDO) tests/dist/run.sh

krew: build ## The plugin `kubectl fairway` for krew, in target/krew (URL=where it will be)
	FAIRWAY_BIN=$(BINARY) scripts/krew.sh $(or $(URL),https://example.org/fairway)

clean: ## Remove what was built
	$(CARGO) clean
	rm -rf docker/bin
