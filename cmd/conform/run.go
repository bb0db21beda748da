package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tklauser/go-sysconf"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/fault"
	"github.com/rdmasim/rdmasim/input"
	"github.com/rdmasim/rdmasim/report"
)

type runOptions struct {
	target, profile, filter string
	seed                    uint64
	verbose                 bool
	report, junit           string
	pcap, trace             string
	parallel, repeat        int
	lockstep, full          bool
	fault, faults           string // name and text of the file of faults
	wall                    time.Duration
	baselines               []string
	device, wire            string
	peer, peerKey           string
	port, gidIndex          int
}

func (o *runOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.target, "target", "sim", "what to test: sim or hw")
	f.StringVar(&o.profile, "profile", defaultProfile, "profile of the simulated device")
	f.StringVar(&o.filter, "label-filter", "", "run cases whose labels match (Ginkgo's syntax); labels are ID, area, strength and needs")
	f.Uint64Var(&o.seed, "seed", 1, "root of everything random in the run")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print every case as it ends, with what it saw")
	f.StringVar(&o.report, "report", "", "write the record of the run as JSON to `FILE`")
	f.StringVar(&o.junit, "junit", "", "write the outcomes as JUnit XML to `FILE`")
	f.StringVar(&o.pcap, "pcap", "", "write the frames of every case to `FILE` (pcapng; interfaces are named after the case)")
	f.StringVar(&o.trace, "trace", "", "write the timeline of every case to `FILE` (Trace Event JSON)")
	f.IntVar(&o.parallel, "parallel", processors(), "how many workers run at once; on hw, where they would share the device, one unless given")
	f.IntVar(&o.repeat, "repeat", 1, "run each case this often; a case that differs is flaky")
	f.BoolVar(&o.full, "full", false, "do as much as the catalogue says where cases are short otherwise (TD-008: 8 million sends, half a minute on sim)")
	f.BoolVar(&o.lockstep, "lockstep", false, "simulated programs yield at every step; the results are the same bytes")
	f.StringVar(&o.fault, "fault", "", "what goes wrong on the wire of every case: a YAML `FILE` of faults as for rdmasim run (docs/wire.md)")
	f.StringArrayVar(&o.baselines, "baseline", nil, "hold cases of strength H to an accepted record (conform accept) of the same kind of device")
	f.StringVar(&o.device, "device", "", "device of --target=hw, as ibv_devices names it (default: the first with an active port)")
	f.IntVar(&o.port, "port", 0, "its port (default: the first that is active)")
	f.IntVar(&o.gidIndex, "gid-index", -1, "index of the GID that connections use (default: RoCE v2 with an IPv4 address)")
	f.StringVar(&o.wire, "wire", os.Getenv("LAB_WIRE"), "`INTERFACES` behind the first and the second device, as w0,w1, for cases that watch and disturb frames (in the lab: as it is)")
	f.StringVar(&o.peer, "peer", "", "`ADDRESS` of a conform agent whose device is the second node: unix:PATH or tcp:HOST:PORT (default: another device of this machine)")
	f.StringVar(&o.peerKey, "peer-key", "", "`FILE` with the key that the agent has")
	f.DurationVar(&o.wall, "wall-limit", 2*time.Minute, "real time that a case may take before its worker is killed")
}

// processors is how many CPUs are online, which a container may set below what the
// machine has.
func processors() int {
	n, err := sysconf.Sysconf(sysconf.SC_NPROCESSORS_ONLN)
	if err != nil || n < 1 {
		return 1
	}
	return int(min(n, int64(runtime.NumCPU())))
}

const defaultProfile = "connectx-5"

// outputs are the files that a run writes, each nil when not asked for.
type outputs struct{ report, junit, pcap, trace *report.File }

func (o *runOptions) open() (out outputs, err error) {
	for _, f := range []struct {
		path string
		file **report.File
	}{{o.report, &out.report}, {o.junit, &out.junit}, {o.pcap, &out.pcap}, {o.trace, &out.trace}} {
		if f.path == "" {
			continue
		}
		if *f.file, err = report.Create(f.path); err != nil {
			out.abort()
			return outputs{}, &status{exitUsage, err}
		}
	}
	return out, nil
}

func (out outputs) abort() {
	for _, f := range []*report.File{out.report, out.junit, out.pcap, out.trace} {
		if f != nil {
			f.Abort()
		}
	}
}

func runSuite(cmd *cobra.Command, o *runOptions) error {
	if o.target == "hw" && !cmd.Flags().Changed("parallel") {
		o.parallel = 1
	}
	if err := o.check(); err != nil {
		return err
	}
	all, err := conformance.Items(conformance.Suite())
	if err != nil {
		return err
	}
	items, err := o.pick(all)
	if err != nil {
		return err
	}
	baselines, err := o.readBaselines()
	if err != nil {
		return err
	}
	if err := o.readFaults(); err != nil {
		return err
	}
	program, err := workerCommand(o.target)
	if err != nil {
		return err
	}
	out, err := o.open()
	if err != nil {
		return err
	}
	dir := ""
	if o.pcap != "" || o.trace != "" {
		if dir, err = os.MkdirTemp("", "conform-"); err != nil {
			out.abort()
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
	}
	res, err := o.supervise(cmd.Context(), cmd, program, dir, items)
	if err != nil {
		out.abort()
		if errors.Is(err, harness.ErrTarget) {
			return &status{exitUsage, err}
		}
		return &status{exitFailed, err}
	}
	policy, err := conformance.LoadPolicy(res.Hello.Target.Profile)
	if err != nil {
		out.abort()
		return err
	}
	run := assemble(o, res, items, policy, len(items) == len(all))
	if o.target == "hw" && nothingRan(run) {
		out.abort()
		return usagef("%s supports none of the %d cases that --label-filter %q selects (%s: %s); choose others, or another --device",
			run.Target.Device, len(run.Cases), o.filter, run.Cases[0].ID, run.Cases[0].Reason)
	}
	hold(run, baselines)
	if err := out.write(run, dir); err != nil {
		return &status{exitFailed, err}
	}
	printRun(cmd.OutOrStdout(), o, run)
	switch {
	case run.Incomplete:
		return &status{code: exitInterrupted}
	case !run.OK():
		return &status{code: exitFailed}
	}
	return nil
}

// nothingRan says that the target lacks what every case needs.
func nothingRan(run *report.Run) bool {
	for _, c := range run.Cases {
		if !strings.HasPrefix(c.Reason, conformance.Lacking) {
			return false
		}
	}
	return len(run.Cases) > 0
}

// readFaults reads the file of --fault. Complaints carry file, line and column.
func (o *runOptions) readFaults() error {
	if o.fault == "" {
		return nil
	}
	if o.target != "sim" {
		return usagef("--fault: files of faults go with --target=sim in this version; on hardware the cases inject their own through --wire")
	}
	text, err := os.ReadFile(o.fault)
	if err != nil {
		return &status{exitUsage, err}
	}
	plan, err := fault.Parse(o.fault, text)
	if err == nil {
		err = plan.Check([]string{"host0/mlx5_0", "host1/mlx5_0"})
	}
	if err != nil {
		return &status{exitUsage, err}
	}
	o.faults = string(text)
	return nil
}

// check refuses values that no run can have.
func (o *runOptions) check() error {
	if targets := []string{"sim", "hw"}; !slices.Contains(targets, o.target) {
		if o.target == "sim,hw" {
			return usagef("target sim,hw: comparing two targets in one run is not in this version yet")
		}
		return usagef("unknown target %q%s; targets are sim and hw", o.target, input.Suggest(o.target, targets))
	}
	if o.target == "sim" && !slices.Contains(profiles(), o.profile) {
		return usagef("unknown profile %q%s; profiles are %s", o.profile, input.Suggest(o.profile, profiles()),
			strings.Join(profiles(), ", "))
	}
	if o.target == "sim" && (o.device != "" || o.port != 0 || o.gidIndex >= 0 || o.peer != "" || o.peerKey != "") {
		return usagef("--device, --port, --gid-index and --peer choose hardware: add --target=hw")
	}
	if o.port < 0 || o.port > 255 {
		return usagef("--port %d: ports count from 1", o.port)
	}
	if o.parallel < 1 || o.repeat < 1 || o.wall <= 0 {
		return usagef("--parallel, --repeat and --wall-limit must be above zero")
	}
	return nil
}

// pick applies the label filter.
func (o *runOptions) pick(all []conformance.Item) ([]conformance.Item, error) {
	if err := checkLabels(o.filter); err != nil {
		return nil, err
	}
	match, err := types.ParseLabelFilter(o.filter)
	if err != nil {
		return nil, usagef("--label-filter %q: %s", o.filter, filterComplaint(err))
	}
	var items []conformance.Item
	for _, i := range all {
		if match(i.Entry.Labels()) {
			items = append(items, i)
		}
	}
	if len(items) == 0 {
		return nil, usagef("--label-filter %q matches no case that has code; conform list shows them", o.filter)
	}
	return items, nil
}

// filterComplaint is what Ginkgo says of a filter, without colours: the last line of its
// message.
func filterComplaint(err error) string {
	var g types.GinkgoError
	if !errors.As(err, &g) {
		return err.Error()
	}
	return g.Message[strings.LastIndexByte(g.Message, '\n')+1:]
}

// checkLabels finds labels in the filter that no case of the catalogue has.
func checkLabels(filter string) error {
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	var names []string
	for _, e := range cat.Cases {
		for _, l := range e.Labels() {
			if !known[strings.ToLower(l)] {
				known[strings.ToLower(l)] = true
				names = append(names, l)
			}
		}
	}
	for regexes := range strings.SplitSeq(dropRegexes(filter), "\x00") {
		for _, l := range strings.FieldsFunc(regexes, func(r rune) bool { return strings.ContainsRune("&|!,()", r) }) {
			l = strings.TrimSpace(l)
			if l != "" && !strings.Contains(l, ":") && !known[strings.ToLower(l)] {
				return usagef("--label-filter: unknown label %q%s", l, input.Suggest(l, names))
			}
		}
	}
	return nil
}

// dropRegexes replaces /.../ by a separator.
func dropRegexes(filter string) string {
	parts := strings.Split(filter, "/")
	var b strings.Builder
	for i := 0; i < len(parts); i += 2 {
		b.WriteString(parts[i] + "\x00")
	}
	return b.String()
}

func (o *runOptions) supervise(ctx context.Context, cmd *cobra.Command, program, dir string, items []conformance.Item) (harness.Result, error) {
	ids := make([]string, len(items))
	for i, it := range items {
		ids[i] = it.Entry.ID
	}
	p := newProgress(cmd.ErrOrStderr(), len(ids))
	defer p.done()
	s := &harness.Supervisor{
		Command: func() (*exec.Cmd, error) {
			c := exec.Command(program, "worker")
			c.Env = workerEnv(o.target)
			return c, nil
		},
		Job: harness.Job{Target: o.target, Profile: o.profile, Seed: o.seed, Repeat: o.repeat, Cases: ids,
			Device: o.device, Port: o.port, GIDIndex: o.gidIndex, Wire: o.wire, Peer: o.peer, PeerKey: o.peerKey, Wall: o.wall,
			Lockstep: o.lockstep, FaultFile: o.fault, Faults: o.faults, Full: o.full, Dir: dir, Pcap: o.pcap != "", Trace: o.trace != ""},
		Shards: o.parallel,
		Wall:   o.wall,
		Hello: func(h harness.Hello) {
			if h.Chosen != "" {
				p.clear()
				printTarget(cmd.OutOrStdout(), h)
			}
		},
		Finished: func(c report.Case) {
			p.add()
			if o.verbose {
				p.clear()
				printCase(cmd.OutOrStdout(), c)
			}
		},
	}
	if o.verbose {
		s.Stderr = cmd.ErrOrStderr()
	}
	return s.Run(ctx)
}

// assemble makes the record of the run, with the cases in the catalogue's order.
func assemble(o *runOptions, res harness.Result, items []conformance.Item, policy *conformance.Policy, whole bool) *report.Run {
	t := res.Hello.Target
	run := &report.Run{Schema: report.Schema, Seed: o.seed, Incomplete: res.Interrupted,
		Target:      report.Target{Kind: o.target, Profile: t.Profile, Device: t.Device},
		Environment: map[string]string{"conform": version}}
	for k, v := range t.Details {
		run.Environment[k] = v
	}
	if o.fault != "" {
		run.Environment["faults"] = filepath.Base(o.fault) + ", " + report.Digest([]byte(o.faults))
	}
	for _, i := range items {
		c, ran := res.Cases[i.Entry.ID]
		if !ran {
			c = report.Case{ID: i.Entry.ID, Outcome: report.NotRun, Reason: "the run was interrupted"}
		}
		c.Area, c.Text, c.Strength = i.Entry.Area, i.Entry.Text, string(i.Entry.Strength)
		if c.Observations == nil {
			c.Observations = []report.Observation{}
		}
		run.Cases = append(run.Cases, c)
	}
	if len(res.Hello.Lacks) > 0 {
		run.Findings = append(run.Findings, "the target lacks what it must have: "+strings.Join(res.Hello.Lacks, ", "))
	}
	if !run.Incomplete {
		run.Findings = append(run.Findings, policy.Findings(run.Cases, whole)...)
	}
	run.Count()
	return run
}

func (o *runOptions) readBaselines() ([]*report.Run, error) {
	var out []*report.Run
	for _, name := range o.baselines {
		b, err := report.ReadFile(name)
		if err == nil {
			err = b.Acceptable()
		}
		if err != nil {
			return nil, usagef("--baseline %s: %w", name, err)
		}
		if b.Seed != o.seed {
			return nil, usagef("--baseline %s is of seed %d: what a case does is drawn from the seed, so add --seed %d", name, b.Seed, b.Seed)
		}
		out = append(out, b)
	}
	return out, nil
}

// hold judges cases of strength H by the baselines of the run's kind of device.
func hold(run *report.Run, baselines []*report.Run) {
	if len(baselines) == 0 {
		return
	}
	held := false
	for _, b := range baselines {
		held = run.Hold(b) || held
	}
	if !held {
		run.Findings = append(run.Findings, "no --baseline is of this kind of device")
	}
}

func (out outputs) write(run *report.Run, dir string) error {
	var errs []error
	commit := func(f *report.File, fill func(io.Writer) error) {
		if f != nil {
			errs = append(errs, f.Commit(fill))
		}
	}
	commit(out.report, run.WriteJSON)
	commit(out.junit, run.WriteJUnit)
	commit(out.pcap, func(w io.Writer) error { return joinCaptures(w, dir, run.Cases) })
	commit(out.trace, func(w io.Writer) error { return joinTraces(w, dir, run.Cases) })
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the run's results are lost in part: %w", err)
	}
	return nil
}
