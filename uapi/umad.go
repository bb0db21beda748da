package uapi

// Calls of an open umad file (rdma/rdma_user_ioctl.h).
const (
	UMADRegisterAgent   = 0xc01c1b01
	UMADUnregisterAgent = 0x40041b02
	UMADEnablePKey      = 0x1b03
	UMADRegisterAgent2  = 0xc0281b04
)

// UMADUserRMPP is the flag of UMADRegister2 for programs that do RMPP themselves. There is no other.
const UMADUserRMPP = 1

// UMADHeaderOldSize is the length of a header without the index of a P_Key.
const UMADHeaderOldSize = 56

// UMADVersion is that of the ABI.
const UMADVersion = 5
