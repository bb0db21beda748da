//go:build linux && amd64

package exec

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/pci"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/sim/kernel/umad"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/sa"
	"github.com/rdmasim/rdmasim/verbs"
)

// kernelMemory is the memory of the simulated host, which holds what the driver
// allocates for itself; programs bring theirs.
const kernelMemory = 1 << 30

// machine is the simulated host: one memory, and devices that are joined in pairs by
// cables, or all by a switch when there are more than two.
type machine struct {
	eng  *sim.Engine
	mem  *mem.Memory
	prof *profile.Profile
	devs []*device
	macs map[netip.Addr]kernel.MAC
	net  *network.Network
	cm   *cm.Manager
	umad *umad.Manager // ib_mad and ib_umad
	// admin is the subnet administrator of an InfiniBand network; nil until it is asked.
	admin *sa.Node
	// timers are those of the connection manager.
	timers *timers
	// ownNetwork says that programs see an interface for each device.
	ownNetwork bool
	// guests are functions of virtual machines on the same network; nil: there are none.
	guests *pci.Server
	// wires are the sockets of the devices; nil: cables join them.
	wires []wire.End
	// flush makes what the devices wrote visible, before an event announces it.
	flush func()
}

// device is one function with its driver.
type device struct {
	name         string
	hca          *hca.Device
	link         *pcie.Link
	kern         *kernel.Device
	attr         verbs.DeviceAttr
	ports        []verbs.PortAttr
	subnetPrefix uint64 // of an InfiniBand port
	// counters are the files of counters, or nil.
	counters *counterFiles
	torn     tornPushes
}

func newMachine(cfg *Config) (_ *machine, err error) {
	p, trace := cfg.Profile.Resolved(), cfg.Trace != ""
	if cfg.NoODP {
		p = withoutPaging(p)
	}
	m := &machine{eng: sim.New(sim.Options{Seed: cfg.Seed}), mem: mem.New(kernelMemory), prof: p, macs: map[netip.Addr]kernel.MAC{}, flush: func() {}, ownNetwork: cfg.OwnNetwork}
	if trace {
		m.eng.Spans = &sim.Spans{}
	}
	defer func() {
		if err != nil {
			m.closeWires()
		}
	}()
	if err := m.openWires(cfg); err != nil {
		return nil, err
	}
	if m.wires != nil {
		p = wire.Profile(p, m.leastMTU())
		m.prof = p
	}
	for k := range cfg.Devices {
		d := &device{name: fmt.Sprintf("mlx5_%d", k)}
		d.link = pcie.NewLink(m.eng, m.mem, p.PCIe)
		id := network.Identity(k)
		if m.wires != nil {
			id = m.wires[k].Identity(k, MaxDevices)
		}
		id.Packets = m.wires == nil
		d.hca = hca.New(m.eng, d.name, d.link, p.HCA, id)
		d.link.Attach(d.hca, func(v int) { m.flush(); d.kern.Interrupt(v) })
		if trace {
			d.link.Register(d.name)
		}
		m.devs = append(m.devs, d)
	}
	hcas := make([]*hca.Device, 0, cfg.Devices+cfg.Guests)
	for _, d := range m.devs {
		hcas = append(hcas, d.hca)
	}
	if cfg.Guests > 0 {
		if err := m.addGuests(cfg); err != nil {
			return nil, err
		}
		hcas = append(hcas, m.guests.Devices()...)
	}
	join := network.New
	if cfg.NoSubnetManager {
		join = network.NewUnmanaged
	}
	if m.wires != nil {
		join = func(_ *sim.Engine, _ *profile.Profile, hcas []*hca.Device) *network.Network { return m.joinWires(hcas) }
	}
	m.net = join(m.eng, p, hcas)
	m.timers = &timers{}
	m.cm = cm.New(m.eng, "host", cm.Params{Syscall: p.Kernel.Syscall, Wakeup: p.Kernel.Wakeup}, m.timers)
	m.umad = umad.New(m.eng, m.timers)
	if !cfg.OwnNetwork {
		m.addOtherAddresses(cfg.Wire)
	}
	if m.wires != nil {
		m.cm.SetReach(m.reachesByWire)
	}
	for _, d := range m.devs {
		if err := m.bringUp(d); err != nil {
			return nil, err
		}
		if err := m.cm.AddDevice(d.kern); err != nil {
			return nil, err
		}
		m.umad.AddDevice(d.kern)
	}
	return m, nil
}

// addOtherAddresses tells the connection manager the addresses of this machine, of which programs
// see the interfaces, but for those of devices.
func (m *machine) addOtherAddresses(devices []wire.Place) {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			if ip, _ := netip.AddrFromSlice(n.IP); !slices.ContainsFunc(devices, func(p wire.Place) bool { return p.Address == ip.Unmap() }) {
				m.cm.AddOtherAddress(ip)
			}
		}
	}
}

// portOf is the GID of the port whose interface has an address, of any device on the network.
func (m *machine) portOf(ip netip.Addr) (g verbs.GID, ok bool) {
	for _, d := range m.devs {
		if slices.Contains(d.kern.IPs(), ip) {
			return d.kern.FirstGID()
		}
	}
	if m.guests == nil {
		return g, false
	}
	for _, h := range m.guests.Devices() { // which take the addresses that a device of their number has
		if id := h.Identity(); ip == netip.AddrFrom4(id.IPv4) {
			return verbs.GID(roce.GIDFromGUID(h.PortInfo().GIDPrefix, id.GUID)), true
		}
	}
	return g, false
}

// loadCM loads the connection manager, and on InfiniBand the subnet administrator that it asks.
func (m *machine) loadCM() error {
	if err := m.cm.Load(); err != nil || m.admin != nil {
		return err
	}
	var send func(*cm.SAPeer, []byte)
	m.admin = m.net.Administrator(func(to *sa.Peer, b mad.MAD) { send((*cm.SAPeer)(to), b) }, m.inBroadcast)
	if m.admin != nil {
		send = m.cm.ServeSA(m.devs[0].kern, func(from cm.SAPeer, data []byte) { m.admin.Request(sa.Peer(from), data) })
	}
	return nil
}

// loadUMAD has the devices answer management datagrams, and gives programs a way to send some.
func (m *machine) loadUMAD() error {
	m.umad.Unclaimed = func(d *kernel.Device, b mad.MAD) bool {
		return d == m.devs[0].kern && m.net.AnswerSMInfo(b)
	}
	m.umad.Served = func(d *kernel.Device, class uint8) bool {
		return class == mad.ClassCM || class == mad.ClassSubnAdm && m.admin != nil && d == m.devs[0].kern
	}
	return m.umad.Load()
}

// inBroadcast tells the connection manager what group a device's interface is in.
func (m *machine) inBroadcast(h *hca.Device, r mad.MCMemberRecord) {
	for _, d := range m.devs {
		if d.hca == h {
			m.cm.SetBroadcast(d.kern, r)
		}
	}
}

// number is the index of a device.
func (m *machine) number(k *kernel.Device) int {
	return slices.IndexFunc(m.devs, func(d *device) bool { return d.kern == k })
}

// addGuests makes the functions of virtual machines. On Ethernet their addresses are those that a
// device of this number has here, so that programs find them; a guest has to take them.
func (m *machine) addGuests(cfg *Config) error {
	c := cfg.guests()
	var err error
	if m.guests, err = pci.NewGuests(m.eng, &c, cfg.Devices); err != nil {
		return guestsError(err)
	}
	for k := range cfg.Guests {
		id := network.Identity(cfg.Devices + k)
		m.macs[netip.AddrFrom4(id.IPv4)] = id.MAC
	}
	return nil
}

// nodeDescription is what the host has called a device, as the service rdma-ndd does.
func nodeDescription(device string) string { return "rdmasim " + device }

func (m *machine) bringUp(d *device) error {
	var err error
	if d.kern, err = kernel.NewDevice(m.eng, d.name, d.link, m.mem, m.prof.Kernel); err != nil {
		return err
	}
	id := d.hca.Identity()
	ip := netip.AddrFrom4(id.IPv4)
	if m.wires != nil {
		return m.wireAddress(d, m.wires[m.number(d.kern)])
	}
	if m.net.InfiniBand() {
		if err := d.kern.SetNodeDescription(nodeDescription(d.name)); err != nil {
			return err
		}
		d.kern.SetIPoIBNeighbours(m.portOf)
		return d.kern.AddIP(ip)
	}
	m.macs[ip] = id.MAC
	d.kern.SetNeighbours(func(_ uint16, ip netip.Addr) (kernel.MAC, bool) {
		mac, ok := m.macs[ip]
		return mac, ok
	})
	return d.kern.AddIP(ip)
}

// describe asks a device, as a program would, for the contents of its files.
func (m *machine) describe(d *device, host *hostFacts) (tree.Device, error) {
	k := m.number(d.kern)
	t := tree.Device{Name: d.name, BoardID: d.hca.Identity().BoardID, PCI: m.pciFunction(k, host), Net: m.netInterface(k)}
	u, err := m.open(d)
	if err != nil {
		return t, err
	}
	defer u.Close(kernel.Caller{})
	a, err := u.QueryDevice(kernel.Caller{})
	if err != nil {
		return t, err
	}
	d.attr = a.DeviceAttr
	t.NodeGUID, t.SysImageGUID, t.FWVer, t.HWRev = a.NodeGUID, a.SysImageGUID, a.FWVer, a.HWVer
	if d.counters, err = newCounterFiles(d.kern, d.hca, m.net.PortCounters(d.hca), a.ODPGeneralCaps&verbs.ODPSupport != 0); err != nil {
		return t, err
	}
	t.Counters = links(d.counters.paging)
	for n := range int(a.PhysPortCnt) {
		port, err := d.describePort(u, n+1)
		if err != nil {
			return t, err
		}
		port.HWCounters, port.Counters = links(d.counters.port), links(d.counters.traffic)
		t.Ports = append(t.Ports, port)
	}
	return t, nil
}

// open is a context of the session's own.
func (m *machine) open(d *device) (*kernel.Ucontext, error) {
	p := &kernel.Process{Name: "rdmasim", Space: mem.NewSpace(m.mem), IPCLock: true}
	u, _, err := d.kern.AllocUcontext(kernel.Caller{}, p, kernel.UcontextReq{TotalBFRegs: 16, LowLatBFRegs: 4})
	return u, err
}

// portStates are the states of a port as its file says them (state_show of sysfs.c).
var portStates = map[verbs.PortState]string{verbs.PortDown: "1: DOWN", verbs.PortInit: "2: INIT", verbs.PortArmed: "3: ARMED", verbs.PortActive: "4: ACTIVE"}

func (d *device) describePort(u *kernel.Ucontext, n int) (tree.Port, error) {
	a, err := u.QueryPort(kernel.Caller{}, n)
	if err != nil {
		return tree.Port{}, err
	}
	if len(d.ports) < n {
		d.ports = append(d.ports, a)
	}
	d.ports[n-1] = a
	p := tree.Port{
		LinkLayer: "Ethernet", State: portStates[a.State], PhysState: "3: Disabled", LID: a.LID, SMLID: a.SMLID, CapMask: a.PortCapFlags,
		Rate: rate(a.ActiveSpeed, a.ActiveWidth),
	}
	if a.LinkLayer == verbs.LinkInfiniBand {
		p.LinkLayer = "InfiniBand"
	}
	if a.State > verbs.PortDown {
		p.PhysState = "5: LinkUp"
	}
	for i := range a.PKeyTblLen {
		k, err := u.QueryPKey(kernel.Caller{}, n, int(i))
		if err != nil {
			return p, err
		}
		p.PKeys = append(p.PKeys, k)
	}
	for i := range a.GIDTblLen {
		var g tree.GID
		if e, err := u.QueryGIDEntry(kernel.Caller{}, n, i); err == nil {
			g = tree.GID{Value: e.GID, Type: "IB/RoCE v1"}
			if e.Type == verbs.GIDTypeRoCEv2 {
				g.Type = "RoCE v2"
			}
		}
		if i == 0 && a.LinkLayer == verbs.LinkInfiniBand {
			d.subnetPrefix = roce.GID(g.Value).SubnetPrefix()
		}
		p.GIDs = append(p.GIDs, g)
	}
	return p, nil
}

// rate is what the file of that name says (rate_show): decimal steps of 100 Mb/s a lane.
func rate(speed uint32, width uint8) string {
	lanes := map[uint8]int{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[width]
	lane := map[uint32]struct {
		rate int
		name string
	}{1: {25, ""}, 2: {50, " DDR"}, 4: {100, " QDR"}, 8: {100, " FDR10"}, 16: {140, " FDR"}, 32: {250, " EDR"}, 64: {500, " HDR"}, 128: {1000, " NDR"}}[speed]
	half := ""
	if r := lane.rate * lanes; r%10 != 0 {
		half = ".5"
	}
	return fmt.Sprintf("%d%s Gb/sec (%dX%s)", lane.rate*lanes/10, half, lanes, lane.name)
}

// close finishes the capture.
func (m *machine) close() error {
	m.eng.Close()
	m.closeWires()
	for _, d := range m.devs {
		if d.counters != nil {
			d.counters.close()
		}
	}
	return m.net.Close()
}

// withoutPaging is a profile whose devices do not page on demand.
func withoutPaging(p *profile.Profile) *profile.Profile {
	c := p.Clone()
	c.HCA.ODP = odp.Params{}
	return c
}
