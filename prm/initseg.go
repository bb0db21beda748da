package prm

// InitSegHeadSize is the length of this part in bytes.
const InitSegHeadSize = 8

// CmdIfRevision is the revision of the command interface that drivers speak.
const CmdIfRevision = 5

// SetFWRev sets the version of the firmware.
func (i InitSeg) SetFWRev(major, minor uint16) { putBE16(i, 0, minor); putBE16(i, 2, major) }

// Places in the initialization segment, which begins BAR 0 (struct mlx5_init_seg,
// include/linux/mlx5/device.h).
const (
	InitSegCommandQueue  = 0x10 // CommandQueueRegs
	InitSegInitializing  = 0x1fc
	InitSegTimer         = 0x1000 // the free-running clock
	InitSegHealthCounter = 0x1010 // 32 bits that change for as long as the firmware runs
	InitSegSize          = 0x2000
)

// Set stores both words.
func (t Timer) Set(v uint64) { putBE64(t, 0, v) }

// TimerWord reads one word of the internal timer.
func TimerWord(b []byte) uint32 { return be32(b, 0) }
