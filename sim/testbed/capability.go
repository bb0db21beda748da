package testbed

import (
	"strings"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// always are the tokens that every simulated testbed with a device has.
var always = map[string]bool{
	"td": true, "pdom": true, "4k page": true, "raw db": true, "env": true,
	"tap": true, "inj": true, "inj.ip": true, "linkctl": true, "shared bf": true, "bf lock": true, "schedule": true, "root": true, "non-root": true, "events": true,
	"cq_ex": true, "cq.moderation": true, "ts": true, "clock": true, "resize": true, "cq.ignore_overrun": true, "overrun": true,
	"bigmem": true, "counters": true, "hw counters": true, "exact time": true, "simulated": true, "in flight": true, "locks": true, "mcast": true, "mw": true,
	"mw.t1": true, "mw.t2": true, "rereg": true, "ro": true, "speed": true, "device time": true, "srq": true, "uc": true, "ud": true, "wr_ex": true,
	"hotunplug": true, "restrack": true, "addr": true, "cm": true, "other net": true, "fork": true, "invalidate.checked": true, "xrc.handles": true, "huge": true, "exporter": true,
}

// pagedOperations are the bits of the capabilities of on-demand paging by the last word of a token.
var pagedOperations = map[string]uint32{"send": prm.ODPSend, "recv": prm.ODPReceive, "write": prm.ODPWrite, "read": prm.ODPRead, "atomic": prm.ODPAtomic, "srq_recv": prm.ODPSRQReceive}

// Capability says whether the testbed has a capability of the catalogue. Tokens that it does not
// know are absent.
func (tb *Testbed) Capability(token string) verbs.Capability {
	p := tb.cfg.Profile
	has, known := always[token]
	if !known {
		switch token {
		case "dv":
			has = !p.Provider.Foreign
		case "card faults":
			has = p.HCA.CardFaults
		case "dv.sport":
			has = p.HCA.UDPSport && p.Provider.Generation == kernel.Dynamic && !p.Provider.Foreign && tb.sm == nil
		case "dv.resqpn":
			has = p.HCA.ReservedNumbers > 0 && p.Provider.Generation == kernel.Dynamic && !p.Provider.Foreign
		case "dv.dm_op":
			has = p.HCA.MemicOps && p.HCA.MemicSize > 0 && !p.Provider.Foreign
		case "dv.raw":
			has = !p.Provider.Foreign
		case "no dv":
			has = p.Provider.Foreign
		case "bf":
			has = p.HCA.BFRegSize != 0
		case "dm":
			has = p.HCA.MemicSize > 0
		case "dv.mkey":
			has = p.Kernel.Generation == kernel.Dynamic && p.Provider.Generation == kernel.Dynamic && !p.Provider.Foreign
		case "dv.memcpy":
			has = p.Kernel.Generation == kernel.Dynamic && p.Provider.Generation == kernel.Dynamic && !p.Provider.Foreign && p.HCA.CopyLogMax > 0
		case "dm.export":
			has = p.HCA.MemicSize > 0 && p.Kernel.DmabufExport && p.Kernel.Dmabuf && p.HCA.ODP.On() && p.Provider.Generation == kernel.Dynamic
		case "buf":
			has = p.Provider.Generation == kernel.Dynamic
		case "dmabuf", "udmabuf":
			has = p.Kernel.Dmabuf
		case "no dmabuf":
			has = !p.Kernel.Dmabuf
		case "gpu":
			has = p.Kernel.Dmabuf && p.GPU.Dmabuf && !p.GPU.Integrated && tb.cfg.Hosts[0].GPUs > 0
		case "dmabuf.move":
			has = p.Kernel.Dmabuf && p.GPU.Dmabuf && !p.GPU.Integrated && !p.GPU.Pin && tb.cfg.Hosts[0].GPUs > 0 && p.HCA.ODP.On()
		case "nullmr":
			has = p.HCA.DumpFillMkey
		case "2p":
			has = len(tb.hosts) > 1 && len(tb.hosts[1].devices) > 0
		case "atomic":
			has = p.HCA.Atomics
		case "no atomic":
			has = !p.HCA.Atomics
		case "dv.cqe_comp", "dv.cqe_comp.read":
			has = p.HCA.CQECompMax > 0
		case "dv.dc":
			has = p.HCA.DCT && !p.Provider.Foreign && p.Provider.Generation == kernel.Dynamic
		case "ecn":
			has = p.HCA.Congestion.DCQCN && tb.sm == nil
		case "rc.atomic_write":
			has = p.HCA.AtomicWrite && p.Provider.AtomicWrite
		case "sqd":
			has = p.HCA.SQD && p.Kernel.SQD
		case "pfc":
			has = p.Link.PFC && tb.sm == nil
		case "dyn uar":
			has = p.Kernel.Generation == kernel.Dynamic && p.Provider.Generation == kernel.Dynamic
		case "uar objects":
			has = p.Kernel.Generation == kernel.Dynamic
		case "lib.dyn":
			has = p.Provider.Generation == kernel.Dynamic
		case "mkeys.lifo":
			has = p.Kernel.MKeyCache == kernel.LastKeyFirst
		case "fork.copy":
			has = p.Kernel.Generation != kernel.Static
		case "legacy abi":
			has = p.Kernel.Generation == kernel.Static || p.Provider.Generation == kernel.Static
		case "import":
			has = p.Kernel.Generation == kernel.Dynamic && p.Provider.Generation == kernel.Dynamic
		case "devx":
			has = p.Provider.Generation == kernel.Dynamic
		case "devx.dedicated":
			has = p.Kernel.Generation == kernel.Dynamic && p.Provider.Generation == kernel.Dynamic
		case "td.independent":
			has = p.Provider.IndependentTD
		case "odp", "stat":
			has = p.HCA.ODP.On()
		case "xrc":
			has = p.Kernel.XRC <= kernel.XRC3_2
		case "odp.rc.send", "odp.rc.recv", "odp.rc.write", "odp.rc.read", "odp.rc.atomic", "odp.rc.srq_recv":
			has = p.HCA.ODP.RC&pagedOperations[strings.TrimPrefix(token, "odp.rc.")] != 0
		case "odp.xrc.send", "odp.xrc.write", "odp.xrc.read", "odp.xrc.atomic", "odp.xrc.srq_recv":
			has = p.HCA.ODP.XRC&pagedOperations[strings.TrimPrefix(token, "odp.xrc.")] != 0
		case "advise":
			has = p.HCA.ODP.On() && p.Kernel.Generation != kernel.Static
		case "no odp":
			has = !p.HCA.ODP.On()
		case "odp.implicit":
			has = p.HCA.ODP.On() && p.HCA.ODP.Implicit
		case "raw", "flow":
			has = tb.cfg.Packets && tb.sm == nil
		case "roce", "roce v2", "ipv6", "vlan":
			has = tb.sm == nil
		case "ib", "sm":
			has = tb.sm != nil
		case "mmio log", "mmio exact", "fault":
			has = !tb.cfg.NoTap
		}
	}
	if has {
		return verbs.Present
	}
	return verbs.Absent
}
