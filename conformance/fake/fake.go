// Package fake is a scripted testbed without any device, for tests of the framework.
package fake

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Target makes scripted testbeds.
type Target struct {
	// Profile that the testbeds report; empty: none.
	Profile string

	// Capabilities by name; those that are not named are present.
	Capabilities map[string]verbs.Capability
	// TD is what AllocTD returns.
	TD error
	// Null refuses every call on an open device.
	Null bool
	// Now is the clock of the threads; nil: the clock stands still.
	Now func() time.Duration
}

// ErrHang is what a Run returns when the body called Hang.
var ErrHang = errors.New("deadlock: nothing is scheduled")

// NewTestbed implements spec.Target.
func (g Target) NewTestbed(uint64, spec.BedOptions) (spec.Bed, error) { return &bed{target: g}, nil }

type bed struct {
	verbs.UnimplementedTestbed
	target Target
}

func (b *bed) Capability(token string) verbs.Capability {
	if c, ok := b.target.Capabilities[token]; ok {
		return c
	}
	return verbs.Present
}

func (b *bed) Target() verbs.Target {
	return verbs.Target{Kind: "fake", Profile: b.target.Profile, Device: "fake0", Details: map[string]string{"fake": "yes"}}
}

// hang unwinds a body that called Hang.
type hang struct{}

// Hang stands for a body that never returns in the testbed's time.
func Hang() { panic(hang{}) }

func (b *bed) Run(_ time.Duration, body func(verbs.Thread)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(hang); !ok {
				panic(p)
			}
			err = ErrHang
		}
	}()
	body(&thread{bed: b})
	return nil
}

func (b *bed) Close() error { return nil }

type thread struct {
	verbs.UnimplementedThread
	bed *bed
}

func (t *thread) Process() verbs.Process { return &process{bed: t.bed} }

func (t *thread) Now() time.Duration {
	if t.bed.target.Now == nil {
		return 0
	}
	return t.bed.target.Now()
}

type process struct {
	verbs.UnimplementedProcess
	bed *bed
}

func (p *process) Devices(verbs.Thread) ([]verbs.Device, error) {
	return []verbs.Device{&device{bed: p.bed}}, nil
}

type device struct {
	verbs.UnimplementedDevice
	bed *bed
}

func (d *device) Open(verbs.Thread) (verbs.Context, error) {
	if d.bed.target.Null {
		return &verbs.UnimplementedContext{}, nil
	}
	return &context{bed: d.bed}, nil
}

type context struct {
	verbs.UnimplementedContext
	bed *bed
}

func (c *context) Close(verbs.Thread) error { return nil }

func (c *context) AllocPD(verbs.Thread) (verbs.PD, error) { return &verbs.UnimplementedPD{}, nil }

func (c *context) AllocTD(verbs.Thread, verbs.TDInitAttr) (verbs.TD, error) {
	if c.bed.target.TD != nil {
		return nil, fmt.Errorf("fake: %w", c.bed.target.TD)
	}
	return &verbs.UnimplementedTD{}, nil
}

// Refusal is what a fake device without thread domains answers.
const Refusal = syscall.EOPNOTSUPP
