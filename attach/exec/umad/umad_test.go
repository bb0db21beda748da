//go:build linux

package umad

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/roce/mad/attr"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/kernel/umad"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

// machine has two devices at a cable, with their drivers.
type machine struct {
	eng  *sim.Engine
	kern [2]*kernel.Device
	umad *umad.Manager
}

// clock is Timers by the clock of the simulation.
type clock struct{ eng *sim.Engine }

func (c clock) After(d sim.Time, f func()) (cancel func()) {
	live := true
	c.eng.After(d, func(uint64) {
		if live {
			f()
		}
	}, 0)
	return func() { live = false }
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	p, err := profile.Load("connectx-5-ib")
	if err != nil {
		t.Fatal(err)
	}
	p = p.Resolved()
	m := &machine{eng: sim.New(sim.Options{Seed: 1})}
	m.umad = umad.New(m.eng, clock{m.eng})
	memory := mem.New(1 << 30)
	sm := link.NewSubnetManager(m.eng, link.DefaultFabric(), p.Link.IB.Sweep)
	names := [...]string{"mlx5_0", "mlx5_1"}
	c := link.NewCable(m.eng, p.Link, names[0], names[1])
	var buses [2]*pcie.Link
	for k, name := range names {
		buses[k] = pcie.NewLink(m.eng, memory, p.PCIe)
		d := hca.New(m.eng, name, buses[k], p.HCA, hca.Identity{Number: k, GUID: guid + uint64(k), BoardID: "SIM0000000001"})
		buses[k].Attach(d, func(v int) { m.kern[k].Interrupt(v) })
		c.End(k).Attach(d)
		d.SetWire(c.End(k))
		sm.Add(c.End(k), d, nil, 0)
	}
	sm.Sweep()
	for k, name := range names {
		if m.kern[k], err = kernel.NewDevice(m.eng, name, buses[k], memory, p.Kernel); err != nil {
			t.Fatal(err)
		}
		m.umad.AddDevice(m.kern[k])
	}
	if err := m.umad.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.eng.Close)
	return m
}

// guid is that of the first device.
const guid = 0x0002c90300000101

// rig is a program with an umad file of the first device.
type rig struct {
	client.Fake
	testing.TB
	m *machine
	f *File
}

func newRig(t testing.TB, m *machine) *rig {
	t.Helper()
	f, err := m.umad.Open(m.kern[0])
	if err != nil {
		t.Fatal(err)
	}
	return &rig{TB: t, m: m, f: &File{File: f}}
}

func (r *rig) run() {
	r.Helper()
	if err := r.m.eng.Run(sim.Never - 1); err != nil {
		r.Fatal(err)
	}
}

// register registers an agent by REGISTER_AGENT2.
func (r *rig) register(fill func(uapi.UMADRegister2)) (id uint32, e syscall.Errno) {
	at, b := r.Alloc(uapi.UMADRegister2Size)
	fill(b)
	e = r.f.Ioctl(r, uapi.UMADRegisterAgent2, at)
	return uapi.UMADRegister2(b).ID(), e
}

// write writes a message of an agent with a header of the file's form.
func (r *rig) write(id uint32, m []byte, fill func(uapi.UMADHeader)) syscall.Errno {
	at, b := r.Alloc(r.f.header() + len(m))
	h := uapi.UMADHeader(make([]byte, uapi.UMADHeaderSize))
	h.SetID(id)
	h.SetTimeout(100)
	fill(h)
	copy(b, h[:r.f.header()])
	copy(b[r.f.header():], m)
	return r.f.Write(r, at, uint64(len(b)))
}

// read reads a message into so many bytes.
func (r *rig) read(n int) (h uapi.UMADHeader, data []byte, e syscall.Errno, err error) {
	at, b := r.Alloc(max(n, uapi.UMADHeaderSize))
	got, e, err := r.f.Read(r, at, uint64(n))
	return uapi.UMADHeader(b), b[r.f.header():max(got, r.f.header())], e, err
}

func request(class uint8, attribute uint16) mad.MAD {
	m := make(mad.MAD, mad.Size)
	m.SetBaseVersion(mad.BaseVersion)
	m.SetClass(class)
	m.SetClassVersion(1)
	m.SetMethod(mad.Get)
	m.SetAttribute(attribute)
	m.SetTID(0xaaaa_bbbb_cccc_dddd)
	return m
}

// TestAskTheOtherEnd: a program asks the node at the other end of the cable, by a directed route
// and by LID, and itself.
func TestAskTheOtherEnd(t *testing.T) {
	r := newRig(t, newMachine(t))
	id, e := r.register(func(q uapi.UMADRegister2) { q.SetClass(mad.ClassSubnDirected); q.SetVersion(1) })
	if e != 0 {
		t.Fatal(e)
	}
	if _, _, _, err := r.read(320); !errors.Is(err, ErrWait) {
		t.Errorf("no message: %v", err)
	}
	for _, x := range []struct {
		class  uint8
		hops   byte
		lid    uint16
		answer uint64
	}{{mad.ClassSubnDirected, 1, roce.PermissiveLID, guid + 1}, {mad.ClassSubnDirected, 0, roce.PermissiveLID, guid}, {mad.ClassSubnLID, 0, 2, guid + 1}, {mad.ClassSubnLID, 0, 1, guid}} {
		m := request(x.class, mad.AttrNodeInfo)
		if x.class == mad.ClassSubnDirected {
			m[7], m[129] = x.hops, 1
			copy(m[32:], []byte{0xff, 0xff, 0xff, 0xff})
		}
		if e := r.write(id, m, func(h uapi.UMADHeader) { h.SetDestLID(x.lid) }); e != 0 {
			t.Fatal(e)
		}
		r.run()
		h, data, e, err := r.read(320)
		if e != 0 || err != nil || len(data) != mad.Size || h.Status() != 0 || h.Length() != 320 || h.ID() != id {
			t.Fatalf("%v, %v, header % x", e, err, []byte(h))
		}
		a := mad.MAD(data)
		if a.Method() != mad.GetResp || attr.NodeGUID.Get(a.SMPData()) != x.answer || uint32(a.TID()) != 0xccccdddd {
			t.Errorf("class %#x to %#x: % x", x.class, x.lid, data[:128])
		}
	}
	if r.f.Readable() {
		t.Error("one answer too many")
	}
}

// TestNobodyAnswers: the program gets its header back, with ETIMEDOUT.
func TestNobodyAnswers(t *testing.T) {
	r := newRig(t, newMachine(t))
	id, _ := r.register(func(q uapi.UMADRegister2) { q.SetQPN(1); q.SetClass(mad.ClassPerf); q.SetVersion(1) })
	at := r.m.eng.Now()
	if e := r.write(id, request(mad.ClassPerf, mad.AttrPortCounters), func(h uapi.UMADHeader) { h.SetDestLID(99); h.SetDestQPN(1); h.SetRetries(2) }); e != 0 {
		t.Fatal(e)
	}
	r.run()
	h, data, e, _ := r.read(320)
	if e != 0 || syscall.Errno(h.Status()) != syscall.ETIMEDOUT || len(data) != 24 || r.m.eng.Now()-at < 300*sim.Millisecond {
		t.Errorf("%v after %v, status %d, %d bytes", e, r.m.eng.Now()-at, h.Status(), len(data))
	}
}

// TestRefusals: what ib_umad refuses, with its errno.
func TestRefusals(t *testing.T) {
	m := newMachine(t)
	r := newRig(t, m)
	is := func(what string, got, want syscall.Errno) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	reg := func(what string, want syscall.Errno, fill func(uapi.UMADRegister2)) {
		t.Helper()
		_, e := r.register(fill)
		is(what, e, want)
	}
	reg("QP2", syscall.EINVAL, func(q uapi.UMADRegister2) { q.SetQPN(2) })
	reg("flags", syscall.EINVAL, func(q uapi.UMADRegister2) { q.SetFlags(2) })
	reg("an SMP's class on QP1", syscall.EINVAL, func(q uapi.UMADRegister2) { q.SetQPN(1); q.SetClass(mad.ClassSubnLID); q.SetVersion(1) })
	reg("RMPP of a class without it", syscall.EINVAL, func(q uapi.UMADRegister2) { q.SetQPN(1); q.SetClass(mad.ClassPerf); q.SetVersion(1); q.SetRMPP(1) })
	reg("a vendor's class without OUI", syscall.EINVAL, func(q uapi.UMADRegister2) { q.SetQPN(1); q.SetClass(0x32); q.SetVersion(1) })
	reg("what ib_cm has", syscall.EINVAL, func(q uapi.UMADRegister2) { q.SetQPN(1); q.SetClass(mad.ClassCM); q.SetVersion(2); q.Methods()[0] = 8 })
	server := func(q uapi.UMADRegister2) {
		q.SetQPN(1)
		q.SetClass(0x32)
		q.SetVersion(1)
		q.SetOUI(0x1405)
		q.Methods()[0] = 2
	}
	reg("a server", 0, server)
	reg("the same again", syscall.EINVAL, server)
	is("P_Keys afterwards", r.f.Ioctl(r, uapi.UMADEnablePKey, 0), syscall.EINVAL)
	is("another call", r.f.Ioctl(r, 0x1b07, 0), syscall.ENOTTY)
	is("memory that is not there", r.f.Ioctl(r, uapi.UMADRegisterAgent, 8), syscall.EFAULT)
	at, b := r.Alloc(4)
	b[0] = 9
	is("no such agent", r.f.Ioctl(r, uapi.UMADUnregisterAgent, at), syscall.EINVAL)
	to1 := func(h uapi.UMADHeader) { h.SetDestLID(2); h.SetDestQPN(1) }
	is("no such agent", r.write(9, request(mad.ClassPerf, 1), to1), syscall.EIO)
	is("number of an agent", r.write(32, request(mad.ClassPerf, 1), to1), syscall.EINVAL)
	is("a short message", r.write(0, make([]byte, 35), to1), syscall.EINVAL)
	is("a long message", r.write(0, append(request(mad.ClassPerf, 1), 0), to1), syscall.EINVAL)
	is("a class of QP0", r.write(0, request(mad.ClassSubnLID, mad.AttrNodeInfo), to1), syscall.EINVAL)
	is("a message", r.write(0, request(mad.ClassPerf, mad.AttrClassPortInfo), to1), 0)
	is("the same again", r.write(0, request(mad.ClassPerf, mad.AttrClassPortInfo), to1), syscall.EINVAL)
	r.run()
	_, _, e, _ := r.read(63)
	is("room for no header", e, syscall.EINVAL)
	_, _, e, _ = r.read(100)
	is("room for no message", e, syscall.EINVAL)
	if _, data, e, _ := r.read(320); e != 0 || len(data) != mad.Size {
		t.Errorf("the message after these: %v, %d bytes", e, len(data))
	}
	small := newRig(t, m)
	for i := range 33 {
		_, e := small.register(func(q uapi.UMADRegister2) { q.SetQPN(1) })
		if want := syscall.ENOMEM; i == 32 && e != want || i < 32 && e != 0 {
			t.Fatalf("agent %d: %v", i, e)
		}
	}
	small.f.Close()
	r.f.Close()
	r = newRig(t, m)
	if _, e := r.register(server); e != 0 {
		t.Errorf("after the last close: %v", e)
	}
}

// TestTable: a message in segments arrives whole, in both directions of a transfer; a read with too
// little room learns its length.
func TestTable(t *testing.T) {
	m := newMachine(t)
	const class, size = 0x32, 3000
	asks, serves := newRig(t, m), newRig(t, m)
	far, err := m.umad.Open(m.kern[1])
	if err != nil {
		t.Fatal(err)
	}
	serves.f = &File{File: far}
	agent := func(methods byte) func(uapi.UMADRegister2) {
		return func(q uapi.UMADRegister2) {
			q.SetQPN(1)
			q.SetClass(class)
			q.SetVersion(1)
			q.SetOUI(0x1405)
			q.SetRMPP(1)
			q.Methods()[0] = methods
		}
	}
	client, e := asks.register(agent(0))
	server, e2 := serves.register(agent(2))
	if e != 0 || e2 != 0 {
		t.Fatal(e, e2)
	}
	q := request(class, 1)
	copy(q[37:], []byte{0, 0x14, 0x05})
	if e := asks.write(client, q, func(h uapi.UMADHeader) { h.SetDestLID(2); h.SetDestQPN(1); h.SetTimeout(60_000) }); e != 0 {
		t.Fatal(e)
	}
	if err := m.eng.Run(m.eng.Now() + sim.Millisecond); err != nil {
		t.Fatal(err)
	}
	h, data, e, err := serves.read(320)
	if e != 0 || err != nil || h.DestLID() != 1 {
		t.Fatalf("%v, %v: % x", e, err, []byte(h))
	}
	table := make([]byte, 40+size)
	copy(table, data[:40])
	table[3] = mad.GetResp
	mad.MAD(table).RMPP().SetFlags(mad.RMPPActive)
	for i := range size {
		table[40+i] = byte(i * 7)
	}
	if e := serves.write(server, table, func(h uapi.UMADHeader) { h.SetDestLID(1); h.SetDestQPN(1); h.SetTimeout(0) }); e != 0 {
		t.Fatal(e)
	}
	asks.run()
	if h, _, e, _ := asks.read(320); e != syscall.ENOSPC || h.Length() != 64+40+size {
		t.Fatalf("%v, length %d", e, h.Length())
	}
	_, data, e, _ = asks.read(64 + 40 + size)
	if e != 0 || !bytes.Equal(data[40:], table[40:]) {
		t.Errorf("%v, %d bytes", e, len(data))
	}
	if asks.f.Readable() || serves.f.Readable() {
		t.Error("one message too many")
	}
}

// FuzzFile makes hostile calls, writes and reads on two files, on a machine that is never replaced.
func FuzzFile(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0x81, 1, 0, 1, 0, 0, 0, 2, 0, 0})
	f.Add([]byte{0, 0, 1, 3, 2, 1, 1, 3, 0x12, 0, 1, 1, 1, 2, 0})
	m := newMachine(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		r := newRig(t, m)
		other := newRig(t, m)
		for range 50 {
			if len(in) < 6 {
				break
			}
			step := in[:6]
			in = in[6:]
			if step[0]&1 != 0 {
				r, other = other, r
			}
			switch step[1] % 4 {
			case 0:
				r.register(func(q uapi.UMADRegister2) {
					q.SetQPN(uint32(step[2] % 3))
					q.SetClass(step[3])
					q.SetVersion(step[4] % 10)
					q.SetRMPP(step[5] % 3)
					q.SetOUI(uint32(step[5]))
					copy(q.Methods(), step)
				})
			case 1:
				b := request(step[2], uint16(step[3]))
				b.SetMethod(step[4])
				copy(b[24:], in)
				r.write(uint32(step[5]%40), b[:min(len(b), 30+int(step[5])*2)], func(h uapi.UMADHeader) {
					h.SetDestLID(uint16(step[0] >> 1 & 3))
					h.SetDestQPN(uint32(step[0] >> 3 & 1))
					h.SetGRHPresent(step[0] >> 4 & 1)
					h.SetTimeout(uint32(step[0] >> 5))
				})
			case 2:
				r.read(int(step[2]) * 3)
			default:
				at, b := r.Alloc(uapi.UMADRegisterSize)
				copy(b, step)
				r.f.Ioctl(r, []uint32{uapi.UMADRegisterAgent, uapi.UMADUnregisterAgent, uapi.UMADEnablePKey, 7}[step[2]%4], at)
			}
			_ = m.eng.Run(m.eng.Now() + sim.Millisecond)
		}
		r.f.Close()
		other.f.Close()
		r.run()
	})
}
