package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/prm/bfreg"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/verbs"
)

// Bits of UcontextReq.LibCaps.
const (
	LibCap4KUAR  = 1 << 0
	LibCapDynUAR = 1 << 1
)

// UctxDevX is the only flag of UcontextReq that the driver knows: it asks for a user context of the
// firmware, which DEVX commands of the program use.
const UctxDevX = 1

// UcontextReq is mlx5_ib_alloc_ucontext_req_v2.
type UcontextReq struct {
	TotalBFRegs, LowLatBFRegs uint32
	Flags, CompMask           uint32
	LibCaps                   uint64 // LibCap4KUAR, LibCapDynUAR
	MaxCQEVersion             uint8
	// V1 says that the library sent the short request of 8 bytes: it uses version 0
	// of the ABI, and all its QPs ring bfreg 0.
	V1 bool
}

// UcontextResp is mlx5_ib_alloc_ucontext_resp.
type UcontextResp struct {
	QPTabSize, BFRegSize, TotBFRegs, CacheLine uint32
	MaxSQDescSz, MaxRQDescSz, MaxSendWQEBB     uint32
	MaxRecvWR, MaxSRQRecvWR                    uint32
	NumPorts                                   uint16
	CQEVersion                                 uint8
	LogUARSize, NumUARsPerPage, NumDynBFRegs   uint32
	DumpFill                                   bool // DumpFillMKey is a key
	DumpFillMKey                               uint32
}

// Ucontext is an open device file and its context.
type Ucontext struct {
	dev    *Device
	proc   *Process
	objs   objects
	async  eventFile
	closed bool
	dups   int // descriptors beyond the first
	// removed: the device is gone. What programs then still have is handles, mappings of a
	// page of zeros, and the last events.
	removed bool
	// released: what it had on the device is given back.
	released bool
	maps     []*cpu.Mapping // what the program has mapped
	trackID  uint32

	dynUAR     bool         // no static bfregs
	bfregs     *bfreg.Table // nil when dynUAR
	tdn        uint32
	cqeVersion uint8
	dbPages    dbPages
	mmapPages  mmapPages // of UAR objects
	orphans    []uint32
	freedDMs   []*DM // whose operation addresses are mapped
	devx       bool  // has a user context of the firmware
}

// AllocUcontext is GET_CONTEXT. EOPNOTSUPP: flags or a comp_mask that the driver does not know;
// EINVAL, ENOMEM: impossible numbers of bfregs; ENODEV: the device was removed.
func (d *Device) AllocUcontext(c Caller, p *Process, req UcontextReq) (*Ucontext, UcontextResp, error) {
	k := d.enter(c, true)
	u, resp, err := d.allocUcontext(&k, p, req)
	k.leave()
	if err != nil {
		return nil, UcontextResp{}, fmt.Errorf("%s: open: %w", d.name, err)
	}
	return u, resp, nil
}

func (d *Device) allocUcontext(k *call, p *Process, req UcontextReq) (*Ucontext, UcontextResp, error) {
	if d.removed {
		return nil, UcontextResp{}, fmt.Errorf("the device was removed: %w", syscall.ENODEV)
	}
	if req.Flags&^UctxDevX != 0 || req.CompMask != 0 {
		return nil, UcontextResp{}, fmt.Errorf("flags %#x, comp_mask %#x: %w", req.Flags, req.CompMask, syscall.EOPNOTSUPP)
	}
	// The layout's checks are made for a dynamic library too, as far as the kernel
	// makes them before it looks at the capabilities.
	total := (req.TotalBFRegs + bfreg.PerUAR - 1) / bfreg.PerUAR * bfreg.PerUAR
	if req.LowLatBFRegs > total-1 {
		return nil, UcontextResp{}, fmt.Errorf("%d low-latency of %d bfregs: %w", req.LowLatBFRegs, total, syscall.EINVAL)
	}
	u := &Ucontext{
		dev: d, proc: p, async: eventFile{d: d}, dbPages: dbPages{},
		dynUAR:     d.p.Generation == Dynamic && req.LibCaps&LibCapDynUAR != 0,
		cqeVersion: min(d.caps.cqeVersion, req.MaxCQEVersion), devx: req.Flags&UctxDevX != 0,
	}
	if !u.dynUAR {
		if err := u.staticUARs(k, req); err != nil {
			return nil, UcontextResp{}, err
		}
	}
	if d.caps.transportDomains {
		out, err := k.simple(prm.OpAllocTransportDomain, 0)
		if err != nil {
			u.freeUARs(k)
			return nil, UcontextResp{}, err
		}
		u.tdn = prm.AllocTransportDomainOut(out).TransportDomain()
	}
	u.trackID, u.objs.ids.next = d.tracked.take(TrackedContext), &d.tracked
	d.files = append(d.files, u)
	d.res.Ctx++
	return u, u.response(), nil
}

// staticUARs lays out the bfreg table and allocates the UARs of its static part.
func (u *Ucontext) staticUARs(k *call, req UcontextReq) error {
	l, err := bfreg.NewLayout(req.TotalBFRegs, req.LowLatBFRegs, u.dev.p.PageSize, false)
	if err != nil {
		return err
	}
	version := 2
	if req.V1 {
		version = 0
	}
	u.bfregs = bfreg.NewTable(l, version)
	for i := range l.StaticSysPages {
		uar, err := k.allocUAR()
		if err != nil {
			u.freeUARs(k)
			return err
		}
		u.bfregs.SetPage(i, uar)
		u.dev.res.UAR++
	}
	return nil
}

// response is set_ucontext_resp. UARs are pages of the host, as for any driver on a
// host with pages of 4096 bytes.
func (u *Ucontext) response() UcontextResp {
	d, c := u.dev, &u.dev.caps
	r := UcontextResp{
		QPTabSize: 1 << c.logMaxQP, BFRegSize: c.bfRegSize, CacheLine: uint32(d.p.CacheLine),
		MaxSQDescSz: uint32(c.maxWQESQ), MaxRQDescSz: uint32(c.maxWQERQ),
		MaxSendWQEBB: 1 << c.logMaxQPSz, MaxRecvWR: 1 << c.logMaxQPSz, MaxSRQRecvWR: 1 << c.logSRQSz,
		NumPorts: uint16(c.ports), CQEVersion: u.cqeVersion,
		LogUARSize: prm.PageShift, NumUARsPerPage: 1, DumpFill: c.dumpFill, DumpFillMKey: c.dumpFillKey,
	}
	if u.bfregs != nil {
		r.TotBFRegs, r.NumDynBFRegs = u.bfregs.Total, u.bfregs.Dyn
	}
	return r
}

// Close destroys what is left in the context, in the order of uverbs' cleanup, and then the
// context. It is also called when a process dies: then c is zero, or not a thread of that process.
func (u *Ucontext) Close(c Caller) {
	k := u.dev.enter(c, true)
	if u.closed {
		return
	}
	if u.dups > 0 {
		u.dups--
		return
	}
	u.closed = true
	if !u.removed {
		defer func() { // of a thread that is killed meanwhile
			if !u.released {
				u.release(&call{d: u.dev}, u.objs.cleanup)
				u.async.close()
			}
		}()
		u.release(&k, u.objs.cleanup)
	}
	u.async.close()
	k.leave()
}

// release destroys the objects by the given function, and the context on the device.
func (u *Ucontext) release(k *call, destroy func(*call) error) {
	k.closes = true
	if err := destroy(k); err != nil {
		panic(fmt.Sprintf("kernel: %v: %s: context cannot be cleaned up: %v", u.dev.eng.Now(), u.dev.name, err))
	}
	if u.released { // while this waited, by the removal of the device
		return
	}
	u.released = true
	for _, m := range u.freedDMs {
		if err := m.release(k); err != nil {
			panic(fmt.Sprintf("kernel: %v: %s: device memory cannot be given back: %v", u.dev.eng.Now(), u.dev.name, err))
		}
	}
	u.freedDMs = nil
	if u.dev.caps.transportDomains {
		in := prm.NewIn(prm.OpDeallocTransportDomain, 0)
		prm.DeallocTransportDomainIn(in).SetTransportDomain(u.tdn)
		k.mustDestroy(in)
	}
	u.freeUARs(k)
	u.dev.files = slices.DeleteFunc(u.dev.files, func(f openFile) bool { return f == u })
	u.dev.res.Ctx--
}

// Objects returns the number of objects in the context.
func (u *Ucontext) Objects() int { return len(u.objs.tab) }

// NumCompVectors returns the device's number of completion vectors.
func (u *Ucontext) NumCompVectors() int { return u.dev.NumCompVectors() }

// Device returns the device of the context.
func (u *Ucontext) Device() *Device { return u.dev }

// PadsCQEs reports whether entries of 64 bytes can be padded to 128
// (MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD).
func (u *Ucontext) PadsCQEs() bool { return u.dev.caps.cq128 }

// CompressesCQEs128 reports whether entries of 128 bytes can be compressed
// (MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_COMP).
func (u *Ucontext) CompressesCQEs128() bool { return u.dev.caps.cqeComp128 }

// usable says whether a context still has a device below it.
func (u *Ucontext) usable() error {
	switch {
	case u.closed:
		return errClosed
	case u.removed:
		return errRemoved
	}
	return nil
}

// do runs f as a system call that sends commands: EBADF when the context is closed, EIO
// when the device was removed.
func (u *Ucontext) do(c Caller, f func(k *call) error) error {
	k := u.dev.enter(c, true)
	if err := u.usable(); err != nil {
		return err
	}
	return u.run(k, f)
}

// doDestroy is do for what destroys an object: uverbs lets that pass when the device is
// gone (rdma_lookup_get_uobject).
func (u *Ucontext) doDestroy(c Caller, f func(k *call) error) error {
	k := u.dev.enter(c, true)
	if u.closed {
		return errClosed
	}
	return u.run(k, f)
}

func (u *Ucontext) run(k call, f func(k *call) error) error {
	k.outside = u.proc.Space.Foreign()
	err := f(&k)
	k.leave()
	return err
}

// freeUARs gives back every UAR of the context's table and those that could not be
// freed while something used them.
func (u *Ucontext) freeUARs(k *call) {
	free := func(uar uint32) {
		u.dev.res.UAR--
		if err := k.freeUAR(uar); err != nil {
			// A queue of another context rings there: programs may name any UAR. The
			// driver warns and leaves it allocated.
			u.dev.count.LeakedUARs++
		}
	}
	if u.bfregs != nil {
		for i := range u.bfregs.SysPages {
			if uar := u.bfregs.Page(i); uar != bfreg.InvalidUAR {
				free(uar)
			}
		}
		u.bfregs = nil
	}
	for _, uar := range u.orphans {
		free(uar)
	}
	u.orphans = nil
}

// AsyncEvent is an event of the async fd.
type AsyncEvent struct {
	Type   verbs.EventType
	Cookie uint64 // of the QP or CQ
	QPN    uint32 // of an XRC receive QP that is known by number; else 0
	Port   int
}

// WaitAsync is a read of the async fd. EAGAIN: the deadline (sim.Never: none) passed; EBADF: the
// context was closed meanwhile.
func (u *Ucontext) WaitAsync(c Caller, deadline sim.Time) (AsyncEvent, error) {
	e, err := u.async.read(c, deadline, "asynchronous event")
	if err != nil {
		return AsyncEvent{}, err
	}
	return AsyncEvent{Type: e.typ, Cookie: e.cookie, QPN: e.qpn, Port: e.port}, nil
}

// OnAsync sets the function that is called, in the engine's thread, whenever WaitAsync
// has an event to return. It is for readers outside the simulation.
func (u *Ucontext) OnAsync(f func()) { u.async.onEvent = f }

// portEvent queues an event of the port.
func (u *Ucontext) portEvent(t verbs.EventType) {
	u.async.put(fileEvent{typ: t, port: 1})
	u.dev.count.AsyncEvents++
}

// objectEvent queues an event of an object, which has the program's cookie and counts in
// seen what the program has read.
func (u *Ucontext) objectEvent(t verbs.EventType, cookie uint64, seen *uint32) {
	u.async.push(t, cookie, seen)
	u.dev.count.AsyncEvents++
}

// ClockKHz returns the rate of the device's clock, which time stamps of completions count, in kHz.
func (u *Ucontext) ClockKHz() uint64 { return u.dev.caps.clockKHz }
