package testbed

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// fate is an event of the plan and its outcome.
type fate struct {
	event fault.Event
	due   bool // it has happened, or could not
	err   error
}

// plan carries out what a file says.
func (tb *Testbed) plan(p *fault.Plan) error {
	t := fault.Target{}
	for _, h := range tb.hosts {
		t.Hosts = append(t.Hosts, h.name)
		for _, d := range h.devices {
			t.Ports, t.Devices = append(t.Ports, d.port.Name()), append(t.Devices, d.path())
		}
	}
	if err := p.Check(t); err != nil {
		return err
	}
	for i := range tb.fates {
		tb.eng.AtBarrier(max(sim.Time(tb.fates[i].event.At), tb.eng.Now()), tb.carryOut, uint64(i))
	}
	return tb.wire.plan(p)
}

// carryOut applies event i.
func (tb *Testbed) carryOut(i uint64) {
	f := &tb.fates[i]
	f.due = true
	switch e := &f.event; e.Kind {
	case fault.Remove:
		host, name, _ := strings.Cut(e.Device, "/")
		for _, h := range tb.hosts {
			if h.name == host {
				f.err = h.remove(name)
			}
		}
	case fault.Kill:
		var p *process
		if p, f.err = tb.living(e.Process); f.err == nil {
			p.end(nil)
		}
	default:
		f.err = tb.unmap(e)
	}
}

// living finds a process by name.
func (tb *Testbed) living(name string) (*process, error) {
	for _, p := range tb.procs {
		if p.name == name && p.dead {
			return nil, fmt.Errorf("%s has ended before: %w", name, syscall.ESRCH)
		} else if p.name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no process %s; there are %s: %w", name, strings.Join(tb.Processes(), ", "), syscall.ESRCH)
}

// Processes returns the names of all processes that were started, as events use them: host0/p1 runs
// the body.
func (tb *Testbed) Processes() (names []string) {
	for _, p := range tb.procs {
		names = append(names, p.name)
	}
	return names
}

// remembers says whether some event is about memory that the process registers.
func (tb *Testbed) remembers(process string) bool {
	return slices.ContainsFunc(tb.fates, func(f fate) bool { return f.event.Region > 0 && f.event.Process == process })
}

// unmap takes the pages of a region away, and with Remap puts others there.
func (tb *Testbed) unmap(e *fault.Event) error {
	p, err := tb.living(e.Process)
	if err != nil {
		return err
	}
	if e.Region > len(p.regions) {
		return fmt.Errorf("%s has no region %d, for it has registered %d: %w", p.name, e.Region, len(p.regions), syscall.ENOENT)
	}
	r, page := p.regions[e.Region-1], uint64(p.host.PageSize())
	start, n, ok := e.Pages(r.addr, r.n, page)
	if !ok {
		return fmt.Errorf("region %d has %d bytes: %w", e.Region, r.n, syscall.EINVAL)
	}
	space := p.lib.K.Space
	if space.Lazy(mem.VA(start)) {
		return unmapLazily(space, mem.VA(start), n, e.Kind == fault.Remap)
	}
	for at := start; at < start+n; at += page {
		if space.Mapped(mem.VA(at), page, 0) {
			if err := space.Unmap(mem.VA(at), page); err != nil {
				return err
			}
		}
	}
	if e.Kind == fault.Unmap {
		return nil
	}
	return space.MapAt(mem.VA(start), n, mem.Read|mem.Write)
}

// unmapLazily is unmap of memory that is mapped lazily.
func unmapLazily(space *mem.Space, va mem.VA, n uint64, remap bool) error {
	if !remap {
		return space.Unmap(va, n)
	}
	_, err := space.MapWith(n, mem.MapOptions{Prot: mem.Read | mem.Write, Lazy: true, At: va})
	return err
}

// Breaks reports whether an event of Config.Faults takes something away that programs need, so that
// loads are expected to fail.
func (tb *Testbed) Breaks() bool { return len(tb.fates) > 0 }

// EventsDone returns the outcome of each event of Config.Faults.
func (tb *Testbed) EventsDone() []string {
	var out []string
	for i := range tb.fates {
		switch f := &tb.fates[i]; {
		case !f.due:
			out = append(out, "the run has ended before "+sim.Time(f.event.At).String())
		case f.err != nil:
			out = append(out, f.err.Error())
		default:
			out = append(out, "done at "+sim.Time(f.event.At).String())
		}
	}
	return out
}

// remove takes a device away: the cable first, so that nothing more comes or goes.
func (h *host) remove(name string) error {
	for _, d := range h.devices {
		if d.name == name && d.kern.Removed() {
			return fmt.Errorf("%s was removed before: %w", d.path(), syscall.ENODEV)
		} else if d.name == name {
			d.port.SetLink(false)
			h.cm.RemoveDevice(d.kern)
			if h.tb.sa != nil {
				h.tb.sa.Forget(d.hca)
			}
			d.kern.Remove()
			return nil
		}
	}
	return fmt.Errorf("no device %s on %s: %w", name, h.name, syscall.ENODEV)
}

// at is a host by number.
func (tb *Testbed) at(t verbs.Thread, host int) (*host, error) {
	provider.Of(t).P.Sync()
	if host < 0 || host >= len(tb.hosts) || len(tb.hosts[host].devices) == 0 {
		return nil, fmt.Errorf("host %d: %w", host, syscall.ENODEV)
	}
	return tb.hosts[host], nil
}

// RemoveDevice removes a device while programs use it.
func (tb *Testbed) RemoveDevice(t verbs.Thread, host int, device string) error {
	h, err := tb.at(t, host)
	if err != nil {
		return err
	}
	return h.remove(device)
}

// AddAddress adds an address to the interface of a host's first device, so that the other hosts can
// resolve it. EEXIST: a host of the network has the address.
func (tb *Testbed) AddAddress(t verbs.Thread, host int, ip netip.Addr) error {
	h, err := tb.at(t, host)
	if err != nil {
		return err
	}
	return tb.addAddress(h.devices[0], neighbour{ip: ip}, h.devices[0].kern.AddIP)
}

func (tb *Testbed) addAddress(d *device, n neighbour, add func(ip netip.Addr) error) error {
	if tb.owner[n] != nil {
		return fmt.Errorf("address %v: %w", n.ip, syscall.EEXIST)
	}
	if err := add(n.ip); err != nil {
		return err
	}
	tb.owner[n] = d
	return nil
}

// RemoveAddress removes an address. EADDRNOTAVAIL: the interface does not have it.
func (tb *Testbed) RemoveAddress(t verbs.Thread, host int, ip netip.Addr) error {
	h, err := tb.at(t, host)
	if err != nil {
		return err
	}
	if err := h.devices[0].kern.RemoveIP(ip); err != nil {
		return fmt.Errorf("%v: %w", err, syscall.EADDRNOTAVAIL)
	}
	delete(tb.owner, neighbour{ip: ip})
	return nil
}

// AddVLAN makes a VLAN interface with an address on the interface of a host's first device. EEXIST:
// the interface exists, or a host has the address on that VLAN; EINVAL: a wrong VLAN ID.
func (tb *Testbed) AddVLAN(t verbs.Thread, host int, id uint16, ip netip.Addr) error {
	h, err := tb.at(t, host)
	if err != nil {
		return err
	}
	d := h.devices[0]
	return tb.addAddress(d, neighbour{id, ip}, func(ip netip.Addr) error { return d.kern.AddVLAN(id, ip) })
}

// RemoveVLAN removes a VLAN interface. ENOENT: there is none.
func (tb *Testbed) RemoveVLAN(t verbs.Thread, host int, id uint16) error {
	h, err := tb.at(t, host)
	if err != nil {
		return err
	}
	d := h.devices[0]
	if err := d.kern.RemoveVLAN(id); err != nil {
		return err
	}
	maps.DeleteFunc(tb.owner, func(n neighbour, x *device) bool { return n.vlan == id && x == d })
	return nil
}

// ResourceCounts returns how many objects of each kind processes have on a host's first device.
func (tb *Testbed) ResourceCounts(t verbs.Thread, host int) (map[string]int, error) {
	h, err := tb.at(t, host)
	if err != nil {
		return nil, err
	}
	r := h.devices[0].kern.Resources()
	counts := map[string]int{"ctx": r.Ctx, "pd": r.PD, "cq": r.CQ, "qp": r.QP, "srq": r.SRQ, "mr": r.MR,
		"channel": r.CompChannel, "uar": r.UAR, "pinned pages": r.PinnedPages}
	if n := h.cm.IDs(); n > 0 { // of a host whose programs use the connection manager
		counts["cm_id"] = n
	}
	return counts, nil
}

var (
	_ verbs.DeviceRemover   = (*Testbed)(nil)
	_ verbs.AddressControl  = (*Testbed)(nil)
	_ verbs.VLANControl     = (*Testbed)(nil)
	_ verbs.ResourceCounter = (*Testbed)(nil)
)
