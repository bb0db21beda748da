// Package simulator is the simulated RDMA adapter as a target of the conformance suite:
// every case gets two simulated hosts with one device each, joined by a cable, all with
// the parameters of one profile. It needs no hardware, no cgo and no rights.
package simulator

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// DefaultProfile is the profile of a Config that names none.
const DefaultProfile = "connectx-5"

// Limits on the simulated events of one case: a case that is still busy after them hangs.
const (
	maxEvents     = 200_000_000
	maxEventsFull = 4_000_000_000 // where cases do as much as the catalogue says

	// maxBacked is for how many bytes of its hosts a case may have memory. Measured: 39 MiB at most
	// of all cases, and 128 MiB of a full run, by RC-028, the largest message.
	maxBacked     = 64 << 20
	maxBackedFull = 160 << 20
)

// Config describes the simulated machines. The zero value is two hosts with a ConnectX-5.
type Config struct {
	// Profile is the name of the parameters of all units, see Profiles, or the path of a file of
	// them that ends in .yaml; empty: DefaultProfile.
	Profile string
	// ProfileText is the text of that file, if it has been read.
	ProfileText string
	// Faults is what goes wrong in every case (nil: nothing).
	Faults *fault.Plan
	// Adjust, when set, may change the configuration of a testbed before it is made: other
	// hosts, a switch. It must not change what Profile points to; it may replace it by a clone.
	Adjust func(*testbed.Config)
}

// Profiles are the names that Config.Profile can have.
func Profiles() []string { return profile.List() }

// Target makes simulated testbeds. It implements spec.Target.
type Target struct {
	cfg     Config
	profile *profile.Profile
	details map[string]string // of profile
}

// New is the target of a configuration.
func New(cfg Config) (*Target, error) {
	cfg.Profile = cmp.Or(cfg.Profile, DefaultProfile)
	load := func() (*profile.Profile, error) { return profile.Load(cfg.Profile) }
	if cfg.ProfileText != "" {
		load = func() (*profile.Profile, error) { return profile.Parse(cfg.Profile, []byte(cfg.ProfileText)) }
	}
	p, err := load()
	if err != nil {
		return nil, err
	}
	return &Target{cfg, p, details(p)}, nil
}

// variants are the needs of cases that ask for another kind of machine than the profile's: kernel
// and library of the static generation, together or one of them, a driver that takes the oldest
// free key, a library with the independent thread domains of the proposal, which stock ones refuse,
// a device of another provider, one without atomics, without or with less or more on-demand paging,
// and what an administrator turns on.
var variants = []struct{ need, key, value string }{
	{"legacy abi", "kernel.generation", "static"},
	{"legacy abi", "kernel.mkey_cache", "fifo"},
	{"no uar objects", "kernel.generation", "static"},
	{"no uar objects", "kernel.mkey_cache", "fifo"},
	{"no lib.dyn", "provider.generation", "static"},
	{"no mkeys.lifo", "kernel.mkey_cache", "fifo"},
	{"td.independent", "provider.independent_td", "true"},
	{"dv.memcpy", "hca.copy_log_max", "20"},
	{"dm.export", "kernel.dmabuf_export", "true"},
	{"no atomic", "hca.atomics", "false"},
	{"no odp", "odp.rc", "0"},
	{"no odp", "odp.ud", "0"},
	{"no odp", "odp.xrc", "0"},
	{"no odp", "odp.implicit", "false"},
	{"no odp.implicit", "odp.implicit", "false"},
	{"no advise", "kernel.generation", "static"},
	{"no advise", "kernel.mkey_cache", "fifo"},
	{"odp.rc.srq_recv", "odp.rc", "0xf4000000"},
	{"odp.xrc.srq_recv", "odp.xrc", "0xf4000000"},
	{"odp.xrc.send", "odp.xrc", "0xb4000000"},
	{"odp.xrc.write", "odp.xrc", "0xb4000000"},
	{"odp.xrc.read", "odp.xrc", "0xb4000000"},
	{"odp.xrc.atomic", "odp.xrc", "0xbc000000"},
	{"no dv", "provider.foreign", "true"},
	{"dv.sport", "hca.udp_sport", "true"},
	{"dv.resqpn", "hca.reserved_numbers", "3"},
	{"dv.dm_op", "hca.memic_ops", "true"},
	{"ecn", "congestion.dcqcn", "true"},
	{"pfc", "link.pfc", "true"},
}

// NewTestbed makes a testbed with the target's profile, changed where the needs of the
// case ask for it.
func (t *Target) NewTestbed(seed uint64, o spec.BedOptions) (spec.Bed, error) {
	p := t.profile
	var changed []string
	for _, v := range variants {
		if slices.Contains(o.Needs, v.need) {
			p = p.Clone()
			if err := p.Set(v.key, v.value); err != nil {
				return nil, err
			}
			changed = append(changed, v.key+"="+v.value)
		}
	}
	cfg := testbed.Default(p)
	cfg.Packets = true
	cfg.Seed, cfg.Lockstep, cfg.Trace, cfg.Faults = seed, o.Lockstep, o.Trace != "", t.cfg.Faults
	if cfg.MaxEvents = o.MaxEvents; cfg.MaxEvents == 0 {
		cfg.MaxEvents = maxEvents
		if o.Full {
			cfg.MaxEvents = maxEventsFull
		}
	}
	b := &bed{target: t, trace: o.Trace, changed: changed, full: o.Full}
	if o.Pcap != "" {
		var err error
		if b.pcap, err = os.Create(o.Pcap); err != nil {
			return nil, err
		}
		cfg.Pcap, cfg.PcapName, cfg.PcapKeep = b.pcap, o.ID, o.PcapKeep
	}
	if t.cfg.Adjust != nil {
		t.cfg.Adjust(&cfg)
	}
	var err error
	if b.Testbed, err = testbed.New(cfg); err != nil {
		return nil, errors.Join(err, b.closeCapture())
	}
	return b, nil
}

// bed is a simulated testbed and the files that it writes.
type bed struct {
	*testbed.Testbed
	target  *Target
	pcap    *os.File
	trace   string
	changed []string
	full    bool // the case runs at the length of the catalogue
}

// Target adds to the testbed's description what identifies the parameters.
func (b *bed) Target() verbs.Target {
	t := b.Testbed.Target()
	p := b.Config().Profile
	t.Profile = p.Name
	if p == b.target.profile { // as in most cases
		t.Details = maps.Clone(b.target.details)
	} else {
		t.Details = details(p)
	}
	return t
}

// details identify the parameters. What extends a stored profile may lack what that one may lack.
func details(p *profile.Profile) map[string]string {
	d := map[string]string{"profile_hash": p.Hash(), "hypotheses": strings.Join(p.Hypotheses(), " ")}
	if known := Profiles(); !slices.Contains(known, p.Name) && slices.Contains(known, p.Extends) {
		d[conformance.ExtendsKey] = p.Extends
	}
	return d
}

// Changed lists the parameters that the case's needs changed.
func (b *bed) Changed() []string { return b.changed }

// Run runs the body. A panic in a program surfaces without its stack, which goes to
// standard error: a report holds no path of the machine.
func (b *bed) Run(deadline time.Duration, body func(verbs.Thread)) error {
	defer func() {
		p := recover()
		if pp, ok := p.(*sim.ProgramPanic); ok {
			fmt.Fprintln(os.Stderr, pp)
			p = fmt.Sprintf("program %s at %v: %v", pp.Program, pp.At, pp.Value)
		}
		if p != nil {
			panic(p)
		}
	}()
	return b.Testbed.Run(deadline, body)
}

// Close ends the testbed and completes its files.
func (b *bed) Close() error {
	err := errors.Join(withinMemory(b.Backed(), b.full), b.Testbed.Close())
	if b.trace != "" {
		err = errors.Join(err, writeFile(b.trace, b.Engine().Spans.WriteJSON))
	}
	return errors.Join(err, b.closeCapture())
}

// withinMemory refuses a case that wrote to more memory than a worker may take
// (harness.WorkerMemory).
func withinMemory(backed uint64, full bool) error {
	limit := uint64(maxBacked)
	if full {
		limit = maxBackedFull
	}
	if backed > limit {
		return fmt.Errorf("the case wrote to %d MiB of simulated memory, and each of several workers may take %d MiB: do not write to memory that it needs only as space", backed>>20, limit>>20)
	}
	return nil
}

func (b *bed) closeCapture() error {
	if b.pcap == nil {
		return nil
	}
	return b.pcap.Close()
}

func writeFile(path string, fill func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Close())
}
