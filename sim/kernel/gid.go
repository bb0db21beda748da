package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// netdevIndex is the interface index that GID entries name: 1 is the loopback
// interface of any Linux, so the first Ethernet interface is 2.
const netdevIndex = 2

// ifindex is the index of the port's interface, or of one of the VLAN interfaces over it: those
// have the numbers behind, in the order in which they were made.
func (d *Device) ifindex(vlan uint16) uint32 {
	if vlan == 0 {
		return netdevIndex
	}
	return netdevIndex + 1 + uint32(slices.Index(d.vlans, vlan))
}

// AddIP adds an address to the port's interface. As ib_core does, it puts a RoCE v2 entry of the
// address, and a RoCE v1 entry if the device has v1, into the first free slots of the GID table,
// and every open context gets a GID_CHANGE event. On InfiniBand the interface is that of IPoIB,
// whose addresses are not in the table. ENOSPC: the table is full; EEXIST: the interface has the
// address.
func (d *Device) AddIP(ip netip.Addr) error {
	if d.removed {
		return fmt.Errorf("address of a device that was removed: %w", syscall.ENODEV)
	}
	if d.caps.ib {
		return d.ipoib.add(ip)
	}
	if err := d.addGID(&call{d: d}, verbs.GID(ip.As16()), 0); err != nil {
		return err
	}
	if !d.breaks(rule.NewAddressIsReported) {
		d.broadcast(verbs.EventGIDChange)
	}
	return nil
}

// AddVLAN makes a VLAN interface with an address on the port's interface; the GID entries of the
// address name it. It has no link-local address. EINVAL: an ID outside 1..4094; EEXIST: the VLAN
// exists; else as AddIP.
func (d *Device) AddVLAN(id uint16, ip netip.Addr) error {
	switch {
	case id < 1 || id > 4094:
		return fmt.Errorf("VLAN %d: %w", id, syscall.EINVAL)
	case slices.Contains(d.vlans, id):
		return fmt.Errorf("VLAN %d: %w", id, syscall.EEXIST)
	case d.caps.ib:
		return fmt.Errorf("VLAN %d on an InfiniBand port: %w", id, syscall.EOPNOTSUPP)
	case d.removed:
		return fmt.Errorf("VLAN of a device that was removed: %w", syscall.ENODEV)
	}
	if err := d.addGID(&call{d: d}, verbs.GID(ip.As16()), id); err != nil {
		return err
	}
	d.vlans = append(d.vlans, id)
	d.broadcast(verbs.EventGIDChange)
	return nil
}

// RemoveVLAN removes a VLAN interface and its GID entries. ENOENT: there is none.
func (d *Device) RemoveVLAN(id uint16) error {
	if err := d.removeGIDs(fmt.Sprintf("VLAN %d", id), func(e *gidEntry) bool { return id != 0 && e.vlan == id }); err != nil {
		return err
	}
	d.vlans[slices.Index(d.vlans, id)] = 0 // its index is not given again
	return nil
}

// RemoveIP removes an address from the port's interface. ENOENT: the interface does not have it.
func (d *Device) RemoveIP(ip netip.Addr) error {
	if d.caps.ib {
		return d.ipoib.remove(ip)
	}
	return d.removeGIDs(ip.String(), func(e *gidEntry) bool { return e.vlan == 0 && e.gid == verbs.GID(ip.As16()) })
}

func (d *Device) removeGIDs(what string, is func(e *gidEntry) bool) error {
	k := &call{d: d}
	found := false
	for i := range d.gids {
		if e := &d.gids[i]; e.valid && is(e) {
			found = true
			if err := d.setRoCEAddress(k, i, &gidEntry{typ: e.typ}, MAC{}); err != nil {
				return err
			}
			*e = gidEntry{}
		}
	}
	if !found {
		return fmt.Errorf("%s has no entries: %w", what, syscall.ENOENT)
	}
	d.broadcast(verbs.EventGIDChange)
	return nil
}

// SetNeighbours sets how the kernel resolves IP addresses, in place of ARP and neighbour discovery:
// f returns the Ethernet address of an IP address on the network, or on a VLAN of it, if any host
// has it. Without it only link-local addresses and the device's own resolve.
func (d *Device) SetNeighbours(f func(vlan uint16, ip netip.Addr) (MAC, bool)) { d.neighbours = f }

func (d *Device) addGID(k *call, g verbs.GID, vlan uint16) error {
	for _, t := range []verbs.GIDType{verbs.GIDTypeRoCEv1, verbs.GIDTypeRoCEv2} {
		if t == verbs.GIDTypeRoCEv1 && d.caps.roceV2 {
			continue
		}
		i := 0
		for i < len(d.gids) && d.gids[i].valid {
			i++
		}
		if i == len(d.gids) {
			return fmt.Errorf("GID table of %d entries is full: %w", len(d.gids), syscall.ENOSPC)
		}
		e := gidEntry{valid: true, gid: g, typ: t, vlan: vlan}
		if err := d.setRoCEAddress(k, i, &e, d.caps.mac); err != nil {
			return err
		}
		d.gids[i] = e
	}
	return nil
}

func (d *Device) setRoCEAddress(k *call, i int, e *gidEntry, mac MAC) error {
	in := prm.NewIn(prm.OpSetRoCEAddress, 0)
	m := prm.SetRoCEAddressIn(in)
	m.SetRoCEAddressIndex(uint32(i))
	a := m.Addr()
	copy(a.SourceL3(), e.gid[:])
	copy(a.MAC(), mac[:])
	a.SetRoCEVersion(prm.RoCEVersion1)
	if e.typ == verbs.GIDTypeRoCEv2 {
		a.SetRoCEVersion(prm.RoCEVersion2)
	}
	a.SetRoCEL3Type(prm.RoCEL3IPv6)
	a.SetVlanValid(e.vlan != 0)
	a.SetVlanID(uint32(e.vlan))
	if netip.AddrFrom16(e.gid).Is4In6() {
		a.SetRoCEL3Type(prm.RoCEL3IPv4)
	}
	return k.exec(in, prm.NewOut(prm.OpSetRoCEAddress, 0))
}

// gidAt is rdma_get_gid_attr: EINVAL outside the table, ENODATA for an empty slot.
func (d *Device) gidAt(i int) (*gidEntry, error) {
	if i < 0 || i >= len(d.gids) {
		return nil, fmt.Errorf("GID index %d: the table has %d entries: %w", i, len(d.gids), syscall.EINVAL)
	}
	if !d.gids[i].valid && !d.breaks(rule.EmptyGIDIsRefused) {
		return nil, emptyGID(i)
	}
	return &d.gids[i], nil
}

// emptyGID is the error of an empty slot, by its index: programs that list the table get
// hundreds of them, so that its text is made only when somebody reads it.
type emptyGID int

func (e emptyGID) Error() string {
	return fmt.Sprintf("GID index %d is empty: %v", int(e), syscall.ENODATA)
}

func (e emptyGID) Unwrap() error { return syscall.ENODATA }

// defaultHopLimit is the TTL of a route (net.ipv4.ip_default_ttl); the core writes it
// over the hop limit of an address that it had to resolve.
const defaultHopLimit = 64

// resolve is ib_resolve_eth_dmac: the destination's Ethernet address, and the hop
// limit where the route decides it (0: as the program said).
func (k *call) resolve(src *gidEntry, dst verbs.GID) (mac MAC, hops uint8, err error) {
	d := k.d
	if dst[0] == 0xff {
		return MAC{0x33, 0x33, dst[12], dst[13], dst[14], dst[15]}, 0, nil
	}
	ip, from := netip.AddrFrom16(dst), netip.AddrFrom16(src.gid)
	if ip.Is4In6() && ip.Unmap().IsMulticast() {
		return MAC{0x01, 0x00, 0x5e, dst[13] & 0x7f, dst[14], dst[15]}, 0, nil
	}
	if isLinkLocal(dst) && src.typ == verbs.GIDTypeRoCEv1 {
		return linkLocalMAC(dst), 0, nil
	}
	if ip.Is4In6() != from.Is4In6() {
		return MAC{}, 0, fmt.Errorf("%v from %v: different address families: %w", ip.Unmap(), from.Unmap(), syscall.EINVAL)
	}
	for i := range d.gids {
		if e := &d.gids[i]; e.valid && e.gid == dst && e.vlan == src.vlan {
			return d.caps.mac, defaultHopLimit, nil
		}
	}
	if isLinkLocal(dst) {
		return linkLocalMAC(dst), defaultHopLimit, nil
	}
	if d.neighbours != nil {
		if mac, ok := d.neighbours(src.vlan, ip.Unmap()); ok {
			return mac, defaultHopLimit, nil
		}
	}
	k.work += d.p.ARPTimeout
	return MAC{}, 0, fmt.Errorf("no neighbour answers for %v: %w", ip.Unmap(), syscall.ETIMEDOUT)
}

// checkAH is rdma_fill_sgid_attr: a global route is a must on RoCE. Without one there is
// no entry.
func (d *Device) checkAH(a *verbs.AHAttr) (*gidEntry, error) {
	if a.Port < 1 || int(a.Port) > d.caps.ports {
		return nil, fmt.Errorf("address of port %d: %w", a.Port, syscall.EINVAL)
	}
	if !a.IsGlobal && d.caps.ib {
		return nil, nil
	}
	if !a.IsGlobal {
		return nil, fmt.Errorf("address without global route on RoCE: %w", syscall.EINVAL)
	}
	return d.gidAt(int(a.GRH.SGIDIndex))
}
