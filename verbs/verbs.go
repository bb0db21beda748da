// Package verbs is the API that programs of this project use: conformance cases and workloads on
// one side, the simulator and real devices on the other. It follows libibverbs in names, meanings
// and errors; two things differ: the types are Go's, and every call names the thread that makes it.
//
// Errors of the control path and of posting are the errno that the real stack
// returns, wrapped with context: errors.As finds a syscall.Errno, ErrnoOf gets it.
//
// The interfaces grow. An implementation embeds the matching Unimplemented type,
// whose methods return EOPNOTSUPP.
package verbs

import "time"

// Testbed is what a program is given: hosts with devices, and their wires.
type Testbed interface {
	// Hosts returns the hosts of the target, at least one.
	Hosts() []Host
	// Capability says whether the testbed or its devices have what a case needs;
	// the tokens are those of the catalogue ("td", "bf", "mmio log", "2p", ...).
	Capability(token string) Capability
	// Target describes the device under test for reports.
	Target() Target
	// Log records writes to the device's registers, where the testbed can ("mmio log");
	// nil elsewhere.
	Log() MMIOLog
	// Wire records and disturbs the frames of the link ("tap", "inj"); nil where there is neither.
	Wire() Wire
	// Faults breaks the device or the bus by script ("fault"); nil elsewhere.
	Faults() Faults
	// Player starts another process on the given host, which carries out the commands
	// of package player.
	Player(t Thread, host int, env map[string]string) (Player, error)
}

// Capability says whether a target has what a case needs.
type Capability int

// Answers of a probe; Unknown: it cannot tell.
const (
	Unknown Capability = iota
	Absent
	Present
)

// Target says what a testbed runs on.
type Target struct {
	Kind    string            // "sim" or "hw"
	Profile string            // of the simulator
	Device  string            // e.g. "mlx5_0"
	Details map[string]string // firmware, kernel, library versions and the like
}

// Host is a machine.
type Host interface {
	Name() string
	// NewProcess starts a process with the given MLX5_* environment. Its threads
	// are started by the caller's thread.
	NewProcess(t Thread, env map[string]string) (Process, error)
	// Cores is how many cores the host has.
	Cores() int
	// PageSize is the system page size in bytes.
	PageSize() int
}

// Process owns an address space and open devices.
type Process interface {
	Host() Host
	Name() string
	// Start runs body in a new thread of the process on the given core (-1: any).
	Start(t Thread, name string, core int, body func(Thread)) Thread
	// Devices lists the RDMA devices of the host (ibv_get_device_list).
	Devices(t Thread) ([]Device, error)
	// Map maps memory (mmap), anonymous unless o.Object is set.
	Map(t Thread, length uint64, o MapOptions) (Buffer, error)
	// Kill ends the process as SIGKILL does: its threads stop and the kernel cleans up.
	Kill(t Thread)
}

// MapOptions say how memory is mapped.
type MapOptions struct {
	ReadOnly bool
	// PageSize of the physical memory in bytes. 0: whatever the host gives. The host's own page
	// size: pages that are not contiguous. Another: whole huge pages of that size.
	PageSize uint64
	Offset   uint64 // first byte lies this far into its page
	// Lazy: a page is allocated, and costs something, when it is first touched, and can be
	// reclaimed. Without Lazy the simulator allocates all pages at once and keeps them; a real
	// kernel is always lazy.
	Lazy bool
	// NoAccess: PROT_NONE, which keeps addresses.
	NoAccess bool
	// Object is mapped from byte ObjectOffset on (MAP_SHARED, or MAP_PRIVATE with Private); nil: anonymous memory.
	Object       MemObject
	ObjectOffset uint64
	Private      bool
	// At is the address of the mapping, without Offset (MAP_FIXED: what is there is unmapped); 0: anywhere.
	At uint64
	// NoReplace: EEXIST when something is mapped there (MAP_FIXED_NOREPLACE).
	NoReplace bool
}

// Buffer is memory of a process. Addr is what goes into an SGE.
type Buffer interface {
	Addr() uint64
	Len() uint64
	ReadAt(t Thread, p []byte, off int64) (int, error)
	WriteAt(t Thread, p []byte, off int64) (int, error)
	// Unmap is munmap of the whole buffer.
	Unmap(t Thread) error
}

// Thread is the caller of every call, and its clock. A call made with another
// thread's value fails the case.
type Thread interface {
	Process() Process
	Name() string
	// Now is the thread's clock: virtual on the simulator, monotonic elsewhere.
	Now() time.Duration
	Sleep(d time.Duration)
	// Join waits for another thread of the same process to end.
	Join(other Thread)
	// Work keeps the CPU busy for d.
	Work(d time.Duration)
	// Interrupt sends another thread of the same process a signal whose handler does
	// nothing, without SA_RESTART: a wait for an event ends with EINTR.
	Interrupt(other Thread) error
}

// Device is an entry of the device list.
type Device interface {
	Name() string
	GUID() uint64
	// Open opens the device (ibv_open_device).
	Open(t Thread) (Context, error)
}

// Context is an open device.
type Context interface {
	Device() Device
	Close(t Thread) error

	QueryDevice(t Thread) (DeviceAttr, error)
	// QueryDeviceEx takes the input comp_mask of ibv_query_device_ex.
	QueryDeviceEx(t Thread, compMask uint32) (DeviceAttrEx, error)
	QueryPort(t Thread, port int) (PortAttr, error)
	QueryGID(t Thread, port, index int) (GID, error)
	QueryGIDEx(t Thread, port, index int, flags uint32) (GIDEntry, error)
	// QueryGIDTable fills entries and returns how many there are.
	QueryGIDTable(t Thread, entries []GIDEntry, flags uint32) (int, error)
	QueryPKey(t Thread, port, index int) (uint16, error)
	PKeyIndex(t Thread, port int, pkey uint16) (int, error)
	NumCompVectors() int
	// InitAHFromWC is ibv_init_ah_from_wc: the address from which a datagram came, by its
	// completion and the 40 bytes that were put before its payload.
	InitAHFromWC(t Thread, port int, wc *WC, grh []byte) (AHAttr, error)
	// RawClock reads the device's free-running clock, in its own ticks.
	RawClock(t Thread) (uint64, error)

	AllocPD(t Thread) (PD, error)
	// ImportPD is ibv_import_pd. ENOENT or EINVAL: no PD has the handle.
	ImportPD(t Thread, handle uint32) (PD, error)
	AllocTD(t Thread, attr TDInitAttr) (TD, error)
	AllocParentDomain(t Thread, attr ParentDomainAttr) (PD, error)
	CreateCompChannel(t Thread) (CompChannel, error)
	CreateCQ(t Thread, attr CQAttr) (CQ, error)
	// AllocDM is ibv_alloc_dm ("dm"). EINVAL: more than the device has, or nothing.
	AllocDM(t Thread, attr DMAttr) (DM, error)
	// OpenXRCD is ibv_open_xrcd ("xrc").
	OpenXRCD(t Thread, attr XRCDInitAttr) (XRCD, error)
	// CreateQP is ibv_create_qp_ex for QPs without a PD, which are XRC targets; PD.CreateQP makes the others.
	CreateQP(t Thread, attr QPInitAttr) (QP, error)
	// OpenQP is ibv_open_qp: another handle of an XRC target QP.
	OpenQP(t Thread, attr QPOpenAttr) (QP, error)
	// CreateSRQEx is ibv_create_srq_ex.
	CreateSRQEx(t Thread, attr SRQInitAttrEx) (SRQ, error)
	// AllocUAR is mlx5dv_devx_alloc_uar.
	AllocUAR(t Thread, flags uint32) (UAR, error)
	// AsyncEvent waits up to timeout for an asynchronous event. EAGAIN: none came.
	AsyncEvent(t Thread, timeout time.Duration) (AsyncEvent, error)
	AckAsyncEvent(t Thread, ev AsyncEvent)
	// EventTypeStr and WCStatusStr are ibv_event_type_str and ibv_wc_status_str of the
	// library below.
	EventTypeStr(typ EventType) string
	WCStatusStr(status WCStatus) string
}

// PD is a protection domain or a parent domain.
type PD interface {
	Context() Context
	// Handle is the number by which other contexts of the device file import the PD.
	Handle() uint32
	Dealloc(t Thread) error
	// Unimport is ibv_unimport_pd: the PD itself stays. A parent domain: EINVAL.
	Unimport(t Thread) error
	// ImportMR is ibv_import_mr: the region's address reads as 0.
	ImportMR(t Thread, handle uint32) (MR, error)
	RegMR(t Thread, addr, length uint64, access AccessFlags) (MR, error)
	// RegMRIova is ibv_reg_mr_iova.
	RegMRIova(t Thread, addr, length, iova uint64, access AccessFlags) (MR, error)
	// AllocNullMR is ibv_alloc_null_mr ("nullmr"): by its local key, which is valid for every
	// address, writes go nowhere and reads give zeros. EOPNOTSUPP: the device has none.
	AllocNullMR(t Thread) (MR, error)
	// AdviseMR is ibv_advise_mr: it says which ranges of on-demand regions will be used soon.
	AdviseMR(t Thread, advice AdviseMRAdvice, flags AdviseMRFlags, ranges []SGE) error
	// RegDMMR is ibv_reg_dm_mr: its addresses begin at 0.
	RegDMMR(t Thread, dm DM, off, length uint64, access AccessFlags) (MR, error)
	// RegDmabufMR is ibv_reg_dmabuf_mr ("dmabuf"): length bytes from byte offset of the DMA-BUF
	// behind a descriptor on, at the addresses from iova on. The descriptor may be closed
	// afterwards. EBADF: it is not open; EINVAL: the file is no DMA-BUF, offset and iova differ
	// within a page, the range is empty or exceeds the DMA-BUF, or such a region cannot have an
	// access bit; EOPNOTSUPP: the kernel, the driver or the library has no such call.
	RegDmabufMR(t Thread, offset, length, iova uint64, fd int, access AccessFlags) (MR, error)
	CreateQP(t Thread, attr QPInitAttr) (QP, error)
	CreateSRQ(t Thread, attr SRQInitAttr) (SRQ, error)
	CreateAH(t Thread, attr AHAttr) (AH, error)
	AllocMW(t Thread, typ MWType) (MW, error)
}

// TD is a thread domain: a promise that what is created on it is used by one
// thread at a time.
type TD interface {
	Dealloc(t Thread) error
}

// MR is a memory region.
type MR interface {
	LKey() uint32
	RKey() uint32
	Addr() uint64
	Length() uint64
	// Handle is the number by which other contexts of the device file import the region.
	Handle() uint32
	// Unimport is ibv_unimport_mr: the region itself stays.
	Unimport(t Thread) error
	// Rereg is ibv_rereg_mr. Its error is a *ReregError. The keys may change.
	Rereg(t Thread, flags ReregFlags, pd PD, addr, length uint64, access AccessFlags) error
	// Counters returns the kernel's counters of the region (rdma statistic show mr), in its order. EOPNOTSUPP: they
	// cannot be read.
	Counters(t Thread) ([]NamedCounter, error)
	Dereg(t Thread) error
}

// CQ is a completion queue.
type CQ interface {
	// Cap is the number of entries that the application may count on.
	Cap() int
	// Context is the cq_context given at creation.
	Context() any
	// Poll is ibv_poll_cq: it fills wc and returns how many, without waiting.
	Poll(t Thread, wc []WC) (int, error)
	// PollWait polls until wc holds at least one completion or timeout has passed; it spins as a
	// program does, which takes CPU time.
	PollWait(t Thread, wc []WC, timeout time.Duration) (int, error)
	// ReqNotify arms the CQ (ibv_req_notify_cq).
	ReqNotify(t Thread, solicitedOnly bool) error
	Resize(t Thread, cqe int) error
	// Modify is ibv_modify_cq, which sets the moderation.
	Modify(t Thread, m CQModeration) error
	Destroy(t Thread) error
}

// CQEx is implemented by CQs that were created by the extended call (ibv_cq_ex). StartPoll and
// NextPoll find the next completion, whose fields the other methods return until the next call;
// ENOENT means that there is none. EndPoll must follow each StartPoll that succeeds, and no other.
// A field may be read only if the WCFlags of the CQ's creation asked for it.
type CQEx interface {
	CQ
	StartPoll(t Thread, compMask uint32) error
	NextPoll(t Thread) error
	EndPoll(t Thread)
	WRID() uint64
	Status() WCStatus
	ReadOpcode() WCOpcode
	ReadVendorErr() uint32
	ReadWCFlags() WCFlags
	ReadByteLen() uint32
	ReadImmData() uint32 // host order
	ReadQPNum() uint32
	ReadSrcQP() uint32
	ReadSLID() uint32
	ReadSL() uint8
	ReadDLIDPathBits() uint8
	ReadCompletionTS() uint64 // ticks of the device's clock
}

// CompChannel delivers completion events.
type CompChannel interface {
	// Event waits up to timeout for an event and returns its CQ. EAGAIN: none came.
	Event(t Thread, timeout time.Duration) (CQ, error)
	Ack(t Thread, cq CQ, n int)
	Destroy(t Thread) error
}

// QP is a queue pair.
type QP interface {
	QPN() uint32
	// Caps are the capacities granted at creation.
	Caps() QPCap
	State() QPState // as the library remembers it
	// Context is the qp_context given at creation.
	Context() any
	Modify(t Thread, attr *QPAttr, mask QPAttrMask) error
	Query(t Thread, mask QPAttrMask) (QPAttr, QPInitAttr, error)
	// PostSend posts the requests in order. On an error, bad is the index of the
	// first that was not posted; those before it were.
	PostSend(t Thread, wrs []SendWR) (bad int, err error)
	PostRecv(t Thread, wrs []RecvWR) (bad int, err error)
	// BindMW is ibv_bind_mw, for windows of type 1.
	BindMW(t Thread, mw MW, bind MWBind) error
	Destroy(t Thread) error
	// AttachMcast makes the QP, which must be UD, receive what is sent to a multicast
	// group (ibv_attach_mcast); DetachMcast ends that. The LID counts on InfiniBand only.
	AttachMcast(t Thread, group GID, lid uint16) error
	DetachMcast(t Thread, group GID, lid uint16) error
	// CreateFlow is ibv_create_flow ("flow"): packets that match the rule come to the QP. EPERM: the caller lacks
	// CAP_NET_RAW.
	CreateFlow(t Thread, attr FlowAttr) (Flow, error)
	// DataInOrder is ibv_query_qp_data_in_order.
	DataInOrder(t Thread, op WROpcode, flags uint32) (int, error)
	// Ex is ibv_qp_to_qp_ex: nil unless the QP was created with SendOpsFlags.
	Ex() QPEx
}

// SRQ is a shared receive queue.
type SRQ interface {
	// Num is ibv_get_srq_num.
	Num(t Thread) (uint32, error)
	// Caps are the capacities granted at creation.
	Caps() SRQAttr
	// PostRecv is ibv_post_srq_recv; bad is as in QP.PostRecv.
	PostRecv(t Thread, wrs []RecvWR) (bad int, err error)
	// Modify sets what mask names: the limit arms the limit event, 0 disarms it.
	Modify(t Thread, attr SRQAttr, mask SRQAttrMask) error
	Query(t Thread) (SRQAttr, error)
	Destroy(t Thread) error
}

// AH is an address handle.
type AH interface{ Destroy(t Thread) error }

// MW is a memory window.
type MW interface {
	Type() MWType
	// RKey is the field mw->rkey. BindMW changes it. For a window of type 2 the program changes it
	// with SetRKey, after it has posted the bind.
	RKey() uint32
	SetRKey(rkey uint32)
	Dealloc(t Thread) error
}

// Player makes another process carry out a fixed set of commands with plain values.
type Player interface {
	// Do runs one command in the other process and waits for its answer.
	Do(t Thread, cmd PlayerCommand) (PlayerReply, error)
	// Kill ends the other process as SIGKILL does.
	Kill(t Thread)
}

// PlayerCommand is a command of package player, with plain values only.
type PlayerCommand struct {
	Op   string
	Args map[string]uint64
	Data []byte
}

// PlayerReply is the answer of the other process to a command; Errno 0 is success.
type PlayerReply struct {
	Values map[string]uint64
	Data   []byte
	Errno  int
	Text   string
}
