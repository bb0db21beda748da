// Package nic is what another project brings to the conformance suite: the beginning of a
// verbs implementation. Its device can be listed, opened and queried, and has protection
// domains; all else it inherits from the Unimplemented types of package verbs, which
// refuse with EOPNOTSUPP. The test beside it runs the suite on it.
package nic

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Limits of the device.
const (
	guid   = 0x0002c90300000001
	maxPDs = 4096
	port   = 1
	pkey   = 0xffff
)

// Target makes testbeds with one device. It implements spec.Target.
type Target struct{}

// NewTestbed makes a fresh device for a case.
func (Target) NewTestbed(uint64, spec.BedOptions) (spec.Bed, error) {
	return &bed{start: time.Now()}, nil
}

// bed implements spec.Bed: a verbs.Testbed that can run a body and be closed.
type bed struct {
	verbs.UnimplementedTestbed
	start time.Time
}

// Capability says what the device has. What is absent must be refused when a case tries it.
func (b *bed) Capability(name string) verbs.Capability {
	if name == "roce" {
		return verbs.Present
	}
	return verbs.Absent
}

func (b *bed) Target() verbs.Target { return verbs.Target{Kind: "nic", Profile: "nic", Device: "nic0"} }

// Run runs the body in this goroutine. Nothing here can hang, so the deadline is not watched.
func (b *bed) Run(_ time.Duration, body func(verbs.Thread)) error {
	body(&thread{start: b.start})
	return nil
}

func (b *bed) Close() error { return nil }

type thread struct {
	verbs.UnimplementedThread
	start time.Time
}

func (t *thread) Process() verbs.Process { return process{} }
func (t *thread) Now() time.Duration     { return time.Since(t.start) }
func (t *thread) Sleep(d time.Duration)  { time.Sleep(d) }

type process struct{ verbs.UnimplementedProcess }

func (process) Devices(verbs.Thread) ([]verbs.Device, error) { return []verbs.Device{device{}}, nil }

type device struct{ verbs.UnimplementedDevice }

func (device) Name() string { return "nic0" }
func (device) GUID() uint64 { return guid }

func (device) Open(verbs.Thread) (verbs.Context, error) { return &context{}, nil }

type context struct {
	verbs.UnimplementedContext
	mu  sync.Mutex
	pds int
}

func (c *context) Device() verbs.Device     { return device{} }
func (c *context) Close(verbs.Thread) error { return nil }

func (c *context) QueryDevice(verbs.Thread) (verbs.DeviceAttr, error) {
	return verbs.DeviceAttr{NodeGUID: guid, MaxPD: maxPDs, PhysPortCnt: 1, MaxPKeys: 1}, nil
}

func (c *context) QueryPort(_ verbs.Thread, n int) (verbs.PortAttr, error) {
	if n != port {
		return verbs.PortAttr{}, fmt.Errorf("port %d of 1: %w", n, syscall.EINVAL)
	}
	return verbs.PortAttr{State: verbs.PortActive, PKeyTblLen: 1, LinkLayer: verbs.LinkEthernet}, nil
}

func (c *context) QueryPKey(_ verbs.Thread, n, index int) (uint16, error) {
	if n != port || index != 0 {
		return 0, fmt.Errorf("P_Key %d of port %d: %w", index, n, syscall.EINVAL)
	}
	return pkey, nil
}

func (c *context) PKeyIndex(_ verbs.Thread, n int, key uint16) (int, error) {
	if n != port || key != pkey {
		return -1, fmt.Errorf("P_Key %#x of port %d: %w", key, n, syscall.ENOENT)
	}
	return 0, nil
}

func (c *context) AllocPD(verbs.Thread) (verbs.PD, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pds == maxPDs {
		return nil, fmt.Errorf("%d protection domains: %w", maxPDs, syscall.ENOMEM)
	}
	c.pds++
	return &pd{ctx: c}, nil
}

type pd struct {
	verbs.UnimplementedPD
	ctx *context
}

func (p *pd) Dealloc(verbs.Thread) error {
	p.ctx.mu.Lock()
	defer p.ctx.mu.Unlock()
	p.ctx.pds--
	return nil
}
