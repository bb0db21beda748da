package uapi

import "encoding/binary"

// Calls of an open umad file (rdma/rdma_user_ioctl.h).
const (
	UMADRegisterAgent   = 0xc01c1b01
	UMADUnregisterAgent = 0x40041b02
	UMADEnablePKey      = 0x1b03
	UMADRegisterAgent2  = 0xc0281b04
)

// UMADUserRMPP is the flag of UMADRegister2 for programs that do RMPP themselves. There is no
// other.
const UMADUserRMPP = 1

// UMADHeaderOldSize is the length of a header without the index of a P_Key.
const UMADHeaderOldSize = 56

// UMADVersion is that of the ABI.
const UMADVersion = 5

// What follows is in network byte order.

// DestQPN returns the number of the other end's QP.
func (h UMADHeader) DestQPN() uint32 { return binary.BigEndian.Uint32(h.QPN()) }

// SetDestQPN sets the number of the other end's QP.
func (h UMADHeader) SetDestQPN(v uint32) { binary.BigEndian.PutUint32(h.QPN(), v) }

// DestLID returns the LID of the other end.
func (h UMADHeader) DestLID() uint16 { return binary.BigEndian.Uint16(h.LID()) }

// SetDestLID sets the LID of the other end.
func (h UMADHeader) SetDestLID(v uint16) { binary.BigEndian.PutUint16(h.LID(), v) }

// Label returns the flow label, 20 bits.
func (h UMADHeader) Label() uint32 { return binary.BigEndian.Uint32(h.FlowLabel()) & 0xfffff }

// SetLabel sets the flow label.
func (h UMADHeader) SetLabel(v uint32) { binary.BigEndian.PutUint32(h.FlowLabel(), v) }

// UMADMethods returns a mask of methods, as a machine of x86-64 has it.
func UMADMethods(b []byte) [2]uint64 {
	return [2]uint64{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// UMADAgent is the number of an agent, alone in memory: 4 bytes.
type UMADAgent []byte

// ID returns the number.
func (a UMADAgent) ID() uint32 { return binary.LittleEndian.Uint32(a) }

// SetID sets the number.
func (a UMADAgent) SetID(v uint32) { binary.LittleEndian.PutUint32(a, v) }
