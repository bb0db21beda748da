package prm

// AccessMode is the kind of translation, MKeyModePA and so on; its bits lie apart.
func (m MKC) AccessMode() uint32 { return bits(m, 0x00, 28, 26)<<2 | bits(m, 0x00, 9, 8) }

// SetAccessMode sets the access mode, whose bits lie apart.
func (m MKC) SetAccessMode(v uint32) {
	put(m, 0x00, 28, 26, v>>2)
	put(m, 0x00, 9, 8, v&3)
}

// Values of WQ.WQType.
const (
	WQTypeLinkedList = 0
	WQTypeCyclic     = 1
)

// States of an XRC SRQ (mlx5_ifc.h, MLX5_XRC_SRQC_STATE_*), and the op_mod of ARM_XRC_SRQ.
const (
	XRCSRQGood   = 0
	XRCSRQError  = 1
	ArmXRCSRQMod = 1
)

// States of a target of the dynamically connected transport (mlx5_ifc.h, MLX5_DCTC_STATE_*).
const (
	DCTActive   = 0
	DCTDraining = 1
	DCTDrained  = 2
)

// States of an RMP.
const (
	RMPStateReady = 1
	RMPStateErr   = 3
)
