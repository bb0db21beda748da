package wire

import (
	"fmt"
	"net/netip"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// vlan connects by the addresses of VLAN interfaces: the tag has the VLAN of the source GID's
// interface and the service level of the path as its priority. Beside it, by the interface below,
// frames have no tag.
func vlan(c *spec.C) {
	control, ok := c.TB.(verbs.VLANControl)
	if !ok {
		c.Errorf("the testbed says that it has VLANs, and cannot make one")
	}
	const id = 100
	near, far := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2")
	add := func(host int, ip netip.Addr) {
		kit.Must(c, "make a VLAN interface", control.AddVLAN(c.T, host, id, ip))
		c.Defer(func() { kit.Must(c, "remove the VLAN interface", control.RemoveVLAN(c.T, host, id)) })
	}
	add(0, near)
	add(kit.RemoteHost(c), far)
	plain, beside := open(c)
	untagged := join(c, plain, beside, options(c), func(*verbs.QPAttr) {})
	for i, p := range untagged.tap(c, func() { untagged.postSuccessfully(c, untagged.write(1, 100)) }) {
		if p.VLAN() != nil {
			c.Failf("packet %d has a tag, and its GID is not of a VLAN", i+1)
		}
	}
	e, other := kit.OpenIPv4(c, near), kit.OpenOtherProcessIPv4(c, kit.RemoteHost(c), far)
	e.CreateQP(c, options(c))
	c.True("interface of the GID", e.GID.NetDevice != plain.GID.NetDevice, "interface %d has both GIDs", e.GID.NetDevice)
	for _, sl := range []uint8{0, 5, 7} {
		l := join(c, e, other, options(c), func(a *verbs.QPAttr) { a.AH.SL = sl })
		packets := l.tap(c, func() { l.postSuccessfully(c, l.write(1, 3*mtu), l.read(2, mtu+1)) })
		l.expectTags(c, packets, id, uint16(sl))
	}
}

// expectTags checks that every packet is on the VLAN, and that the requests have the priority.
func (l *link) expectTags(c *spec.C, packets []kit.Packet, id, priority uint16) {
	seen := map[string]int{}
	for i := range packets {
		p, to := &packets[i], "responses"
		if p.VLANID() != id {
			c.Failf("packet %d is on VLAN %d", i+1, p.VLANID())
		}
		got := p.VLAN().TCI() >> 13
		if p.DestQPN() == l.b.QPN {
			to = "requests"
			c.Equal(fmt.Sprintf("priority of request packet %d", i+1), got, priority)
		}
		seen[fmt.Sprintf("%s of priority %d", to, got)]++
	}
	c.True("packets", len(packets) >= 4, "only %d packets", len(packets))
	c.Observe("tags", seen)
}
