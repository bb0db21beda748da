// Package hca is the device: commands and contexts, WQE fetch, requester,
// responder, completions and events. It sees only bytes: register writes, mailboxes,
// DMA and frames.
package hca

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

// Device is one mlx5 function.
type Device struct {
	e    *sim.Engine
	name string
	bus  pcie.Bus
	p    Params
	id   Identity
}

// New makes a device in the state after reset. Params must pass Check.
func New(e *sim.Engine, name string, bus pcie.Bus, p Params, id Identity) *Device {
	if err := p.Check(); err != nil {
		panic("hca: " + name + ": " + err.Error())
	}
	return &Device{e: e, name: name, bus: bus, p: p, id: id}
}

// Name is the device's name in the run ("mlx5_0").
func (d *Device) Name() string { return d.name }

// Identity is what New was given.
func (d *Device) Identity() Identity { return d.id }

// BAR0Size is the size of the register window.
func (d *Device) BAR0Size() uint64 { return uint64(d.p.BARSize) }
