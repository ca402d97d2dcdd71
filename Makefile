# What a developer does here, one target each. They need Go and a POSIX shell; test-servers says what the other tests need.

.DEFAULT_GOAL := help
.PHONY: help build release test test-servers lint fmt fuzz mutants bench five gobench golden proto

FUZZTIME ?= 20s
PKG ?= ./internal/plan/op

tool = go tool -modfile=tools/go.mod

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name what; do printf '%-14s%s\n' "$$name" "$$what"; done

build: ## bin/loadgen, without cgo
	CGO_ENABLED=0 go build -trimpath -o bin/loadgen ./cmd/loadgen

release: ## dist: for linux on amd64 and arm64 static binaries, what they are made of (CycloneDX), archives, packages; checksums
	@sh tools/release.sh

test: ## vet and test every package; with -race where a C compiler is found
	@sh tools/test.sh

test-servers: ## install what the tests need besides Go (apt-get), or say what to install
	@sh tools/test-servers.sh

lint: ## gofumpt, staticcheck and actionlint (versions in tools/go.mod), go.mod tidy
	@files=$$($(tool) gofumpt -l .) && if [ -n "$$files" ]; then echo "make fmt would change:"; echo "$$files"; exit 1; fi
	$(tool) staticcheck ./...
	$(tool) actionlint -shellcheck= -pyflakes=
	go mod tidy -diff
	go -C tools/packages mod tidy -diff # it has the dependencies of loadgen, too

fmt: ## format with gofumpt, and the plans
	$(tool) gofumpt -w .
	go run ./cmd/loadgen plan fmt plans/*.hcl

fuzz: ## every fuzz target for FUZZTIME (20s)
	@set -e; grep -r --include='*_test.go' '^func Fuzz' . | sed 's|/[^/]*:func \([A-Za-z0-9_]*\).*| \1|' | \
	while read -r dir target; do echo "$$dir $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" </dev/null; done

mutants: ## change PKG in small ways, one at a time, and name the changes that its tests miss; MUTANTS="--dry-run" or other flags
	nice -n 19 go run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --timeout-coefficient 20 $(MUTANTS) $(PKG)

bench: ## loadgen beside the other clients on PATH; BENCH="-quick" or other flags
	go run ./bench $(BENCH)

five: build ## the five published benchmarks, again, in half an hour: dist/five/index.html; ONLY=hydra for one of them
	go test -tags five ./bench/five -count=1 -v -timeout 2h -run 'TestFive/$(ONLY)' -args -out $(CURDIR)/dist/five

gobench: ## every Go benchmark, one package at a time
	go test -p 1 -run '^$$' -bench . -benchmem ./...

golden: ## rewrite the golden files; read the diff
	@set -e; grep -rl --include='*_test.go' 'flag.Bool("update"' . | sed 's|/[^/]*$$||' | sort -u | \
	while read -r dir; do go test "$$dir" -update </dev/null; done

proto: ## rewrite the code of the messages between coordinator and workers; needs protoc
	protoc -I internal/fleet/rpc/loadgenpb --plugin=$$($(tool) -n protoc-gen-go) --plugin=$$($(tool) -n protoc-gen-go-grpc) \
		--go_out=paths=source_relative:internal/fleet/rpc/loadgenpb --go-grpc_out=paths=source_relative:internal/fleet/rpc/loadgenpb control.proto
