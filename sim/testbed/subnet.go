package testbed

import (
	"net/netip"

	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/sim/sa"
	"github.com/rdmasim/rdmasim/verbs"
)

// noSwitch is the multicast forwarding table of a subnet that is a cable.
type noSwitch struct{}

func (noSwitch) SetGroup(uint16, []int) {}

// loadCM loads the connection manager of every host, and on InfiniBand what it asks: the subnet
// administrator, which runs with the subnet manager on the host of the first port.
func (tb *Testbed) loadCM() error {
	for _, h := range tb.hosts {
		if err := h.cm.Load(); err != nil {
			return err
		}
	}
	if tb.sm == nil || tb.sa != nil || len(tb.hosts[0].devices) == 0 {
		return nil
	}
	groups := sa.Groups(noSwitch{})
	if tb.sw != nil {
		groups = tb.sw
	}
	first := tb.hosts[0].devices[0]
	var send func(*cm.SAPeer, []byte)
	tb.sa = sa.NewHosted(first.hca, &tb.prof.Link.IB, groups, func(to *sa.Peer, m mad.MAD) { send((*cm.SAPeer)(to), m) })
	tb.sa.SetPKeys(tb.sm.Fabric().PKeys)
	send = tb.hosts[0].cm.ServeSA(first.kern, func(from cm.SAPeer, data []byte) { tb.sa.Request(sa.Peer(from), data) })
	for at, m := range tb.members() {
		tb.sa.Enter(sa.Member{Managed: m.hca, GUID: m.hca.Identity().GUID, Description: m.path(), At: at})
	}
	for _, d := range tb.members() {
		if r, ok := tb.sa.JoinBroadcast(d.hca); ok {
			d.host.cm.SetBroadcast(d.kern, r)
		}
	}
	return nil
}

// members are the devices in the order of the switch's ports.
func (tb *Testbed) members() (l []*device) {
	for _, h := range tb.hosts {
		l = append(l, h.devices...)
	}
	return l
}

// Interfaces are the network interfaces of the process's host.
func (p *process) Interfaces(t verbs.Thread) ([]verbs.Interface, error) {
	if _, err := p.Devices(t); err != nil {
		return nil, err
	}
	l := []verbs.Interface{{Name: "mgmt0", Addrs: []netip.Addr{p.host.management()}}}
	for _, d := range p.host.devices {
		if d.kern.Removed() {
			continue
		}
		i := verbs.Interface{Name: d.interfaceName(), Device: d.name, Port: 1}
		if p.host.tb.sm != nil {
			i.Addrs = append(i.Addrs, d.kern.IPs()...)
		} else {
			i.Addrs = d.addresses()
		}
		l = append(l, i)
	}
	return l, nil
}

// management is the address of the host on the network over which players are moved, which has no
// RDMA.
func (h *host) management() netip.Addr {
	n := h.index + 1
	return netip.AddrFrom4([4]byte{192, 168, 77 + byte(n>>8), byte(n)})
}

// interfaceName is that of the device's port.
func (d *device) interfaceName() string {
	name := "eth"
	if d.host.tb.sm != nil {
		name = "ib"
	}
	return name + d.name[len("mlx5_"):]
}

// addresses are those of an Ethernet port's interface, VLANs left out.
func (d *device) addresses() (l []netip.Addr) {
	d.kern.GIDs(func(e verbs.GIDEntry, vlan uint16) bool {
		if e.Type == verbs.GIDTypeRoCEv2 && vlan == 0 {
			l = append(l, netip.AddrFrom16(e.GID).Unmap())
		}
		return true
	})
	return l
}

var (
	_ verbs.InterfaceLister = (*process)(nil)
)
