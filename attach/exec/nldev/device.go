package nldev

import (
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// What the kernel says of every mlx5 device.
const (
	nodeTypeCA    = 1 // RDMA_NODE_IB_CA
	mlx5ABI       = 1
	netNSShared   = 1 // devices are seen in every network namespace
	uverbsClient  = "uverbs"
	cmClient      = "rdma_cm"
	cmABI         = 4 // RDMA_USER_CM_ABI_VERSION
	protocolIB    = "ib"
	protocolRoCE  = "roce"
	copiesOnFork  = 1
	adaptiveOfCQs = 1 // use_cq_dim
)

func (r *request) device() error {
	i, d, err := r.named()
	if err == nil {
		r.message(uapi.NLDevGet, func(w *uapi.NetlinkWriter) { d.info(w, i) })
	}
	return err
}

func (r *request) devices() error {
	for i := range r.s.Devices {
		r.message(uapi.NLDevGet, func(w *uapi.NetlinkWriter) { r.s.Devices[i].info(w, uint32(i)) })
	}
	return nil
}

// info is fill_dev_info.
func (d *Device) info(w *uapi.NetlinkWriter, index uint32) {
	handle(w, index, d)
	w.U32(uapi.NLAttrPortIndex, uint32(len(d.Ports)))
	w.U64(uapi.NLAttrCapFlags, uint64(d.Attr.DeviceCapFlags))
	w.String(uapi.NLAttrFWVersion, d.Attr.FWVer)
	w.U64(uapi.NLAttrNodeGUID, d.Attr.NodeGUID)
	w.U64(uapi.NLAttrSysImageGUID, d.Attr.SysImageGUID)
	w.U8(uapi.NLAttrNodeType, nodeTypeCA)
	w.U8(uapi.NLAttrDim, adaptiveOfCQs)
	protocol := protocolRoCE
	if d.Ports[0].LinkLayer == verbs.LinkInfiniBand {
		protocol = protocolIB
	}
	w.String(uapi.NLAttrProtocol, protocol)
}

// port is PORT_GET of one; its answer has the type of GET, as the kernel's has.
func (r *request) port() error {
	i, d, err := r.named()
	if err != nil {
		return err
	}
	n, err := r.portNumber(d)
	if err != nil || n == 0 {
		return errInvalid
	}
	r.message(uapi.NLDevGet, func(w *uapi.NetlinkWriter) { d.portInfo(w, i, n) })
	return nil
}

func (r *request) ports() error {
	i, d, err := r.named()
	if err != nil {
		return err
	}
	for n := range d.Ports {
		r.message(uapi.NLDevPortGet, func(w *uapi.NetlinkWriter) { d.portInfo(w, i, uint32(n+1)) })
	}
	return nil
}

// portInfo is fill_port_info.
func (d *Device) portInfo(w *uapi.NetlinkWriter, index, n uint32) {
	a := &d.Ports[n-1]
	handle(w, index, d)
	w.U32(uapi.NLAttrPortIndex, n)
	if a.LinkLayer == verbs.LinkInfiniBand {
		w.U64(uapi.NLAttrCapFlags, uint64(a.PortCapFlags)|uint64(a.PortCapFlags2)<<32)
		w.U64(uapi.NLAttrSubnetPrefix, d.SubnetPrefix)
		w.U32(uapi.NLAttrLID, uint32(a.LID))
		w.U32(uapi.NLAttrSMLID, uint32(a.SMLID))
		w.U8(uapi.NLAttrLMC, a.LMC)
	}
	w.U8(uapi.NLAttrPortState, uint8(a.State))
	w.U8(uapi.NLAttrPortPhysState, a.PhysState)
	if d.NetDevName != "" {
		w.U32(uapi.NLAttrNetDevIndex, d.NetDevIndex)
		w.String(uapi.NLAttrNetDevName, d.NetDevName)
	}
}

// system is nldev_sys_get_doit. A child that is forked never takes pages away from under a transfer
// here, as on kernels that copy pinned pages when they fork.
func (r *request) system() error {
	r.message(uapi.NLDevSysGet, func(w *uapi.NetlinkWriter) {
		w.U8(uapi.NLAttrNetNSMode, netNSShared)
		w.U8(uapi.NLAttrCopyOnFork, copiesOnFork)
	})
	return nil
}

// chardev is nldev_get_chardev. Of the clients of ib_core only uverbs and rdma_cm are here, and
// rdma_cm has one file for all devices.
func (r *request) chardev() error {
	client, ok := r.attrs.String(uapi.NLAttrChardevType)
	if !ok {
		return errInvalid
	}
	if client == cmClient && r.s.CMChardev != 0 {
		r.message(uapi.NLDevGetChardev, func(w *uapi.NetlinkWriter) {
			w.U64(uapi.NLAttrChardev, r.s.CMChardev)
			w.U64(uapi.NLAttrChardevABI, cmABI)
			w.String(uapi.NLAttrChardevName, cmClient)
		})
		return nil
	}
	if client != uverbsClient {
		return errUnsupported
	}
	_, d, err := r.named()
	if err != nil {
		return err
	}
	if _, err := r.portNumber(d); err != nil {
		return err
	}
	r.message(uapi.NLDevGetChardev, func(w *uapi.NetlinkWriter) {
		w.U32(uapi.NLAttrUverbsDriver, uapi.DriverMLX5)
		w.U64(uapi.NLAttrChardev, d.Chardev)
		w.U64(uapi.NLAttrChardevABI, mlx5ABI)
		w.String(uapi.NLAttrChardevName, d.ChardevName)
	})
	return nil
}

func (r *request) summary() error {
	i, d, err := r.named()
	if err == nil {
		r.message(uapi.NLDevResGet, func(w *uapi.NetlinkWriter) { d.summary(w, i, len(r.s.cmIDs(d))) })
	}
	return err
}

func (r *request) summaries() error {
	for i := range r.s.Devices {
		r.message(uapi.NLDevResGet, func(w *uapi.NetlinkWriter) { r.s.Devices[i].summary(w, uint32(i), len(r.s.cmIDs(&r.s.Devices[i]))) })
	}
	return nil
}

// summary is fill_res_info.
func (d *Device) summary(w *uapi.NetlinkWriter, index uint32, ids int) {
	handle(w, index, d)
	n := d.Kern.Resources()
	w.Nest(uapi.NLAttrSummary, func() {
		for _, c := range []struct {
			name string
			n    int
		}{{"pd", n.PD}, {"cq", n.CQ}, {"qp", n.QP}, {"cm_id", ids}, {"mr", n.MR}, {"ctx", n.Ctx}, {"srq", n.SRQ}} {
			w.Nest(uapi.NLAttrSummaryEntry, func() {
				w.String(uapi.NLAttrSummaryEntryName, c.name)
				w.U64(uapi.NLAttrSummaryEntryCurr, uint64(c.n))
			})
		}
	})
}

// statistic is nldev_stat_get_doit: of a port, or of one region.
func (r *request) statistic() error {
	if _, given := r.attrs[uapi.NLAttrStatRes]; given {
		if kind, ok := r.attrs.U32(uapi.NLAttrStatRes); ok && kind == uapi.NLAttrMR {
			return objectOf(regionCounters)(r)
		}
		return errInvalid
	}
	i, d, err := r.named()
	if err != nil {
		return err
	}
	n, err := r.portNumber(d)
	if err != nil || n == 0 {
		return errInvalid
	}
	all, err := d.Kern.HWCounters(kernel.Caller{})
	if err != nil {
		return errInvalid
	}
	r.message(uapi.NLDevStatGet, func(w *uapi.NetlinkWriter) {
		handle(w, i, d)
		w.U32(uapi.NLAttrPortIndex, n)
		counters(w, all)
	})
	return nil
}

// statistics is nldev_stat_get_dumpit: of counters that QPs are bound to, of which there are none,
// or of regions.
func (r *request) statistics() error {
	switch kind, _ := r.attrs.U32(uapi.NLAttrStatRes); kind {
	case uapi.NLAttrMR:
		return objectsOf(regionCounters)(r)
	case uapi.NLAttrQP:
		return r.noObjects()
	}
	return errInvalid
}
