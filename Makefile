# The commands of this repository; each is a script in scripts/ that can be run by itself too.

.DEFAULT_GOAL := help
.PHONY: help demo test build lint

help:
	@printf '%s\n' \
	  'make demo    play the two-agents story against a real server, step by step' \
	  'make test    run every test, and say how many ran' \
	  'make build   build pearing and pearing-cli' \
	  'make lint    check format, lints and docs' \
	  '' \
	  'Each first installs what the build lacks (a C++ compiler, libclang) where it can.' \
	  'Build files go to $$CARGO_TARGET_DIR, by default ~/.cache/pearing/target.'

demo:
	@scripts/build
	@scripts/demo

test:
	@scripts/test

build:
	@scripts/build
	@. scripts/env && printf 'built: %s\n' "$$CARGO_TARGET_DIR/debug/pearing" \
	  "$$CARGO_TARGET_DIR/debug/pearing-cli"

lint:
	@scripts/lint
