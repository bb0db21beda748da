package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/mutants"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/runs"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/roce/fault"
)

type runOptions struct {
	target, profile, filter string
	sim                     simProfile // what profile chooses
	seed                    uint64
	verbose                 bool
	report, junit, html     string
	pcap, trace, captures   string
	mutant                  string
	took                    time.Duration // by the clock of the machine
	parallel, repeat        int
	parallelGiven           bool
	minPass                 int
	lockstep, full          bool
	fault, faults           string // name and text of the file of faults
	wall                    time.Duration
	baselines               []string
	device, wire            string
	peer, peerKey, role     string
	port, gidIndex          int
	today                   string
	shard                   string
	part                    runs.Part
	wholeHash               string   // hash of what the parts are parts of
	ledgers                 []string // names of files, and their texts
	ledgerFiles             []conformance.LedgerFile
}

func (o *runOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.target, "target", "sim", "what to test: sim, hw, or sim,hw, which runs and compares both (names of reports get -sim and -hw before their extension)")
	f.StringVar(&o.profile, "profile", simulator.DefaultProfile, profileHelp)
	f.StringVar(&o.filter, "label-filter", "", "run cases whose labels match (Ginkgo's syntax); labels are ID, area, strength and needs")
	f.Uint64Var(&o.seed, "seed", 1, "seed of all random choices of the run")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print every case as it ends, with what it saw")
	f.StringVar(&o.report, "report", "", "write the record of the run as JSON to `FILE`; - is standard output, and the tables go to standard error")
	f.StringVar(&o.junit, "junit", "", "write the outcomes as JUnit XML to `FILE`; - is standard output, as for --report")
	f.StringVar(&o.html, "html", "", "write the run as one HTML page to `FILE`: areas, every case with what it saw, the frames around each failure")
	f.StringVar(&o.captures, "captures", "", "write the frames of each failed case to `DIR`/ID.pcapng; the folder is made if it is missing")
	f.StringVar(&o.mutant, "mutant", "", "run on a simulator that breaks one rule, by its `NAME` in conform mutants --list: to see what a failure looks like")
	f.StringVar(&o.pcap, "pcap", "", "write the frames of every case to `FILE` (pcapng; interfaces are named after the case)")
	f.StringVar(&o.trace, "trace", "", "write the timeline of every case to `FILE` (Trace Event JSON)")
	f.IntVar(&o.parallel, "parallel", processors(), "number of workers that run at once (default on hw, where they would share the device: 1)")
	f.IntVar(&o.repeat, "repeat", 1, "run each case this many times; a case whose runs differ is flaky")
	f.StringVar(&o.shard, "shard", "", shardHelp)
	f.IntVar(&o.minPass, "min-pass", 0, "fail a run in which fewer cases pass than this")
	f.BoolVar(&o.full, "full", false, "run long cases at the length that the catalogue demands (TD-008: 8 million sends, half a minute on sim)")
	f.BoolVar(&o.lockstep, "lockstep", false, "let simulated programs yield at every step, as a check of the simulator: the results stay the same")
	f.StringVar(&o.fault, "fault", "", "inject the faults of this YAML `FILE` into every case, as rdmasim run does (docs/wire.md)")
	f.StringArrayVar(&o.baselines, "baseline", nil, "compare cases of strength H with an accepted record (conform accept) of the same kind of device, or all cases with a YAML file of measurements that others have published")
	f.StringVar(&o.device, "device", "", "device of --target=hw, by its name in ibv_devices (default: the first with an active port)")
	f.IntVar(&o.port, "port", 0, "port of the device (default: the first that is active)")
	f.IntVar(&o.gidIndex, "gid-index", defaultGIDIndex, "index of the GID that connections use (default: RoCE v2 with an IPv4 address)")
	f.StringVar(&o.wire, "wire", labWire(), "`INTERFACES` behind the first and the second device, as w0,w1, for cases that watch and disturb frames (default: $LAB_WIRE, which scripts/lab sets)")
	f.StringVar(&o.peer, "peer", "", "`ADDRESS` of a conform agent whose device is the second node: unix:PATH or tcp:HOST:PORT; or, behind sim:, of a simulated peer in this process, as rdmasim wire --serve takes it: sim:udp:192.0.2.2 (default: another device of this machine)")
	f.StringVar(&o.role, "role", roleRequester, "`ROLE` of the device towards a simulated peer: requester, the end of a case that asks, or responder, the end that answers")
	f.StringVar(&o.peerKey, "peer-key", "", "`FILE` with the key of the agent")
	f.StringArrayVar(&o.ledgers, "ledger", nil, "add a YAML `FILE` of known deviations to those that come with the program (docs/hw.md)")
	f.StringVar(&o.today, "today", "", "`DATE` (2026-11-21) by which entries of the ledger of deviations must have been reviewed (default: today); an entry of the target that is overdue fails the run")
	f.DurationVar(&o.wall, "wall-limit", 0, "real time that a case, or each of its repeats, may take before its worker is killed (default: 2m, or $LAB_WALL_LIMIT, which scripts/lab sets; on sim, where only the simulator itself can hang, 30m)")
}

// labWire are the interfaces behind the devices of the lab. Programs below rdmasim exec do not see
// those devices.
func labWire() string {
	if os.Getenv(commands.SessionVariable) != "" {
		return ""
	}
	return os.Getenv("LAB_WIRE")
}

// processors returns how many CPUs this process has: its affinity and its control group may leave
// it fewer than the machine.
func processors() int { return runtime.GOMAXPROCS(0) }

// on reports whether a target takes part in the run.
func (o *runOptions) on(target string) bool {
	return slices.Contains(strings.Split(o.target, ","), target)
}

// of returns the options of one target of the run. On hardware workers would share the device, so
// there is one worker unless their number was given.
func (o *runOptions) of(target string, parallel bool) *runOptions {
	p := *o
	p.target = target
	if target == "hw" && !parallel {
		p.parallel = 1
	}
	if o.target != target {
		if target == "hw" {
			p.pcap, p.trace = "", ""
		} else {
			p.baselines = nil
		}
		for _, file := range []*string{&p.report, &p.junit, &p.html, &p.captures} {
			if *file != "" {
				ext := filepath.Ext(*file)
				*file = strings.TrimSuffix(*file, ext) + "-" + target + ext
			}
		}
	}
	return &p
}

// defaultGIDIndex lets the device choose.
const defaultGIDIndex = -1

// checkPort refuses what no port of a device is, and no GID of it.
func checkPort(port, gidIndex int) error {
	if port < 0 || port > 255 {
		return usagef("--port %d is not a port: ports count from 1 to 255", port)
	}
	if gidIndex < defaultGIDIndex || gidIndex > 0xFFFF {
		return usagef("--gid-index %d is not the index of a GID: indices count from 0 (ibv_devinfo -v lists them)", gidIndex)
	}
	return nil
}

// check refuses options that are impossible or contradict each other.
func (o *runOptions) check(ctx context.Context) error {
	var err error
	if o.part, err = readPart(o.shard, o.report); err != nil {
		return err
	}
	if o.target == "hw,sim" {
		return usagef("unknown target %q (did you mean \"sim,hw\"?)", o.target)
	}
	if targets := []string{"sim", "hw", "sim,hw"}; !slices.Contains(targets, o.target) {
		return usagef("unknown target %q%s; targets are sim, hw and sim,hw", o.target, input.Suggest(o.target, targets))
	}
	if o.on("sim") {
		if o.sim, err = readProfile(ctx, o.profile); err != nil {
			return err
		}
	}
	if !o.on("hw") && (o.device != "" || o.port != 0 || o.gidIndex != defaultGIDIndex || o.peer != "" || o.peerKey != "") {
		return usagef("--device, --port, --gid-index and --peer choose hardware: add --target=hw")
	}
	if o.lockstep && !o.on("sim") {
		return usagef("--lockstep is for simulated programs: add --target=sim, or leave it out")
	}
	if err := o.checkPeer(); err != nil {
		return err
	}
	if o.peerKey != "" && o.peer == "" {
		return usagef("--peer-key %s is for an agent: give its address with --peer", o.peerKey)
	}
	if !o.on("hw") && o.wire != labWire() {
		return usagef("--wire watches the wire of hardware: add --target=hw (on the simulator, the cases have its wire without a flag)")
	}
	if !o.on("sim") && (o.pcap != "" || o.trace != "") {
		return usagef("--pcap and --trace record the simulator's wire and time: use --target=sim (on hardware, tcpdump)")
	}
	if o.mutant != "" {
		if o.target != "sim" {
			return usagef("--mutant %s breaks a rule of the simulator: use --target=sim", o.mutant)
		}
		if err := mutants.Known(o.mutant); err != nil {
			return err
		}
	}
	if o.on("sim") && o.on("hw") {
		for _, f := range []outfile.Named{{Flag: "--report", Path: o.report}, {Flag: "--junit", Path: o.junit}} {
			if f.Path == outfile.Standard || outfile.IsStandard(f.Path) {
				return usagef("%s %s: two targets write two reports: name a file, and theirs get -sim and -hw before its extension", f.Flag, f.Path)
			}
		}
	}
	if err := checkPort(o.port, o.gidIndex); err != nil {
		return err
	}
	if _, err := dayOf(o.today); err != nil {
		return err
	}
	switch {
	case o.simulatedPeer() && o.parallelGiven && o.parallel > 1:
		return usagef("--parallel %d: one worker has the address of a simulated peer: leave it out", o.parallel)
	case o.parallel < 1:
		return usagef("--parallel %d: at least 1 is needed, the number of workers", o.parallel)
	case o.repeat < 1:
		return usagef("--repeat %d: at least 1 is needed, the number of runs of each case", o.repeat)
	case o.minPass < 0:
		return usagef("--min-pass %d: a number of cases is needed, 0 for no limit", o.minPass)
	case o.wall < 0:
		return usagef("--wall-limit %v: a time is needed, such as 5m, or 0s for the default", o.wall)
	}
	return nil
}

// readLedgers reads and checks files of deviations.
func readLedgers(ctx context.Context, names []string) ([]conformance.LedgerFile, error) {
	var out []conformance.LedgerFile
	for _, name := range names {
		text, err := input.ReadFile(ctx, name)
		if err != nil {
			return nil, &status{exitUsage, err}
		}
		out = append(out, conformance.LedgerFile{Name: name, Text: string(text)})
	}
	if _, err := conformance.LoadLedger(out...); err != nil {
		return nil, &status{exitUsage, err}
	}
	return out, nil
}

// readFaults reads the file of --fault. Its errors name file, line and column.
func (o *runOptions) readFaults(ctx context.Context) error {
	if o.fault == "" {
		return nil
	}
	text, err := input.ReadFile(ctx, o.fault)
	if err != nil {
		return &status{exitUsage, err}
	}
	plan, err := fault.Parse(o.fault, text)
	if err == nil && o.on("sim") { // the workers know what hardware there is
		devices := []string{"host0/mlx5_0", "host1/mlx5_0"}
		err = plan.Check(fault.Target{Ports: devices, Devices: devices, Hosts: []string{"host0", "host1"}})
	}
	if err != nil {
		return &status{exitUsage, err}
	}
	o.faults = string(text)
	return nil
}

func (o *runOptions) readBaselines(ctx context.Context) ([]*report.Run, error) {
	var out []*report.Run
	for _, name := range o.baselines {
		if report.IsPublished(name) {
			continue
		}
		b, err := report.ReadFile(ctx, name)
		if err == nil {
			err = b.Acceptable()
		}
		if err != nil {
			return nil, usagef("--baseline %s: %w", name, err)
		}
		if b.Seed != o.seed {
			return nil, usagef("--baseline %s was recorded with seed %d, and the seed decides what a case does: add --seed %d", name, b.Seed, b.Seed)
		}
		out = append(out, b)
	}
	return out, nil
}

// readPublished reads those baselines that are published measurements.
func (o *runOptions) readPublished(ctx context.Context) (out []*report.Published, err error) {
	for _, name := range o.baselines {
		if !report.IsPublished(name) {
			continue
		}
		p, err := conformance.ReadPublished(ctx, name)
		if err != nil {
			return nil, usagef("--baseline: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// day is the date of --today.
func (o *runOptions) day() time.Time {
	t, _ := dayOf(o.today) // check has parsed it
	return t
}

// dayOf reads a date as --today has it; none is today.
func dayOf(text string) (time.Time, error) {
	if text == "" {
		return time.Now(), nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, usagef("--today %q is not a date such as 2026-11-21", text)
	}
	return t, nil
}
