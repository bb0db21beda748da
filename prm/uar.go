package prm

// Geometry of a UAR page (device.h; uar.c, map_offset).
const (
	UARPageSize  = PageSize
	UARCQArm     = 0x20  // 8 bytes: arm a CQ
	UAREQArm     = 0x40  // 4 bytes: update an EQ's consumer index and arm it
	UAREQUpdate  = 0x48  // 4 bytes: update only
	UARBFOffset  = 0x800 // first bfreg
	BFRegsPerUAR = 4     // two for users' QPs, two for the kernel's fast path
	// UserBFRegsPerUAR are the bfregs of a page that users' QPs get.
	UserBFRegsPerUAR = 2
)

// UARKind is what an offset in a UAR page means.
type UARKind uint8

// Kinds of UAR offsets.
const (
	UARReserved UARKind = iota // nothing is there
	UARKindCQArm
	UARKindEQArm
	UARKindEQUpdate
	UARKindBF
)

// UARMap decodes offsets in a UAR page.
type UARMap struct {
	// LogBFRegSize is the logarithm of the bfreg stride in bytes that the device was
	// built with: 9 is two halves of 256 bytes. (The capability of that name may
	// read 0 while BlueFlame is off; the registers stay.)
	LogBFRegSize uint32
}

// UARAccess is a decoded offset. Reg, Half and Off are for UARKindBF.
type UARAccess struct {
	Kind UARKind
	Reg  uint8  // bfreg, 0 to 3
	Half uint8  // 0 or 1
	Off  uint32 // within the half, in bytes
}

// BFReg is the offset of half h of bfreg k in the page.
func (m UARMap) BFReg(k, h uint32) uint32 {
	return UARBFOffset + k<<m.LogBFRegSize + h<<(m.LogBFRegSize-1)
}

// HalfSize is the length of a half in bytes.
func (m UARMap) HalfSize() uint32 { return 1 << (m.LogBFRegSize - 1) }

// Decode says what lies at off, which is reduced to the page. The doorbells other
// than bfregs begin exactly at their offset.
func (m UARMap) Decode(off uint64) UARAccess {
	o := uint32(off & (UARPageSize - 1))
	if o >= UARBFOffset {
		o -= UARBFOffset
		k := o >> m.LogBFRegSize
		if k >= BFRegsPerUAR {
			return UARAccess{}
		}
		half := m.LogBFRegSize - 1
		return UARAccess{UARKindBF, uint8(k), uint8(o >> half & 1), o & (1<<half - 1)}
	}
	switch o {
	case UARCQArm:
		return UARAccess{Kind: UARKindCQArm}
	case UAREQArm:
		return UARAccess{Kind: UARKindEQArm}
	case UAREQUpdate:
		return UARAccess{Kind: UARKindEQUpdate}
	}
	return UARAccess{}
}
