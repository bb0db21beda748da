package prm

// InitSeg is the beginning of the initialization segment at BAR0+0 (device.h, struct
// mlx5_init_seg): firmware revision and revision of the command interface.
type InitSeg []byte

// InitSegHeadSize is the length of this part in bytes.
const InitSegHeadSize = 8

// CmdIfRevision is the revision of the command interface that drivers speak.
const CmdIfRevision = 5

func (s InitSeg) FWMajor() uint16              { return be16(s, 2) }
func (s InitSeg) FWMinor() uint16              { return be16(s, 0) }
func (s InitSeg) SetFWRev(major, minor uint16) { putBE16(s, 0, minor); putBE16(s, 2, major) }
func (s InitSeg) CmdIfRev() uint16             { return be16(s, 4) }
func (s InitSeg) SetCmdIfRev(v uint16)         { putBE16(s, 4, v) }
func (s InitSeg) FWSub() uint16                { return be16(s, 6) }
func (s InitSeg) SetFWSub(v uint16)            { putBE16(s, 6, v) }

// AdapterInfo is the block in the answer to QUERY_ADAPTER.
type AdapterInfo []byte

func (a AdapterInfo) IEEEVendorID() uint32     { return bits(a, 0x18, 23, 0) }
func (a AdapterInfo) SetIEEEVendorID(v uint32) { put(a, 0x18, 23, 0, v) }

// PSID is the board's name.
func (a AdapterInfo) PSID() []byte { return a[0xf0:0x100:0x100] }

// The free-running clock in the initialisation segment (struct mlx5_init_seg, include/linux/mlx5/device.h).
const (
	InitSegTimer = 0x1000 // its place in BAR 0
	TimerSize    = 8
)

// Timer is the clock as two words, the upper one first.
type Timer []byte

// Set stores both words.
func (b Timer) Set(v uint64) { putBE64(b, 0, v) }

// TimerWord is one word as it is read.
func TimerWord(b []byte) uint32 { return be32(b, 0) }
