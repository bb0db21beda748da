// Package network joins simulated devices that real software uses: two by a cable, more by a
// switch, with a subnet manager where the links are InfiniBand. It captures what their ports send,
// and carries out scripts of faults.
package network

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/sa"
)

// Network is the links of a group of devices.
type Network struct {
	eng     *sim.Engine
	prof    *profile.Profile
	ports   []port
	manager *link.SubnetManager // of InfiniBand links
	admin   *sa.Node            // nil: nobody answers to queries
	sw      *link.Switch        // nil: a cable
	devices []*hca.Device
	capture *capture
	faults  faults
}

// port is that of a device, or of the subnet manager.
type port struct {
	name    string
	guid    uint64 // of the device; 0: the subnet manager's, or outside
	outside bool   // its frames come from outside the simulation
	soft    uint64 // of an RDMA device in software on its network interface (rdma_rxe), made of the MAC; 0: it has none
	link    *link.Port
}

// is reports whether a GUID is of a device at the port.
func (p *port) is(guid uint64) bool { return guid != 0 && (p.guid == guid || p.soft == guid) }

// open is the open end of a cable: it drops every frame.
type open struct{}

// Receive drops a frame.
func (open) Receive(f *roce.Frame) { f.Release() }

// Identity gives device k its GUID and addresses, which differ from those of other devices
// in one byte.
func Identity(k int) hca.Identity {
	n := byte(k + 1)
	return hca.Identity{
		Number: k, GUID: 0x0002_c903_0000_0100 | uint64(n), MAC: [6]byte{0x02, 0x02, 0xc9, 0, 1, n}, IPv4: [4]byte{10, 1, 0, n},
		BoardID: "SIM0000000001", Paced: true,
	}
}

// New joins devices. A single one is at a cable whose other end is open.
func New(e *sim.Engine, p *profile.Profile, devices []*hca.Device) *Network {
	n := joined(e, p, devices)
	if n.manager != nil {
		n.manager.Sweep()
	}
	return n
}

// NewUnmanaged joins devices as New does. The ports of InfiniBand wait for a subnet manager that is
// not the model's.
func NewUnmanaged(e *sim.Engine, p *profile.Profile, devices []*hca.Device) *Network {
	n := joined(e, p, devices)
	if n.manager != nil {
		n.manager.Retire()
	}
	return n
}

func joined(e *sim.Engine, p *profile.Profile, devices []*hca.Device) *Network {
	n := &Network{eng: e, prof: p}
	if p.Link.InfiniBand {
		n.manager = link.NewSubnetManager(e, link.DefaultFabric(), p.Link.IB.Sweep)
	}
	if len(devices) > 2 {
		sw := newSwitch(e, p)
		n.sw = sw
		for _, d := range devices {
			c := link.NewCable(e, p.Link, d.Name(), "switch/"+d.Name())
			sw.Plug(c.End(1))
			n.join(d, c.End(0), sw)
		}
		return n
	}
	far := "open"
	if len(devices) == 2 {
		far = devices[1].Name()
	}
	c := link.NewCable(e, p.Link, devices[0].Name(), far)
	n.join(devices[0], c.End(0), nil)
	if len(devices) == 2 {
		n.join(devices[1], c.End(1), nil)
	} else {
		c.End(1).Attach(open{})
	}
	return n
}

// SwitchGUID is that of the switch, and administratorGUID of the host of the subnet manager: behind
// those of devices.
const (
	SwitchGUID        = 0x0002_c903_0000_01ff
	administratorGUID = 0x0002_c903_0000_01fe
)

// newSwitch makes the switch. On InfiniBand it is a node of the subnet.
func newSwitch(e *sim.Engine, p *profile.Profile) *link.Switch {
	sw := link.NewSwitch(e, "switch", p.Switch)
	if p.Link.InfiniBand {
		sw.Describe(SwitchGUID, "rdmasim switch")
	}
	return sw
}

// NewManaged joins devices as New does, or InfiniBand devices, however many, by a switch at which a
// host with the subnet manager and its administrator is too.
func NewManaged(e *sim.Engine, p *profile.Profile, devices []*hca.Device) *Network {
	if !p.Link.InfiniBand {
		return New(e, p, devices)
	}
	n := &Network{eng: e, prof: p}
	f := link.DefaultFabric()
	f.SMLID = f.FirstLID + uint16(len(devices))
	n.manager = link.NewSubnetManager(e, f, p.Link.IB.Sweep)
	defer n.manager.Sweep()
	sw := newSwitch(e, p)
	own := link.NewCable(e, p.Link, managerPort, "switch/"+managerPort)
	n.admin = sa.New(own.End(0), &p.Link.IB, sw)
	for _, d := range devices {
		c := link.NewCable(e, p.Link, d.Name(), "switch/"+d.Name())
		sw.Plug(c.End(1))
		n.join(d, c.End(0), sw)
		n.admin.Enter(sa.Member{Managed: d, GUID: d.Identity().GUID, Description: d.Name(), At: sw.Ports() - 1, SMA: d.SMA})
	}
	sw.Plug(own.End(1))
	n.admin.Manage(n.manager, administratorGUID, "rdmasim "+managerPort, sw.Ports()-1)
	n.ports = append(n.ports, port{name: managerPort, link: own.End(0)})
	n.manager.Add(own.End(0), n.admin, sw, sw.Ports()-1)
	return n
}

// noSwitch is the multicast forwarding table of a subnet that is a cable.
type noSwitch struct{}

func (noSwitch) SetGroup(uint16, []int) {}

// Administrator makes a subnet administrator beside the subnet manager, on the host of the first
// device, of which QP1 is its way to the others: out sends its answers. The interface of each port
// is in IPoIB's broadcast group then: joined gets its record. nil: the links are Ethernet, or a
// host of its own has it.
func (n *Network) Administrator(out func(to *sa.Peer, m mad.MAD), joined func(*hca.Device, mad.MCMemberRecord)) *sa.Node {
	if n.manager == nil || n.admin != nil || n.manager.Retired() {
		return nil
	}
	groups := sa.Groups(noSwitch{})
	if n.sw != nil {
		groups = n.sw
	}
	n.admin = sa.NewHosted(n.devices[0], &n.prof.Link.IB, groups, out)
	for at, d := range n.devices {
		n.admin.Enter(sa.Member{Managed: d, GUID: d.Identity().GUID, Description: d.Name(), At: at, SMA: d.SMA})
	}
	n.admin.Manage(n.manager, n.devices[0].Identity().GUID, "", 0)
	n.devices[0].SetSubnetManager()
	for _, d := range n.devices {
		if r, ok := n.admin.JoinBroadcast(d); ok {
			joined(d, r)
		}
	}
	return n.admin
}

// managerPort is the name of the subnet manager's port in captures and scripts of faults.
const managerPort = "sm"

// AnswerSMInfo answers a request for SMInfo as the subnet manager of the model, on the host of the
// first device. It reports false for others.
func (n *Network) AnswerSMInfo(m mad.MAD) bool {
	return n.manager != nil && n.admin != nil && n.manager.AnswerSMInfo(m, n.devices[0].Identity().GUID)
}

// Forget says that the host of a device has gone without a word: its port is in no multicast group
// any more.
func (n *Network) Forget(d *hca.Device) {
	if n.admin != nil {
		n.admin.Forget(d)
	}
}

// join puts a device at a port; sw is the switch at the other end of the cable.
func (n *Network) join(d *hca.Device, p *link.Port, sw *link.Switch) {
	id := d.Identity()
	at := port{name: d.Name(), guid: id.GUID, link: p}
	if n.manager == nil {
		at.soft = roce.MAC(id.MAC).EUI64()
	}
	n.ports = append(n.ports, at)
	n.devices = append(n.devices, d)
	p.Attach(d)
	d.SetWire(p)
	if n.manager != nil {
		at := 0
		if sw != nil {
			at = sw.Ports() - 1
		}
		n.manager.Add(p, d, sw, at)
	}
}

// PortCounters reads the counters of a device's port.
func (n *Network) PortCounters(d *hca.Device) func() *link.Counters {
	for i := range n.ports {
		if n.ports[i].guid == d.Identity().GUID {
			return n.ports[i].link.Counters
		}
	}
	return func() *link.Counters { return &link.Counters{} }
}

// InfiniBand reports whether the links are InfiniBand, whose subnet manager gives the ports their
// addresses.
func (n *Network) InfiniBand() bool { return n.manager != nil }
