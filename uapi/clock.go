package uapi

// ClockInfo is the page that turns cycles of the device's clock into nanoseconds. Bit 0 of the sign is set
// while it changes (struct mlx5_ib_clock_info).
type ClockInfo []byte

// ClockInfoSize is the size of the structure.
const ClockInfoSize = 56

func (c ClockInfo) Sign() uint32               { return le.Uint32(c[0:]) }
func (c ClockInfo) SetSign(v uint32)           { le.PutUint32(c[0:], v) }
func (c ClockInfo) Nsec() uint64               { return le.Uint64(c[8:]) }
func (c ClockInfo) SetNsec(v uint64)           { le.PutUint64(c[8:], v) }
func (c ClockInfo) Cycles() uint64             { return le.Uint64(c[16:]) }
func (c ClockInfo) SetCycles(v uint64)         { le.PutUint64(c[16:], v) }
func (c ClockInfo) Frac() uint64               { return le.Uint64(c[24:]) }
func (c ClockInfo) SetFrac(v uint64)           { le.PutUint64(c[24:], v) }
func (c ClockInfo) Mult() uint32               { return le.Uint32(c[32:]) }
func (c ClockInfo) SetMult(v uint32)           { le.PutUint32(c[32:], v) }
func (c ClockInfo) Shift() uint32              { return le.Uint32(c[36:]) }
func (c ClockInfo) SetShift(v uint32)          { le.PutUint32(c[36:], v) }
func (c ClockInfo) Mask() uint64               { return le.Uint64(c[40:]) }
func (c ClockInfo) SetMask(v uint64)           { le.PutUint64(c[40:], v) }
func (c ClockInfo) OverflowPeriod() uint64     { return le.Uint64(c[48:]) }
func (c ClockInfo) SetOverflowPeriod(v uint64) { le.PutUint64(c[48:], v) }

// ClockInfoV1 is the only layout of ClockInfo: the argument of its mmap, and the bit in
// ClockInfoVersions of AllocUcontextResp. ClockInfoUpdating is a bit of the sign.
const (
	ClockInfoV1       = 0
	ClockInfoUpdating = 1
)
