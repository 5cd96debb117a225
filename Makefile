# Every target installs what it needs first (tools/setup: silent when nothing is missing).
# The build itself is CMake's: see CMakePresets.json. `make help` lists the targets.

SHELL := /bin/bash
PRESET ?= release
PREFIX ?= /usr/local
BROKER ?= journal
DEMO ?= exploding healthy
# A first look compiles in half the time; who has built the release preset sees that one.
DEMO_PRESET := $(if $(wildcard build/release/app/tocsin),release,quick)
FUZZ_SECONDS ?= 60
MINUTES ?= 10
KILLS ?= 500
STREAMS ?= 5000
SEED ?= 0
PYTHON := /usr/bin/python3

export PRESET FUZZ_SECONDS
export PYTHONDONTWRITEBYTECODE := 1

.DEFAULT_GOAL := help
.PHONY: help demo build test unit contract integration e2e test-frameworks test-kubernetes test-packages wheel deb install sanitize bench soak reference fuzz lint format \
        docs image clean

help: ## This list
	@echo "Tocsin. Targets:"
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r target text; do printf '%-24s %s\n' "$$target" "$$text"; done
	@echo
	@echo "Settings: DEMO=exploding|vanishing|healthy|all  BROKER=journal|kafka  PRESET=release|dev|asan-ubsan|tsan"
	@echo "          FUZZ_SECONDS=60 (per fuzz target)  MINUTES=10 KILLS=500 (of soak)  STREAMS=5000 (per rule)  JOBS=n (compilers at a time)"
	@echo "          TEST_WORKERS=n (tests of the whole program at a time)"

demo: ## A real training job goes wrong; Tocsin sees it, stops it, tells people (after the build: under a minute)
	@tools/setup build demo $(if $(filter kafka,$(BROKER)),kafka)
	@tools/build $(DEMO_PRESET) --quiet tocsin tocsin_client_shared
	@TOCSIN_BUILD=$(CURDIR)/build/$(DEMO_PRESET) $(PYTHON) tools/demo --broker $(BROKER) $(DEMO)

build: ## Compile everything in PRESET
	@tools/setup build
	@tools/build $(PRESET)

test: ## Every test: unit, contract, integration and end to end, C++ and Python
	@tools/setup test
	@tools/build $(PRESET)
	@tools/test

unit contract integration e2e:
	@tools/setup test
	@tools/build $(PRESET)
	@tools/test $@

unit: ## Only unit tests (seconds; no broker, no network)
contract: ## Only the contract suites that every adapter passes
integration: ## Only tests against real Kafka, Mosquitto, SMTP and HTTP servers
e2e: ## Only tests of the whole program

test-frameworks: ## The hook on torch 2, Transformers, Lightning, XGBoost, JAX, Keras, … (from PyPI, once; 8 GB on disk)
	@tools/setup wheel frameworks
	@tools/build release --quiet tocsin tocsin_client_shared_standalone tocsin_engine_shared_standalone
	@tools/frameworks

test-kubernetes: ## Stops of runs in Kubernetes, against a real etcd, kube-apiserver and Job controller (compiled by Go, once)
	@tools/setup test
	@tools/build $(PRESET) --quiet tocsin tocsin_client_shared
	@tools/kubernetes

wheel: ## Two wheels in dist/: the hook `tocsin` and the program `tocsin-server` (docs/install.md)
	@tools/setup wheel
	@tools/build release --quiet tocsin tocsin_client_shared_standalone tocsin_engine_shared_standalone
	@tools/wheel

deb: ## Debian packages in dist/: tocsin, python3-tocsin, libtocsin-client-dev
	@tools/setup deb
	@tools/build release --quiet tocsin tocsin_client_shared tocsin_share
	@rm -f dist/*.deb
	@cpack --config build/release/CPackConfig.cmake > build/cpack.log 2>&1 || { cat build/cpack.log >&2; exit 1; }
	@rm -rf dist/_CPack_Packages
	@ls dist/*.deb

install: ## Program, hook, header, units, completions, manual page into DESTDIR/PREFIX (default /usr/local)
	@tools/setup build
	@tools/build release --quiet tocsin tocsin_client_shared tocsin_share
	@cmake --install build/release --prefix $(PREFIX) --strip > build/install.log || { cat build/install.log >&2; exit 1; }
	@sed -i 's|/usr/bin/tocsin|$(PREFIX)/bin/tocsin|' $(DESTDIR)$(PREFIX)/lib/systemd/system/tocsin*.service
	@echo "installed into $(DESTDIR)$(PREFIX); build/release/install_manifest.txt lists the files"

test-packages: wheel deb ## What is given to people, each on a system without the build: wheels, packages, an installation
	@tools/setup packages
	@$(PYTHON) -m pytest tests/packages

sanitize: ## Unit, contract and simulation tests under ASan+UBSan; client and app under TSan
	@tools/setup sanitize
	@tools/sanitize

bench: ## Benchmarks, each beside its baseline
	@tools/setup bench
	@tools/build release
	@tools/bench

soak: ## Random histories from a new seed, simulated worlds for MINUTES, then KILLS kills of a router on a real Kafka (docs/simulation.md)
	@tools/setup test
	@tools/build $(PRESET)
	@tools/soak --build build/$(PRESET) --kills $(KILLS) $(MINUTES)

reference: ## STREAMS random streams per rule, judged by the engine and by the reference in Python (tests/reference/)
	@tools/setup test
	@tools/build $(PRESET) --quiet reference_driver
	@TOCSIN_BUILD=$(CURDIR)/build/$(PRESET) TOCSIN_STREAMS=$(STREAMS) TOCSIN_SEED=$(SEED) PYTHONPATH=$(CURDIR)/python \
	  $(PYTHON) -m pytest -q tests/reference

fuzz: ## Each fuzz target for FUZZ_SECONDS (Clang)
	@tools/setup fuzz
	@tools/build fuzz
	@tools/fuzz

lint: ## Format, clang-tidy, doors between rooms, how pages and --help read, Python, shell, YAML
	@tools/setup lint
	@tools/build $(PRESET) --configure-only
	@tools/lint --build build/$(PRESET)

format: ## Rewrite C++ files with clang-format
	@tools/setup lint
	@tools/lint --fix

docs: ## Check links and example configurations; write the configuration's JSON Schema
	@tools/setup build
	@tools/build release tocsin
	@tools/docs

image: ## Container image tocsin:local (needs Docker or Podman)
	@tools/image

clean: ## Remove build/ (the downloaded Kafka stays in the user's cache)
	@tools/kafka stop --all
	@rm -rf build dist
