package verbs

import "time"

// UAR is a user access region of mlx5 direct verbs. Offsets count from the start of the adapter
// page.
type UAR interface {
	// Info returns what mlx5dv_devx_alloc_uar returned.
	Info() UARInfo
	// Store writes 8 bytes at the UAR's register, as a program that rings the doorbell itself does.
	Store(t Thread, off uint32, v uint64) error
	// Free is mlx5dv_devx_free_uar.
	Free(t Thread) error
}

// UARInfo is what mlx5dv_devx_alloc_uar returns, with addresses as numbers.
type UARInfo struct {
	RegAddr  uint64 // address of the register in the process
	BaseAddr uint64 // address of the UAR's first byte in the process
	PageID   uint32
	MmapOff  uint64
	MmapLen  uint64
}

// Flags of AllocUAR (MLX5DV_UAR_ALLOC_TYPE_BF, _NC and _NC_DEDICATED).
const (
	UARBlueFlame    uint32 = 0
	UARNonCached    uint32 = 1
	UARNonCachedOwn uint32 = 1 << 31
)

// TranslatedMR is implemented by simulated regions, which show how the device translates them: the
// page size that the driver chose, in bytes, and the number of entries. No verb tells.
type TranslatedMR interface {
	Translation() (pageSize uint64, entries int)
}

// TimedCQ is implemented by simulated completion queues, which show when the device wrote what a
// poll returned, from the timestamps of its entries. No field of ibv_wc tells.
type TimedCQ interface {
	// KeepTimes makes each poll keep the times of what it returns, of n completions at most. It
	// returns false, and keeps none, if entries are compressed.
	KeepTimes(n int) bool
	// CompletedAt is when the device wrote completion i of the last poll, by the clock of threads;
	// it has the steps of the device's clock.
	CompletedAt(i int) time.Duration
}

// Mlx5QP is what mlx5dv_init_obj gives for a QP. The QPs of mlx5 devices, real or
// simulated, implement it.
type Mlx5QP interface {
	// BFReg returns the register at which the QP rings its doorbell.
	BFReg() BFReg
	// DoorbellRecord reads the two words (receive, send) as the device would.
	DoorbellRecord(t Thread) (recv, send uint32)
	// SendQueue reads n bytes of the send ring from a byte offset.
	SendQueue(t Thread, off int, p []byte) error
	// WriteSendQueue writes p there, behind the library's back: requests that the library posts
	// later go where its own counters say.
	WriteSendQueue(t Thread, off int, p []byte) error
	// WriteDoorbellRecord and RingDoorbell are the last two steps of a post, for cases that
	// need them one by one.
	WriteDoorbellRecord(t Thread, sendCounter uint16) error
	RingDoorbell(t Thread, ctrl uint64) error
}

// BFReg is the register at which a QP rings its doorbell.
type BFReg struct {
	Addr     uint64 // address in the process, 0 when unknown
	UARPage  uint32 // hardware UAR index
	Offset   uint32 // of the register in its page
	Size     uint32 // bytes of one half; 0: no BlueFlame
	Index    int    // static generation: number in the context's table, whose dynamic part follows the static; dynamic: 0 or 1 on its page
	Dynamic  bool   // on a dynamically allocated page
	Class    string // "high", "medium", "low", "td", "dedicated", "shared", "nc"
	NeedLock bool
}

// LockStats counts how often the locks of an object were taken and waited for
// ("lock counters").
type LockStats struct {
	SQ, RQ, BF, CQ uint64        // acquisitions
	Waits          uint64        // acquisitions that had to wait
	WaitTime       time.Duration // total
}

// LockCounter is implemented by simulated QPs and CQs.
type LockCounter interface{ LockStats() LockStats }

// MMIOLog records writes to registers ("mmio log").
type MMIOLog interface {
	// Start begins to record; what was recorded before is dropped.
	Start()
	// Stop ends the recording and returns the writes in the order of their arrival at the device.
	Stop() []MMIOWrite
}

// MMIOKind classifies a write by how it looked when it arrived.
type MMIOKind uint8

// Kinds of register writes.
const (
	MMIODoorbell MMIOKind = iota + 1 // 8 bytes at the start of a bfreg half
	MMIOBlueFlame
	MMIOCQArm
	MMIOOther
	MMIODoorbellRecord // store to a doorbell record in memory, logged by the driver side
)

// MMIOWrite is one entry of the log, in order of arrival.
type MMIOWrite struct {
	At      time.Duration // by Thread.Now
	Kind    MMIOKind
	UARPage uint32
	Offset  uint32 // in the page
	Len     int
	QPN     uint32 // from the bytes; 0 when they name none
	Index   uint16 // WQE index from the bytes
	Data    []byte
}
