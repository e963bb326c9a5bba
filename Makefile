# For people: `make run` serves on 9092, `make cluster` has three brokers on ZooKeeper, `make test` proves it. Everything
# else is for developers.

# The first Python of 3.11 or later that can make a virtual environment; the system's own is often the fastest build.
PYTHON ?= $(firstword $(foreach p,/usr/bin/python3 python3 python3.13 python3.12 python3.11,\
	$(shell $(p) -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN := .venv/bin

.PHONY: run cluster test compat spark-reference lint format bench clean
run: .venv/.run
	@$(BIN)/pykafka-broker --override listeners=PLAINTEXT://127.0.0.1:9092 --override log.dirs=./data

cluster: .venv/.test
	@$(BIN)/python -m compat_tests.playground

test: .venv/.test
	$(BIN)/python -m pytest

compat: .venv/.test
	$(BIN)/python -m compat_tests.report --run

spark-reference: .venv/.test
	$(BIN)/python -m pytest spark_tests --ignore spark_tests/pipeline --against kafka-4.3.1

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.test
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "pykafka-broker needs Python 3.11 or later with the venv module" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.run: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --use-pep517 --editable .
	@touch $@

.venv/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --use-pep517 --editable '.[lint,test]'
	@touch $@ .venv/.run
