package prm

// DeviceMemCap is the capability page of memory on the device (mlx5_ifc_device_mem_cap_bits).
type DeviceMemCap []byte

func (c DeviceMemCap) Memic() bool     { return bit(c, 0x00, 31) }
func (c DeviceMemCap) SetMemic(v bool) { putBit(c, 0x00, 31, v) }

// LogMinMemicAllocSize is the least that one allocation takes.
func (c DeviceMemCap) LogMinMemicAllocSize() uint32     { return bits(c, 0x04, 20, 16) }
func (c DeviceMemCap) SetLogMinMemicAllocSize(v uint32) { put(c, 0x04, 20, 16, v) }

// LogMaxMemicAddrAlignment counts from 64 bytes.
func (c DeviceMemCap) LogMaxMemicAddrAlignment() uint32     { return bits(c, 0x04, 7, 0) }
func (c DeviceMemCap) SetLogMaxMemicAddrAlignment(v uint32) { put(c, 0x04, 7, 0, v) }
func (c DeviceMemCap) MemicBARStartAddr() uint64            { return be64(c, 0x08) }
func (c DeviceMemCap) SetMemicBARStartAddr(v uint64)        { putBE64(c, 0x08, v) }
func (c DeviceMemCap) MemicBARSize() uint32                 { return be32(c, 0x10) }
func (c DeviceMemCap) SetMemicBARSize(v uint32)             { putBE32(c, 0x10, v) }
func (c DeviceMemCap) MaxMemicSize() uint32                 { return be32(c, 0x14) }
func (c DeviceMemCap) SetMaxMemicSize(v uint32)             { putBE32(c, 0x14, v) }

// AllocMemicIn is the in mailbox of ALLOC_MEMIC (0x205): memory to be seen somewhere in a
// range of the BAR.
type AllocMemicIn []byte

func (m AllocMemicIn) LogMemicAddrAlignment() uint32     { return bits(m, 0x0c, 7, 0) }
func (m AllocMemicIn) SetLogMemicAddrAlignment(v uint32) { put(m, 0x0c, 7, 0, v) }
func (m AllocMemicIn) RangeStartAddr() uint64            { return be64(m, 0x10) }
func (m AllocMemicIn) SetRangeStartAddr(v uint64)        { putBE64(m, 0x10, v) }
func (m AllocMemicIn) RangeSize() uint32                 { return be32(m, 0x18) }
func (m AllocMemicIn) SetRangeSize(v uint32)             { putBE32(m, 0x18, v) }
func (m AllocMemicIn) MemicSize() uint32                 { return be32(m, 0x1c) }
func (m AllocMemicIn) SetMemicSize(v uint32)             { putBE32(m, 0x1c, v) }

// AllocMemicOut is the out mailbox of ALLOC_MEMIC.
type AllocMemicOut []byte

func (m AllocMemicOut) MemicStartAddr() uint64     { return be64(m, 0x08) }
func (m AllocMemicOut) SetMemicStartAddr(v uint64) { putBE64(m, 0x08, v) }

// DeallocMemicIn is the in mailbox of DEALLOC_MEMIC (0x206).
type DeallocMemicIn []byte

func (m DeallocMemicIn) MemicStartAddr() uint64     { return be64(m, 0x10) }
func (m DeallocMemicIn) SetMemicStartAddr(v uint64) { putBE64(m, 0x10, v) }
func (m DeallocMemicIn) MemicSize() uint32          { return be32(m, 0x18) }
func (m DeallocMemicIn) SetMemicSize(v uint32)      { putBE32(m, 0x18, v) }

// Lengths in bytes.
const (
	AllocMemicInSize    = 0x20
	AllocMemicOutSize   = 0x10
	DeallocMemicInSize  = 0x20
	DeallocMemicOutSize = 0x10
)
