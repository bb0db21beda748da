package prm

// AttachToMCGIn is the in mailbox of ATTACH_TO_MCG (0x806): a QP joins a multicast group.
type AttachToMCGIn []byte

func (m AttachToMCGIn) QPN() uint32     { return bits(m, 0x08, 23, 0) }
func (m AttachToMCGIn) SetQPN(v uint32) { put(m, 0x08, 23, 0, v) }

// MulticastGID is the address of the group.
func (m AttachToMCGIn) MulticastGID() []byte { return m[0x10:0x20:0x20] }

// AttachToMCGOut is the out mailbox of ATTACH_TO_MCG.
type AttachToMCGOut []byte

// Lengths in bytes, lists not included.
const (
	AttachToMCGInSize  = 0x20
	AttachToMCGOutSize = 0x10
)

// DetachFromMCGIn is the in mailbox of DETACH_FROM_MCG (0x807).
type DetachFromMCGIn []byte

func (m DetachFromMCGIn) QPN() uint32     { return bits(m, 0x08, 23, 0) }
func (m DetachFromMCGIn) SetQPN(v uint32) { put(m, 0x08, 23, 0, v) }

// MulticastGID is the address of the group.
func (m DetachFromMCGIn) MulticastGID() []byte { return m[0x10:0x20:0x20] }

// DetachFromMCGOut is the out mailbox of DETACH_FROM_MCG.
type DetachFromMCGOut []byte

// Lengths in bytes, lists not included.
const (
	DetachFromMCGInSize  = 0x20
	DetachFromMCGOutSize = 0x10
)
