package verbs

// WROpcode is IBV_WR_*.
type WROpcode uint32

// Work request opcodes.
const (
	WRRDMAWrite      WROpcode = 0
	WRRDMAWriteImm   WROpcode = 1
	WRSend           WROpcode = 2
	WRSendImm        WROpcode = 3
	WRRDMARead       WROpcode = 4
	WRAtomicCmpSwp   WROpcode = 5
	WRAtomicFetchAdd WROpcode = 6
	WRLocalInv       WROpcode = 7
	WRBindMW         WROpcode = 8
	WRSendInv        WROpcode = 9
	WRTSO            WROpcode = 10
	WRDriver1        WROpcode = 11
	WRAtomicWrite    WROpcode = 15
)

// SendFlags are IBV_SEND_*.
type SendFlags uint32

// Send flags.
const (
	SendFence     SendFlags = 1 << 0
	SendSignaled  SendFlags = 1 << 1
	SendSolicited SendFlags = 1 << 2
	SendInline    SendFlags = 1 << 3
	SendIPCsum    SendFlags = 1 << 4 // the device fills in checksums of IPv4, TCP and UDP
)

// SGE is ibv_sge; Length is in bytes.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// SendWR is ibv_send_wr. When PostSend returns, SGEs may be reused, and with SendInline the bytes
// that they name.
type SendWR struct {
	ID         uint64
	SGEs       []SGE
	Opcode     WROpcode
	Flags      SendFlags
	Imm        uint32 // host order; or the key to invalidate
	RemoteAddr uint64
	RKey       uint32
	CompareAdd uint64
	Swap       uint64

	// Of datagrams. A Q_Key with the top bit set stands for the QP's own.
	AH         AH
	RemoteQPN  uint32
	RemoteQKey uint32

	// XRCRemoteSRQN is the SRQ that receives a request of an XRC QP (qp_type.xrc.remote_srqn).
	XRCRemoteSRQN uint32

	Bind *MWBindWR // of WRBindMW
}

// GRHSize is the number of bytes that a receive of a UD QP gets before the payload: the routing
// header, or on RoCEv2 the IP header in its place.
const GRHSize = 40

// MulticastQPN is the destination QPN of datagrams to a multicast group.
const MulticastQPN uint32 = 0xffffff

// RecvWR is ibv_recv_wr.
type RecvWR struct {
	ID   uint64
	SGEs []SGE
}
