package kernel

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// Sizes of what handles page faults (odp.c, mlx5r_odp_create_eq): entries of the event queue asked
// for, events that are handled or wait for a handler, and handlers at once.
const (
	faultEQEntries = 4096
	faultContexts  = 64
	faultHandlers  = 32
	laterHandlers  = 512 // of a queue without a limit of its own (WQ_DFL_ACTIVE)
)

// pagingEQ makes the event queue of page faults, with the first region (mlx5r_odp_create_eq).
func (k *call) pagingEQ() error {
	t := &k.d.odp
	if t.eq != nil {
		return nil
	}
	q, err := k.d.newEQ(k, faultEQEntries, 1<<prm.EventPageFault, 0)
	if err != nil {
		return fmt.Errorf("page faults: %w", err)
	}
	t.work = workPool{d: k.d, name: "mlx5_ib_page_fault", most: faultHandlers}
	t.later = workPool{d: k.d, name: "events_unbound", most: laterHandlers}
	t.eq = q
	return nil
}

// pollFaults takes page faults from their event queue, as many as there are contexts for, and arms
// it again.
func (d *Device) pollFaults() {
	t := &d.odp
	q, e := t.eq, prm.EQE(t.eq.entry[:])
	for t.full = false; ; {
		d.mem.Read(q.pa+mem.PA(q.ci&(q.n-1))*prm.EQESize, q.entry[:])
		if !e.Ready(q.ci, q.n) {
			break
		}
		if t.busy == faultContexts {
			t.full = true
			break
		}
		q.ci++
		d.count.EQEs++
		t.busy++
		f := parseFault(e)
		t.work.add(func(k *call) {
			k.fault(f)
			d.faultDone()
		})
	}
	d.armEQ(q)
}

// faultDone gives a context back, and takes the events that waited for one.
func (d *Device) faultDone() {
	d.odp.busy--
	if d.odp.full && !d.removed {
		d.pollFaults()
	}
}

// fault is a page fault (struct mlx5_pagefault).
type fault struct {
	sub, typ  uint8
	committed uint32
	token     uint64

	queue  uint32 // of PageFaultSubWQE
	wqe    uint16
	packet uint32 // bytes of the packet

	key    uint32 // of the others
	va     uint64
	length uint32 // of the whole operation; 0: not known

	demanded, before, after uint64 // bytes, of PageFaultSubMemory
	last                    bool
}

// memoryPage is the unit in which faults that name memory count.
const memoryPage = 4096

// parseFault reads the event.
func parseFault(e prm.EQE) fault {
	f := fault{sub: e.SubType()}
	switch f.sub {
	case prm.PageFaultSubWQE:
		v := prm.PageFaultWQE(e.Data())
		f.committed, f.typ, f.token = v.BytesCommitted(), uint8(v.FaultType()), uint64(v.Token())
		f.queue, f.wqe, f.packet = v.WQNumber(), v.WQEIndex(), uint32(v.PacketLength())
	case prm.PageFaultSubRDMA:
		v := prm.PageFaultRDMA(e.Data())
		f.committed, f.typ, f.token = v.BytesCommitted(), uint8(v.FaultType()), uint64(v.Token())
		f.key, f.va, f.length, f.packet = v.RKey(), v.RDMAVA(), v.RDMAOpLen(), uint32(v.PacketLength())
	case prm.PageFaultSubMemory:
		v := prm.PageFaultMemory(e.Data())
		f.token, f.key, f.va = v.Token48(), v.MKey(), v.VA()
		f.demanded = uint64(v.DemandPages()) * memoryPage
		f.before, f.after = uint64(v.PreDemandPages())*memoryPage, uint64(v.PostDemandPages())*memoryPage
		f.last = v.Flags()&prm.PageFaultMemoryLast != 0
	}
	return f
}

// resume answers a fault (mlx5_ib_page_fault_resume). What the device says of it changes nothing.
func (k *call) resume(f *fault, failed bool) {
	if failed {
		k.d.count.Paging.FailedResolutions++
	}
	start := k.clock()
	k.awaitCommands()
	if k.d.removed {
		return
	}
	k.lap(&k.d.count.PagingTimes.Wait, &start)
	in := prm.NewIn(prm.OpPageFaultResume, 0)
	if f.sub == prm.PageFaultSubMemory {
		m := prm.PageFaultResumeMemoryIn(in)
		m.PutToken48(f.token)
		m.SetError(failed)
	} else {
		m := prm.PageFaultResumeIn(in)
		m.SetFaultType(uint32(f.typ))
		m.SetToken(uint32(f.token))
		m.SetWQNumber(uint32(f.token))
		if f.sub == prm.PageFaultSubWQE {
			m.SetWQNumber(f.queue)
		}
		m.SetError(failed)
	}
	_ = k.exec(in, prm.NewOut(prm.OpPageFaultResume, 0))
	k.leave()
	k.work, k.dev, k.handles = 0, 0, false
}
