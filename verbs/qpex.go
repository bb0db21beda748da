package verbs

// QPEx is the extended way to post (struct ibv_qp_ex; ibv_wr_post(3)): requests are
// built by calls between WRStart and WRComplete, during which no other thread may
// build on the QP, and are posted together. A builder (WRSend and the like) is followed
// by the setters that the operation and the QP type need: one for data, where there is
// any, SetUDAddr on UD and SetXRCSRQN on XRC, in either order.
//
// Builders and setters return nothing: WRComplete returns their first error, and then
// posts nothing. A builder that the type of the QP does not have ends the process,
// as a call through a null pointer does.
type QPEx interface {
	// SetWR sets the fields wr_id and wr_flags, which the builders after it take.
	// SendInline is not a flag of this interface.
	SetWR(id uint64, flags SendFlags)

	// WRStart is ibv_wr_start.
	WRStart(t Thread)
	// WRComplete posts what was built since WRStart, or nothing at all when a builder or
	// a setter failed; its error is that of the first.
	WRComplete(t Thread) error
	// WRAbort forgets what was built since WRStart.
	WRAbort(t Thread)

	// WRSend is ibv_wr_send.
	WRSend(t Thread)
	WRSendImm(t Thread, imm uint32) // host order
	// WRSendInv is ibv_wr_send_inv: SEND with Invalidate of the rkey at the peer.
	WRSendInv(t Thread, rkey uint32)
	// WRRDMAWrite is ibv_wr_rdma_write to the address remote.
	WRRDMAWrite(t Thread, rkey uint32, remote uint64)
	// WRRDMAWriteImm is ibv_wr_rdma_write_imm; imm is in host order.
	WRRDMAWriteImm(t Thread, rkey uint32, remote uint64, imm uint32)
	// WRRDMARead is ibv_wr_rdma_read from the address remote.
	WRRDMARead(t Thread, rkey uint32, remote uint64)
	// WRAtomicCmpSwp is ibv_wr_atomic_cmp_swp on 8 bytes; the old value goes to the SGE.
	WRAtomicCmpSwp(t Thread, rkey uint32, remote, compare, swap uint64)
	// WRAtomicFetchAdd is ibv_wr_atomic_fetch_add on 8 bytes; the old value goes to the SGE.
	WRAtomicFetchAdd(t Thread, rkey uint32, remote, add uint64)
	// WRAtomicWrite takes the 8 bytes as they lie in memory, and no setter.
	WRAtomicWrite(t Thread, rkey uint32, remote uint64, data [8]byte)
	// WRLocalInv is ibv_wr_local_inv; it takes no setter.
	WRLocalInv(t Thread, rkey uint32)
	// WRBindMW is ibv_wr_bind_mw, for windows of type 2; rkey is the new key. It takes no setter.
	WRBindMW(t Thread, mw MW, rkey uint32, info MWBindInfo)

	// SetSGE is ibv_wr_set_sge.
	SetSGE(t Thread, sge SGE)
	// SetSGEList is ibv_wr_set_sge_list.
	SetSGEList(t Thread, sges []SGE)
	// SetInlineData copies the data before it returns.
	SetInlineData(t Thread, addr uint64, length uint32)
	// SetInlineDataList is ibv_wr_set_inline_data_list; it copies as SetInlineData does.
	SetInlineDataList(t Thread, bufs []DataBuf)
	// SetUDAddr is ibv_wr_set_ud_addr.
	SetUDAddr(t Thread, ah AH, remoteQPN, remoteQKey uint32)
	// SetXRCSRQN is ibv_wr_set_xrc_srqn, a setter that every request of an XRC QP needs.
	SetXRCSRQN(t Thread, remoteSRQN uint32)
}

// DataBuf is ibv_data_buf.
type DataBuf struct {
	Addr   uint64
	Length uint32
}

// QPInitSendOpsFlags is the bit of QPInitAttr.CompMask that asks for the extended interface for
// posting, with the operations in SendOpsFlags.
const QPInitSendOpsFlags uint32 = 1 << 6

// Operations of QPInitAttr.SendOpsFlags (IBV_QP_EX_WITH_*).
const (
	QPExRDMAWrite      uint64 = 1 << 0
	QPExRDMAWriteImm   uint64 = 1 << 1
	QPExSend           uint64 = 1 << 2
	QPExSendImm        uint64 = 1 << 3
	QPExRDMARead       uint64 = 1 << 4
	QPExAtomicCmpSwp   uint64 = 1 << 5
	QPExAtomicFetchAdd uint64 = 1 << 6
	QPExLocalInv       uint64 = 1 << 7
	QPExBindMW         uint64 = 1 << 8
	QPExSendInv        uint64 = 1 << 9
	QPExTSO            uint64 = 1 << 10
	QPExFlush          uint64 = 1 << 11
	QPExAtomicWrite    uint64 = 1 << 12
)
