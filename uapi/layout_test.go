package uapi

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// layout is a C structure and the view of it, or one member and the method for it.
type layout struct {
	c, member string
	view      any
	size      int
	method    string
}

// values are enumerators and constants of the headers and ours.
var values = map[string]uint64{
	"RDMA_VERBS_IOCTL": VerbsIoctl, "RDMA_DRIVER_MLX5": DriverMLX5,
	"UVERBS_ATTR_F_MANDATORY": AttrMandatory, "UVERBS_ATTR_F_VALID_OUTPUT": AttrValidOutput,
	"UVERBS_OBJECT_DEVICE": ObjectDevice, "UVERBS_OBJECT_PD": ObjectPD, "UVERBS_OBJECT_COMP_CHANNEL": ObjectCompChannel,
	"UVERBS_OBJECT_CQ": ObjectCQ, "UVERBS_OBJECT_QP": ObjectQP, "UVERBS_OBJECT_SRQ": ObjectSRQ, "UVERBS_OBJECT_AH": ObjectAH,
	"UVERBS_OBJECT_MR": ObjectMR, "UVERBS_OBJECT_MW": ObjectMW, "UVERBS_OBJECT_FLOW": ObjectFlow, "UVERBS_OBJECT_XRCD": ObjectXRCD,
	"UVERBS_OBJECT_RWQ_IND_TBL": ObjectRWQIndTbl, "UVERBS_OBJECT_WQ": ObjectWQ, "UVERBS_OBJECT_FLOW_ACTION": ObjectFlowAction,
	"UVERBS_OBJECT_DM": ObjectDM, "UVERBS_OBJECT_COUNTERS": ObjectCounters, "UVERBS_OBJECT_ASYNC_EVENT": ObjectAsyncEvent,
	"MLX5_IB_OBJECT_DEVX": ObjectDEVX, "MLX5_IB_OBJECT_UAR": ObjectUAR,
	"UVERBS_METHOD_INVOKE_WRITE": DeviceInvokeWrite, "UVERBS_METHOD_INFO_HANDLES": DeviceInfoHandles, "UVERBS_METHOD_QUERY_PORT": DeviceQueryPort,
	"UVERBS_METHOD_GET_CONTEXT": DeviceGetContext, "UVERBS_METHOD_QUERY_CONTEXT": DeviceQueryContext,
	"UVERBS_METHOD_QUERY_GID_TABLE": DeviceQueryGIDTable, "UVERBS_METHOD_QUERY_GID_ENTRY": DeviceQueryGIDEntry,
	"UVERBS_METHOD_PD_DESTROY": PDDestroy, "UVERBS_METHOD_CQ_CREATE": CQCreate, "UVERBS_METHOD_CQ_DESTROY": CQDestroy,
	"UVERBS_METHOD_QP_CREATE": QPCreate, "UVERBS_METHOD_QP_DESTROY": QPDestroy, "UVERBS_METHOD_MR_DESTROY": MRDestroy,
	"UVERBS_METHOD_ASYNC_EVENT_ALLOC": AsyncEventAlloc, "MLX5_IB_METHOD_UAR_OBJ_ALLOC": UARAlloc, "MLX5_IB_METHOD_UAR_OBJ_DESTROY": UARDestroy,
	"UVERBS_ATTR_UHW_IN": AttrUHWIn, "UVERBS_ATTR_UHW_OUT": AttrUHWOut,
	"UVERBS_ATTR_CORE_IN": InvokeWriteCoreIn, "UVERBS_ATTR_CORE_OUT": InvokeWriteCoreOut, "UVERBS_ATTR_WRITE_CMD": InvokeWriteCmd,
	"UVERBS_ATTR_QUERY_PORT_PORT_NUM": QueryPortNum, "UVERBS_ATTR_QUERY_PORT_RESP": QueryPortRsp,
	"UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS": GetContextVec, "UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT": GetContextSup,
	"UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE": QueryGIDTableEntrySize, "UVERBS_ATTR_QUERY_GID_TABLE_FLAGS": QueryGIDTableFlags,
	"UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES": QueryGIDTableEntries, "UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES": QueryGIDTableNumEntries,
	"UVERBS_ATTR_QUERY_GID_ENTRY_PORT": QueryGIDEntryPort, "UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX": QueryGIDEntryIndex,
	"UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS": QueryGIDEntryFlags, "UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY": QueryGIDEntryRsp,
	"UVERBS_ATTR_CREATE_CQ_HANDLE": CQCreateHandle, "UVERBS_ATTR_CREATE_CQ_CQE": CQCreateCQE, "UVERBS_ATTR_CREATE_CQ_USER_HANDLE": CQCreateUserHandle,
	"UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL": CQCreateChannel, "UVERBS_ATTR_CREATE_CQ_COMP_VECTOR": CQCreateVector, "UVERBS_ATTR_CREATE_CQ_FLAGS": CQCreateFlags,
	"UVERBS_ATTR_CREATE_CQ_RESP_CQE": CQCreateRspCQE, "UVERBS_ATTR_CREATE_CQ_EVENT_FD": CQCreateEventFD,
	"UVERBS_ATTR_DESTROY_CQ_HANDLE": CQDestroyHandle, "UVERBS_ATTR_DESTROY_CQ_RESP": CQDestroyRsp,
	"UVERBS_ATTR_CREATE_QP_HANDLE": QPCreateHandle, "UVERBS_ATTR_CREATE_QP_XRCD_HANDLE": QPCreateXRCD, "UVERBS_ATTR_CREATE_QP_PD_HANDLE": QPCreatePD,
	"UVERBS_ATTR_CREATE_QP_SRQ_HANDLE": QPCreateSRQ, "UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE": QPCreateSendCQ, "UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE": QPCreateRecvCQ,
	"UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE": QPCreateIndTable, "UVERBS_ATTR_CREATE_QP_USER_HANDLE": QPCreateUserHandle, "UVERBS_ATTR_CREATE_QP_CAP": QPCreateCap,
	"UVERBS_ATTR_CREATE_QP_TYPE": QPCreateType, "UVERBS_ATTR_CREATE_QP_FLAGS": QPCreateFlags, "UVERBS_ATTR_CREATE_QP_SOURCE_QPN": QPCreateSourceQPN,
	"UVERBS_ATTR_CREATE_QP_EVENT_FD": QPCreateEventFD, "UVERBS_ATTR_CREATE_QP_RESP_CAP": QPCreateRspCap, "UVERBS_ATTR_CREATE_QP_RESP_QP_NUM": QPCreateRspQPN,
	"UVERBS_ATTR_DESTROY_QP_HANDLE": QPDestroyHandle, "UVERBS_ATTR_DESTROY_QP_RESP": QPDestroyRsp,
	"UVERBS_ATTR_DESTROY_PD_HANDLE": PDDestroyHandle, "UVERBS_ATTR_DESTROY_MR_HANDLE": MRDestroyHandle,
	"UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE": AsyncEventAllocFD,
	"MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE":       UARAllocHandle, "MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE": UARAllocType, "MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET": UARAllocOffset,
	"MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH": UARAllocLength, "MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID": UARAllocPageID, "MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE": UARDestroyHandle,
	"IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS": CoreSupportOptionalAccess,
	"IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION":   CQCreateTimestamp, "IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN": CQCreateIgnoreOverrun,
	"IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK": QPCreateBlockMulticastLoopback, "IB_UVERBS_QP_CREATE_SCATTER_FCS": QPCreateScatterFCS,
	"IB_UVERBS_QP_CREATE_CVLAN_STRIPPING": QPCreateCVLANStripping, "IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING": QPCreatePCIWriteEndPadding,
	"IB_UVERBS_QP_CREATE_SQ_SIG_ALL": QPCreateSQSigAll,
	"IB_USER_VERBS_CMD_QUERY_DEVICE": CmdQueryDevice, "IB_USER_VERBS_CMD_QUERY_PORT": CmdQueryPort, "IB_USER_VERBS_CMD_ALLOC_PD": CmdAllocPD,
	"IB_USER_VERBS_CMD_DEALLOC_PD": CmdDeallocPD, "IB_USER_VERBS_CMD_CREATE_AH": CmdCreateAH, "IB_USER_VERBS_CMD_DESTROY_AH": CmdDestroyAH,
	"IB_USER_VERBS_CMD_REG_MR": CmdRegMR, "IB_USER_VERBS_CMD_REREG_MR": CmdReregMR, "IB_USER_VERBS_CMD_DEREG_MR": CmdDeregMR,
	"IB_USER_VERBS_CMD_ALLOC_MW": CmdAllocMW, "IB_USER_VERBS_CMD_DEALLOC_MW": CmdDeallocMW, "IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL": CmdCreateCompChannel,
	"IB_USER_VERBS_CMD_CREATE_CQ": CmdCreateCQ, "IB_USER_VERBS_CMD_RESIZE_CQ": CmdResizeCQ, "IB_USER_VERBS_CMD_CREATE_QP": CmdCreateQP,
	"IB_USER_VERBS_CMD_QUERY_QP": CmdQueryQP, "IB_USER_VERBS_CMD_MODIFY_QP": CmdModifyQP, "IB_USER_VERBS_CMD_ATTACH_MCAST": CmdAttachMcast,
	"IB_USER_VERBS_CMD_DETACH_MCAST": CmdDetachMcast, "IB_USER_VERBS_CMD_CREATE_SRQ": CmdCreateSRQ, "IB_USER_VERBS_CMD_MODIFY_SRQ": CmdModifySRQ,
	"IB_USER_VERBS_CMD_QUERY_SRQ": CmdQuerySRQ, "IB_USER_VERBS_CMD_OPEN_XRCD": CmdOpenXRCD, "IB_USER_VERBS_CMD_CLOSE_XRCD": CmdCloseXRCD,
	"IB_USER_VERBS_CMD_CREATE_XSRQ": CmdCreateXSRQ, "IB_USER_VERBS_CMD_OPEN_QP": CmdOpenQP,
	"IB_USER_VERBS_EX_CMD_CREATE_FLOW": CmdCreateFlow, "IB_USER_VERBS_EX_CMD_CREATE_WQ": CmdCreateWQ,
	"IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL": CmdCreateRWQIndTbl, "IB_USER_VERBS_EX_CMD_MODIFY_CQ": CmdModifyCQ,
	"IB_USER_VERBS_CMD_FLAG_EXTENDED": CmdExtended,
	"MLX5_IB_ALLOC_UCTX_DEVX":         UctxDEVX, "MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE": SuppUHWQueryDevice,
	"MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD": CQFlag128BPad, "MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX": CQFlagUARPageIndex,
	"MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS": CQFlagRealTimeTS,
	"MLX5_QP_FLAG_SIGNATURE":               QPFlagSignature, "MLX5_QP_FLAG_SCATTER_CQE": QPFlagScatterCQE, "MLX5_QP_FLAG_BFREG_INDEX": QPFlagBFRegIndex,
	"MLX5_QP_FLAG_TYPE_DCT": QPFlagTypeDCT, "MLX5_QP_FLAG_TYPE_DCI": QPFlagTypeDCI, "MLX5_QP_FLAG_ALLOW_SCATTER_CQE": QPFlagAllowScatterCQE,
	"MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE": QPFlagPacketCredits, "MLX5_QP_FLAG_UAR_PAGE_INDEX": QPFlagUARPageIndex,
	"MLX5_IB_MMAP_REGULAR_PAGE": MmapRegular, "MLX5_IB_MMAP_GET_CONTIGUOUS_PAGES": MmapContiguous, "MLX5_IB_MMAP_WC_PAGE": MmapWC, "MLX5_IB_MMAP_NC_PAGE": MmapNC,
	"MLX5_IB_MMAP_CORE_CLOCK": MmapCoreClock, "MLX5_IB_MMAP_ALLOC_WC": MmapAllocWC, "MLX5_IB_MMAP_CLOCK_INFO": MmapClockInfo, "MLX5_IB_MMAP_DEVICE_MEM": MmapDeviceMem,
	"UVERBS_METHOD_SRQ_CREATE": SRQCreate, "UVERBS_METHOD_SRQ_DESTROY": SRQDestroy, "UVERBS_METHOD_MW_DESTROY": MWDestroy, "UVERBS_METHOD_AH_DESTROY": AHDestroy,
	"UVERBS_ATTR_CREATE_SRQ_HANDLE": SRQCreateHandle, "UVERBS_ATTR_CREATE_SRQ_PD_HANDLE": SRQCreatePD, "UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE": SRQCreateXRCD,
	"UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE": SRQCreateCQ, "UVERBS_ATTR_CREATE_SRQ_USER_HANDLE": SRQCreateUserHandle, "UVERBS_ATTR_CREATE_SRQ_MAX_WR": SRQCreateMaxWR,
	"UVERBS_ATTR_CREATE_SRQ_MAX_SGE": SRQCreateMaxSGE, "UVERBS_ATTR_CREATE_SRQ_LIMIT": SRQCreateLimit, "UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS": SRQCreateMaxTags,
	"UVERBS_ATTR_CREATE_SRQ_TYPE": SRQCreateType, "UVERBS_ATTR_CREATE_SRQ_EVENT_FD": SRQCreateEventFD, "UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR": SRQCreateRspMaxWR,
	"UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE": SRQCreateRspMaxSGE, "UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM": SRQCreateRspNum,
	"UVERBS_ATTR_DESTROY_SRQ_HANDLE": SRQDestroyHandle, "UVERBS_ATTR_DESTROY_SRQ_RESP": SRQDestroyRsp,
	"UVERBS_ATTR_DESTROY_MW_HANDLE": MWDestroyHandle, "UVERBS_ATTR_DESTROY_AH_HANDLE": AHDestroyHandle,
	"IB_UVERBS_SRQT_BASIC": SRQTypeBasic, "IB_UVERBS_SRQT_XRC": SRQTypeXRC, "IB_UVERBS_SRQT_TM": SRQTypeTM,
	"IB_USER_VERBS_CMD_DESTROY_SRQ": CmdDestroySRQ, "MLX5_SRQ_FLAG_SIGNATURE": SRQFlagSignature,
	"MLX5_USER_CMDS_SUPP_UHW_CREATE_AH": SuppUHWCreateAH, "MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET": UctxRespCoreClock,
	"offsetof(struct mlx5_ib_create_ah_resp, reserved)": CreateAHRespLeast,
	"sizeof(struct ib_uverbs_destroy_ah)":               4, "sizeof(struct ib_uverbs_dealloc_mw)": 4,
	"MLX5_IB_CLOCK_INFO_V1": ClockInfoV1, "MLX5_IB_CLOCK_INFO_KERNEL_UPDATING": ClockInfoUpdating,
	"MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD":                        QueryDevCQE128BPad,
	"sizeof(struct mlx5_ib_alloc_ucontext_req)":                        UctxReqV1Size,
	"offsetof(struct ib_uverbs_ex_query_device_resp, odp_caps)":        184,
	"offsetof(struct ib_uverbs_query_port_resp_ex, port_cap_flags2)+2": 42,
	"offsetof(struct ib_uverbs_attr, data)":                            8,
	"offsetof(struct ib_uverbs_attr, flags)":                           4,
	"offsetof(struct mlx5_ib_create_cq, uar_page_index)":               24,
	"offsetof(struct mlx5_ib_create_qp, access_key)":                   40,
	"sizeof(struct ib_uverbs_query_device)":                            8,
	"sizeof(struct ib_uverbs_alloc_pd)":                                8,
	"sizeof(struct ib_uverbs_create_comp_channel)":                     8,
	"sizeof(struct ib_uverbs_dealloc_pd)":                              4,
	"sizeof(struct ib_uverbs_dereg_mr)":                                4,
}

const headers = "#include <stddef.h>\n#include <stdio.h>\n#include <rdma/rdma_user_ioctl_cmds.h>\n#include <rdma/ib_user_ioctl_cmds.h>\n" +
	"#include <rdma/ib_user_ioctl_verbs.h>\n#include <rdma/ib_user_verbs.h>\n#include <rdma/mlx5-abi.h>\n#include <rdma/mlx5_user_ioctl_cmds.h>\n"

// The distribution's kernel headers agree with the views, as a C compiler lays the
// structures out, and with the numbers.
func TestAgainstKernelHeaders(t *testing.T) {
	missing := t.Skip
	if os.Getenv("RDMASIM_NEED_HEADERS") == "1" {
		missing = t.Fatal
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		missing("no gcc: the comparison with the kernel's headers needs it (package gcc)")
	}
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "abi.c"), filepath.Join(dir, "abi")
	write := func(text string) {
		if err := os.WriteFile(src, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("#if !__has_include(<rdma/mlx5-abi.h>)\n#error missing\n#endif\n")
	if exec.Command(gcc, "-E", "-o", os.DevNull, src).Run() != nil {
		missing("no rdma/mlx5-abi.h: the comparison with it needs it (package linux-libc-dev)")
	}
	var b bytes.Buffer
	b.WriteString(headers + "int main(void) {\n")
	for i, l := range layouts {
		if l.member == "" {
			fmt.Fprintf(&b, "printf(\"%d %%zu 0\\n\", sizeof(struct %s));\n", i, l.c)
			continue
		}
		fmt.Fprintf(&b, "printf(\"%d %%zu %%zu\\n\", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));\n", i, l.c, l.member, l.c, l.member)
	}
	for name := range values {
		fmt.Fprintf(&b, "printf(\"%s\\t%%llu\\n\", (unsigned long long)(%s));\n", name, name)
	}
	b.WriteString("return 0; }\n")
	write(b.String())
	if out, err := exec.Command(gcc, "-w", "-o", bin, src).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, string(out))
}

func compare(t *testing.T, out string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(layouts)+len(values) {
		t.Fatalf("%d lines for %d layouts and %d values", len(lines), len(layouts), len(values))
	}
	for i, l := range layouts {
		off, size := ours(l)
		if want := fmt.Sprintf("%d %d %d", i, off, size); lines[i] != want {
			t.Errorf("struct %s %s: the header says %q, we say %q", l.c, l.member, lines[i], want)
		}
	}
	for _, l := range lines[len(layouts):] {
		name, v, _ := strings.Cut(l, "\t")
		if want := fmt.Sprint(values[name]); v != want {
			t.Errorf("%s: the header says %s, we say %s", name, v, want)
		}
	}
}

// ours is where a method writes, and checks that it reads what it wrote; for a whole
// structure its size and 0.
func ours(l layout) (off, size int) {
	if l.member == "" {
		return l.size, 0
	}
	v := reflect.ValueOf(make([]byte, l.size)).Convert(reflect.TypeOf(l.view))
	get, set := v.MethodByName(l.method), v.MethodByName("Set"+l.method)
	if !set.IsValid() { // part of the structure
		part := get.Call(nil)[0]
		return int(part.Pointer() - v.Pointer()), part.Len()
	}
	x := reflect.New(get.Type().Out(0)).Elem()
	x.SetUint(1<<(8*x.Type().Size()) - 2) // no byte is 0
	set.Call([]reflect.Value{x})
	if get.Call(nil)[0].Uint() != x.Uint() {
		return -1, -1
	}
	for i, b := range v.Bytes() {
		if b != 0 {
			if size == 0 {
				off = i
			}
			size = i + 1 - off
		}
	}
	return off, size
}

var layouts = []layout{
	{"ib_uverbs_ioctl_hdr", "", Header(nil), HeaderSize, ""},
	{"ib_uverbs_ioctl_hdr", "length", Header(nil), HeaderSize, "Length"},
	{"ib_uverbs_ioctl_hdr", "object_id", Header(nil), HeaderSize, "ObjectID"},
	{"ib_uverbs_ioctl_hdr", "method_id", Header(nil), HeaderSize, "MethodID"},
	{"ib_uverbs_ioctl_hdr", "num_attrs", Header(nil), HeaderSize, "NumAttrs"},
	{"ib_uverbs_ioctl_hdr", "reserved1", Header(nil), HeaderSize, "Reserved1"},
	{"ib_uverbs_ioctl_hdr", "driver_id", Header(nil), HeaderSize, "DriverID"},
	{"ib_uverbs_ioctl_hdr", "reserved2", Header(nil), HeaderSize, "Reserved2"},
	{"ib_uverbs_attr", "", Attr(nil), AttrSize, ""},
	{"ib_uverbs_attr", "attr_id", Attr(nil), AttrSize, "ID"},
	{"ib_uverbs_attr", "len", Attr(nil), AttrSize, "Len"},
	{"ib_uverbs_attr", "flags", Attr(nil), AttrSize, "Flags"},
	{"ib_uverbs_attr", "attr_data.reserved", Attr(nil), AttrSize, "Elem"},
	{"ib_uverbs_attr", "data", Attr(nil), AttrSize, "Data"},
	{"ib_uverbs_ex_query_device", "", ExQueryDevice(nil), ExQueryDeviceSize, ""},
	{"ib_uverbs_ex_query_device", "comp_mask", ExQueryDevice(nil), ExQueryDeviceSize, "CompMask"},
	{"ib_uverbs_ex_query_device", "reserved", ExQueryDevice(nil), ExQueryDeviceSize, "Reserved"},
	{"ib_uverbs_query_device_resp", "", QueryDeviceResp(nil), QueryDeviceRespSize, ""},
	{"ib_uverbs_query_device_resp", "fw_ver", QueryDeviceResp(nil), QueryDeviceRespSize, "FWVer"},
	{"ib_uverbs_query_device_resp", "node_guid", QueryDeviceResp(nil), QueryDeviceRespSize, "NodeGUID"},
	{"ib_uverbs_query_device_resp", "sys_image_guid", QueryDeviceResp(nil), QueryDeviceRespSize, "SysImageGUID"},
	{"ib_uverbs_query_device_resp", "max_mr_size", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxMRSize"},
	{"ib_uverbs_query_device_resp", "page_size_cap", QueryDeviceResp(nil), QueryDeviceRespSize, "PageSizeCap"},
	{"ib_uverbs_query_device_resp", "vendor_id", QueryDeviceResp(nil), QueryDeviceRespSize, "VendorID"},
	{"ib_uverbs_query_device_resp", "vendor_part_id", QueryDeviceResp(nil), QueryDeviceRespSize, "VendorPartID"},
	{"ib_uverbs_query_device_resp", "hw_ver", QueryDeviceResp(nil), QueryDeviceRespSize, "HWVer"},
	{"ib_uverbs_query_device_resp", "max_qp", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxQP"},
	{"ib_uverbs_query_device_resp", "max_qp_wr", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxQPWR"},
	{"ib_uverbs_query_device_resp", "device_cap_flags", QueryDeviceResp(nil), QueryDeviceRespSize, "DeviceCapFlags"},
	{"ib_uverbs_query_device_resp", "max_sge", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxSGE"},
	{"ib_uverbs_query_device_resp", "max_sge_rd", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxSGERd"},
	{"ib_uverbs_query_device_resp", "max_cq", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxCQ"},
	{"ib_uverbs_query_device_resp", "max_cqe", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxCQE"},
	{"ib_uverbs_query_device_resp", "max_mr", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxMR"},
	{"ib_uverbs_query_device_resp", "max_pd", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxPD"},
	{"ib_uverbs_query_device_resp", "max_qp_rd_atom", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxQPRdAtom"},
	{"ib_uverbs_query_device_resp", "max_res_rd_atom", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxResRdAtom"},
	{"ib_uverbs_query_device_resp", "max_qp_init_rd_atom", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxQPInitRdAtom"},
	{"ib_uverbs_query_device_resp", "atomic_cap", QueryDeviceResp(nil), QueryDeviceRespSize, "AtomicCap"},
	{"ib_uverbs_query_device_resp", "max_mw", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxMW"},
	{"ib_uverbs_query_device_resp", "max_mcast_grp", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxMcastGrp"},
	{"ib_uverbs_query_device_resp", "max_mcast_qp_attach", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxMcastQPAttach"},
	{"ib_uverbs_query_device_resp", "max_total_mcast_qp_attach", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxTotalMcastQPAttach"},
	{"ib_uverbs_query_device_resp", "max_ah", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxAH"},
	{"ib_uverbs_query_device_resp", "max_srq", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxSRQ"},
	{"ib_uverbs_query_device_resp", "max_srq_wr", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxSRQWR"},
	{"ib_uverbs_query_device_resp", "max_srq_sge", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxSRQSGE"},
	{"ib_uverbs_query_device_resp", "max_pkeys", QueryDeviceResp(nil), QueryDeviceRespSize, "MaxPKeys"},
	{"ib_uverbs_query_device_resp", "local_ca_ack_delay", QueryDeviceResp(nil), QueryDeviceRespSize, "LocalCAAckDelay"},
	{"ib_uverbs_query_device_resp", "phys_port_cnt", QueryDeviceResp(nil), QueryDeviceRespSize, "PhysPortCnt"},
	{"ib_uverbs_ex_query_device_resp", "", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, ""},
	{"ib_uverbs_ex_query_device_resp", "base", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "Base"},
	{"ib_uverbs_ex_query_device_resp", "comp_mask", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "CompMask"},
	{"ib_uverbs_ex_query_device_resp", "response_length", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "ResponseLength"},
	{"ib_uverbs_ex_query_device_resp", "odp_caps.general_caps", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "ODPGeneralCaps"},
	{"ib_uverbs_ex_query_device_resp", "odp_caps.per_transport_caps.rc_odp_caps", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "RCODPCaps"},
	{"ib_uverbs_ex_query_device_resp", "odp_caps.per_transport_caps.uc_odp_caps", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "UCODPCaps"},
	{"ib_uverbs_ex_query_device_resp", "odp_caps.per_transport_caps.ud_odp_caps", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "UDODPCaps"},
	{"ib_uverbs_ex_query_device_resp", "timestamp_mask", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "TimestampMask"},
	{"ib_uverbs_ex_query_device_resp", "hca_core_clock", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "HCACoreClock"},
	{"ib_uverbs_ex_query_device_resp", "device_cap_flags_ex", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "DeviceCapFlagsEx"},
	{"ib_uverbs_ex_query_device_resp", "max_dm_size", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "MaxDMSize"},
	{"ib_uverbs_ex_query_device_resp", "xrc_odp_caps", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "XRCODPCaps"},
	{"ib_uverbs_query_port", "", QueryPort(nil), QueryPortSize, ""},
	{"ib_uverbs_query_port", "port_num", QueryPort(nil), QueryPortSize, "PortNum"},
	{"ib_uverbs_query_port_resp", "", QueryPortResp(nil), QueryPortRespSize, ""},
	{"ib_uverbs_query_port_resp", "port_cap_flags", QueryPortResp(nil), QueryPortRespSize, "PortCapFlags"},
	{"ib_uverbs_query_port_resp", "max_msg_sz", QueryPortResp(nil), QueryPortRespSize, "MaxMsgSize"},
	{"ib_uverbs_query_port_resp", "bad_pkey_cntr", QueryPortResp(nil), QueryPortRespSize, "BadPKeyCntr"},
	{"ib_uverbs_query_port_resp", "qkey_viol_cntr", QueryPortResp(nil), QueryPortRespSize, "QKeyViolCntr"},
	{"ib_uverbs_query_port_resp", "gid_tbl_len", QueryPortResp(nil), QueryPortRespSize, "GIDTblLen"},
	{"ib_uverbs_query_port_resp", "pkey_tbl_len", QueryPortResp(nil), QueryPortRespSize, "PKeyTblLen"},
	{"ib_uverbs_query_port_resp", "lid", QueryPortResp(nil), QueryPortRespSize, "LID"},
	{"ib_uverbs_query_port_resp", "sm_lid", QueryPortResp(nil), QueryPortRespSize, "SMLID"},
	{"ib_uverbs_query_port_resp", "state", QueryPortResp(nil), QueryPortRespSize, "State"},
	{"ib_uverbs_query_port_resp", "max_mtu", QueryPortResp(nil), QueryPortRespSize, "MaxMTU"},
	{"ib_uverbs_query_port_resp", "active_mtu", QueryPortResp(nil), QueryPortRespSize, "ActiveMTU"},
	{"ib_uverbs_query_port_resp", "lmc", QueryPortResp(nil), QueryPortRespSize, "LMC"},
	{"ib_uverbs_query_port_resp", "max_vl_num", QueryPortResp(nil), QueryPortRespSize, "MaxVLNum"},
	{"ib_uverbs_query_port_resp", "sm_sl", QueryPortResp(nil), QueryPortRespSize, "SMSL"},
	{"ib_uverbs_query_port_resp", "subnet_timeout", QueryPortResp(nil), QueryPortRespSize, "SubnetTimeout"},
	{"ib_uverbs_query_port_resp", "init_type_reply", QueryPortResp(nil), QueryPortRespSize, "InitTypeReply"},
	{"ib_uverbs_query_port_resp", "active_width", QueryPortResp(nil), QueryPortRespSize, "ActiveWidth"},
	{"ib_uverbs_query_port_resp", "active_speed", QueryPortResp(nil), QueryPortRespSize, "ActiveSpeed"},
	{"ib_uverbs_query_port_resp", "phys_state", QueryPortResp(nil), QueryPortRespSize, "PhysState"},
	{"ib_uverbs_query_port_resp", "link_layer", QueryPortResp(nil), QueryPortRespSize, "LinkLayer"},
	{"ib_uverbs_query_port_resp", "flags", QueryPortResp(nil), QueryPortRespSize, "Flags"},
	{"ib_uverbs_query_port_resp_ex", "", QueryPortRespEx(nil), QueryPortRespExSize, ""},
	{"ib_uverbs_query_port_resp_ex", "legacy_resp", QueryPortRespEx(nil), QueryPortRespExSize, "Legacy"},
	{"ib_uverbs_query_port_resp_ex", "port_cap_flags2", QueryPortRespEx(nil), QueryPortRespExSize, "PortCapFlags2"},
	{"ib_uverbs_gid_entry", "", GIDEntry(nil), GIDEntrySize, ""},
	{"ib_uverbs_gid_entry", "gid", GIDEntry(nil), GIDEntrySize, "GID"},
	{"ib_uverbs_gid_entry", "gid_index", GIDEntry(nil), GIDEntrySize, "Index"},
	{"ib_uverbs_gid_entry", "port_num", GIDEntry(nil), GIDEntrySize, "Port"},
	{"ib_uverbs_gid_entry", "gid_type", GIDEntry(nil), GIDEntrySize, "Type"},
	{"ib_uverbs_gid_entry", "netdev_ifindex", GIDEntry(nil), GIDEntrySize, "NetdevIfindex"},
	{"ib_uverbs_alloc_pd_resp", "", AllocPDResp(nil), AllocPDRespSize, ""},
	{"ib_uverbs_alloc_pd_resp", "pd_handle", AllocPDResp(nil), AllocPDRespSize, "PDHandle"},
	{"ib_uverbs_reg_mr", "", RegMR(nil), RegMRSize, ""},
	{"ib_uverbs_reg_mr", "start", RegMR(nil), RegMRSize, "Start"},
	{"ib_uverbs_reg_mr", "length", RegMR(nil), RegMRSize, "Length"},
	{"ib_uverbs_reg_mr", "hca_va", RegMR(nil), RegMRSize, "HCAVA"},
	{"ib_uverbs_reg_mr", "pd_handle", RegMR(nil), RegMRSize, "PDHandle"},
	{"ib_uverbs_reg_mr", "access_flags", RegMR(nil), RegMRSize, "AccessFlags"},
	{"ib_uverbs_reg_mr_resp", "", RegMRResp(nil), RegMRRespSize, ""},
	{"ib_uverbs_reg_mr_resp", "mr_handle", RegMRResp(nil), RegMRRespSize, "MRHandle"},
	{"ib_uverbs_reg_mr_resp", "lkey", RegMRResp(nil), RegMRRespSize, "LKey"},
	{"ib_uverbs_reg_mr_resp", "rkey", RegMRResp(nil), RegMRRespSize, "RKey"},
	{"ib_uverbs_create_comp_channel_resp", "", CreateCompChannelResp(nil), CreateCompChannelRespSize, ""},
	{"ib_uverbs_create_comp_channel_resp", "fd", CreateCompChannelResp(nil), CreateCompChannelRespSize, "FD"},
	{"ib_uverbs_destroy_cq_resp", "", DestroyCQResp(nil), DestroyCQRespSize, ""},
	{"ib_uverbs_destroy_cq_resp", "comp_events_reported", DestroyCQResp(nil), DestroyCQRespSize, "CompEventsReported"},
	{"ib_uverbs_destroy_cq_resp", "async_events_reported", DestroyCQResp(nil), DestroyCQRespSize, "AsyncEventsReported"},
	{"ib_uverbs_destroy_qp_resp", "", DestroyQPResp(nil), DestroyQPRespSize, ""},
	{"ib_uverbs_destroy_qp_resp", "events_reported", DestroyQPResp(nil), DestroyQPRespSize, "EventsReported"},
	{"ib_uverbs_comp_event_desc", "", CompEvent(nil), CompEventSize, ""},
	{"ib_uverbs_comp_event_desc", "cq_handle", CompEvent(nil), CompEventSize, "CQHandle"},
	{"ib_uverbs_async_event_desc", "", AsyncEvent(nil), AsyncEventSize, ""},
	{"ib_uverbs_async_event_desc", "element", AsyncEvent(nil), AsyncEventSize, "Element"},
	{"ib_uverbs_async_event_desc", "event_type", AsyncEvent(nil), AsyncEventSize, "EventType"},
	{"ib_uverbs_qp_cap", "", QPCap(nil), QPCapSize, ""},
	{"ib_uverbs_qp_cap", "max_send_wr", QPCap(nil), QPCapSize, "MaxSendWR"},
	{"ib_uverbs_qp_cap", "max_recv_wr", QPCap(nil), QPCapSize, "MaxRecvWR"},
	{"ib_uverbs_qp_cap", "max_send_sge", QPCap(nil), QPCapSize, "MaxSendSGE"},
	{"ib_uverbs_qp_cap", "max_recv_sge", QPCap(nil), QPCapSize, "MaxRecvSGE"},
	{"ib_uverbs_qp_cap", "max_inline_data", QPCap(nil), QPCapSize, "MaxInlineData"},
	{"ib_uverbs_qp_dest", "", QPDest(nil), QPDestSize, ""},
	{"ib_uverbs_qp_dest", "dgid", QPDest(nil), QPDestSize, "DGID"},
	{"ib_uverbs_qp_dest", "flow_label", QPDest(nil), QPDestSize, "FlowLabel"},
	{"ib_uverbs_qp_dest", "dlid", QPDest(nil), QPDestSize, "DLID"},
	{"ib_uverbs_qp_dest", "sgid_index", QPDest(nil), QPDestSize, "SGIDIndex"},
	{"ib_uverbs_qp_dest", "hop_limit", QPDest(nil), QPDestSize, "HopLimit"},
	{"ib_uverbs_qp_dest", "traffic_class", QPDest(nil), QPDestSize, "TrafficClass"},
	{"ib_uverbs_qp_dest", "sl", QPDest(nil), QPDestSize, "SL"},
	{"ib_uverbs_qp_dest", "src_path_bits", QPDest(nil), QPDestSize, "SrcPathBits"},
	{"ib_uverbs_qp_dest", "static_rate", QPDest(nil), QPDestSize, "StaticRate"},
	{"ib_uverbs_qp_dest", "is_global", QPDest(nil), QPDestSize, "IsGlobal"},
	{"ib_uverbs_qp_dest", "port_num", QPDest(nil), QPDestSize, "Port"},
	{"ib_uverbs_query_qp", "", QueryQP(nil), QueryQPSize, ""},
	{"ib_uverbs_query_qp", "qp_handle", QueryQP(nil), QueryQPSize, "QPHandle"},
	{"ib_uverbs_query_qp", "attr_mask", QueryQP(nil), QueryQPSize, "AttrMask"},
	{"ib_uverbs_query_qp_resp", "", QueryQPResp(nil), QueryQPRespSize, ""},
	{"ib_uverbs_query_qp_resp", "dest", QueryQPResp(nil), QueryQPRespSize, "Dest"},
	{"ib_uverbs_query_qp_resp", "alt_dest", QueryQPResp(nil), QueryQPRespSize, "AltDest"},
	{"ib_uverbs_query_qp_resp", "max_send_wr", QueryQPResp(nil), QueryQPRespSize, "MaxSendWR"},
	{"ib_uverbs_query_qp_resp", "max_recv_wr", QueryQPResp(nil), QueryQPRespSize, "MaxRecvWR"},
	{"ib_uverbs_query_qp_resp", "max_send_sge", QueryQPResp(nil), QueryQPRespSize, "MaxSendSGE"},
	{"ib_uverbs_query_qp_resp", "max_recv_sge", QueryQPResp(nil), QueryQPRespSize, "MaxRecvSGE"},
	{"ib_uverbs_query_qp_resp", "max_inline_data", QueryQPResp(nil), QueryQPRespSize, "MaxInlineData"},
	{"ib_uverbs_query_qp_resp", "qkey", QueryQPResp(nil), QueryQPRespSize, "QKey"},
	{"ib_uverbs_query_qp_resp", "rq_psn", QueryQPResp(nil), QueryQPRespSize, "RQPSN"},
	{"ib_uverbs_query_qp_resp", "sq_psn", QueryQPResp(nil), QueryQPRespSize, "SQPSN"},
	{"ib_uverbs_query_qp_resp", "dest_qp_num", QueryQPResp(nil), QueryQPRespSize, "DestQPN"},
	{"ib_uverbs_query_qp_resp", "qp_access_flags", QueryQPResp(nil), QueryQPRespSize, "AccessFlags"},
	{"ib_uverbs_query_qp_resp", "pkey_index", QueryQPResp(nil), QueryQPRespSize, "PKeyIndex"},
	{"ib_uverbs_query_qp_resp", "alt_pkey_index", QueryQPResp(nil), QueryQPRespSize, "AltPKeyIndex"},
	{"ib_uverbs_query_qp_resp", "qp_state", QueryQPResp(nil), QueryQPRespSize, "State"},
	{"ib_uverbs_query_qp_resp", "cur_qp_state", QueryQPResp(nil), QueryQPRespSize, "CurState"},
	{"ib_uverbs_query_qp_resp", "path_mtu", QueryQPResp(nil), QueryQPRespSize, "PathMTU"},
	{"ib_uverbs_query_qp_resp", "path_mig_state", QueryQPResp(nil), QueryQPRespSize, "PathMigState"},
	{"ib_uverbs_query_qp_resp", "sq_draining", QueryQPResp(nil), QueryQPRespSize, "SQDraining"},
	{"ib_uverbs_query_qp_resp", "max_rd_atomic", QueryQPResp(nil), QueryQPRespSize, "MaxRdAtomic"},
	{"ib_uverbs_query_qp_resp", "max_dest_rd_atomic", QueryQPResp(nil), QueryQPRespSize, "MaxDestRdAtomic"},
	{"ib_uverbs_query_qp_resp", "min_rnr_timer", QueryQPResp(nil), QueryQPRespSize, "MinRNRTimer"},
	{"ib_uverbs_query_qp_resp", "port_num", QueryQPResp(nil), QueryQPRespSize, "Port"},
	{"ib_uverbs_query_qp_resp", "timeout", QueryQPResp(nil), QueryQPRespSize, "Timeout"},
	{"ib_uverbs_query_qp_resp", "retry_cnt", QueryQPResp(nil), QueryQPRespSize, "RetryCnt"},
	{"ib_uverbs_query_qp_resp", "rnr_retry", QueryQPResp(nil), QueryQPRespSize, "RNRRetry"},
	{"ib_uverbs_query_qp_resp", "alt_port_num", QueryQPResp(nil), QueryQPRespSize, "AltPort"},
	{"ib_uverbs_query_qp_resp", "alt_timeout", QueryQPResp(nil), QueryQPRespSize, "AltTimeout"},
	{"ib_uverbs_query_qp_resp", "sq_sig_all", QueryQPResp(nil), QueryQPRespSize, "SQSigAll"},
	{"ib_uverbs_modify_qp", "", ModifyQP(nil), ModifyQPSize, ""},
	{"ib_uverbs_modify_qp", "dest", ModifyQP(nil), ModifyQPSize, "Dest"},
	{"ib_uverbs_modify_qp", "alt_dest", ModifyQP(nil), ModifyQPSize, "AltDest"},
	{"ib_uverbs_modify_qp", "qp_handle", ModifyQP(nil), ModifyQPSize, "QPHandle"},
	{"ib_uverbs_modify_qp", "attr_mask", ModifyQP(nil), ModifyQPSize, "AttrMask"},
	{"ib_uverbs_modify_qp", "qkey", ModifyQP(nil), ModifyQPSize, "QKey"},
	{"ib_uverbs_modify_qp", "rq_psn", ModifyQP(nil), ModifyQPSize, "RQPSN"},
	{"ib_uverbs_modify_qp", "sq_psn", ModifyQP(nil), ModifyQPSize, "SQPSN"},
	{"ib_uverbs_modify_qp", "dest_qp_num", ModifyQP(nil), ModifyQPSize, "DestQPN"},
	{"ib_uverbs_modify_qp", "qp_access_flags", ModifyQP(nil), ModifyQPSize, "AccessFlags"},
	{"ib_uverbs_modify_qp", "pkey_index", ModifyQP(nil), ModifyQPSize, "PKeyIndex"},
	{"ib_uverbs_modify_qp", "alt_pkey_index", ModifyQP(nil), ModifyQPSize, "AltPKeyIndex"},
	{"ib_uverbs_modify_qp", "qp_state", ModifyQP(nil), ModifyQPSize, "State"},
	{"ib_uverbs_modify_qp", "cur_qp_state", ModifyQP(nil), ModifyQPSize, "CurState"},
	{"ib_uverbs_modify_qp", "path_mtu", ModifyQP(nil), ModifyQPSize, "PathMTU"},
	{"ib_uverbs_modify_qp", "path_mig_state", ModifyQP(nil), ModifyQPSize, "PathMigState"},
	{"ib_uverbs_modify_qp", "en_sqd_async_notify", ModifyQP(nil), ModifyQPSize, "EnSQDAsyncNotify"},
	{"ib_uverbs_modify_qp", "max_rd_atomic", ModifyQP(nil), ModifyQPSize, "MaxRdAtomic"},
	{"ib_uverbs_modify_qp", "max_dest_rd_atomic", ModifyQP(nil), ModifyQPSize, "MaxDestRdAtomic"},
	{"ib_uverbs_modify_qp", "min_rnr_timer", ModifyQP(nil), ModifyQPSize, "MinRNRTimer"},
	{"ib_uverbs_modify_qp", "port_num", ModifyQP(nil), ModifyQPSize, "Port"},
	{"ib_uverbs_modify_qp", "timeout", ModifyQP(nil), ModifyQPSize, "Timeout"},
	{"ib_uverbs_modify_qp", "retry_cnt", ModifyQP(nil), ModifyQPSize, "RetryCnt"},
	{"ib_uverbs_modify_qp", "rnr_retry", ModifyQP(nil), ModifyQPSize, "RNRRetry"},
	{"ib_uverbs_modify_qp", "alt_port_num", ModifyQP(nil), ModifyQPSize, "AltPort"},
	{"ib_uverbs_modify_qp", "alt_timeout", ModifyQP(nil), ModifyQPSize, "AltTimeout"},
	{"ib_uverbs_ex_modify_qp", "", ExModifyQP(nil), ExModifyQPSize, ""},
	{"ib_uverbs_ex_modify_qp", "base", ExModifyQP(nil), ExModifyQPSize, "Base"},
	{"ib_uverbs_ex_modify_qp", "rate_limit", ExModifyQP(nil), ExModifyQPSize, "RateLimit"},
	{"ib_uverbs_ex_modify_qp_resp", "", ExModifyQPResp(nil), ExModifyQPRespSize, ""},
	{"ib_uverbs_ex_modify_qp_resp", "comp_mask", ExModifyQPResp(nil), ExModifyQPRespSize, "CompMask"},
	{"ib_uverbs_ex_modify_qp_resp", "response_length", ExModifyQPResp(nil), ExModifyQPRespSize, "ResponseLength"},
	{"mlx5_ib_alloc_ucontext_req_v2", "", AllocUcontextReq(nil), AllocUcontextReqSize, ""},
	{"mlx5_ib_alloc_ucontext_req_v2", "total_num_bfregs", AllocUcontextReq(nil), AllocUcontextReqSize, "TotalBFRegs"},
	{"mlx5_ib_alloc_ucontext_req_v2", "num_low_latency_bfregs", AllocUcontextReq(nil), AllocUcontextReqSize, "LowLatBFRegs"},
	{"mlx5_ib_alloc_ucontext_req_v2", "flags", AllocUcontextReq(nil), AllocUcontextReqSize, "Flags"},
	{"mlx5_ib_alloc_ucontext_req_v2", "comp_mask", AllocUcontextReq(nil), AllocUcontextReqSize, "CompMask"},
	{"mlx5_ib_alloc_ucontext_req_v2", "max_cqe_version", AllocUcontextReq(nil), AllocUcontextReqSize, "MaxCQEVersion"},
	{"mlx5_ib_alloc_ucontext_req_v2", "lib_caps", AllocUcontextReq(nil), AllocUcontextReqSize, "LibCaps"},
	{"mlx5_ib_alloc_ucontext_resp", "", AllocUcontextResp(nil), AllocUcontextRespSize, ""},
	{"mlx5_ib_alloc_ucontext_resp", "qp_tab_size", AllocUcontextResp(nil), AllocUcontextRespSize, "QPTabSize"},
	{"mlx5_ib_alloc_ucontext_resp", "bf_reg_size", AllocUcontextResp(nil), AllocUcontextRespSize, "BFRegSize"},
	{"mlx5_ib_alloc_ucontext_resp", "tot_bfregs", AllocUcontextResp(nil), AllocUcontextRespSize, "TotBFRegs"},
	{"mlx5_ib_alloc_ucontext_resp", "cache_line_size", AllocUcontextResp(nil), AllocUcontextRespSize, "CacheLineSize"},
	{"mlx5_ib_alloc_ucontext_resp", "max_sq_desc_sz", AllocUcontextResp(nil), AllocUcontextRespSize, "MaxSQDescSz"},
	{"mlx5_ib_alloc_ucontext_resp", "max_rq_desc_sz", AllocUcontextResp(nil), AllocUcontextRespSize, "MaxRQDescSz"},
	{"mlx5_ib_alloc_ucontext_resp", "max_send_wqebb", AllocUcontextResp(nil), AllocUcontextRespSize, "MaxSendWQEBB"},
	{"mlx5_ib_alloc_ucontext_resp", "max_recv_wr", AllocUcontextResp(nil), AllocUcontextRespSize, "MaxRecvWR"},
	{"mlx5_ib_alloc_ucontext_resp", "max_srq_recv_wr", AllocUcontextResp(nil), AllocUcontextRespSize, "MaxSRQRecvWR"},
	{"mlx5_ib_alloc_ucontext_resp", "num_ports", AllocUcontextResp(nil), AllocUcontextRespSize, "NumPorts"},
	{"mlx5_ib_alloc_ucontext_resp", "comp_mask", AllocUcontextResp(nil), AllocUcontextRespSize, "CompMask"},
	{"mlx5_ib_alloc_ucontext_resp", "response_length", AllocUcontextResp(nil), AllocUcontextRespSize, "ResponseLength"},
	{"mlx5_ib_alloc_ucontext_resp", "cqe_version", AllocUcontextResp(nil), AllocUcontextRespSize, "CQEVersion"},
	{"mlx5_ib_alloc_ucontext_resp", "cmds_supp_uhw", AllocUcontextResp(nil), AllocUcontextRespSize, "CmdsSuppUHW"},
	{"mlx5_ib_alloc_ucontext_resp", "eth_min_inline", AllocUcontextResp(nil), AllocUcontextRespSize, "EthMinInline"},
	{"mlx5_ib_alloc_ucontext_resp", "clock_info_versions", AllocUcontextResp(nil), AllocUcontextRespSize, "ClockInfoVersions"},
	{"mlx5_ib_alloc_ucontext_resp", "hca_core_clock_offset", AllocUcontextResp(nil), AllocUcontextRespSize, "HCACoreClockOffset"},
	{"mlx5_ib_alloc_ucontext_resp", "log_uar_size", AllocUcontextResp(nil), AllocUcontextRespSize, "LogUARSize"},
	{"mlx5_ib_alloc_ucontext_resp", "num_uars_per_page", AllocUcontextResp(nil), AllocUcontextRespSize, "NumUARsPerPage"},
	{"mlx5_ib_alloc_ucontext_resp", "num_dyn_bfregs", AllocUcontextResp(nil), AllocUcontextRespSize, "NumDynBFRegs"},
	{"mlx5_ib_alloc_ucontext_resp", "dump_fill_mkey", AllocUcontextResp(nil), AllocUcontextRespSize, "DumpFillMKey"},
	{"mlx5_ib_alloc_pd_resp", "", MLX5AllocPDResp(nil), MLX5AllocPDRespSize, ""},
	{"mlx5_ib_alloc_pd_resp", "pdn", MLX5AllocPDResp(nil), MLX5AllocPDRespSize, "PDN"},
	{"mlx5_ib_query_device_resp", "", MLX5QueryDeviceResp(nil), MLX5QueryDeviceRespSize, ""},
	{"mlx5_ib_query_device_resp", "comp_mask", MLX5QueryDeviceResp(nil), MLX5QueryDeviceRespSize, "CompMask"},
	{"mlx5_ib_query_device_resp", "response_length", MLX5QueryDeviceResp(nil), MLX5QueryDeviceRespSize, "ResponseLength"},
	{"mlx5_ib_query_device_resp", "flags", MLX5QueryDeviceResp(nil), MLX5QueryDeviceRespSize, "Flags"},
	{"mlx5_ib_query_device_resp", "cqe_comp_caps.max_num", MLX5QueryDeviceResp(nil), MLX5QueryDeviceRespSize, "CQECompMaxNum"},
	{"mlx5_ib_query_device_resp", "cqe_comp_caps.supported_format", MLX5QueryDeviceResp(nil), MLX5QueryDeviceRespSize, "CQECompFormats"},
	{"mlx5_ib_create_cq", "", MLX5CreateCQ(nil), MLX5CreateCQSize, ""},
	{"mlx5_ib_create_cq", "buf_addr", MLX5CreateCQ(nil), MLX5CreateCQSize, "BufAddr"},
	{"mlx5_ib_create_cq", "db_addr", MLX5CreateCQ(nil), MLX5CreateCQSize, "DBAddr"},
	{"mlx5_ib_create_cq", "cqe_size", MLX5CreateCQ(nil), MLX5CreateCQSize, "CQESize"},
	{"mlx5_ib_create_cq", "cqe_comp_en", MLX5CreateCQ(nil), MLX5CreateCQSize, "CQECompEn"},
	{"mlx5_ib_create_cq", "cqe_comp_res_format", MLX5CreateCQ(nil), MLX5CreateCQSize, "CQECompResFormat"},
	{"mlx5_ib_create_cq", "flags", MLX5CreateCQ(nil), MLX5CreateCQSize, "Flags"},
	{"mlx5_ib_create_cq", "uar_page_index", MLX5CreateCQ(nil), MLX5CreateCQSize, "UARPageIndex"},
	{"mlx5_ib_create_cq_resp", "", MLX5CreateCQResp(nil), MLX5CreateCQRespSize, ""},
	{"mlx5_ib_create_cq_resp", "cqn", MLX5CreateCQResp(nil), MLX5CreateCQRespSize, "CQN"},
	{"mlx5_ib_create_qp", "", MLX5CreateQP(nil), MLX5CreateQPSize, ""},
	{"mlx5_ib_create_qp", "buf_addr", MLX5CreateQP(nil), MLX5CreateQPSize, "BufAddr"},
	{"mlx5_ib_create_qp", "db_addr", MLX5CreateQP(nil), MLX5CreateQPSize, "DBAddr"},
	{"mlx5_ib_create_qp", "sq_wqe_count", MLX5CreateQP(nil), MLX5CreateQPSize, "SQWQECount"},
	{"mlx5_ib_create_qp", "rq_wqe_count", MLX5CreateQP(nil), MLX5CreateQPSize, "RQWQECount"},
	{"mlx5_ib_create_qp", "rq_wqe_shift", MLX5CreateQP(nil), MLX5CreateQPSize, "RQWQEShift"},
	{"mlx5_ib_create_qp", "flags", MLX5CreateQP(nil), MLX5CreateQPSize, "Flags"},
	{"mlx5_ib_create_qp", "uidx", MLX5CreateQP(nil), MLX5CreateQPSize, "UIDX"},
	{"mlx5_ib_create_qp", "bfreg_index", MLX5CreateQP(nil), MLX5CreateQPSize, "BFRegIndex"},
	{"mlx5_ib_create_qp", "sq_buf_addr", MLX5CreateQP(nil), MLX5CreateQPSize, "SQBufAddr"},
	{"mlx5_ib_create_qp", "ece_options", MLX5CreateQP(nil), MLX5CreateQPSize, "ECEOptions"},
	{"mlx5_ib_create_qp_resp", "", MLX5CreateQPResp(nil), MLX5CreateQPRespSize, ""},
	{"mlx5_ib_create_qp_resp", "bfreg_index", MLX5CreateQPResp(nil), MLX5CreateQPRespSize, "BFRegIndex"},
	{"mlx5_ib_create_qp_resp", "ece_options", MLX5CreateQPResp(nil), MLX5CreateQPRespSize, "ECEOptions"},
	{"mlx5_ib_create_qp_resp", "comp_mask", MLX5CreateQPResp(nil), MLX5CreateQPRespSize, "CompMask"},
	{"ib_uverbs_create_srq", "", CreateSRQ(nil), CreateSRQSize, ""},
	{"ib_uverbs_create_srq", "user_handle", CreateSRQ(nil), CreateSRQSize, "UserHandle"},
	{"ib_uverbs_create_srq", "pd_handle", CreateSRQ(nil), CreateSRQSize, "PDHandle"},
	{"ib_uverbs_create_srq", "max_wr", CreateSRQ(nil), CreateSRQSize, "MaxWR"},
	{"ib_uverbs_create_srq", "max_sge", CreateSRQ(nil), CreateSRQSize, "MaxSGE"},
	{"ib_uverbs_create_srq", "srq_limit", CreateSRQ(nil), CreateSRQSize, "SRQLimit"},
	{"ib_uverbs_create_srq_resp", "", CreateSRQResp(nil), CreateSRQRespSize, ""},
	{"ib_uverbs_create_srq_resp", "srq_handle", CreateSRQResp(nil), CreateSRQRespSize, "SRQHandle"},
	{"ib_uverbs_create_srq_resp", "max_wr", CreateSRQResp(nil), CreateSRQRespSize, "MaxWR"},
	{"ib_uverbs_create_srq_resp", "max_sge", CreateSRQResp(nil), CreateSRQRespSize, "MaxSGE"},
	{"ib_uverbs_create_srq_resp", "srqn", CreateSRQResp(nil), CreateSRQRespSize, "SRQN"},
	{"ib_uverbs_modify_srq", "", ModifySRQ(nil), ModifySRQSize, ""},
	{"ib_uverbs_modify_srq", "srq_handle", ModifySRQ(nil), ModifySRQSize, "SRQHandle"},
	{"ib_uverbs_modify_srq", "attr_mask", ModifySRQ(nil), ModifySRQSize, "AttrMask"},
	{"ib_uverbs_modify_srq", "max_wr", ModifySRQ(nil), ModifySRQSize, "MaxWR"},
	{"ib_uverbs_modify_srq", "srq_limit", ModifySRQ(nil), ModifySRQSize, "SRQLimit"},
	{"ib_uverbs_query_srq", "", QuerySRQ(nil), QuerySRQSize, ""},
	{"ib_uverbs_query_srq", "srq_handle", QuerySRQ(nil), QuerySRQSize, "SRQHandle"},
	{"ib_uverbs_query_srq_resp", "", QuerySRQResp(nil), QuerySRQRespSize, ""},
	{"ib_uverbs_query_srq_resp", "max_wr", QuerySRQResp(nil), QuerySRQRespSize, "MaxWR"},
	{"ib_uverbs_query_srq_resp", "max_sge", QuerySRQResp(nil), QuerySRQRespSize, "MaxSGE"},
	{"ib_uverbs_query_srq_resp", "srq_limit", QuerySRQResp(nil), QuerySRQRespSize, "SRQLimit"},
	{"ib_uverbs_destroy_srq", "", DestroySRQ(nil), DestroySRQSize, ""},
	{"ib_uverbs_destroy_srq", "srq_handle", DestroySRQ(nil), DestroySRQSize, "SRQHandle"},
	{"ib_uverbs_destroy_srq_resp", "", DestroySRQResp(nil), DestroySRQRespSize, ""},
	{"ib_uverbs_destroy_srq_resp", "events_reported", DestroySRQResp(nil), DestroySRQRespSize, "EventsReported"},
	{"mlx5_ib_create_srq", "", MLX5CreateSRQ(nil), MLX5CreateSRQSize, ""},
	{"mlx5_ib_create_srq", "buf_addr", MLX5CreateSRQ(nil), MLX5CreateSRQSize, "BufAddr"},
	{"mlx5_ib_create_srq", "db_addr", MLX5CreateSRQ(nil), MLX5CreateSRQSize, "DBAddr"},
	{"mlx5_ib_create_srq", "flags", MLX5CreateSRQ(nil), MLX5CreateSRQSize, "Flags"},
	{"mlx5_ib_create_srq", "reserved0", MLX5CreateSRQ(nil), MLX5CreateSRQSize, "Reserved0"},
	{"mlx5_ib_create_srq", "uidx", MLX5CreateSRQ(nil), MLX5CreateSRQSize, "UIDX"},
	{"mlx5_ib_create_srq", "reserved1", MLX5CreateSRQ(nil), MLX5CreateSRQSize, "Reserved1"},
	{"mlx5_ib_create_srq_resp", "", MLX5CreateSRQResp(nil), MLX5CreateSRQRespSize, ""},
	{"mlx5_ib_create_srq_resp", "srqn", MLX5CreateSRQResp(nil), MLX5CreateSRQRespSize, "SRQN"},
	{"ib_uverbs_create_ah", "", CreateAH(nil), CreateAHSize, ""},
	{"ib_uverbs_create_ah", "user_handle", CreateAH(nil), CreateAHSize, "UserHandle"},
	{"ib_uverbs_create_ah", "pd_handle", CreateAH(nil), CreateAHSize, "PDHandle"},
	{"ib_uverbs_create_ah", "attr", CreateAH(nil), CreateAHSize, "Attr"},
	{"ib_uverbs_ah_attr", "", AHAttr(nil), AHAttrSize, ""},
	{"ib_uverbs_ah_attr", "grh.dgid", AHAttr(nil), AHAttrSize, "DGID"},
	{"ib_uverbs_ah_attr", "grh.flow_label", AHAttr(nil), AHAttrSize, "FlowLabel"},
	{"ib_uverbs_ah_attr", "grh.sgid_index", AHAttr(nil), AHAttrSize, "SGIDIndex"},
	{"ib_uverbs_ah_attr", "grh.hop_limit", AHAttr(nil), AHAttrSize, "HopLimit"},
	{"ib_uverbs_ah_attr", "grh.traffic_class", AHAttr(nil), AHAttrSize, "TrafficClass"},
	{"ib_uverbs_ah_attr", "dlid", AHAttr(nil), AHAttrSize, "DLID"},
	{"ib_uverbs_ah_attr", "sl", AHAttr(nil), AHAttrSize, "SL"},
	{"ib_uverbs_ah_attr", "src_path_bits", AHAttr(nil), AHAttrSize, "SrcPathBits"},
	{"ib_uverbs_ah_attr", "static_rate", AHAttr(nil), AHAttrSize, "StaticRate"},
	{"ib_uverbs_ah_attr", "is_global", AHAttr(nil), AHAttrSize, "IsGlobal"},
	{"ib_uverbs_ah_attr", "port_num", AHAttr(nil), AHAttrSize, "Port"},
	{"ib_uverbs_create_ah_resp", "", CreateAHResp(nil), CreateAHRespSize, ""},
	{"ib_uverbs_create_ah_resp", "ah_handle", CreateAHResp(nil), CreateAHRespSize, "AHHandle"},
	{"mlx5_ib_create_ah_resp", "", MLX5CreateAHResp(nil), MLX5CreateAHRespSize, ""},
	{"mlx5_ib_create_ah_resp", "response_length", MLX5CreateAHResp(nil), MLX5CreateAHRespSize, "ResponseLength"},
	{"mlx5_ib_create_ah_resp", "dmac", MLX5CreateAHResp(nil), MLX5CreateAHRespSize, "DMAC"},
	{"ib_uverbs_attach_mcast", "", AttachMcast(nil), AttachMcastSize, ""},
	{"ib_uverbs_attach_mcast", "gid", AttachMcast(nil), AttachMcastSize, "GID"},
	{"ib_uverbs_attach_mcast", "qp_handle", AttachMcast(nil), AttachMcastSize, "QPHandle"},
	{"ib_uverbs_attach_mcast", "mlid", AttachMcast(nil), AttachMcastSize, "MLID"},
	{"ib_uverbs_alloc_mw", "", AllocMW(nil), AllocMWSize, ""},
	{"ib_uverbs_alloc_mw", "pd_handle", AllocMW(nil), AllocMWSize, "PDHandle"},
	{"ib_uverbs_alloc_mw", "mw_type", AllocMW(nil), AllocMWSize, "MWType"},
	{"ib_uverbs_alloc_mw_resp", "", AllocMWResp(nil), AllocMWRespSize, ""},
	{"ib_uverbs_alloc_mw_resp", "mw_handle", AllocMWResp(nil), AllocMWRespSize, "MWHandle"},
	{"ib_uverbs_alloc_mw_resp", "rkey", AllocMWResp(nil), AllocMWRespSize, "RKey"},
	{"mlx5_ib_alloc_mw", "", MLX5AllocMW(nil), MLX5AllocMWSize, ""},
	{"mlx5_ib_alloc_mw", "comp_mask", MLX5AllocMW(nil), MLX5AllocMWSize, "CompMask"},
	{"mlx5_ib_alloc_mw", "num_klms", MLX5AllocMW(nil), MLX5AllocMWSize, "NumKLMs"},
	{"mlx5_ib_alloc_mw", "reserved1", MLX5AllocMW(nil), MLX5AllocMWSize, "Reserved1"},
	{"mlx5_ib_alloc_mw", "reserved2", MLX5AllocMW(nil), MLX5AllocMWSize, "Reserved2"},
	{"ib_uverbs_rereg_mr", "", ReregMR(nil), ReregMRSize, ""},
	{"ib_uverbs_rereg_mr", "mr_handle", ReregMR(nil), ReregMRSize, "MRHandle"},
	{"ib_uverbs_rereg_mr", "flags", ReregMR(nil), ReregMRSize, "Flags"},
	{"ib_uverbs_rereg_mr", "start", ReregMR(nil), ReregMRSize, "Start"},
	{"ib_uverbs_rereg_mr", "length", ReregMR(nil), ReregMRSize, "Length"},
	{"ib_uverbs_rereg_mr", "hca_va", ReregMR(nil), ReregMRSize, "HCAVA"},
	{"ib_uverbs_rereg_mr", "pd_handle", ReregMR(nil), ReregMRSize, "PDHandle"},
	{"ib_uverbs_rereg_mr", "access_flags", ReregMR(nil), ReregMRSize, "AccessFlags"},
	{"ib_uverbs_rereg_mr_resp", "", ReregMRResp(nil), ReregMRRespSize, ""},
	{"ib_uverbs_rereg_mr_resp", "lkey", ReregMRResp(nil), ReregMRRespSize, "LKey"},
	{"ib_uverbs_rereg_mr_resp", "rkey", ReregMRResp(nil), ReregMRRespSize, "RKey"},
	{"ib_uverbs_resize_cq", "", ResizeCQ(nil), ResizeCQSize, ""},
	{"ib_uverbs_resize_cq", "cq_handle", ResizeCQ(nil), ResizeCQSize, "CQHandle"},
	{"ib_uverbs_resize_cq", "cqe", ResizeCQ(nil), ResizeCQSize, "CQE"},
	{"ib_uverbs_resize_cq_resp", "", ResizeCQResp(nil), ResizeCQRespSize, ""},
	{"ib_uverbs_resize_cq_resp", "cqe", ResizeCQResp(nil), ResizeCQRespSize, "CQE"},
	{"mlx5_ib_resize_cq", "", MLX5ResizeCQ(nil), MLX5ResizeCQSize, ""},
	{"mlx5_ib_resize_cq", "buf_addr", MLX5ResizeCQ(nil), MLX5ResizeCQSize, "BufAddr"},
	{"mlx5_ib_resize_cq", "cqe_size", MLX5ResizeCQ(nil), MLX5ResizeCQSize, "CQESize"},
	{"mlx5_ib_resize_cq", "reserved0", MLX5ResizeCQ(nil), MLX5ResizeCQSize, "Reserved0"},
	{"mlx5_ib_resize_cq", "reserved1", MLX5ResizeCQ(nil), MLX5ResizeCQSize, "Reserved1"},
	{"ib_uverbs_ex_modify_cq", "", ExModifyCQ(nil), ExModifyCQSize, ""},
	{"ib_uverbs_ex_modify_cq", "cq_handle", ExModifyCQ(nil), ExModifyCQSize, "CQHandle"},
	{"ib_uverbs_ex_modify_cq", "attr_mask", ExModifyCQ(nil), ExModifyCQSize, "AttrMask"},
	{"ib_uverbs_ex_modify_cq", "attr.cq_count", ExModifyCQ(nil), ExModifyCQSize, "CQCount"},
	{"ib_uverbs_ex_modify_cq", "attr.cq_period", ExModifyCQ(nil), ExModifyCQSize, "CQPeriod"},
	{"ib_uverbs_ex_modify_cq", "reserved", ExModifyCQ(nil), ExModifyCQSize, "Reserved"},
	{"ib_uverbs_detach_mcast", "", AttachMcast(nil), AttachMcastSize, ""},
	{"ib_uverbs_ex_query_device_resp", "cq_moderation_caps.max_cq_moderation_count", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "MaxCQCount"},
	{"ib_uverbs_ex_query_device_resp", "cq_moderation_caps.max_cq_moderation_period", ExQueryDeviceResp(nil), ExQueryDeviceRespSize, "MaxCQPeriod"},
	{"mlx5_ib_clock_info", "", ClockInfo(nil), ClockInfoSize, ""},
	{"mlx5_ib_clock_info", "sign", ClockInfo(nil), ClockInfoSize, "Sign"},
	{"mlx5_ib_clock_info", "nsec", ClockInfo(nil), ClockInfoSize, "Nsec"},
	{"mlx5_ib_clock_info", "cycles", ClockInfo(nil), ClockInfoSize, "Cycles"},
	{"mlx5_ib_clock_info", "frac", ClockInfo(nil), ClockInfoSize, "Frac"},
	{"mlx5_ib_clock_info", "mult", ClockInfo(nil), ClockInfoSize, "Mult"},
	{"mlx5_ib_clock_info", "shift", ClockInfo(nil), ClockInfoSize, "Shift"},
	{"mlx5_ib_clock_info", "mask", ClockInfo(nil), ClockInfoSize, "Mask"},
	{"mlx5_ib_clock_info", "overflow_period", ClockInfo(nil), ClockInfoSize, "OverflowPeriod"},
}
