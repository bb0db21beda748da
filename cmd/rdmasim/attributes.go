package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// attribute is one of ibv_query_device_ex or ibv_query_port: how the driver derives it, and from
// which values of the profile.
type attribute struct {
	name string
	of   func(a *verbs.DeviceAttrEx, p *verbs.PortAttr) any
	rule string
	keys []string
}

const driver = "Linux mlx5_ib/main.c"

// absent is an attribute of something that the device does not have.
func absent(name, why string) attribute {
	return attribute{name, func(*verbs.DeviceAttrEx, *verbs.PortAttr) any { return 0 }, why, nil}
}

// device is an attribute of ibv_query_device_ex.
func device(name string, of func(a *verbs.DeviceAttrEx) any, rule string, keys ...string) attribute {
	return attribute{name, func(a *verbs.DeviceAttrEx, _ *verbs.PortAttr) any { return of(a) }, rule, keys}
}

// port is an attribute of ibv_query_port.
func port(name string, of func(p *verbs.PortAttr) any, rule string, keys ...string) attribute {
	return attribute{name, func(_ *verbs.DeviceAttrEx, p *verbs.PortAttr) any { return of(p) }, rule, keys}
}

// deviceAttributes are those of the device, in the order of ibv_devinfo.
var deviceAttributes = []attribute{
	device("max_mr_size", func(a *verbs.DeviceAttrEx) any { return mask(a.MaxMRSize) }, driver),
	device("page_size_cap", func(a *verbs.DeviceAttrEx) any { return mask(a.PageSizeCap) }, "pages of 4096 bytes, mlx5_ifc.h log_pg_sz"),
	device("max_qp", func(a *verbs.DeviceAttrEx) any { return a.MaxQP }, "2^log_max_qp", "hca.log_max_qp"),
	device("max_qp_wr", func(a *verbs.DeviceAttrEx) any { return a.MaxQPWR }, "2^log_max_qp_size, by the rule of kernel.max_qp_wr", "hca.log_max_qp_size", "kernel.max_qp_wr"),
	device("device_cap_flags", func(a *verbs.DeviceAttrEx) any { return mask(a.DeviceCapFlags) }, driver+", of what the device has"),
	device("device_cap_flags_ex", func(a *verbs.DeviceAttrEx) any { return mask(a.CapFlagsEx) }, "beyond device_cap_flags", "kernel.atomic_write"),
	device("max_sge", func(a *verbs.DeviceAttrEx) any { return a.MaxSGE }, "segments of 16 bytes", "hca.max_wqe_size_sq", "hca.max_wqe_size_rq"),
	device("max_sge_rd", func(a *verbs.DeviceAttrEx) any { return a.MaxSGERd }, driver+", MLX5_MAX_SGE_RD"),
	device("max_cq", func(a *verbs.DeviceAttrEx) any { return a.MaxCQ }, "2^log_max_cq", "hca.log_max_cq"),
	device("max_cqe", func(a *verbs.DeviceAttrEx) any { return a.MaxCQE }, "2^log_max_cq_size - 1", "hca.log_max_cq_size"),
	device("max_mr", func(a *verbs.DeviceAttrEx) any { return a.MaxMR }, "2^log_max_mkey", "hca.log_max_mkey"),
	device("max_mw", func(a *verbs.DeviceAttrEx) any { return a.MaxMW }, "2^log_max_mkey", "hca.log_max_mkey"),
	device("max_pd", func(a *verbs.DeviceAttrEx) any { return a.MaxPD }, "2^log_max_pd", "hca.log_max_pd"),
	device("max_qp_rd_atom", func(a *verbs.DeviceAttrEx) any { return a.MaxQPRdAtom }, "2^log_max_ra_req", "hca.log_max_ra_req"),
	device("max_res_rd_atom", func(a *verbs.DeviceAttrEx) any { return a.MaxResRdAtom }, "max_qp_rd_atom * max_qp", "hca.log_max_ra_req", "hca.log_max_qp"),
	device("max_qp_init_rd_atom", func(a *verbs.DeviceAttrEx) any { return a.MaxQPInitRdAtom }, "2^log_max_ra_res", "hca.log_max_ra_res"),
	device("atomic_cap", func(a *verbs.DeviceAttrEx) any { return uint32(a.Atomic) }, "1: ATOMIC_HCA", "hca.atomics"),
	device("max_mcast_grp", func(a *verbs.DeviceAttrEx) any { return a.MaxMcastGrp }, "2^log_max_mcg", "hca.log_max_mcg"),
	device("max_mcast_qp_attach", func(a *verbs.DeviceAttrEx) any { return a.MaxMcastQPAttach }, "max_qp_mcg", "hca.max_qp_mcg"),
	device("max_total_mcast_qp_attach", func(a *verbs.DeviceAttrEx) any { return a.MaxTotalMcastQPAttach }, "max_mcast_qp_attach * max_mcast_grp", "hca.max_qp_mcg", "hca.log_max_mcg"),
	device("max_ah", func(a *verbs.DeviceAttrEx) any { return a.MaxAH }, driver+", INT_MAX"),
	device("max_srq", func(a *verbs.DeviceAttrEx) any { return a.MaxSRQ }, "2^log_max_srq", "hca.log_max_srq"),
	device("max_srq_wr", func(a *verbs.DeviceAttrEx) any { return a.MaxSRQWR }, "2^log_max_srq_sz - 1", "hca.log_max_srq_sz"),
	device("max_srq_sge", func(a *verbs.DeviceAttrEx) any { return a.MaxSRQSGE }, "segments of 16 bytes, less one", "hca.max_wqe_size_rq"),
	device("max_pkeys", func(a *verbs.DeviceAttrEx) any { return a.MaxPKeys }, "mlx5_ifc.h, pkey_table_size 0"),
	device("local_ca_ack_delay", func(a *verbs.DeviceAttrEx) any { return a.LocalCAAckDelay }, "local_ca_ack_delay", "hca.local_ca_ack_delay"),
	device("general_odp_caps", func(a *verbs.DeviceAttrEx) any { return mask(a.ODPGeneralCaps) }, "1: paging, 2: implicit", "odp.implicit"),
	device("rc_odp_caps", func(a *verbs.DeviceAttrEx) any { return mask(a.ODPRC) }, "the bits of odp.rc as verbs number them", "odp.rc"),
	device("uc_odp_caps", func(a *verbs.DeviceAttrEx) any { return mask(a.ODPUC) }, driver+", no mlx5 device has any"),
	device("ud_odp_caps", func(a *verbs.DeviceAttrEx) any { return mask(a.ODPUD) }, "the bits of odp.ud", "odp.ud"),
	device("xrc_odp_caps", func(a *verbs.DeviceAttrEx) any { return mask(a.ODPXRC) }, "the bits of odp.xrc", "odp.xrc"),
	device("completion_timestamp_mask", func(a *verbs.DeviceAttrEx) any { return mask(a.CompletionTimestampMask) }, driver),
	device("hca_core_clock", func(a *verbs.DeviceAttrEx) any { return fmt.Sprint(a.HCACoreClockKHz, "kHZ") }, "core_clock", "hca.core_clock"),
	absent("raw_packet_caps", "no raw packet queue pairs below exec"),
	absent("max_tso", "no raw packet queue pairs below exec"),
	absent("max_rwq_indirection_tables", "no RSS objects below exec"),
	absent("max_rwq_indirection_table_size", "no RSS objects below exec"),
	absent("rx_hash_function", "no RSS objects below exec"),
	absent("rx_hash_fields_mask", "no RSS objects below exec"),
	absent("max_wq_type_rq", "no RSS objects below exec"),
	absent("qp_rate_limit_min", "no packet pacing"),
	absent("qp_rate_limit_max", "no packet pacing"),
	absent("tag_matching", "no tag matching"),
	device("max_cq_count", func(a *verbs.DeviceAttrEx) any { return a.MaxCQCount }, driver+", MLX5_MAX_CQ_COUNT"),
	device("max_cq_period", func(a *verbs.DeviceAttrEx) any { return a.MaxCQPeriod }, driver+", MLX5_MAX_CQ_PERIOD"),
	device("device_memory", func(a *verbs.DeviceAttrEx) any { return a.MaxDMSize }, "memic_size, bytes", "hca.memic_size"),
	port("max_msg_sz", func(p *verbs.PortAttr) any { return mask(p.MaxMsgSize) }, "2^log_max_msg", "hca.log_max_msg"),
	port("port_cap_flags", func(p *verbs.PortAttr) any { return mask(p.PortCapFlags) }, "InfiniBand: port_cap_mask without bit 26; Ethernet: "+driver, "hca.port_cap_mask"),
	port("port_cap_flags2", func(p *verbs.PortAttr) any { return mask(p.PortCapFlags2) }, "InfiniBand: port_cap_mask2; Ethernet: 0", "hca.port_cap_mask2"),
	port("pkey_tbl_len", func(p *verbs.PortAttr) any { return p.PKeyTblLen }, "InfiniBand: max_pkeys; Ethernet: 1, "+driver),
	port("gid_tbl_len", func(p *verbs.PortAttr) any { return p.GIDTblLen }, "Ethernet: gid_table_size; InfiniBand: 8, as ports of part 4123 show", "hca.gid_table_size"),
}

// mask is a number as ibv_devinfo prints masks.
func mask(n any) string { return fmt.Sprintf("%#x", n) }

// showAttributes prints what programs are told of the device, and where each attribute is from.
func showAttributes(w io.Writer, p *profile.Profile) error {
	dev, pt, err := queryDevice(p)
	if err != nil {
		return fmt.Errorf("attributes of %s: %w", p.Name, err)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "ATTRIBUTE\tVALUE\tFROM")
	for _, a := range append(deviceAttributes, attribute{"num_comp_vectors", func(*verbs.DeviceAttrEx, *verbs.PortAttr) any {
		return min(p.Kernel.CompVectors, p.HCA.Vectors-1)
	}, "completion vectors of the host, at most those of the device less one", []string{"kernel.comp_vectors", "hca.vectors"}}) {
		from := []string{a.rule}
		for _, k := range a.keys {
			v, _ := p.Lookup(k)
			from = append(from, fmt.Sprintf("%s (%s)", k, v.Origin()))
		}
		fmt.Fprintf(t, "%s\t%v\t%s\n", a.name, a.of(dev, pt), strings.Join(from, "; "))
	}
	return t.Flush()
}

// queryDevice asks a simulated device of the profile.
func queryDevice(p *profile.Profile) (*verbs.DeviceAttrEx, *verbs.PortAttr, error) {
	tb, err := testbed.New(testbed.Default(p))
	if err != nil {
		return nil, nil, err
	}
	var dev verbs.DeviceAttrEx
	var pt verbs.PortAttr
	var failed error
	err = tb.Run(0, func(t verbs.Thread) {
		proc, err := tb.Hosts()[0].NewProcess(t, nil)
		if err != nil {
			failed = err
			return
		}
		t.Join(proc.Start(t, "attributes", 0, func(t verbs.Thread) {
			devs, err := proc.Devices(t)
			if err != nil {
				failed = err
				return
			}
			ctx, err := devs[0].Open(t)
			if err != nil {
				failed = err
				return
			}
			if dev, failed = ctx.QueryDeviceEx(t, 0); failed == nil {
				pt, failed = ctx.QueryPort(t, 1)
			}
		}))
	})
	return &dev, &pt, cmp.Or(failed, err, tb.Close())
}
