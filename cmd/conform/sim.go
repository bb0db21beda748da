package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
)

// maxEvents bounds a simulated case that names no bound, so that a case which never
// ends is found in a minute.
const maxEvents = 200_000_000

// simulator makes simulated testbeds.
type simulator struct{ profile *profile.Profile }

// newSim is the simulator with a profile.
func newSim(name string) (spec.Target, error) {
	p, err := profile.Load(name)
	if err != nil {
		return nil, err
	}
	return simulator{p}, nil
}

// profiles are the names that --profile takes.
func profiles() []string { return profile.List() }

// NewTestbed makes two hosts with one device each.
func (s simulator) NewTestbed(seed uint64, o spec.BedOptions) (spec.Bed, error) {
	cfg := testbed.Default(s.profile)
	cfg.Seed, cfg.MaxEvents, cfg.Lockstep, cfg.Trace = seed, o.MaxEvents, o.Lockstep, o.Trace != ""
	if cfg.MaxEvents == 0 {
		cfg.MaxEvents = maxEvents
	}
	b := &bed{trace: o.Trace}
	if o.Pcap != "" {
		f, err := os.Create(o.Pcap)
		if err != nil {
			return nil, err
		}
		b.pcap, cfg.Pcap = f, f
	}
	var err error
	if b.Testbed, err = testbed.New(cfg); err != nil {
		if b.pcap != nil {
			err = errors.Join(err, b.pcap.Close())
		}
		return nil, err
	}
	return b, nil
}

// bed is a testbed with the files that it writes.
type bed struct {
	*testbed.Testbed
	pcap  io.Closer
	trace string
}

// Close ends the testbed and writes what is left to write.
func (b *bed) Close() error {
	err := b.Testbed.Close()
	if b.pcap != nil {
		err = errors.Join(err, b.pcap.Close())
	}
	if b.trace == "" {
		return err
	}
	f, ferr := os.Create(b.trace)
	if ferr != nil {
		return errors.Join(err, ferr)
	}
	if werr := b.Engine().Spans.WriteJSON(f); werr != nil {
		err = errors.Join(err, fmt.Errorf("write %s: %w", b.trace, werr))
	}
	return errors.Join(err, f.Close())
}
