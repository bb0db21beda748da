package prm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/internal/layout"
)

// mkeySegment is the context of an mkey as mlx5dv.h has it: less of it than mlx5_ifc.h, from which
// the table is.
var mkeySegment = []layout.Member{
	{Struct: "mlx5_wqe_mkey_context_seg", Width: MKCSize},
	{Struct: "mlx5_wqe_mkey_context_seg", Name: "start_addr", Offset: 16, Width: 8},
	{Struct: "mlx5_wqe_mkey_context_seg", Name: "len", Offset: 24, Width: 8},
	{Struct: "mlx5_wqe_mkey_context_seg", Name: "bsf_octword_size", Offset: 32, Width: 4},
	{Struct: "mlx5_wqe_mkey_context_seg", Name: "translations_octword_size", Offset: 52, Width: 4},
}

// dvValues are enumerators of the header and our constants.
var dvValues = map[string]int{
	"MLX5_OPCODE_NOP": int(WQEOpNOP), "MLX5_OPCODE_SEND_INVAL": int(WQEOpSendInv), "MLX5_OPCODE_RDMA_WRITE": int(WQEOpRDMAWrite),
	"MLX5_OPCODE_RDMA_WRITE_IMM": int(WQEOpRDMAWriteImm), "MLX5_OPCODE_SEND": int(WQEOpSend), "MLX5_OPCODE_SEND_IMM": int(WQEOpSendImm),
	"MLX5_OPCODE_TSO": int(WQEOpTSO), "MLX5_OPCODE_RDMA_READ": int(WQEOpRDMARead), "MLX5_OPCODE_ATOMIC_CS": int(WQEOpAtomicCS),
	"MLX5_OPCODE_ATOMIC_FA": int(WQEOpAtomicFA), "MLX5_OPCODE_ATOMIC_MASKED_CS": int(WQEOpAtomicMaskedCS),
	"MLX5_OPCODE_ATOMIC_MASKED_FA": int(WQEOpAtomicMaskedFA), "MLX5_OPCODE_FMR": int(WQEOpFMR), "MLX5_OPCODE_LOCAL_INVAL": int(WQEOpLocalInval),
	"MLX5_OPCODE_CONFIG_CMD": int(WQEOpConfigCmd), "MLX5_OPCODE_SET_PSV": int(WQEOpSetPSV), "MLX5_OPCODE_UMR": int(WQEOpUMR),
	"MLX5_OPCODE_TAG_MATCHING": int(WQEOpTagMatching), "MLX5_OPCODE_FLOW_TBL_ACCESS": int(WQEOpFlowTblAccess), "MLX5_OPCODE_MMO": int(WQEOpMMO),
	"MLX5_CQE_REQ": int(CQEReq), "MLX5_CQE_RESP_WR_IMM": int(CQERespWrImm), "MLX5_CQE_RESP_SEND": int(CQERespSend), "MLX5_CQE_RESP_SEND_IMM": int(CQERespSendImm),
	"MLX5_CQE_RESP_SEND_INV": int(CQERespSendInv), "MLX5_CQE_RESIZE_CQ": int(CQEResizeCQ), "MLX5_CQE_NO_PACKET": int(CQENoPacket),
	"MLX5_CQE_SIG_ERR": int(CQESigErr), "MLX5_CQE_REQ_ERR": int(CQEReqErr), "MLX5_CQE_RESP_ERR": int(CQERespErr), "MLX5_CQE_INVALID": int(CQEInvalid),
	"MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR": int(SyndromeLocalLength), "MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR": int(SyndromeLocalQPOp),
	"MLX5_CQE_SYNDROME_LOCAL_PROT_ERR": int(SyndromeLocalProt), "MLX5_CQE_SYNDROME_WR_FLUSH_ERR": int(SyndromeWRFlush),
	"MLX5_CQE_SYNDROME_MW_BIND_ERR": int(SyndromeMWBind), "MLX5_CQE_SYNDROME_BAD_RESP_ERR": int(SyndromeBadResp),
	"MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR": int(SyndromeLocalAccess), "MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR": int(SyndromeRemoteInvalReq),
	"MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR": int(SyndromeRemoteAccess), "MLX5_CQE_SYNDROME_REMOTE_OP_ERR": int(SyndromeRemoteOp),
	"MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR": int(SyndromeTransportRetryExc), "MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR": int(SyndromeRNRRetryExc),
	"MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR": int(SyndromeRemoteAborted), "MLX5_CQE_VENDOR_SYNDROME_ODP_PFAULT": VendorSyndODPFault,
	"MLX5_WQE_CTRL_CQ_UPDATE": CtrlCQUpdate, "MLX5_WQE_CTRL_SOLICITED": CtrlSolicited, "MLX5_WQE_CTRL_FENCE": CtrlSmallAndFence,
	"MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE": CtrlSmallFence, "MLX5_SEND_WQE_BB": WQEBBSize, "MLX5_RCV_DBR": 0, "MLX5_SND_DBR": 1,
	"MLX5_INLINE_SEG": InlineFlag, "MLX5_INVALID_LKEY": InvalidLKey,
	"MLX5_WQE_UMR_CTRL_FLAG_INLINE": UMRInline, "MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE": UMRCheckFree,
	"MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET": UMRTranslationOffset, "MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN": UMRCheckQPN,
	"MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN": MKeyMaskLen, "MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR": MKeyMaskStartAddr,
	"MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY": MKeyMaskKey, "MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN": MKeyMaskQPN,
	"MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE": MKeyMaskLW, "MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ": MKeyMaskRR,
	"MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE": MKeyMaskRW, "MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC": MKeyMaskA,
	"MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE": MKeyMaskFree,
}

// The distribution's mlx5dv.h agrees: lengths and places of its structures, its enumerators, and
// the bytes that its own segment writers make.
func TestAgainstMlx5dv(t *testing.T) {
	dv := layout.Header{Files: []string{"infiniband/mlx5dv.h"}}
	members := append(tables(t).Members("mlx5_wqe_"), tables(t).Members("mlx5_cqe64")...)
	measured, err := dv.Measure(append(members, mkeySegment...))
	if errors.Is(err, layout.ErrMissing) {
		t.Skipf("needs the packages gcc and libibverbs-dev: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range append(members, mkeySegment...) {
		got := measured[i]
		if want.Name != "" {
			got.Width = want.Width // some fields are a part of a member
		}
		if got != want {
			t.Errorf("the header says %v, we say %v", got, want)
		}
	}
	out, err := dv.Run(dvProgram())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, l := range strings.Split(strings.TrimSpace(out), "\n") {
		k, v, _ := strings.Cut(l, " ")
		got[k] = v
	}
	want := dvWant()
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: the header says %q, we say %q", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d values printed, %d compared", len(got), len(want))
	}
}

func dvProgram() string {
	var b bytes.Buffer
	p := func(f string, a ...any) { fmt.Fprintf(&b, f+"\n", a...) }
	p("static void hex(const char *n, void *v, int l) { printf(\"%%s \", n); for (int i = 0; i < l; i++) printf(\"%%02x\", ((unsigned char *)v)[i]); puts(\"\"); }")
	p("int main(void) {")
	for n := range dvValues {
		p("printf(\"%s %%llu\\n\", (unsigned long long)(%s) & 0xffffffffull);", n, n)
	}
	p("struct mlx5_wqe_ctrl_seg c; memset(&c, 0, sizeof c); mlx5dv_set_ctrl_seg(&c, 0x1234, MLX5_OPCODE_SEND_IMM, 0x56, 0x789abc, 0x08, 5, 0x99, htobe32(0xdeadbeef)); hex(\"ctrl\", &c, sizeof c);")
	p("struct mlx5_wqe_data_seg d; mlx5dv_set_data_seg(&d, 0x11223344, 0x55667788, 0x99aabbccddeeULL); hex(\"data\", &d, sizeof d);")
	p("struct mlx5_wqe_datagram_seg g; memset(&g, 0, sizeof g); unsigned char mac[6] = {2,3,4,5,6,7}, gid[16] = {0xfe, 0x80, [15] = 9};")
	p("mlx5dv_set_dgram_seg(&g, 0x1111111100000000ULL, 0x234567, 1, 0x31, 0x7f, 0xc001, mac, 0x22, 64, 1u << 30 | 3 << 20 | 0x54321, gid); hex(\"dgram\", &g, sizeof g);")
	p("struct mlx5_cqe64 q; memset(&q, 0, sizeof q); q.op_own = 0xd7; printf(\"cqe %%d %%d %%d %%d\\n\", mlx5dv_get_cqe_opcode(&q), mlx5dv_get_cqe_format(&q), mlx5dv_get_cqe_se(&q), mlx5dv_get_cqe_owner(&q));")
	p("return 0; }")
	return b.String()
}

func dvWant() map[string]string {
	want := map[string]string{}
	for n, v := range dvValues {
		want[n] = fmt.Sprint(uint32(v))
	}
	c := CtrlSegment(make([]byte, 16))
	c.Set(WQEOpSendImm, 0x56, 0x1234, 0x789abc, 5, CtrlCQUpdate, 0xdeadbeef)
	c.SetSignature(0x99)
	want["ctrl"] = fmt.Sprintf("%x", []byte(c))
	d := DataSegment(make([]byte, 16))
	d.Set(0x11223344, 0x55667788, 0x99aabbccddee)
	want["data"] = fmt.Sprintf("%x", []byte(d))
	g := AVSegment(make([]byte, AVSegmentSize))
	g.SetQKey(0x11111111)
	g.SetDestQPN(0x234567)
	g.SetExtended(true)
	g.SetStatRateSL(0x31)
	g.SetFLMLID(0x7f)
	g.SetRLID(0xc001)
	copy(g.RMAC(), "\x02\x03\x04\x05\x06\x07")
	g.SetTClass(0x22)
	g.SetHopLimit(64)
	g.SetGRHPresent(true)
	g.SetSGIDIndex(3)
	g.SetFlowLabel(0x54321)
	copy(g.RGID(), "\xfe\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09")
	want["dgram"] = fmt.Sprintf("%x", []byte(g))
	q := CQE64(make([]byte, 64))
	q.SetOpOwn(CQEReqErr, 1, true, 1)
	if q[63] != 0xd7 {
		want["cqe"] = fmt.Sprintf("our last byte is %#x", q[63])
	} else {
		want["cqe"] = "13 1 1 1"
	}
	return want
}
