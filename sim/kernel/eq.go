package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// Sizes of event queues: entries asked for and the spare ones that the driver adds
// before it rounds up (Linux drivers/net/ethernet/mellanox/mlx5/core/eq.c and lib/eq.h,
// MLX5_NUM_SPARE_EQE).
const (
	asyncEQEntries = 4096
	compEQEntries  = 1024
	spareEQEntries = 128
)

// asyncEvents is the mask of the async EQ: what a driver of RDMA objects handles.
const asyncEvents = 1<<prm.EventPathMig | 1<<prm.EventCommEst | 1<<prm.EventSQDrained | 1<<prm.EventSRQLastWQE |
	1<<prm.EventCQError | 1<<prm.EventWQCatasError | 1<<prm.EventPathMigFailed | 1<<prm.EventPortChange |
	1<<prm.EventWQInvalReqError | 1<<prm.EventWQAccessError | 1<<prm.EventSRQCatasError | 1<<prm.EventSRQRQLimit

// makeEQs makes the driver's UAR, the async EQ on vector 0 and the completion EQs on
// the vectors after it.
func (d *Device) makeEQs(k *call) error {
	var err error
	if d.uar, err = k.allocUAR(); err != nil {
		return err
	}
	most := d.caps.maxEQs - 1
	if d.caps.odp.support {
		most-- // for page faults
	}
	n := min(d.p.CompVectors, most)
	if n < 1 {
		return fmt.Errorf("the device has %d EQs, at least 2 are needed: %w", d.caps.maxEQs, syscall.ENOSPC)
	}
	events := uint64(asyncEvents)
	if d.caps.dct {
		events |= 1 << prm.EventDCTDrained
	}
	if err := d.makeEQ(k, asyncEQEntries, events); err != nil {
		return err
	}
	for range n {
		if err := d.makeEQ(k, compEQEntries, 0); err != nil {
			return err
		}
	}
	return nil
}

func (d *Device) makeEQ(k *call, entries uint32, events uint64) error {
	q, err := d.newEQ(k, entries, events, len(d.eqs))
	if err != nil {
		return err
	}
	d.eqs = append(d.eqs, q)
	return nil
}

// newEQ makes an event queue on a vector.
func (d *Device) newEQ(k *call, entries uint32, events uint64, vector int) (*eq, error) {
	q := &eq{n: 1}
	log := uint32(0)
	for q.n < entries+spareEQEntries {
		q.n, log = q.n*2, log+1
	}
	size := uint64(q.n) * prm.EQESize
	var err error
	if q.pa, err = d.mem.Alloc(size, prm.PageSize); err != nil {
		return nil, fmt.Errorf("event queue of %d bytes: %w", size, err)
	}
	prm.EQE(q.entry[:]).SetOwner(prm.EQEOwnerInit)
	d.mem.Fill(q.pa, int(size), q.entry[:])
	pages := int(size / prm.PageSize)
	in, out := prm.NewIn(prm.OpCreateEQ, 8*pages), prm.NewOut(prm.OpCreateEQ, 0)
	m := prm.CreateEQIn(in)
	m.SetEventBitmask(0, events)
	c := m.EQC()
	c.SetLogEQSize(log)
	c.SetUARPage(d.uar)
	c.SetIntr(uint32(vector))
	for i := range pages {
		m.PAS().Set(i, uint64(q.pa)+uint64(i)*prm.PageSize)
	}
	if err := k.exec(in, out); err != nil {
		d.mem.Free(q.pa, size)
		return nil, fmt.Errorf("event queue %d: %w", len(d.eqs), err)
	}
	q.eqn = uint8(prm.CreateEQOut(out).EQNumber())
	var b [prm.EQDoorbellSize]byte
	prm.EQDoorbell(b[:]).Set(q.eqn, 0)
	d.link.Function().MMIOWrite(uint64(d.uar)*prm.UARPageSize+prm.UAREQArm, b[:])
	return q, nil
}

// Interrupt handles an interrupt; pcie.Link.Attach takes it as the handler.
func (d *Device) Interrupt(vector int) {
	if vector < 0 || vector >= len(d.eqs) || d.eqs[vector].pending || d.removed {
		return
	}
	d.count.Interrupts++
	d.eqs[vector].pending = true
	d.eng.After(d.p.Interrupt, d.poll, uint64(vector))
}

// pollEQ takes what lies in an event queue and arms it again.
func (d *Device) pollEQ(vector uint64) {
	q := d.eqs[vector]
	q.pending = false
	if d.removed {
		return
	}
	e := prm.EQE(q.entry[:])
	for {
		d.mem.Read(q.pa+mem.PA(q.ci&(q.n-1))*prm.EQESize, q.entry[:])
		if !e.Ready(q.ci, q.n) {
			break
		}
		q.ci++
		d.count.EQEs++
		d.event(e)
	}
	d.armEQ(q)
	if vector == 0 && d.odp.eq != nil {
		d.pollFaults()
	}
}

// armEQ asks for an interrupt at the next event.
func (d *Device) armEQ(q *eq) {
	var b [prm.EQDoorbellSize]byte
	prm.EQDoorbell(b[:]).Set(q.eqn, q.ci)
	d.link.PostNow(uint64(d.uar)*prm.UARPageSize+prm.UAREQArm, b[:])
}
