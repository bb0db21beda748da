//go:build linux && amd64

package exec

import (
	"bytes"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/remotewire"
)

// A tester has the devices in hand too: what he learns of them and does to them here is what a
// testbed in one process gives its cases.

var _ remotewire.Bench = (*sessionWire)(nil)

// maxLogged is how many register writes a tester's log holds.
const maxLogged = 1 << 16

// registerLog is the log of register writes of a tester.
type registerLog struct {
	writes []verbs.MMIOWrite
	over   bool
	where  map[*page]uint64 // addresses of pages in their programs
}

// add adds a store, which is decided.
func (l *registerLog) add(x *uarLine) {
	if len(l.writes) >= maxLogged {
		l.over = true
		return
	}
	at, known := l.where[x.p]
	if !known {
		at = x.p.address()
		l.where[x.p] = at
	}
	c := prm.CtrlSegment(x.b)
	for off := 0; off < x.arrived; off += prm.WQEBBSize { // in blocks, as they are stored
		b := bytes.Clone(x.b[off:min(off+prm.WQEBBSize, x.arrived)])
		w := verbs.MMIOWrite{At: time.Duration(x.at / sim.Nanosecond), Kind: verbs.MMIODoorbell, UARPage: uint32(at / prm.UARPageSize),
			Offset: x.p.m.BFReg(x.reg, x.half) + uint32(off), Len: len(b), Data: b}
		if x.push && len(b) > prm.DoorbellSize {
			w.Kind = verbs.MMIOBlueFlame
		}
		if off == 0 {
			w.QPN, w.Index = c.QPN(), c.WQEIndex()
		}
		l.writes = append(l.writes, w)
	}
}

// address is where a program has mapped the page, 0 where the kernel does not tell any more.
func (p *page) address() (at uint64) {
	off := p.n * pageSize
	_ = p.f.proc.mem.Mappings(func(m *procmem.Mapping) bool {
		if m.Inode == p.f.inode.Ino && m.Dev == p.f.inode.Dev && m.Offset <= off && off-m.Offset < uint64(m.End-m.Start) {
			at = uint64(m.Start) + off - m.Offset
		}
		return at == 0
	})
	return at
}

// Has implements remotewire.Bench.
func (w *sessionWire) Has() (has []string) {
	p := w.s.m.prof
	if p.HCA.Congestion.DCQCN && !w.s.m.net.InfiniBand() {
		has = append(has, "ecn")
	}
	if p.HCA.SQD && p.Kernel.SQD {
		has = append(has, "sqd")
	}
	if p.HCA.CardFaults {
		has = append(has, "card faults")
	}
	return has
}

// StartLog implements remotewire.Bench.
func (w *sessionWire) StartLog() error {
	e := w.s.eng
	e.do(func() {
		e.settle()
		if e.log == nil {
			e.log = &uarLog{}
		}
		w.decideAll() // what came before is not in it
		e.log.bench = &registerLog{where: map[*page]uint64{}}
	})
	return nil
}

// StopLog implements remotewire.Bench.
func (w *sessionWire) StopLog() (writes []verbs.MMIOWrite, err error) {
	e := w.s.eng
	e.do(func() {
		e.settle()
		if e.log == nil || e.log.bench == nil {
			err = fmt.Errorf("no log is under way: %w", syscall.EINVAL)
			return
		}
		w.decideAll()
		l := e.log.bench
		if writes = l.writes; l.over {
			err = fmt.Errorf("the log has no room for more than %d register writes: %w", maxLogged, syscall.ENOSPC)
		}
		w.endLog()
	})
	return writes, err
}

// endLog forgets the tester's log. It runs on the engine's thread.
func (w *sessionWire) endLog() {
	e := w.s.eng
	if e.log == nil {
		return
	}
	e.log.bench = nil
	if e.log.text == nil {
		w.decideAll()
		e.log = nil
	}
}

// decideAll decides what the last stores to all registers were.
func (w *sessionWire) decideAll() {
	for _, f := range w.s.files.byInode {
		for _, p := range f.pages {
			if p.mem != nil && !p.gone {
				p.decideAll(w.s.eng.log)
			}
		}
	}
}

// tornPushes are the next pushes of which a tester lets the first bytes pass.
type tornPushes struct{ n, keep int }

// tear is how many of the n bytes of a push the device gets.
func (d *device) tear(n int) int {
	if d.torn.n == 0 {
		return n
	}
	d.torn.n--
	return min(n, d.torn.keep)
}

// on runs do with the device of a GUID on the engine's thread, when all has been done that programs
// have asked for.
func (w *sessionWire) on(guid uint64, do func(d *device) error) (err error) {
	e := w.s.eng
	e.do(func() {
		e.settle()
		for _, d := range w.s.m.devs {
			if d.hca.Identity().GUID == guid {
				err = do(d)
				return
			}
		}
		err = fmt.Errorf("no device of programs has the GUID %#016x: %w", guid, syscall.ENODEV)
	})
	return err
}

// Tear implements remotewire.Bench.
func (w *sessionWire) Tear(guid uint64, n, keep int) error {
	if n < 0 || keep < prm.DoorbellSize || keep%8 != 0 {
		return fmt.Errorf("tear %d pushes after %d bytes: %w", n, keep, syscall.EINVAL)
	}
	return w.on(guid, func(d *device) error {
		d.torn = tornPushes{d.torn.n + n, keep}
		return nil
	})
}

// FailNext implements remotewire.Bench.
func (w *sessionWire) FailNext(guid uint64, qpn uint32, syndrome, vendor uint8) error {
	return w.on(guid, func(d *device) error { return d.hca.FailNext(qpn, syndrome, vendor) })
}

// Counters implements remotewire.Bench.
func (w *sessionWire) Counters(guid uint64) (all map[string]uint64, err error) {
	err = w.on(guid, func(d *device) error {
		p, err := w.Tester.Port(guid)
		if err != nil {
			return err
		}
		all = d.hca.HardwareCounters()
		d.kern.AddPaging(all)
		p.HardwareCounters(all)
		return nil
	})
	return all, err
}

// Clock implements remotewire.Bench.
func (w *sessionWire) Clock() (d time.Duration, err error) {
	e := w.s.eng
	e.do(func() {
		e.settle()
		d = time.Duration(e.pace.Worked() / sim.Nanosecond)
	})
	return d, nil
}

// benchAddress is an address of the interface of a device.
type benchAddress struct {
	guid uint64
	ip   netip.Addr
}

// Address implements remotewire.Bench.
func (w *sessionWire) Address(guid uint64, ip netip.Addr, add bool) error {
	if !ip.Is4() && !ip.Is6() || ip.Is4In6() {
		return fmt.Errorf("address %v: %w", ip, syscall.EINVAL)
	}
	a := benchAddress{guid, ip}
	return w.change(func(*network.Tester) error {
		for _, d := range w.s.m.devs {
			if d.hca.Identity().GUID == guid {
				return w.setAddress(d, a, add)
			}
		}
		return fmt.Errorf("no device of programs has the GUID %#016x: %w", guid, syscall.ENODEV)
	})
}

// setAddress adds or removes an address. It runs on the engine's thread.
func (w *sessionWire) setAddress(d *device, a benchAddress, add bool) error {
	_, taken := w.s.m.macs[a.ip]
	switch {
	case add && taken:
		return fmt.Errorf("address %v: %w", a.ip, syscall.EEXIST)
	case !add && !w.addresses[a]: // the device's own stays
		return fmt.Errorf("address %v was not added: %w", a.ip, syscall.EADDRNOTAVAIL)
	case add:
		if err := d.kern.AddIP(a.ip); err != nil {
			return err
		}
		w.addresses[a] = true
		w.s.m.macs[a.ip] = kernel.MAC(d.hca.Identity().MAC)
		return nil
	}
	delete(w.addresses, a)
	delete(w.s.m.macs, a.ip)
	return d.kern.RemoveIP(a.ip)
}

// resetBench undoes what a tester has changed at the devices.
func (w *sessionWire) resetBench() {
	w.s.eng.do(func() {
		w.endLog()
		for _, d := range w.s.m.devs {
			d.torn = tornPushes{}
		}
	})
	if len(w.addresses) == 0 {
		return
	}
	_ = w.change(func(*network.Tester) error {
		for _, d := range w.s.m.devs {
			for a := range w.addresses {
				if a.guid == d.hca.Identity().GUID {
					_ = w.setAddress(d, a, false)
				}
			}
		}
		return nil
	})
}
