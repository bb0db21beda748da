package umad

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
)

// Request is what an agent is registered with (struct ib_user_mad_reg_req2).
type Request struct {
	QPN            uint32
	Class, Version uint8     // Class 0: the agent only asks
	Methods        [2]uint64 // a bit for each that it wants to be asked by
	OUI            uint32    // of vendors' classes
	RMPP           uint8
	UserRMPP       bool // the program does RMPP itself
}

// agent is one that a program has registered (struct ib_mad_agent).
type agent struct {
	Request
	f     *File
	id    uint32
	qpn   int
	hiTID uint32
	sends []*exchange
	parts []*assembly
}

// exchange is a message that waits for its answer, or is sent in segments.
type exchange struct {
	a       *agent
	h       Header
	b       mad.MAD // of a table the headers
	timeout sim.Time
	retries uint32
	cancel  func()
	table   *table
}

// Limits of a registration.
const (
	maxAgents    = 32 // of a file (IB_UMAD_MAX_AGENTS)
	maxVersion   = 8  // MAX_MGMT_VERSION
	maxClass     = 80 // MAX_MGMT_CLASS
	firstVendor2 = 0x30
	lastVendor2  = 0x4f
)

func vendor2(class uint8) bool { return class >= firstVendor2 && class <= lastVendor2 }

// Classes with RMPP beside the second range of vendors (ib_is_mad_class_rmpp).
const (
	classDeviceManagement = 0x06
	classDeviceAdmin      = 0x10
	classBIS              = 0x12
)

func rmppClass(class uint8) bool {
	switch class {
	case mad.ClassSubnAdm, classDeviceManagement, classDeviceAdmin, classBIS:
		return true
	}
	return vendor2(class)
}

// dataOffset is where the data of a class begin (ib_get_mad_data_offset).
func dataOffset(class uint8) int {
	const sa, device, vendor, plain = 56, 64, 40, 24
	switch {
	case class == mad.ClassSubnAdm:
		return sa
	case class == classDeviceManagement, class == classDeviceAdmin, class == classBIS:
		return device
	case vendor2(class):
		return vendor
	}
	return plain
}

// check is what ib_register_mad_agent asks of a registration.
func (r *Request) check() error {
	bad := func(what string) error {
		return fmt.Errorf("agent of class %#x: %s: %w", r.Class, what, syscall.EINVAL)
	}
	subnet := r.Class == mad.ClassSubnLID || r.Class == mad.ClassSubnDirected
	switch {
	case r.QPN > 1:
		return bad(fmt.Sprintf("QP%d", r.QPN))
	case r.RMPP != 0 && r.RMPP != mad.RMPPVersion:
		return bad(fmt.Sprintf("version %d of RMPP", r.RMPP))
	case r.Class == 0 && r.UserRMPP:
		return bad("RMPP without a class")
	case r.Class == 0:
		return nil
	case r.Version >= maxVersion:
		return bad(fmt.Sprintf("version %d", r.Version))
	case r.Class >= maxClass && r.Class != mad.ClassSubnDirected:
		return bad("there is no such class")
	case vendor2(r.Class) && r.OUI == 0:
		return bad("a vendor's class without OUI")
	case r.RMPP != 0 && !rmppClass(r.Class):
		return bad("a class without RMPP")
	case subnet != (r.QPN == 0):
		return bad(fmt.Sprintf("is not for QP%d", r.QPN))
	}
	return nil
}

// Register makes an agent and returns its number in the file. EINVAL: the request is wrong, or
// somebody has a method of it. ENOMEM: the file has as many as it may.
func (f *File) Register(r *Request) (id uint32, err error) {
	if f.dead() {
		return 0, fmt.Errorf("agent on a device that was removed: %w", syscall.EPIPE)
	}
	if err := r.check(); err != nil {
		return 0, err
	}
	at := slices.Index(f.agents[:], nil)
	if at < 0 {
		return 0, fmt.Errorf("%d agents: %w", maxAgents, syscall.ENOMEM)
	}
	for _, x := range f.p.agents {
		if r.Class != 0 && x.Class == r.Class && x.Version == r.Version && x.OUI == r.OUI && (x.Methods[0]&r.Methods[0] != 0 || x.Methods[1]&r.Methods[1] != 0) {
			return 0, fmt.Errorf("agent of class %#x: another one has its methods: %w", r.Class, syscall.EINVAL)
		}
	}
	if r.Class == mad.ClassCM && r.Methods != [2]uint64{} {
		return 0, fmt.Errorf("agent of class %#x: ib_cm has its methods: %w", r.Class, syscall.EINVAL)
	}
	f.p.m.agents++
	a := &agent{Request: *r, f: f, id: uint32(at), qpn: int(r.QPN), hiTID: f.p.m.agents}
	f.agents[at] = a
	f.p.agents = append(f.p.agents, a)
	f.used = true
	return a.id, nil
}

// Unregister ends an agent. EINVAL: there is none.
func (f *File) Unregister(id uint32) error {
	if id >= maxAgents || f.agents[id] == nil {
		return fmt.Errorf("no agent %d: %w", id, syscall.EINVAL)
	}
	a := f.agents[id]
	f.agents[id] = nil
	f.p.agents = slices.DeleteFunc(f.p.agents, func(x *agent) bool { return x == a })
	for _, x := range a.sends {
		x.stop()
	}
	a.sends, a.parts = nil, nil
	return nil
}

// takes says whether the agent has registered for a request.
func (a *agent) takes(b mad.MAD) bool {
	const oui = 37 // of the second range of vendors' classes
	method := b.Method() &^ mad.Response
	return a.Class != 0 && a.Class == b.Class() && a.Version == b.ClassVersion() && a.Methods[method/64]>>(method%64)&1 != 0 &&
		(!vendor2(a.Class) || a.OUI == uint32(b[oui])<<16|uint32(b[oui+1])<<8|uint32(b[oui+2]))
}

// kernelRMPP says whether transfers in segments are put together here.
func (a *agent) kernelRMPP() bool { return a.RMPP != 0 && !a.UserRMPP }

// asked takes a request, or what the receiver of a table says. Requests in several segments are not
// put together.
func (a *agent) asked(from *Header, b mad.MAD) {
	if r := b.RMPP(); a.kernelRMPP() && r.Flags()&mad.RMPPActive != 0 {
		const whole = mad.RMPPFirst | mad.RMPPLast
		if r.Type() != mad.RMPPData {
			a.acknowledged(b)
			return
		}
		if r.Flags()&whole != whole {
			return
		}
	}
	a.deliver(from, b)
}

// deliver queues a message for the program.
func (a *agent) deliver(from *Header, b []byte) {
	h := *from
	h.Agent = a.id
	a.f.queue(Packet{Header: h, Data: b})
}

// Write sends a message of a program (ib_umad_write). EINVAL: it is no message, or is under way.
// EIO: there is no such agent. It may also fail as an address handle does.
func (f *File) Write(h Header, data []byte) error {
	if h.Agent >= maxAgents || len(data) < leastWrite {
		return fmt.Errorf("a message of %d bytes of agent %d: %w", len(data), h.Agent, syscall.EINVAL)
	}
	a := f.agents[h.Agent]
	if a == nil || f.dead() {
		return fmt.Errorf("no agent %d: %w", h.Agent, syscall.EIO)
	}
	class := data[1]
	off := dataOffset(class)
	active := rmppClass(class) && a.kernelRMPP() && mad.RMPP(data[24:36]).Flags()&mad.RMPPActive != 0
	switch {
	case len(data) < off || !active && len(data) > mad.Size || len(data) > maxTable:
		return fmt.Errorf("a message of %d bytes of class %#x: %w", len(data), class, syscall.EINVAL)
	case h.QPN != uint32(a.qpn) || (class == mad.ClassSubnLID || class == mad.ClassSubnDirected) != (a.qpn == 0):
		return fmt.Errorf("a message of class %#x to QP%d: %w", class, h.QPN, syscall.EINVAL)
	}
	x := &exchange{a: a, h: h, timeout: sim.Time(h.Timeout) * sim.Millisecond, retries: h.Retries}
	x.b = make(mad.MAD, mad.Size)
	copy(x.b, data)
	if x.b.Method()&mad.Response == 0 {
		x.b.SetTID(uint64(a.hiTID)<<32 | x.b.TID()&(1<<32-1))
	}
	if f.duplicate(x) {
		return fmt.Errorf("transaction %#x is under way: %w", x.b.TID(), syscall.EINVAL)
	}
	if active {
		x.table = newTable(x.b, data, off)
		a.sends = append(a.sends, x)
		return x.table.start(x)
	}
	if err := f.p.send(a, &x.h, x.b); err != nil {
		return err
	}
	if x.timeout != 0 {
		a.sends = append(a.sends, x)
		x.wait()
	}
	return nil
}

// leastWrite is the shortest message (IB_MGMT_RMPP_HDR).
const leastWrite = 36

// duplicate is is_duplicate.
func (f *File) duplicate(x *exchange) bool {
	response := x.b.Method() & mad.Response
	for _, a := range f.agents {
		if a == nil {
			continue
		}
		for _, y := range a.sends {
			if y.b.TID() == x.b.TID() && y.b.Class() == x.b.Class() && y.b.Method()&mad.Response == response &&
				(response == 0 || x.h.LID == y.h.LID && x.h.GRH == y.h.GRH && x.h.GID == y.h.GID) {
				return true
			}
		}
	}
	return false
}

func (x *exchange) wait() { x.cancel = x.a.f.p.m.timers.After(x.timeout, x.expired) }

func (x *exchange) stop() {
	if x.cancel != nil {
		x.cancel()
		x.cancel = nil
	}
}

// end takes the message out of those under way.
func (x *exchange) end() {
	x.stop()
	x.a.sends = slices.DeleteFunc(x.a.sends, func(y *exchange) bool { return y == x })
}

// expired sends again (retry_send), or tells the program that there is no answer (send_handler).
func (x *exchange) expired() {
	again := x.retries > 0
	if again {
		x.retries--
		if x.table != nil {
			again = x.table.again(x) == nil
		} else if again = x.a.f.p.send(x.a, &x.h, x.b) == nil; again {
			x.wait()
		}
	}
	if again {
		return
	}
	x.end()
	const header = 24 // IB_MGMT_MAD_HDR
	h := x.h
	h.Status = uint32(syscall.ETIMEDOUT)
	x.a.deliver(&h, x.b[:header])
}

// answered takes an answer with the agent's transaction.
func (a *agent) answered(b mad.MAD, from *Header) {
	if r := b.RMPP(); rmppClass(b.Class()) && r.Flags()&mad.RMPPActive != 0 {
		if !a.kernelRMPP() {
			a.finish(b)
			a.deliver(from, b)
			return
		}
		if r.Type() != mad.RMPPData {
			a.acknowledged(b)
			return
		}
		whole := a.segment(b, from)
		if whole == nil {
			return
		}
		if a.finish(b) {
			a.deliver(from, whole)
		}
		return
	}
	if a.finish(b) {
		a.deliver(from, b)
	}
}

// finish ends the exchange that an answer belongs to (ib_find_send_mad).
func (a *agent) finish(b mad.MAD) bool {
	for _, x := range a.sends {
		if x.b.TID() == b.TID() && x.b.Class() == b.Class() && x.b.Method()&mad.Response == 0 {
			x.end()
			return true
		}
	}
	return false
}
