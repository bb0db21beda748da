package testbed

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/sim/sa"
	"github.com/rdmasim/rdmasim/verbs"
)

// Testbed is a simulated testbed. It implements verbs.Testbed.
type Testbed struct {
	cfg   Config
	prof  *profile.Profile // as its link layer has it
	sm    *link.SubnetManager
	sa    *sa.Node // with sm; nil until programs use the connection manager
	sw    *link.Switch
	eng   *sim.Engine
	hosts []*host
	owner map[neighbour]*device // of the addresses of the network
	log   *mmioLog
	wire  *wire
	pcap  *capture

	main  *process
	procs []*process // numbered from 1 in their names
	fates []fate     // of Config.Faults' events
}

var _ verbs.Testbed = (*Testbed)(nil)

// ErrDeadline is the error of Run if the body has not returned in time.
var ErrDeadline = errors.New("testbed: the deadline has passed")

// device is a function with its link, its driver and its port.
type device struct {
	host *host
	name string
	hca  *hca.Device
	link *pcie.Link
	tap  *tap // nil with Config.NoTap
	kern *kernel.Device
	port *link.Port
}

// New makes a testbed. Only the drivers' bring-up has run then, which takes no simulated time.
func New(cfg Config) (*Testbed, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	tb := &Testbed{cfg: cfg, prof: cfg.Profile.Resolved(), owner: map[neighbour]*device{}, log: newMMIOLog(cfg.Profile.Resolved().PCIe.PostedLatency)}
	tb.eng = sim.New(sim.Options{Seed: cfg.Seed, MaxEvents: cfg.MaxEvents, Lockstep: cfg.Lockstep, Interrupt: cfg.Interrupt,
		Broken: cfg.Broken, Horizon: tb.notice()})
	if cfg.Trace {
		tb.eng.Spans = &sim.Spans{}
	}
	tb.wire = &wire{tb: tb}
	if cfg.Faults != nil {
		for _, e := range cfg.Faults.Events {
			tb.fates = append(tb.fates, fate{event: e})
		}
	}
	for i := range cfg.Hosts {
		h, err := tb.newHost(i)
		if err != nil {
			return nil, err
		}
		tb.hosts = append(tb.hosts, h)
	}
	tb.register()
	tb.plug()
	if cfg.Pcap != nil || cfg.Capture != nil {
		var err error
		if tb.pcap, err = newCapture(tb); err != nil {
			return nil, err
		}
	}
	if err := tb.bringUp(); err != nil {
		return tb, err
	}
	if cfg.Faults != nil {
		if err := tb.plan(cfg.Faults); err != nil {
			return tb, err
		}
	}
	return tb, nil
}

// FaultsActed returns, for each rule of Config.Faults, how many frames it has matched and on how
// many it has acted.
func (tb *Testbed) FaultsActed() (met, acted []int) {
	for i := range tb.wire.script.Len() {
		met, acted = append(met, tb.wire.script.Matched(i)), append(acted, tb.wire.script.Acted(i))
	}
	return met, acted
}

// newHost makes a host and its devices, without wires.
func (tb *Testbed) newHost(i int) (*host, error) {
	hc := &tb.cfg.Hosts[i]
	p := tb.prof
	h := &host{tb: tb, index: i, name: hc.Name, mem: mem.New(hc.Memory), cpu: cpu.NewHost(tb.eng, hc.Cores, p.CPU),
		load: make([]int, hc.Cores)}
	if hc.Resident > 0 {
		h.mem.SetPaging(hc.Resident, hc.Swap)
	}
	for k := range hc.Devices {
		d := &device{host: h, name: fmt.Sprintf("mlx5_%d", k)}
		d.link = pcie.NewLink(tb.eng, h.mem, p.PCIe)
		id := identity(i, k, len(tb.cfg.Hosts))
		id.Packets = tb.cfg.Packets
		if o := tb.cfg.Outside; o != nil {
			id = o.Identity
		}
		d.hca = hca.New(tb.eng, d.path(), tb.cfg.Wrap.bus(d.link), p.HCA, id)
		f := tb.cfg.Wrap.function(d.hca)
		if !tb.cfg.NoTap {
			d.tap = newTap(tb, f, p.HCA.BFRegSize)
			f = d.tap
		}
		d.link.Attach(f, func(v int) { d.kern.Interrupt(v) })
		h.devices = append(h.devices, d)
	}
	if len(h.devices) == 1 {
		h.devices[0].link.HoldBack()
	}
	return h, nil
}

// path names a device in counters, captures and rules.
func (d *device) path() string {
	if d.host.tb.cfg.Outside != nil {
		return d.name
	}
	return d.host.name + "/" + d.name
}

// identity gives device k of host i of some its GUID, MAC and address, which differ in the bytes of
// both numbers.
func identity(i, k, hosts int) hca.Identity {
	n, dev := i+1, byte(k+1)
	high, low := byte(n>>8), byte(n)
	return hca.Identity{
		Number: k*hosts + i, GUID: 0x0002_c903_0000_0000 | uint64(n)<<8 | uint64(dev),
		MAC: [6]byte{0x02, 0x02, 0xc9, high, low, dev}, IPv4: [4]byte{10, dev, high, low}, BoardID: "SIM0000000001",
	}
}

// plug joins ports by cables or by a switch.
func (tb *Testbed) plug() {
	p := tb.prof
	if o := tb.cfg.Outside; o != nil {
		d := tb.hosts[0].devices[0]
		d.port = o.Join(tb.eng, d.hca)
		return
	}
	if p.Link.InfiniBand {
		tb.sm = link.NewSubnetManager(tb.eng, link.DefaultFabric(), p.Link.IB.Sweep)
		defer tb.sm.Sweep()
	}
	if tb.cfg.Switched {
		sw := link.NewSwitch(tb.eng, "switch", p.Switch)
		tb.sw = sw
		for _, h := range tb.hosts {
			for _, d := range h.devices {
				c := link.NewCable(tb.eng, p.Link, d.path(), "switch/"+d.path())
				sw.Plug(c.End(1))
				c.End(1).SetMAC([6]byte{0x02, 0x02, 0xc9, 0xff - byte(h.index>>8), byte(h.index), byte(len(tb.hosts))})
				if !p.Link.InfiniBand { // hosts know each other's addresses, so the answers that told them have passed the switch
					sw.Learn(d.hca.Identity().MAC)
				}
				tb.join(d, c.End(0), sw)
			}
		}
		return
	}
	for i, h := range tb.hosts {
		for k, d := range h.devices {
			if d.port != nil {
				continue
			}
			if i%2 == 0 && i+1 < len(tb.hosts) && k < len(tb.hosts[i+1].devices) {
				peer := tb.hosts[i+1].devices[k]
				c := link.NewCable(tb.eng, p.Link, d.path(), peer.path())
				tb.join(d, c.End(0), nil)
				tb.join(peer, c.End(1), nil)
				continue
			}
			// The other end has no device and discards what it gets.
			c := link.NewCable(tb.eng, p.Link, d.path(), d.path()+"/open")
			c.End(1).Attach(open{})
			tb.join(d, c.End(0), nil)
		}
	}
}

// join puts a device at a port; sw is the switch at the other end of the cable.
func (tb *Testbed) join(d *device, p *link.Port, sw *link.Switch) {
	d.port = p
	p.Attach(d.hca)
	d.hca.SetWire(tb.cfg.Wrap.wire(p))
	p.SetMAC(d.hca.Identity().MAC)
	if tb.sm != nil {
		at := 0
		if sw != nil {
			at = sw.Ports() - 1
		}
		tb.sm.Add(p, d.hca, sw, at)
	}
}

// bringUp loads the drivers and gives the ports their addresses.
func (tb *Testbed) bringUp() error {
	for _, h := range tb.hosts {
		h.cm = cm.New(tb.eng, h.name, cm.Params{Syscall: tb.prof.Kernel.Syscall, Wakeup: tb.prof.Kernel.Wakeup}, nil)
		if tb.cfg.Outside == nil {
			h.cm.AddOtherAddress(h.management())
		}
		for _, d := range h.devices {
			var err error
			k := tb.prof.Kernel
			k.PinDmabuf = tb.prof.GPU.Pin
			if d.kern, err = kernel.NewDevice(tb.eng, d.path(), d.link, h.mem, k); err != nil {
				return err
			}
			if err := errors.Join(tb.address(d), h.cm.AddDevice(d.kern)); err != nil {
				return fmt.Errorf("testbed: address of %s: %w", d.path(), err)
			}
		}
	}
	return nil
}

// neighbour is an address on the network, or on a VLAN of it.
type neighbour struct {
	vlan uint16
	ip   netip.Addr
}

// address gives a port's interface its IPv4 address, and a way to learn those of others.
func (tb *Testbed) address(d *device) error {
	if tb.cfg.Outside != nil {
		return tb.addressOutside(d)
	}
	ip := netip.AddrFrom4(d.hca.Identity().IPv4)
	tb.owner[neighbour{ip: ip}] = d
	d.kern.SetNeighbours(func(vlan uint16, ip netip.Addr) (mac kernel.MAC, ok bool) {
		n := tb.owner[neighbour{vlan, ip}]
		if n != nil {
			mac = n.hca.Identity().MAC
		}
		return mac, n != nil
	})
	d.kern.SetIPoIBNeighbours(func(ip netip.Addr) (g verbs.GID, ok bool) {
		if n := tb.owner[neighbour{ip: ip}]; n != nil {
			return n.kern.FirstGID()
		}
		return g, false
	})
	return d.kern.AddIP(ip)
}

// Engine returns the engine of the testbed, for counters, spans and events.
func (tb *Testbed) Engine() *sim.Engine { return tb.eng }

// Config returns the configuration from which the testbed was made.
func (tb *Testbed) Config() *Config { return &tb.cfg }

// Hosts returns the hosts of the testbed.
func (tb *Testbed) Hosts() []verbs.Host {
	l := make([]verbs.Host, len(tb.hosts))
	for i, h := range tb.hosts {
		l[i] = h
	}
	return l
}

// Target describes the testbed for reports.
func (tb *Testbed) Target() verbs.Target {
	return verbs.Target{Kind: "sim", Profile: tb.cfg.Profile.Name, Device: "mlx5_0", Details: map[string]string{}}
}

// Log returns the log of register writes; nil with Config.NoTap.
func (tb *Testbed) Log() verbs.MMIOLog {
	if tb.cfg.NoTap {
		return nil
	}
	return tb.log
}

// Wire returns the tester's access to the links.
func (tb *Testbed) Wire() verbs.Wire { return tb.wire }

// Faults returns the injector of faults in registers and devices; nil with Config.NoTap.
func (tb *Testbed) Faults() verbs.Faults {
	if tb.cfg.NoTap {
		return nil
	}
	return faults{tb}
}

// Run runs body in the first thread of a new process of the first host until it returns. The error
// is ErrDeadline if that takes longer than deadline of virtual time (0: no limit), a *sim.Deadlock
// if nothing is left to happen, or says how the process died. A panic of body becomes a
// *sim.ProgramPanic.
func (tb *Testbed) Run(deadline time.Duration, body func(verbs.Thread)) error {
	s := tb.Start(body)
	until := sim.Never - 1
	if deadline > 0 {
		until = tb.eng.Now() + provider.FromDuration(deadline)
		tb.eng.Barrier(until) // it ends programs
	}
	if ended, err := s.Ended(tb.eng.Run(until)); ended || err != nil {
		return err
	}
	return fmt.Errorf("%w: %v", ErrDeadline, deadline)
}

// Started is a body that Start has begun and that runs as the engine runs.
type Started struct {
	tb   *Testbed
	main *process
	done bool
}

// Start begins body as Run does, but leaves it to the caller to run the engine.
func (tb *Testbed) Start(body func(verbs.Thread)) *Started {
	s := &Started{tb: tb, main: tb.hosts[0].newProcess(tb.cfg.Env)}
	tb.main = s.main
	s.main.start("main", 0, func(t verbs.Thread) {
		body(t)
		th := t.(*provider.Thread)
		th.P.Sync()
		tb.stopAhead(th, tb.procs...) // the others end with it
		s.done = true
		tb.eng.Stop()
	})
	return s
}

// Ended reports, after a run of the engine that returned the error run (which may be nil), whether
// the body has ended; the error is that of the run, or says how the process died.
func (s *Started) Ended(run error) (bool, error) {
	switch p := s.main; {
	case p.dead && p.obituary != "":
		return true, fmt.Errorf("testbed: the main process has ended: %s", p.obituary)
	case run != nil:
		return true, run
	case s.done:
		return true, nil
	case p.dead:
		return true, errors.New("testbed: the main process was killed")
	}
	return false, nil
}

// Backed returns an upper bound of the memory, in bytes, that backs the hosts' memory; it may be
// called at any time (mem.Memory.Backed).
func (tb *Testbed) Backed() (n uint64) {
	for _, h := range tb.hosts {
		n += h.mem.Backed()
	}
	return n
}

// Close ends every program and finishes the capture. The error says what could not
// be written.
func (tb *Testbed) Close() error {
	tb.eng.Close()
	if tb.pcap != nil {
		return tb.pcap.close()
	}
	return nil
}
