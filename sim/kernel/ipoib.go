package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// ipoib is the network interface of an InfiniBand port (ib0 of ib_ipoib), as far as the connection
// manager asks it: its addresses of IP and the neighbours that it knows. Its hardware address is
// the port's first GID, its partition that of the first P_Key. Packets of IP do not pass it.
type ipoib struct {
	addrs      []netip.Addr
	neighbours func(netip.Addr) (verbs.GID, bool)
}

// add gives the interface an address. EEXIST: it has it.
func (i *ipoib) add(ip netip.Addr) error {
	ip = ip.Unmap()
	if slices.Contains(i.addrs, ip) {
		return fmt.Errorf("%v: %w", ip, syscall.EEXIST)
	}
	i.addrs = append(i.addrs, ip)
	return nil
}

// remove takes an address back. ENOENT: it does not have it.
func (i *ipoib) remove(ip netip.Addr) error {
	at := slices.Index(i.addrs, ip.Unmap())
	if at < 0 {
		return fmt.Errorf("%v: %w", ip, syscall.ENOENT)
	}
	i.addrs = slices.Delete(i.addrs, at, at+1)
	return nil
}

// SetIPoIBNeighbours sets how an InfiniBand port's interface resolves IP addresses, as ARP and
// neighbour discovery do; the hardware address is represented by its GID.
func (d *Device) SetIPoIBNeighbours(f func(netip.Addr) (verbs.GID, bool)) { d.ipoib.neighbours = f }

// IPs returns the addresses of an InfiniBand port's interface, in the order in which they were
// added.
func (d *Device) IPs() []netip.Addr { return d.ipoib.addrs }

// IPoIBNeighbour returns the GID of the port that has an address. ok is false if no port answers.
func (d *Device) IPoIBNeighbour(ip netip.Addr) (g verbs.GID, ok bool) {
	ip = ip.Unmap()
	if slices.Contains(d.ipoib.addrs, ip) {
		return d.FirstGID()
	}
	if d.ipoib.neighbours == nil {
		return g, false
	}
	return d.ipoib.neighbours(ip)
}

// FirstGID returns entry 0 of the port's table. ok is false while it is empty.
func (d *Device) FirstGID() (verbs.GID, bool) {
	if len(d.gids) == 0 || !d.gids[0].valid {
		return verbs.GID{}, false
	}
	return d.gids[0].gid, true
}

// SubnetManager returns LID and service level of an InfiniBand port's subnet manager; LID 0: the
// port knows none.
func (d *Device) SubnetManager() (lid uint16, sl uint8) {
	a, err := (&call{d: d}).queryIBPort()
	if err != nil {
		return 0, 0
	}
	return a.SMLID, a.SMSL
}

// PKeys returns the entries of an InfiniBand port's P_Key table, as the core caches them; an empty
// entry is 0.
func (d *Device) PKeys() []uint16 {
	in, out := prm.NewIn(prm.OpQueryHCAVportPKey, 0), prm.NewOut(prm.OpQueryHCAVportPKey, 4*d.caps.pkeys)
	prm.QueryHCAVportPKeyIn(in).SetPKeyIndex(prm.AllVportEntries)
	if err := (&call{d: d}).exec(in, out); err != nil {
		return nil
	}
	o := prm.QueryHCAVportPKeyOut(out)
	l := make([]uint16, o.Room())
	for i := range l {
		l[i] = o.PKey(i)
	}
	return l
}
