package kernel

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

// NewDevice brings the function up (the commands of mlx5_core's load that are modelled) and returns
// the device.
func NewDevice(e *sim.Engine, name string, link *pcie.Link, m *mem.Memory, p Params) (*Device, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	d := &Device{
		eng: e, name: name, link: link, mem: m, p: p,
		cqs: map[uint32]eventTarget{}, qps: map[uint32]eventTarget{}, srqs: map[uint32]eventTarget{},
		odp: odpTable{keys: map[uint32]*odpKey{}},
	}
	d.poll = d.pollEQ
	if err := d.load(); err != nil {
		return nil, fmt.Errorf("kernel: %s: bring-up: %w", name, err)
	}
	return d, nil
}

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
// does not know the command has step 0.
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
