# make check   under a minute: build, vet, static checks, unit tests, the suite on the simulator; no root, no network
# make test    everything that CI runs; installs what it needs
# make bench   engine and message path, each as a ratio to the bare engine
# make lab     a shell on a real RDMA stack: two Soft-RoCE devices in a VM, no card, no root
# make golden  rewrite golden files (review the diff)

GO      ?= go
BIN     := bin
FUZZ    ?= 5s
export GOFLAGS ?= -trimpath

.PHONY: all build check test bench golden clean fmt vet static unit race fuzz determinism conform full loop validate tools lab lab-conform lab-smoke conform-hw

all: build

build:
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -o $(BIN)/ ./cmd/...

fmt:
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet ./...

static:
	$(GO) tool staticcheck ./...

unit:
	$(GO) test -short ./...

# The supervisor of conform and that of exec are what uses goroutines; the simulator itself does not.
race:
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO) test -race -short ./attach/exec/...
	CGO_ENABLED=1 $(GO) test -race -skip SimulatorAgainstRecordings ./report/... ./cmd/... ./experiment/... ./conformance/spec/...

fuzz:
	scripts/fuzz $(FUZZ)

determinism: build
	scripts/determinism $(BIN)

conform: build
	$(BIN)/conform --target=sim

# Each case does as much as the catalogue says: half a minute more.
full: build
	$(BIN)/conform --target=sim --full --wall-limit 15m

# The suite through the machine's own libibverbs and libmlx5 onto the simulated device.
# What both runs saw must be the same.
loop: conform-hw
	@mkdir -p out
	$(BIN)/rdmasim exec --uar dynamic --devices 2 -- $(BIN)/conform --target=hw --report out/loop-hw.json
	$(BIN)/conform --target=sim --report out/loop-sim.json >out/loop-sim.txt
	$(BIN)/conform diff --common out/loop-sim.json out/loop-hw.json

validate: build
	$(BIN)/rdmasim validate

check: build fmt vet static unit conform

test: tools
	$(GO) build ./...
	$(MAKE) build fmt vet static
	RDMASIM_NEED_TSHARK=1 RDMASIM_NEED_HEADERS=1 RDMASIM_NEED_RDMA=1 $(GO) test -count=1 ./...
	CGO_ENABLED=1 $(GO) vet -tags hw ./hw/... ./cmd/conform
	CGO_ENABLED=1 $(GO) tool staticcheck -tags hw ./hw/... ./cmd/conform
	CGO_ENABLED=1 $(GO) test -tags hw ./hw/...
	RDMASIM_NEED_RDMA=1 $(MAKE) race
	$(MAKE) fuzz determinism full loop validate lab-smoke

tools:
	scripts/tools

bench:
	scripts/bench

golden:
	$(GO) test ./experiment ./internal/readme -run Golden -update

lab:
	scripts/lab --tools
	scripts/lab

# The suite on Soft-RoCE of three kernels; the records are in out/lab.
lab-conform:
	scripts/lab-conform

# A part of it and bad input, on one kernel: under 5 minutes.
lab-smoke:
	scripts/lab-conform --smoke

# The worker of conform --target=hw: needs gcc and libibverbs-dev.
conform-hw: build
	CGO_ENABLED=1 $(GO) build -tags hw -o $(BIN)/conform-hw ./cmd/conform

clean:
	rm -rf $(BIN) out
