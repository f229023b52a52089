# The commands of the README. All the work is in CMake; this file chooses the preset and the number of jobs.
PREFIX ?= /usr/local
SECONDS ?= 600
PRESET ?= release
BUILD = build/$(PRESET:ci=release)
PYTHON ?= /usr/bin/python3# Debian's, which sees the packages of tools/setup.sh

# A file that includes libtorch takes up to 2 GB to compile.
JOBS := $(shell free_jobs=$$(awk '/^MemAvailable/ {print int($$2 / 2097152)}' /proc/meminfo 2>/dev/null); \
          cpus=$$(nproc); jobs=$${free_jobs:-1}; \
          [ $$jobs -gt $$cpus ] && jobs=$$cpus; [ $$jobs -lt 1 ] && jobs=1; echo $$jobs)

SOURCES = $(shell git ls-files -co --exclude-standard '*.h' '*.cpp' 2>/dev/null || \
            find convssm bench tests examples fuzz -name '*.h' -o -name '*.cpp')

.PHONY: all build setup test demo bench performance results shared asan tsan fuzz torture format check-format tidy install clean help
.DEFAULT_GOAL := build

all: build

build: ## build everything, optimized, into build/release; PRESET=wheel: with the torch of a wheel
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) -j $(JOBS)

setup: ## install the Debian packages that are missing
	tools/setup.sh

test: setup ## set up, build, run all tests
	$(MAKE) --no-print-directory build
	ctest --test-dir $(BUILD) --output-on-failure

demo: setup ## set up, build the program, train a small model and let it run on: out/demo
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) -j $(JOBS) --target convssm_program
	$(BUILD)/bin/convssm demo --out out/demo

bench: build ## speeds of kernels, layers and models against their limits and PyTorch
	$(BUILD)/bin/convssm bench

performance: ## measure everything (about 20 minutes) and fill docs/performance.md
	tools/setup.sh --pages
	$(MAKE) --no-print-directory build
	$(BUILD)/bin/convssm bench --json docs/performance.json
	$(BUILD)/bin/convssm bench --only cost,scaling --json docs/performance_cost.json
	$(BUILD)/bin/convssm bench --only complexity --json docs/performance_complexity.json
	$(PYTHON) tools/pages performance

results: ## train, score and record what docs/results.md lacks (hours, goes on where it stopped); ROW=name: one again
	tools/setup.sh --pages
	$(MAKE) --no-print-directory build
	$(PYTHON) tools/results $(ROW)
	$(if $(ROW),,$(PYTHON) tools/pages results)

shared: ## the libraries as shared ones, in build/shared, and a user's project with them
	cmake --preset $(PRESET) -DBUILD_SHARED_LIBS=ON -B build/shared
	cmake --build build/shared -j $(JOBS) --target convssm convssm_program convssm_bench_program
	ctest --test-dir build/shared --output-on-failure -R package

asan: ## tests of files, reports, kernels, frame plans and the allocator under AddressSanitizer and UBSan
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS)
	ctest --test-dir build/asan --output-on-failure

tsan: ## tests of the loader, the array cache and the allocator under ThreadSanitizer
	cmake --preset tsan
	cmake --build --preset tsan -j $(JOBS)
	ctest --test-dir build/tsan --output-on-failure

fuzz: ## fuzz each file reader for SECONDS (default 600)
	tools/setup.sh --fuzz
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS)
	tools/fuzz.sh build/fuzz $(SECONDS)

torture: build ## faults and damaged files against the program for SECONDS (default 600); SEED=n: the same again
	$(PYTHON) tools/torture --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(TRIAL),--trial $(TRIAL))

format: ## lay out the code
	clang-format -i $(SOURCES)

check-format: ## fail if the code is not laid out
	clang-format --dry-run -Werror $(SOURCES)

tidy: ## static checks of base/ and io/
	tools/setup.sh --tidy
	cmake --preset asan
	clang-tidy --quiet -p build/asan $(filter convssm/base/%.cpp convssm/io/%.cpp,$(filter-out convssm/io/tensor.cpp,$(SOURCES)))

install: build ## install library, headers and program under PREFIX (default /usr/local)
	cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## remove what was built
	rm -rf build out

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
