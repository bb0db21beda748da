# make check   a minute, ten from empty caches: build, formatting, vet, static checks, short unit tests, the suite on the simulator;
#              no root, no network but for modules
# make test    everything that CI runs; installs what it needs; 50 minutes of CPU time on two cores, much less with a warm build cache
# make soak    as long as you say (SOAK=1h): what takes long or is tried at random, see docs/soak.md
# make validate  published figures beside ours; unit-full compares the same with docs/validate.md
# make bench   engine and message path, each as a ratio to the bare engine
# make lab     a shell on a real RDMA stack: two Soft-RoCE devices in a VM, no card, no root
# make duckdb  DuckDB reads the tables that sweeps write; loads 100 MB
# make deadcode  no function is out of reach of all programs and tests; make soak has it too
# make dist    release archives, reproducible, into out/dist
# make golden  rewrite golden files (review the diff)
#
# The legs of check and test, each a target of its own. Each prints its CPU time and wall time; out/times.json has them. One that fails
# hides no other: a table at the end has all of them, and the command that runs the first failing test of each alone.
#   tools        installs what the other legs of make test need
#   build        the programs, into bin/, without cgo; every package compiles
#   fmt          gofmt has nothing to change
#   vet          go vet
#   static       staticcheck, in make check only
#   unit         go test -short
#   conform      the suite on the simulator, and what it shows compared with the committed records
#   unit-full    go test of everything, nothing left out, nothing from the cache
#   hw           vet and tests of what is built with the tag hw (cgo, libibverbs)
#   race         the race detector on what uses goroutines: the supervisors of conform, exec and pci, and what runs worker processes
#   fuzz         every fuzz target on changed seeds, for a count of inputs; make soak also follows what reaches new code
#   determinism  same seed, same bytes
#   full         the suite with each case doing as much as the catalogue says
#   mutants      simulators each of which breaks one rule: the suite notices every one; a twentieth of the kills of the matrix is repeated
#   conform-hw   bin/conform-hw, the worker of conform --target=hw
#   loop         the suite through libibverbs and libmlx5 onto simulated devices of RoCE, compared with the simulator, of InfiniBand, and parts of it
#                on devices that lack or have what these do not; random programs there and on the simulator
#   slurm        a sweep on a real Slurm of three nodes, one of which is killed: the same bytes as on one core
#   lab-smoke    part of the suite and bad input on Soft-RoCE in a VM
#   vm-smoke     programs of libibverbs and a part of the suite below a real kernel, whose mlx5 driver has the simulated adapter

GO      ?= go
BIN     := bin
SOAK    ?= 1h
LEG     := scripts/leg run
GOFLAGS ?= -trimpath
# Only what has the tag hw, and the race detector, need cgo. With these tags package net has the same files with cgo as without it, so that
# what has the tag hw finds all else compiled; a command's own -tags are in place of those of GOFLAGS.
PURE := netgo,osusergo
export GOFLAGS := $(GOFLAGS)$(if $(findstring -tags,$(GOFLAGS)),, -tags=$(PURE))
export CGO_ENABLED ?= 0

# A test that hangs ends after this; how fast the machine is must not matter. The leg vet looks at all code, so go test need not.
TESTFLAGS := -vet=off -timeout 60m
TEST      := $(GO) test -json $(TESTFLAGS)

# The compiler and the linker take a sixth less CPU time, and up to 700 MB each, when they collect less often. Programs and tests do not.
LAZY := GOGC=400
# Its results are not cached, so unit has TEST.
LAZY_TEST = $(TEST) "-exec=env -u GOGC"

# What a leg needs built. The legs of check and test say that themselves, and make it once.
BUILT    ?= build
BUILT_HW ?= $(if $(BUILT),conform-hw)

.PHONY: all build deadcode dist check test soak bench golden clean fmt vet static static-hw unit unit-full hw race fuzz determinism conform full mutants loop peer validate slurm duckdb leave-one-out sensitivity \
	tools lab lab-conform lab-smoke vm-smoke vm-suite conform-hw rdmasim-hw

all: build

build:
	@mkdir -p $(BIN)
	@$(LEG) build $(LAZY) sh -c '$(GO) build -o $(BIN)/ ./cmd/... && \
	  $(GO) build -tags mutants,$(PURE) -o $(BIN)/conform-mutants ./cmd/conform && $(GO) build ./...'

fmt:
	@$(LEG) fmt sh -c 'out=$$(gofmt -l $$(git ls-files "*.go")); [ -z "$$out" ] || { echo "gofmt would change:"; echo "$$out"; exit 1; }'

vet:
	@$(LEG) vet $(LAZY) $(GO) vet ./...

# Not in make test: it analyses all dependencies too, which takes five minutes of CPU time from empty caches. make check has it, and the
# workflow's job; make soak has what is built with the tag hw.
static:
	@$(LEG) static $(GO) tool staticcheck ./...

static-hw:
	@$(LEG) static-hw CGO_ENABLED=1 $(GO) tool staticcheck -tags hw,$(PURE) ./hw/... ./conformance/target/... ./cmd/...

unit:
	@$(LEG) unit $(TEST) -short ./...

# Temporary files are below a folder whose name has what scripts and flags must quote. It is short: paths of sockets have 107 bytes.
unit-full:
	@dir="$${TMPDIR:-/tmp}" && case "$$dir" in (*\ *) ;; (*) dir="$$(mktemp -d "$$dir/t, XXX")" && chmod 1777 "$$dir" ;; esac && status=0 && \
	  { TMPDIR=$$dir $(LEG) unit-full RDMASIM_NEED_TSHARK=1 RDMASIM_NEED_HEADERS=1 RDMASIM_NEED_RDMA=1 RDMASIM_NEED_BROWSER=1 $(LAZY) $(LAZY_TEST) -count=1 ./... || status=$$?; } && \
	  { case "$$dir" in (*/t,\ ???) rm -rf "$$dir" ;; esac; exit $$status; }

hw:
	@$(LEG) hw CGO_ENABLED=1 $(LAZY) $(GO) vet -tags hw,$(PURE) ./hw/... ./conformance/target/... ./cmd/... + \
	  $(LAZY_TEST) -tags hw,$(PURE) ./hw/... + \
	  $(LAZY_TEST) -tags hw,$(PURE) ./cmd/conform -run Players + $(LAZY_TEST) -tags hw,$(PURE) ./cmd/rdmasim -run PerfTalks

# What uses goroutines; the simulator itself does not, and what runs it alone is left out: of exec one test for each way in which threads of
# programs and of the supervisor meet, of conform those of hunts, of judges and of interrupts. unit-full runs all. What is compiled for
# this leg alone is not inlined and has no DWARF: that takes half the CPU time, and the detector sees the same accesses.
race: RACE := $(LAZY_TEST) -race -short '-gcflags=all=-l -dwarf=false'
race: EXEC := ExitStatus|StoppedBeforeTheStart|SignalsToTheSupervisor|NoCallHappensTwice|HiddenProcesses|Pingpong$$|ThreadsThatWait|ChannelFile|OneSignal|FilesInUse|Notices|AnothersMmap|RegisterPage|NobodyAnswers|PagingRace|Throttle|ReadsStderr|NobodyReads|TestWire|Netlink|Limits$$
race: CONFORM := WireManyVerdicts|WireOfPipes|ReadersAreInterrupted
race:
	@$(LEG) race CGO_ENABLED=1 $(LAZY) GORACE=atexit_sleep_ms=0 RDMASIM_NEED_RDMA=1 $(RACE) -run "$(EXEC)" ./attach/exec + \
	  $(RACE) ./attach/exec/seccomp ./attach/exec/uverbs ./attach/pci/... ./attach/peer + \
	  $(RACE) -run "$(CONFORM)" ./cmd/conform + $(RACE) -run "CountsKills|InterruptedHunt" ./conformance/mutants + \
	  $(RACE) ./conformance/harness ./conformance/random ./hw/agent ./hw/wire ./internal/cli/input ./internal/cli/input/commands ./internal/cli/outfile ./internal/cli/workers ./internal/legs ./workload/perftest/perf ./verbs/remotewire + \
	  $(RACE) -run "EvaluatorRunsOnce|RunCache" ./experiment/calibrate + $(RACE) -run FilesOfTwoRuns ./experiment

# With what unit-full has compiled; make soak looks at what each input reaches.
fuzz:
	@$(LEG) fuzz scripts/fuzz --blind

determinism: $(BUILT)
	@$(LEG) determinism scripts/determinism $(BIN)

# What no case fixes is as in the committed records, which make golden rewrites.
conform: $(BUILT)
	@mkdir -p out
	@$(LEG) conform sh -c '$(BIN)/conform --target=sim --report out/sim-connectx-5.json && \
	  $(BIN)/conform --target=sim --profile generic-roce --report out/sim-generic-roce.json >out/sim-generic-roce.txt && \
	  for p in connectx-5 generic-roce; do $(BIN)/conform diff --exact fixtures/recordings/sim-$$p.json out/sim-$$p.json || \
	    { echo "the simulator is not as recorded; if that is meant: make golden, and review the diff"; exit 1; }; done'

full: $(BUILT)
	@$(LEG) full $(BIN)/conform --target=sim --full

mutants: $(BUILT)
	@mkdir -p out
	@$(LEG) mutants $(LAZY) $(LAZY_TEST) -tags mutants,$(PURE) ./sim/rule ./sim/kernel/completion/oracle + $(LAZY_TEST) -tags mutants,$(PURE) -run FindMutants ./sim/testbed + \
	  $(LAZY_TEST) -tags mutants,$(PURE) -run EveryBitOfTheTable ./conformance/mutants + $(BIN)/conform mutants --matrix --every 20 --report out/mutants.json

# One report of each leg: conform gaps counts the cases that ran in none of them, and apart those for which a machine has no GPU, no
# exporter of DMA-BUFs, an rdma-core before 60 (buf, dm.export), or root, without which there are neither huge pages nor counters by
# netlink (stat). Two of the 48 call what no libmlx5 checks (xrc.handles).
BELOW := $(BIN)/rdmasim exec
HW    := $(BIN)/conform --target=hw
# What a device does with what a simulated peer sends, of the rows that take no time; of requests the timers are by the specification.
ANSWERS := WIRE-017 || WIRE-020 || WIRE-024 || WIRE-027 || WIRE-030 || WIRE-031 || WIRE-043 || WIRE-044 || WIRE-047 || WIRE-055 || WIRE-059 || WIRE-062 || WIRE-063
# What the link layer of the device changes, and what runs on no other link; make soak has the whole suite on InfiniBand.
INFINIBAND := IB || DEV || UAR || TD || UD || UC || SRQ || PD || MW || BF || POST || RC-017 || RC-018 || WIRE-039
loop: $(BUILT_HW)
	@mkdir -p out
	@rm -f out/loop-*.json
	@$(LEG) loop sh -c '$(BELOW) --uar dynamic --devices 2 -- $(HW) --label-filter "!CM-029 && (!RAND || RAND-008 || RAND-009 || RAND-010 || RAND-011 || RAND-016)" --wall-limit 30m --min-pass 535 --report out/loop-hw.json && \
	  $(BELOW) --profile connectx-5-ib --devices 2 -- $(HW) --label-filter "$(INFINIBAND)" --min-pass 170 --report out/loop-ib.json && \
	  $(BELOW) --profile connectx-5-ib --own-network --devices 2 -- $(HW) --label-filter "IB-019 || IB-020 || IB-021 || IB-022 || IB-023 || CM-018 || CM-038" --min-pass 7 --report out/loop-ib-cm.json && \
	  $(BELOW) --uar static -- $(HW) --label-filter "DEV || ODP-056 || TD-024 || UAR-019" --report out/loop-static.json && \
	  $(BELOW) --profile connect-ib --odp=false --devices 2 -- $(HW) --label-filter "ODP-002 || ODP-026 || MR-031" --min-pass 3 --report out/loop-connect-ib.json && \
	  $(BELOW) --profile generic-roce --uar dynamic --devices 2 -- $(HW) --label-filter "QPS-024 || QPS-025 || QPS-026 || QPS-043 || ODP-007 || POST-025 || RAND-012" --min-pass 7 --report out/loop-generic.json && \
	  $(BELOW) --profile fixtures/loop/variant.yaml --uar dynamic --devices 2 -- $(HW) --label-filter "ODP-034 || ODP-059 || MR-048 || WIRE-033 || XRC-022 || XRC-038 || DV-016 || DV-017 || DV-018" --min-pass 9 --report out/loop-variant.json && \
	  $(BIN)/conform gaps --at-most 51 --machine-lacks gpu,buf,dm.export$$([ -e /dev/udmabuf ] || echo ,exporter,udmabuf)$$([ "$$(id -u)" -eq 0 ] || echo ,root,stat,huge) out/loop-*.json && \
	  $(BELOW) --uar dynamic --devices 2 -- $(BIN)/conform random --programs 30 && \
	  $(BIN)/conform --target=sim --report out/loop-sim.json >out/loop-sim.txt && \
	  $(BIN)/conform diff --common out/loop-sim.json out/loop-hw.json'

# The rows of WIRE with a simulated peer, in both roles. A busy machine misses their timers, so make test does not run them.
peer: $(BUILT_HW)
	@mkdir -p out
	@$(LEG) peer sh -c 'p=$$((20000 + 2 * ($$$$ % 6000))) && rm -f out/peer-*.json && \
	  $(BELOW) --profile generic-roce --wire dgram:$$p-$$((p + 1))@10.77.0.2 -- $(HW) --peer sim:dgram:$$((p + 1))-$$p@10.77.0.3 --label-filter "WIRE && !WIRE-032" --min-pass 35 --report out/peer-asks.json && \
	  $(BELOW) --wire dgram:$$p-$$((p + 1))@10.77.0.2 -- $(HW) --peer sim:dgram:$$((p + 1))-$$p@10.77.0.3 --role responder --label-filter "$(ANSWERS)" --min-pass 13 --report out/peer-answers.json'

# What is too long for every build, and is stored: how well left-out figures are predicted (about 15 minutes of CPU time; a run that was
# interrupted goes on), and which values results depend on.
leave-one-out: build
	@mkdir -p out
	$(BIN)/rdmasim calibrate --leave-one-out --cache out/calibrate --format json >out/leave-one-out.json
	@cp out/leave-one-out.json fixtures/calibration/

sensitivity: build
	@scripts/sensitivity

validate: build
	@$(BIN)/rdmasim validate

slurm: $(BUILT)
	@$(LEG) slurm scripts/slurm scripts/slurm-sweep $(BIN)

# DuckDB reads what sweeps write. It is a module of its own: 100 MB to load, 600 MB on disk, and cgo.
duckdb: build
	@cd internal/duckdb && RDMASIM=$(CURDIR)/$(BIN)/rdmasim CGO_ENABLED=1 $(GO) test -count=1 ./...

# One leg after another: each is measured alone.
.NOTPARALLEL:

# Behind a colon stand the legs without which one cannot run.
check:
	@scripts/leg all build fmt vet static unit conform:build

test:
	@scripts/leg all tools build fmt vet unit-full hw race fuzz determinism:build full:build mutants:build conform-hw:build \
	  loop:build,conform-hw slurm:build lab-smoke:build,conform-hw vm-smoke:build,conform-hw

deadcode:
	RDMASIM_DEADCODE=1 $(GO) test -count=1 $(TESTFLAGS) ./internal/deadcode

soak: build
	@scripts/soak $(SOAK)

tools:
	@$(LEG) tools scripts/tools

bench:
	scripts/bench

golden:
	$(GO) test $(TESTFLAGS) ./experiment ./experiment/calibrate ./internal/readme ./cmd/conform ./conformance/mutants ./conformance/report -run Golden -update

lab:
	scripts/lab --tools
	scripts/lab

# The suite on Soft-RoCE of three kernels; the records are in out/lab.
lab-conform:
	scripts/lab-conform

lab-smoke: $(BUILT_HW)
	@$(LEG) lab-smoke scripts/lab-conform --smoke

vm-smoke: $(BUILT_HW)
	@$(LEG) vm-smoke scripts/vm-smoke

# The whole suite through a real kernel on the simulated adapter, compared with the simulator; the records are in out/vm.
vm-suite:
	scripts/vm-suite

# The worker of conform --target=hw: needs gcc and libibverbs-dev.
conform-hw: $(BUILT)
	@$(LEG) conform-hw CGO_ENABLED=1 $(GO) build -tags hw,$(PURE) -o $(BIN)/conform-hw ./cmd/conform

# What rdmasim perf --target=hw runs: needs gcc and libibverbs-dev.
rdmasim-hw: build
	CGO_ENABLED=1 $(GO) build -tags hw,$(PURE) -o $(BIN)/rdmasim-hw ./cmd/rdmasim

# Release archives for amd64 and arm64 with checksums; equal trees give equal bytes.
dist:
	scripts/dist

clean:
	rm -rf $(BIN) out
