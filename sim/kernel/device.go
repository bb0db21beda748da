// Package kernel is what ib_core and mlx5_ib do: object tables and reference
// counts, UAR pages, the commands that make objects on the device, and their
// errnos. It knows the device only as a pcie.Function.
//
// Its calls are seam 2: one for each uverbs method, with the values of the ABI as
// plain fields. sim/provider calls them for simulated programs, and attach/exec
// will call the very same for unmodified ones. Rules and errnos are those of Linux
// 6.12 (drivers/infiniband/core and hw/mlx5); functions named in comments are there.
package kernel

import (
	"fmt"
	"net/netip"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

// Device is an ib_device over one function.
type Device struct {
	eng  *sim.Engine
	name string
	link *pcie.Link
	mem  *mem.Memory
	p    Params

	cmds       sim.Server // the command interface
	caps       caps
	uar        uint32 // the kernel's own, for its EQs
	pdn        uint32 // the kernel's own
	qcnt       uint32 // counter set of user QPs; 0: none
	xrcd       [2]uint32
	xrcds      bool
	mkeys      uint8  // variant byte of the last mkey made
	memicPages []bool // pages of BAR 0 where device memory is seen

	eqs  []*eq // async, then completion; eqs[i] has MSI-X vector i
	poll sim.Handler

	gids       []gidEntry
	vlans      []uint16 // of VLAN interfaces over the port's, by index; 0: removed
	neighbours func(uint16, netip.Addr) (MAC, bool)

	ctxs  []*Ucontext    // open ones, in the order of opening
	cqs   map[uint32]*cq // by CQN, for events
	qps   map[uint32]*qp // by QPN
	srqs  map[uint32]*srq
	res   Resources
	count Counters

	removed bool
}

// MAC is an Ethernet address.
type MAC [6]byte

// Resources are what the processes of a device own, as `rdma resource show` counts
// them. Objects that the kernel made for itself are not among them.
type Resources struct {
	Ctx, PD, CQ, QP, SRQ, MR, Channel int

	UAR         int // hardware UARs of user contexts
	PinnedPages int
}

// Counters of the kernel's side of a device.
type Counters struct {
	Calls         uint64 // system calls
	Commands      uint64
	CommandErrors uint64 // commands that were answered with a status
	Interrupts    uint64
	EQEs          uint64 // taken from event queues
	CompEvents    uint64 // completion events queued to channels
	AsyncEvents   uint64 // asynchronous events queued to contexts
	LeakedUARs    uint64 // still in use when their context ended
	StrayEvents   uint64 // EQEs about objects that are gone, or of a type that nobody wants
}

// NewDevice brings the function up (the commands of mlx5_core's load as far as they are
// modelled) and returns the device.
func NewDevice(e *sim.Engine, name string, link *pcie.Link, m *mem.Memory, p Params) (*Device, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	d := &Device{
		eng: e, name: name, link: link, mem: m, p: p,
		cqs: map[uint32]*cq{}, qps: map[uint32]*qp{}, srqs: map[uint32]*srq{},
	}
	d.poll = d.pollEQ
	if err := d.load(); err != nil {
		return nil, fmt.Errorf("kernel: %s: bring-up: %w", name, err)
	}
	return d, nil
}

// Name is the device's name, such as mlx5_0.
func (d *Device) Name() string { return d.name }

// NodeGUID is the device's node GUID.
func (d *Device) NodeGUID() uint64 { return d.caps.nodeGUID }

// MAC is the Ethernet address of the port.
func (d *Device) MAC() MAC { return d.caps.mac }

// Resources counts what processes own.
func (d *Device) Resources() Resources { return d.res }

// Counters reads the counters.
func (d *Device) Counters() Counters { return d.count }

// Generation says which UAR rules the kernel offers.
func (d *Device) Generation() Generation { return d.p.Generation }

// NumCompVectors is the number of completion vectors.
func (d *Device) NumCompVectors() int { return len(d.eqs) - 1 }

// load is mlx5_load_one and mlx5_ib's first steps.
func (d *Device) load() error {
	k := &call{d: d}
	steps := []func(*call) error{
		d.enableHCA, d.negotiateISSI, d.bootPages, d.setCaps, d.initPages, d.initHCA, d.readCaps,
		d.readVport, d.makeEQs, d.makeOwnResources, d.enablePort,
	}
	for _, step := range steps {
		if err := step(k); err != nil {
			return err
		}
	}
	return nil
}

func (d *Device) enableHCA(k *call) error {
	_, err := k.simple(prm.OpEnableHCA, 0)
	return err
}

// negotiateISSI chooses interface step 1 where the device has it. A device that
// does not know the question speaks step 0.
func (d *Device) negotiateISSI(k *call) error {
	out, err := k.simple(prm.OpQueryISSI, 0)
	if err != nil || prm.QueryISSIOut(out).SupportedISSIDW0()&(1<<1) == 0 {
		return nil
	}
	in := prm.NewIn(prm.OpSetISSI, 0)
	prm.SetISSIIn(in).SetCurrentISSI(1)
	return k.exec(in, prm.NewOut(prm.OpSetISSI, 0))
}

func (d *Device) bootPages(k *call) error { return d.givePages(k, prm.PagesBoot) }
func (d *Device) initPages(k *call) error { return d.givePages(k, prm.PagesInit) }

// givePages gives the firmware the memory that it asks for.
func (d *Device) givePages(k *call, phase uint16) error {
	out, err := k.simple(prm.OpQueryPages, phase)
	if err != nil {
		return err
	}
	n := int32(prm.QueryPagesOut(out).NumPages())
	if n <= 0 {
		return nil
	}
	in := prm.NewIn(prm.OpManagePages, 8*int(n))
	prm.CmdIn(in).SetOpMod(prm.PagesGive)
	prm.ManagePagesIn(in).SetInputNumEntries(uint32(n))
	for i := range int(n) {
		pa, err := d.mem.Alloc(prm.PageSize, prm.PageSize)
		if err != nil {
			return fmt.Errorf("page %d of %d for the firmware: %w", i, n, err)
		}
		prm.ManagePagesIn(in).PAS().Set(i, uint64(pa))
	}
	return k.exec(in, prm.NewOut(prm.OpManagePages, 8*int(n)))
}

func (d *Device) initHCA(k *call) error {
	_, err := k.simple(prm.OpInitHCA, 0)
	return err
}

// makeOwnResources makes what the driver needs for itself: a PD, the two XRC
// domains that QPs without one name, a set of counters.
func (d *Device) makeOwnResources(k *call) error {
	out, err := k.simple(prm.OpAllocPD, 0)
	if err != nil {
		return err
	}
	d.pdn = prm.AllocPDOut(out).PD()
	if d.caps.xrc {
		d.xrcds = true
		for i := range d.xrcd {
			out, err := k.simple(prm.OpAllocXRCD, 0)
			if err != nil {
				return err
			}
			d.xrcd[i] = prm.AllocXRCDOut(out).XRCD()
		}
	}
	if d.caps.counterSets > 0 {
		out, err := k.simple(prm.OpAllocQCounter, 0)
		if err != nil {
			return err
		}
		d.qcnt = prm.AllocQCounterOut(out).CounterSetID()
	}
	return nil
}

// What MODIFY_NIC_VPORT_CONTEXT selects.
const (
	vportFieldRoCE = 1 << 1
	vportFieldMTU  = 1 << 6
)

// ethernetOverhead is what the driver adds to the interface's MTU for the port's:
// Ethernet header, VLAN tag and FCS (MLX5E_ETH_HARD_MTU).
const ethernetOverhead = 14 + 4 + 4

// enablePort makes the port's GID table.
func (d *Device) enablePort(k *call) error {
	if d.caps.ib {
		return d.readGIDs(k)
	}
	return d.enableRoCE(k)
}

// enableRoCE sets the port's MTU, turns RoCE on and fills the table with the default GIDs.
func (d *Device) enableRoCE(k *call) error {
	in := prm.NewIn(prm.OpModifyNICVportContext, 0)
	prm.ModifyNICVportContextIn(in).SetFieldSelect(vportFieldRoCE | vportFieldMTU)
	v := prm.ModifyNICVportContextIn(in).Context()
	v.SetRoCEEn(true)
	v.SetMTU(uint32(d.p.NetMTU + ethernetOverhead))
	if err := k.exec(in, prm.NewOut(prm.OpModifyNICVportContext, 0)); err != nil {
		return err
	}
	d.gids = make([]gidEntry, d.caps.gids)
	return d.addGID(k, linkLocal(d.caps.mac), 0)
}
