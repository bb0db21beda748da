//go:build linux

package ucm

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/uapi/client"
)

// machine is a device with its driver and a connection manager. What the device sends to its own
// address stays inside.
type machine struct {
	eng  *sim.Engine
	kern *kernel.Device
	cm   *cm.Manager
	ip   netip.Addr
}

type unplugged struct{}

func (unplugged) Receive(f *roce.Frame) { f.Release() }

func newMachine(t testing.TB) *machine {
	t.Helper()
	p, err := profile.Load("connectx-5")
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{eng: sim.New(sim.Options{Seed: 1}), ip: netip.AddrFrom4([4]byte{10, 1, 0, 1})}
	memory := mem.New(1 << 30)
	l := pcie.NewLink(m.eng, memory, p.PCIe)
	id := hca.Identity{GUID: 0x0002c90300000101, MAC: [6]byte{2, 2, 0xc9, 0, 1, 1}, IPv4: m.ip.As4(), BoardID: "SIM0000000001"}
	d := hca.New(m.eng, "mlx5_0", l, p.HCA, id)
	l.Attach(d, func(v int) { m.kern.Interrupt(v) })
	c := link.NewCable(m.eng, p.Link, "mlx5_0", "open")
	c.End(0).Attach(d)
	d.SetWire(c.End(0))
	c.End(1).Attach(unplugged{})
	if m.kern, err = kernel.NewDevice(m.eng, "mlx5_0", l, memory, p.Kernel); err != nil {
		t.Fatal(err)
	}
	m.kern.SetNeighbours(func(uint16, netip.Addr) (kernel.MAC, bool) { return id.MAC, true })
	if err := m.kern.AddIP(m.ip); err != nil {
		t.Fatal(err)
	}
	m.cm = cm.New(m.eng, "host", cm.Params{}, nil)
	if err := errors.Join(m.cm.AddDevice(m.kern), m.cm.Load()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.eng.Close)
	return m
}

// rig is a program with channel files, by their descriptors.
type rig struct {
	client.Fake
	testing.TB
	m     *machine
	files map[int]*File
	quota uverbs.Quota
}

func newRig(t testing.TB, m *machine) *rig {
	return &rig{TB: t, m: m, files: map[int]*File{}, quota: uverbs.Quota{Name: "objects", Most: 1 << 10, Errno: syscall.ENOMEM}}
}

// open opens a channel file.
func (r *rig) open(fd int) *File {
	f := Open(r.m.cm.Open(noCaller, &kernel.Process{Name: "test"}), func(*kernel.Device) int { return 7 })
	f.Objects = &r.quota
	r.files[fd] = f
	return f
}

func (r *rig) closeAll() {
	for _, f := range r.files {
		f.Close()
	}
}

// Channel implements Caller.
func (r *rig) Channel(fd int) (*File, error) {
	f, ok := r.files[fd]
	if !ok {
		return nil, syscall.EBADF
	}
	return f, nil
}

// write writes a command, with room for an answer of out bytes.
func (r *rig) write(f *File, number uint32, body []byte, out int) syscall.Errno {
	e, _ := r.try(f, number, body, out)
	return e
}

func (r *rig) try(f *File, number uint32, body []byte, out int) (syscall.Errno, error) {
	addr, b := r.Alloc(uapi.CMHeaderSize + len(body))
	h := uapi.CMHeader(b)
	h.SetCommand(number)
	h.SetIn(uint16(len(body)))
	h.SetOut(uint16(out))
	copy(b[uapi.CMHeaderSize:], body)
	return f.Write(r, addr, uint64(len(b)))
}

// answered writes a command that must succeed, whose structure set fills in with the address of the
// answer.
func (r *rig) answered(f *File, number uint32, size, out int, set func(b []byte, at uint64)) []byte {
	r.Helper()
	at, room := r.Alloc(max(out, 8))
	body := make([]byte, size)
	set(body, at)
	if e := r.write(f, number, body, out); e != 0 {
		r.Fatalf("%s: %v", commands[number].name, e)
	}
	return room[:out]
}

// Numbers of commands.
const (
	createID = iota
	destroyID
	bindIP
	resolveIP
	resolveRoute
	queryRoute
	connect
	listen
	accept
	reject
	disconnect
	initQPAttr
	getEvent
	getOption
	setOption
	notify
	joinIPMcast
	leaveMcast
	migrateID
	query
	bind
	resolveAddr
	joinMcast
)

// Port spaces.
const (
	spaceTCP = 0x106
	spaceUDP = 0x111
)

// create makes an id.
func (r *rig) create(f *File, space uint16, uid uint64) uint32 {
	r.Helper()
	return uapi.CMCreateIDResp(r.answered(f, createID, uapi.CMCreateIDSize, uapi.CMCreateIDRespSize, func(b []byte, at uint64) {
		c := uapi.CMCreateID(b)
		c.SetUID(uid)
		c.SetResponse(at)
		c.SetPortSpace(space)
	})).ID()
}

// put puts an address into a structure.
func put(b []byte, ip netip.Addr, port uint16) int {
	return PutAddress(b, netip.AddrPortFrom(ip, port))
}

// event runs the machine until a channel has an event, and takes it.
func (r *rig) event(f *File) uapi.CMEvent {
	r.Helper()
	for !f.Readable() {
		if r.m.eng.Next() == sim.Never {
			r.Fatal("no event comes")
		}
		if err := r.m.eng.Run(r.m.eng.Next()); err != nil {
			r.Fatal(err)
		}
	}
	return uapi.CMEvent(r.answered(f, getEvent, uapi.CMGetEventSize, uapi.CMEventSize, func(b []byte, at uint64) { uapi.CMGetEvent(b).SetResponse(at) }))
}
