//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

// device is an entry of libibverbs' list. Lists are kept: their entries must outlive
// what is opened from them.
type device struct {
	p *process
	d *C.struct_ibv_device
}

// list is ibv_get_device_list.
func list() ([]*C.struct_ibv_device, error) {
	var n C.int
	l, err := C.ibv_get_device_list(&n)
	if l == nil {
		return nil, null("ibv_get_device_list", err)
	}
	return unsafe.Slice(l, int(n)), nil
}

// Devices lists the machine's devices, the node's own first, without those that are
// other nodes.
func (p *process) Devices(t verbs.Thread) ([]verbs.Device, error) {
	defer enterCall(t, "ibv_get_device_list").leaveCall()
	all, err := list()
	if err != nil {
		return nil, err
	}
	var out []verbs.Device
	for _, d := range all {
		v := &device{p, d}
		switch name := v.Name(); {
		case name == p.host.first:
			out = append([]verbs.Device{v}, out...)
		case !p.bed.setup.isNode(name): // the devices of other nodes
			out = append(out, v)
		}
	}
	return out, nil
}

func (d *device) Name() string { return C.GoString(C.ibv_get_device_name(d.d)) }
func (d *device) GUID() uint64 {
	return uint64(C.hw_be64(C.uint64_t(C.ibv_get_device_guid(d.d))))
}

// Open is ibv_open_device.
func (d *device) Open(t verbs.Thread) (verbs.Context, error) {
	defer enterCall(t, "ibv_open_device").leaveCall()
	c, err := C.ibv_open_device(d.d)
	if c == nil {
		return nil, null("ibv_open_device", err)
	}
	return d.p.adopt(d, c)
}

// adopt wraps a context that the library has made.
func (p *process) adopt(d *device, c *C.struct_ibv_context) (verbs.Context, error) {
	// Waits have deadlines, and two threads may wait for one event.
	if err := unix.SetNonblock(int(c.async_fd), true); err != nil {
		C.ibv_close_device(c)
		return nil, fmt.Errorf("events of %s: %w", d.Name(), err)
	}
	x := &context{c: c, dev: d, mlx5: bool(C.mlx5dv_is_supported(d.d)), objs: map[unsafe.Pointer]any{}}
	p.bed.opened(x, true)
	return x, nil
}

func (tb *Testbed) opened(c *context, is bool) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if is {
		tb.open[c] = true
	} else {
		delete(tb.open, c)
	}
}

// context is an open device.
type context struct {
	verbs.UnimplementedContext
	c    *C.struct_ibv_context
	dev  *device
	mlx5 bool

	mu   sync.Mutex
	objs map[unsafe.Pointer]any // the library's object to its wrapper
}

func (c *context) enter(p unsafe.Pointer, o any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objs[p] = o
}

func (c *context) leave(p unsafe.Pointer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objs, p)
}

func (c *context) object(p unsafe.Pointer) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objs[p]
}

func (c *context) Device() verbs.Device { return c.dev }
func (c *context) NumCompVectors() int  { return int(c.c.num_comp_vectors) }

// Preferred is the port and the GID that the run was asked to use.
func (c *context) Preferred() (port, gidIndex int) {
	s := c.dev.p.bed.setup
	for _, n := range s.nodes {
		if n.Device == c.dev.Name() {
			return n.Port, n.GIDIndex
		}
	}
	return 0, -1
}

var _ verbs.Preferrer = (*context)(nil)

// Close is ibv_close_device.
func (c *context) Close(t verbs.Thread) error {
	defer enterCall(t, "ibv_close_device").leaveCall()
	ret, err := C.ibv_close_device(c.c)
	if ret != 0 {
		return failed("ibv_close_device", ret, err)
	}
	c.dev.p.bed.opened(c, false)
	return nil
}

// QueryDevice is ibv_query_device.
func (c *context) QueryDevice(t verbs.Thread) (verbs.DeviceAttr, error) {
	defer enterCall(t, "ibv_query_device").leaveCall()
	return queryDevice(c.c)
}

func queryDevice(c *C.struct_ibv_context) (verbs.DeviceAttr, error) {
	var a C.struct_ibv_device_attr
	ret, err := C.ibv_query_device(c, &a)
	if ret != 0 {
		return verbs.DeviceAttr{}, failed("ibv_query_device", ret, err)
	}
	return deviceAttr(&a), nil
}

func deviceAttr(a *C.struct_ibv_device_attr) verbs.DeviceAttr {
	return verbs.DeviceAttr{
		FWVer: C.GoString(&a.fw_ver[0]), NodeGUID: uint64(C.hw_be64(C.uint64_t(a.node_guid))),
		SysImageGUID: uint64(C.hw_be64(C.uint64_t(a.sys_image_guid))),
		MaxMRSize:    uint64(a.max_mr_size), PageSizeCap: uint64(a.page_size_cap), VendorID: uint32(a.vendor_id),
		VendorPartID: uint32(a.vendor_part_id), HWVer: uint32(a.hw_ver), MaxQP: int(a.max_qp), MaxQPWR: int(a.max_qp_wr),
		DeviceCapFlags: uint32(a.device_cap_flags), MaxSGE: int(a.max_sge), MaxSGERd: int(a.max_sge_rd),
		MaxCQ: int(a.max_cq), MaxCQE: int(a.max_cqe), MaxMR: int(a.max_mr), MaxPD: int(a.max_pd),
		MaxQPRdAtom: int(a.max_qp_rd_atom), MaxResRdAtom: int(a.max_res_rd_atom), MaxQPInitRdAtom: int(a.max_qp_init_rd_atom),
		Atomic: verbs.AtomicCap(a.atomic_cap), MaxMW: int(a.max_mw), MaxAH: int(a.max_ah), MaxSRQ: int(a.max_srq),
		MaxSRQWR: int(a.max_srq_wr), MaxSRQSGE: int(a.max_srq_sge), MaxMcastGrp: int(a.max_mcast_grp),
		MaxMcastQPAttach: int(a.max_mcast_qp_attach), MaxTotalMcastQPAttach: int(a.max_total_mcast_qp_attach),
		MaxPKeys: uint16(a.max_pkeys), LocalCAAckDelay: uint8(a.local_ca_ack_delay), PhysPortCnt: uint8(a.phys_port_cnt),
	}
}

// QueryDeviceEx is ibv_query_device_ex, and mlx5dv_query_device for what is mlx5's.
func (c *context) QueryDeviceEx(t verbs.Thread, compMask uint32) (verbs.DeviceAttrEx, error) {
	defer enterCall(t, "ibv_query_device_ex").leaveCall()
	return queryDeviceEx(c.c, compMask, c.mlx5)
}

func queryDeviceEx(c *C.struct_ibv_context, compMask uint32, mlx5 bool) (verbs.DeviceAttrEx, error) {
	input := C.struct_ibv_query_device_ex_input{comp_mask: C.uint32_t(compMask)}
	var a C.struct_ibv_device_attr_ex
	ret, err := C.ibv_query_device_ex(c, &input, &a)
	if ret != 0 {
		return verbs.DeviceAttrEx{}, failed("ibv_query_device_ex", ret, err)
	}
	x := verbs.DeviceAttrEx{DeviceAttr: deviceAttr(&a.orig_attr), CapFlagsEx: uint64(a.device_cap_flags_ex), CompletionTimestampMask: uint64(a.completion_timestamp_mask),
		HCACoreClockKHz: uint64(a.hca_core_clock), PhysPortCntEx: uint32(a.phys_port_cnt_ex), ODPGeneralCaps: uint64(a.odp_caps.general_caps),
		ODPRC: uint32(a.odp_caps.per_transport_caps.rc_odp_caps), ODPUC: uint32(a.odp_caps.per_transport_caps.uc_odp_caps),
		ODPUD:      uint32(a.odp_caps.per_transport_caps.ud_odp_caps),
		ODPXRC:     uint32(a.xrc_odp_caps),
		MaxCQCount: uint16(a.cq_mod_caps.max_cq_count), MaxCQPeriod: uint16(a.cq_mod_caps.max_cq_period),
		MaxDMSize: uint64(a.max_dm_size)}
	if mlx5 {
		x.MaxDynBFRegs = uint32(C.hw_dv_dynamic_bfregs(c))
		var comp C.struct_mlx5dv_cqe_comp_caps
		C.hw_dv_cqe_comp(c, &comp)
		x.CQEComp = verbs.CQECompCaps{MaxNum: uint32(comp.max_num), Formats: uint32(comp.supported_format)}
	}
	return x, nil
}

// QueryPort is ibv_query_port.
func (c *context) QueryPort(t verbs.Thread, port int) (verbs.PortAttr, error) {
	defer enterCall(t, "ibv_query_port").leaveCall()
	return queryPort(c.c, port)
}

func queryPort(c *C.struct_ibv_context, port int) (verbs.PortAttr, error) {
	if port < 0 || port > 255 { // the call takes 8 bits and would see another port
		return verbs.PortAttr{}, fmt.Errorf("ibv_query_port: port %d: %w", port, syscall.EINVAL)
	}
	var a C.struct_ibv_port_attr
	ret, err := C.hw_query_port(c, C.int(port), &a)
	if ret != 0 {
		return verbs.PortAttr{}, failed("ibv_query_port", ret, err)
	}
	return verbs.PortAttr{State: verbs.PortState(a.state), MaxMTU: verbs.MTU(a.max_mtu), ActiveMTU: verbs.MTU(a.active_mtu),
		GIDTblLen: int(a.gid_tbl_len), PortCapFlags: uint32(a.port_cap_flags), MaxMsgSize: uint32(a.max_msg_sz),
		BadPKeyCntr: uint32(a.bad_pkey_cntr), QKeyViolCntr: uint32(a.qkey_viol_cntr), PKeyTblLen: uint16(a.pkey_tbl_len),
		LID: uint16(a.lid), SMLID: uint16(a.sm_lid), LMC: uint8(a.lmc), MaxVLNum: uint8(a.max_vl_num), SMSL: uint8(a.sm_sl),
		SubnetTimeout: uint8(a.subnet_timeout), InitTypeReply: uint8(a.init_type_reply), ActiveWidth: uint8(a.active_width),
		ActiveSpeed: uint32(a.active_speed), PhysState: uint8(a.phys_state), LinkLayer: verbs.LinkLayer(a.link_layer),
		Flags: uint8(a.flags), PortCapFlags2: uint16(a.port_cap_flags2)}, nil
}

// QueryGID is ibv_query_gid.
func (c *context) QueryGID(t verbs.Thread, port, index int) (g verbs.GID, err error) {
	defer enterCall(t, "ibv_query_gid").leaveCall()
	if port < 0 || port > 255 {
		return g, fmt.Errorf("ibv_query_gid: port %d: %w", port, syscall.EINVAL)
	}
	var u C.union_ibv_gid
	ret, errno := C.ibv_query_gid(c.c, C.uint8_t(port), C.int(index), &u)
	if ret != 0 {
		return g, failed("ibv_query_gid", ret, errno)
	}
	return verbs.GID(u), nil
}

func gidEntry(e *C.struct_ibv_gid_entry) verbs.GIDEntry {
	return verbs.GIDEntry{GID: verbs.GID(e.gid), Index: uint32(e.gid_index), Port: uint32(e.port_num),
		Type: verbs.GIDType(e.gid_type), NetDevice: uint32(e.ndev_ifindex)}
}

// QueryGIDEx is ibv_query_gid_ex.
func (c *context) QueryGIDEx(t verbs.Thread, port, index int, flags uint32) (verbs.GIDEntry, error) {
	defer enterCall(t, "ibv_query_gid_ex").leaveCall()
	var e C.struct_ibv_gid_entry
	ret, err := C.hw_query_gid_ex(c.c, C.uint32_t(port), C.uint32_t(index), &e, C.uint32_t(flags))
	if ret != 0 {
		return verbs.GIDEntry{}, failed("ibv_query_gid_ex", ret, err)
	}
	return gidEntry(&e), nil
}

// QueryGIDTable is ibv_query_gid_table.
func (c *context) QueryGIDTable(t verbs.Thread, entries []verbs.GIDEntry, flags uint32) (int, error) {
	defer enterCall(t, "ibv_query_gid_table").leaveCall()
	return queryGIDTable(c.c, entries, flags)
}

func queryGIDTable(c *C.struct_ibv_context, entries []verbs.GIDEntry, flags uint32) (int, error) {
	tab := make([]C.struct_ibv_gid_entry, len(entries)+1) // plain numbers
	n := C.hw_query_gid_table(c, &tab[0], C.size_t(len(entries)), C.uint32_t(flags))
	if n < 0 {
		return 0, failed("ibv_query_gid_table", C.int(n), syscall.Errno(-n))
	}
	for i := range int(n) {
		entries[i] = gidEntry(&tab[i])
	}
	return int(n), nil
}

// QueryPKey is ibv_query_pkey.
func (c *context) QueryPKey(t verbs.Thread, port, index int) (uint16, error) {
	defer enterCall(t, "ibv_query_pkey").leaveCall()
	if port < 0 || port > 255 {
		return 0, fmt.Errorf("ibv_query_pkey: port %d: %w", port, syscall.EINVAL)
	}
	var k C.__be16
	ret, err := C.ibv_query_pkey(c.c, C.uint8_t(port), C.int(index), &k)
	if ret != 0 {
		return 0, failed("ibv_query_pkey", ret, err)
	}
	return swap16(uint16(k)), nil
}

// PKeyIndex is ibv_get_pkey_index.
func (c *context) PKeyIndex(t verbs.Thread, port int, pkey uint16) (int, error) {
	defer enterCall(t, "ibv_get_pkey_index").leaveCall()
	if port < 0 || port > 255 {
		return -1, fmt.Errorf("ibv_get_pkey_index: port %d: %w", port, syscall.EINVAL)
	}
	i, err := C.ibv_get_pkey_index(c.c, C.uint8_t(port), C.__be16(swap16(pkey)))
	if i < 0 {
		return -1, failed("ibv_get_pkey_index", i, err)
	}
	return int(i), nil
}

// swap16 is a word in network order.
func swap16(v uint16) uint16 { return uint16(C.hw_be64(C.uint64_t(v)) >> 48) }

// RawClock is ibv_query_rt_values_ex for the raw clock.
func (c *context) RawClock(t verbs.Thread) (uint64, error) {
	defer enterCall(t, "ibv_query_rt_values_ex").leaveCall()
	v := C.struct_ibv_values_ex{comp_mask: C.IBV_VALUES_MASK_RAW_CLOCK}
	ret, err := C.ibv_query_rt_values_ex(c.c, &v)
	if ret != 0 {
		return 0, failed("ibv_query_rt_values_ex", ret, err)
	}
	return uint64(v.raw_clock.tv_sec)*uint64(time.Second) + uint64(v.raw_clock.tv_nsec), nil
}

// InitAHFromWC is ibv_init_ah_from_wc.
func (c *context) InitAHFromWC(t verbs.Thread, port int, wc *verbs.WC, grh []byte) (verbs.AHAttr, error) {
	defer enterCall(t, "ibv_init_ah_from_wc").leaveCall()
	if port < 0 || port > 255 || len(grh) < verbs.GRHSize {
		return verbs.AHAttr{}, fmt.Errorf("ibv_init_ah_from_wc: port %d, %d bytes: %w", port, len(grh), syscall.EINVAL)
	}
	w := C.struct_hw_wc{id: C.uint64_t(wc.ID), status: C.uint32_t(wc.Status), opcode: C.uint32_t(wc.Opcode),
		byte_len: C.uint32_t(wc.ByteLen), qpn: C.uint32_t(wc.QPN), src_qp: C.uint32_t(wc.SrcQP), flags: C.uint32_t(wc.Flags),
		pkey_index: C.uint16_t(wc.PKeyIndex), slid: C.uint16_t(wc.SLID), sl: C.uint8_t(wc.SL), path_bits: C.uint8_t(wc.DLIDPathBits)}
	var a C.struct_ibv_ah_attr
	ret, err := C.hw_init_ah(c.c, C.uint8_t(port), &w, unsafe.Pointer(&grh[0]), &a)
	if ret != 0 {
		return verbs.AHAttr{}, failed("ibv_init_ah_from_wc", ret, err)
	}
	return goAH(&a), nil
}

// EventTypeStr is ibv_event_type_str.
func (c *context) EventTypeStr(typ verbs.EventType) string {
	return C.GoString(C.ibv_event_type_str(C.enum_ibv_event_type(typ)))
}

// WCStatusStr is ibv_wc_status_str.
func (c *context) WCStatusStr(status verbs.WCStatus) string {
	return C.GoString(C.ibv_wc_status_str(C.enum_ibv_wc_status(status)))
}
