package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/fault"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// maxEvents bounds the simulated events of one case: a case that is still busy after
// them hangs.
const maxEvents = 200_000_000

// fullEvents bounds them in a full run.
const fullEvents = 4_000_000_000

// profiles are the names that --profile takes.
func profiles() []string { return profile.List() }

// simulator is the target sim.
type simulator struct {
	profile *profile.Profile
	faults  *fault.Plan // of every testbed, or nil
}

func newSim(job harness.Job) (spec.Target, error) {
	p, err := profile.Load(job.Profile)
	if err != nil {
		return nil, err
	}
	s := simulator{profile: p}
	if job.Faults != "" {
		s.faults, err = fault.Parse(job.FaultFile, []byte(job.Faults))
	}
	return s, err
}

// NewTestbed makes the usual testbed. A few needs ask for another kind of machine than
// the profile's: the kernel of the static generation, a library with the independent
// thread domains of the proposal, which stock ones refuse, a device without atomics, and
// what an administrator turns on.
func (s simulator) NewTestbed(seed uint64, o spec.BedOptions) (spec.Bed, error) {
	p := s.profile
	var changed []string
	for _, c := range []struct{ need, key, value string }{
		{"legacy abi", "kernel.generation", "static"},
		{"td.independent", "provider.independent_td", "true"},
		{"no atomic", "hca.atomics", "false"},
		{"ecn", "congestion.dcqcn", "true"},
		{"pfc", "link.pfc", "true"},
	} {
		if slices.Contains(o.Needs, c.need) {
			p = p.Clone()
			if err := p.Set(c.key, c.value); err != nil {
				return nil, err
			}
			changed = append(changed, c.key+"="+c.value)
		}
	}
	cfg := testbed.Default(p)
	cfg.Seed, cfg.Lockstep, cfg.Trace, cfg.Faults = seed, o.Lockstep, o.Trace != "", s.faults
	if cfg.MaxEvents = o.MaxEvents; cfg.MaxEvents == 0 {
		cfg.MaxEvents = maxEvents
		if o.Full {
			cfg.MaxEvents = fullEvents
		}
	}
	b := &simBed{trace: o.Trace, changed: changed}
	if o.Pcap != "" {
		var err error
		if b.pcap, err = os.Create(o.Pcap); err != nil {
			return nil, err
		}
		cfg.Pcap, cfg.PcapName = b.pcap, o.ID
	}
	var err error
	if b.Testbed, err = testbed.New(cfg); err != nil {
		return nil, errors.Join(err, b.closeCapture())
	}
	return b, nil
}

// simBed is a simulated testbed and the files that it writes.
type simBed struct {
	*testbed.Testbed
	pcap    *os.File
	trace   string
	changed []string
}

// Target adds to the testbed's description what identifies the parameters.
func (b *simBed) Target() verbs.Target {
	t := b.Testbed.Target()
	p := b.Config().Profile
	t.Profile = p.Name
	t.Details = map[string]string{"profile_hash": p.Hash(), "hypotheses": strings.Join(p.Hypotheses(), " ")}
	return t
}

// Changed lists the parameters that the case's needs changed.
func (b *simBed) Changed() []string { return b.changed }

// Run runs the body. A panic in a program surfaces without its stack, which goes to
// standard error: a report holds no path of the machine.
func (b *simBed) Run(deadline time.Duration, body func(verbs.Thread)) error {
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
func (b *simBed) Close() error {
	err := b.Testbed.Close()
	if b.trace != "" {
		err = errors.Join(err, writeFile(b.trace, b.Engine().Spans.WriteJSON))
	}
	return errors.Join(err, b.closeCapture())
}

func (b *simBed) closeCapture() error {
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
