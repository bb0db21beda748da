// Package verbs is the API that programs of this project use: conformance cases and workloads on
// one side, the simulator and real devices on the other. It follows libibverbs in names, meanings
// and errors; two things differ: the types are Go's, and every call names the thread that makes it.
//
// Errors of the control path and of posting are the errno that the real stack
// returns, wrapped with context: errors.As finds a syscall.Errno, ErrnoOf gets it.
//
// A program begins in a Thread, which testbed.Testbed.Run on the simulator or spec.C gives it:
// Process.Devices, Device.Open, then Context.AllocPD and CreateCQ, PD.CreateQP, QP.Modify,
// QP.PostSend and CQ.Poll. Further threads come from Process.Start, never from a go statement,
// because a call belongs to the thread that it names.
//
// The interfaces grow. An implementation embeds the matching Unimplemented type, whose methods
// return EOPNOTSUPP.
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
	// Name returns the name of the host, unique in the testbed.
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
	// Host returns the machine on which the process runs.
	Host() Host
	// Name returns the name of the process in messages and records.
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
	// Object is mapped from byte ObjectOffset on (MAP_SHARED, or MAP_PRIVATE with Private); nil:
	// anonymous memory.
	Object       MemObject
	ObjectOffset uint64
	Private      bool
	// At is the address of the mapping, without Offset (MAP_FIXED: what is there is unmapped); 0:
	// anywhere.
	At uint64
	// NoReplace: EEXIST when something is mapped there (MAP_FIXED_NOREPLACE).
	NoReplace bool
}

// Buffer is memory of a process. Addr is what goes into an SGE.
type Buffer interface {
	// Addr returns the address of the first byte in the process.
	Addr() uint64
	// Len returns the length in bytes.
	Len() uint64
	// ReadAt copies len(p) bytes from byte off of the buffer to p, as io.ReaderAt, in the time of
	// the thread.
	ReadAt(t Thread, p []byte, off int64) (int, error)
	// WriteAt copies p to byte off of the buffer, as io.WriterAt, in the time of the thread.
	WriteAt(t Thread, p []byte, off int64) (int, error)
	// Unmap is munmap of the whole buffer.
	Unmap(t Thread) error
}

// Thread is the caller of every call, and its clock. A call made with another
// thread's value fails the case.
type Thread interface {
	// Process returns the process of the thread.
	Process() Process
	// Name returns the name given to Process.Start.
	Name() string
	// Now is the thread's clock: virtual on the simulator, monotonic elsewhere.
	Now() time.Duration
	// Sleep gives up the CPU for d, at least.
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
	// Name is ibv_get_device_name ("mlx5_0").
	Name() string
	// GUID is ibv_get_device_guid, in host order.
	GUID() uint64
	// Open opens the device (ibv_open_device).
	Open(t Thread) (Context, error)
}

// Context is an open device.
type Context interface {
	// Device returns the device that was opened.
	Device() Device
	// Close is ibv_close_device. The kernel destroys the objects that the context still has.
	Close(t Thread) error

	// QueryDevice is ibv_query_device.
	QueryDevice(t Thread) (DeviceAttr, error)
	// QueryDeviceEx takes the input comp_mask of ibv_query_device_ex.
	QueryDeviceEx(t Thread, compMask uint32) (DeviceAttrEx, error)
	// QueryPort is ibv_query_port. EINVAL: there is no such port; ports count from 1.
	QueryPort(t Thread, port int) (PortAttr, error)
	// QueryGID is ibv_query_gid. An empty entry reads as zeros.
	QueryGID(t Thread, port, index int) (GID, error)
	// QueryGIDEx is ibv_query_gid_ex; no flag is defined yet. ENODATA: the entry is empty; EINVAL:
	// there is no such port or index, or a flag is set.
	QueryGIDEx(t Thread, port, index int, flags uint32) (GIDEntry, error)
	// QueryGIDTable fills entries and returns how many there are.
	QueryGIDTable(t Thread, entries []GIDEntry, flags uint32) (int, error)
	// QueryPKey is ibv_query_pkey; the key is in host order.
	QueryPKey(t Thread, port, index int) (uint16, error)
	// PKeyIndex is ibv_get_pkey_index: the first index whose entry is pkey, in host order.
	PKeyIndex(t Thread, port int, pkey uint16) (int, error)
	// NumCompVectors returns num_comp_vectors, the number of completion vectors.
	NumCompVectors() int
	// InitAHFromWC is ibv_init_ah_from_wc: the address from which a datagram came, by its
	// completion and the 40 bytes that were put before its payload.
	InitAHFromWC(t Thread, port int, wc *WC, grh []byte) (AHAttr, error)
	// RawClock reads the device's free-running clock, in its own ticks.
	RawClock(t Thread) (uint64, error)

	// AllocPD is ibv_alloc_pd.
	AllocPD(t Thread) (PD, error)
	// ImportPD is ibv_import_pd. ENOENT or EINVAL: no PD has the handle.
	ImportPD(t Thread, handle uint32) (PD, error)
	// AllocTD is ibv_alloc_td ("td").
	AllocTD(t Thread, attr TDInitAttr) (TD, error)
	// AllocParentDomain is ibv_alloc_parent_domain ("td"): a PD that also names a thread domain.
	AllocParentDomain(t Thread, attr ParentDomainAttr) (PD, error)
	// CreateCompChannel is ibv_create_comp_channel.
	CreateCompChannel(t Thread) (CompChannel, error)
	// CreateCQ is ibv_create_cq, or ibv_create_cq_ex if attr asks for what only that has. EINVAL:
	// the number of entries is not between 1 and max_cqe, or there is no such completion vector.
	CreateCQ(t Thread, attr CQAttr) (CQ, error)
	// AllocDM is ibv_alloc_dm ("dm"). EINVAL: more than the device has, or nothing.
	AllocDM(t Thread, attr DMAttr) (DM, error)
	// OpenXRCD is ibv_open_xrcd ("xrc").
	OpenXRCD(t Thread, attr XRCDInitAttr) (XRCD, error)
	// CreateQP is ibv_create_qp_ex for QPs without a PD, which are XRC targets; PD.CreateQP makes
	// the others.
	CreateQP(t Thread, attr QPInitAttr) (QP, error)
	// OpenQP is ibv_open_qp: another handle of an XRC target QP.
	OpenQP(t Thread, attr QPOpenAttr) (QP, error)
	// CreateSRQEx is ibv_create_srq_ex.
	CreateSRQEx(t Thread, attr SRQInitAttrEx) (SRQ, error)
	// AllocUAR is mlx5dv_devx_alloc_uar.
	AllocUAR(t Thread, flags uint32) (UAR, error)
	// AsyncEvent waits up to timeout for an asynchronous event. EAGAIN: none came.
	AsyncEvent(t Thread, timeout time.Duration) (AsyncEvent, error)
	// AckAsyncEvent is ibv_ack_async_event. The destruction of an object waits until its events are
	// acknowledged.
	AckAsyncEvent(t Thread, ev AsyncEvent)
	// EventTypeStr and WCStatusStr are ibv_event_type_str and ibv_wc_status_str of the
	// library below.
	EventTypeStr(typ EventType) string
	WCStatusStr(status WCStatus) string
}

// PD is a protection domain or a parent domain.
type PD interface {
	// Context returns the context of the domain.
	Context() Context
	// Handle is the number by which other contexts of the device file import the PD.
	Handle() uint32
	// Dealloc is ibv_dealloc_pd. EBUSY: an object still uses the domain.
	Dealloc(t Thread) error
	// Unimport is ibv_unimport_pd: the PD itself stays. A parent domain: EINVAL.
	Unimport(t Thread) error
	// ImportMR is ibv_import_mr: the region's address reads as 0.
	ImportMR(t Thread, handle uint32) (MR, error)
	// RegMR is ibv_reg_mr: length bytes from addr on, which keep their addresses as keys. EINVAL:
	// remote write or atomic access without local write; ENOMEM: RLIMIT_MEMLOCK; EFAULT: a page is
	// not mapped.
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
	// CreateQP is ibv_create_qp, or ibv_create_qp_ex if attr asks for what only that has. EINVAL: a
	// capacity is above that of the device.
	CreateQP(t Thread, attr QPInitAttr) (QP, error)
	// CreateSRQ is ibv_create_srq. EINVAL: a capacity is above that of the device.
	CreateSRQ(t Thread, attr SRQInitAttr) (SRQ, error)
	// CreateAH is ibv_create_ah.
	CreateAH(t Thread, attr AHAttr) (AH, error)
	// AllocMW is ibv_alloc_mw, of type 1 or 2.
	AllocMW(t Thread, typ MWType) (MW, error)
}

// TD is a thread domain: a promise that what is created on it is used by one
// thread at a time.
type TD interface {
	// Dealloc is ibv_dealloc_td. EBUSY: a parent domain uses it.
	Dealloc(t Thread) error
}

// MR is a memory region.
type MR interface {
	// LKey returns the local key, for SGEs.
	LKey() uint32
	// RKey returns the remote key, for the requests of peers.
	RKey() uint32
	// Addr returns the address with which the region was registered.
	Addr() uint64
	// Length returns the length in bytes.
	Length() uint64
	// Handle is the number by which other contexts of the device file import the region.
	Handle() uint32
	// Unimport is ibv_unimport_mr: the region itself stays.
	Unimport(t Thread) error
	// Rereg is ibv_rereg_mr. Its error is a *ReregError. The keys may change.
	Rereg(t Thread, flags ReregFlags, pd PD, addr, length uint64, access AccessFlags) error
	// Counters returns the kernel's counters of the region (rdma statistic show mr), in its order.
	// EOPNOTSUPP: they cannot be read.
	Counters(t Thread) ([]NamedCounter, error)
	// Dereg is ibv_dereg_mr. EINVAL: a memory window is bound to the region.
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
	// Resize is ibv_resize_cq, to at least cqe entries; completions that were not polled stay.
	Resize(t Thread, cqe int) error
	// Modify is ibv_modify_cq, which sets the moderation.
	Modify(t Thread, m CQModeration) error
	// Destroy is ibv_destroy_cq; it waits until all events of the CQ are acknowledged. EBUSY: a QP
	// or SRQ uses it.
	Destroy(t Thread) error
}

// CQEx is implemented by CQs that were created by the extended call (ibv_cq_ex). StartPoll and
// NextPoll find the next completion, whose fields the other methods return until the next call;
// ENOENT means that there is none. EndPoll must follow each StartPoll that succeeds, and no other.
// A field may be read only if the WCFlags of the CQ's creation asked for it.
type CQEx interface {
	CQ
	// StartPoll is ibv_start_poll; no bit of compMask is defined yet. ENOENT: the CQ is empty;
	// EINVAL: a bit is set.
	StartPoll(t Thread, compMask uint32) error
	// NextPoll is ibv_next_poll. ENOENT: there is no further completion.
	NextPoll(t Thread) error
	// EndPoll is ibv_end_poll, which lets the device use the entries again.
	EndPoll(t Thread)
	// WRID returns the wr_id of the request.
	WRID() uint64
	// Status returns the status; of a completion in error, only it, WRID, ReadVendorErr and
	// ReadQPNum are valid.
	Status() WCStatus
	// ReadOpcode is ibv_wc_read_opcode.
	ReadOpcode() WCOpcode
	// ReadVendorErr is ibv_wc_read_vendor_err: the vendor syndrome of a completion in error.
	ReadVendorErr() uint32
	// ReadWCFlags is ibv_wc_read_wc_flags.
	ReadWCFlags() WCFlags
	// ReadByteLen is ibv_wc_read_byte_len: bytes received, of UD with the 40 bytes of the GRH.
	ReadByteLen() uint32
	ReadImmData() uint32 // host order
	// ReadQPNum is ibv_wc_read_qp_num: the local QP.
	ReadQPNum() uint32
	// ReadSrcQP is ibv_wc_read_src_qp: the QP that sent a datagram.
	ReadSrcQP() uint32
	// ReadSLID is ibv_wc_read_slid: the source LID, on InfiniBand.
	ReadSLID() uint32
	// ReadSL is ibv_wc_read_sl: the service level of a datagram.
	ReadSL() uint8
	// ReadDLIDPathBits is ibv_wc_read_dlid_path_bits.
	ReadDLIDPathBits() uint8
	ReadCompletionTS() uint64 // ticks of the device's clock
}

// CompChannel delivers completion events.
type CompChannel interface {
	// Event waits up to timeout for an event and returns its CQ. EAGAIN: none came.
	Event(t Thread, timeout time.Duration) (CQ, error)
	// Ack is ibv_ack_cq_events for n events of the CQ.
	Ack(t Thread, cq CQ, n int)
	// Destroy is ibv_destroy_comp_channel. EBUSY: a CQ uses the channel.
	Destroy(t Thread) error
}

// QP is a queue pair.
type QP interface {
	// QPN returns the number of the QP, of 24 bits.
	QPN() uint32
	// Caps are the capacities granted at creation.
	Caps() QPCap
	State() QPState // as the library remembers it
	// Context is the qp_context given at creation.
	Context() any
	// Modify is ibv_modify_qp. EINVAL: the transition does not exist, an attribute is missing, not
	// allowed in it, or out of its range; the state is then as before.
	Modify(t Thread, attr *QPAttr, mask QPAttrMask) error
	// Query is ibv_query_qp. A driver may fill more attributes than mask names.
	Query(t Thread, mask QPAttrMask) (QPAttr, QPInitAttr, error)
	// PostSend is ibv_post_send: it posts the requests in order. On an error, bad is the index of
	// the first that was not posted; those before it were. With libmlx5, ENOMEM: the queue is full,
	// or there are too many SGEs or too much inline data; EINVAL: the opcode.
	PostSend(t Thread, wrs []SendWR) (bad int, err error)
	// PostRecv is ibv_post_recv; bad is as in PostSend. ENOMEM: the queue is full; EINVAL: too many
	// SGEs.
	PostRecv(t Thread, wrs []RecvWR) (bad int, err error)
	// BindMW is ibv_bind_mw, for windows of type 1.
	BindMW(t Thread, mw MW, bind MWBind) error
	// Destroy is ibv_destroy_qp. EBUSY: it is attached to a multicast group or has a flow rule.
	Destroy(t Thread) error
	// AttachMcast makes the QP, which must be UD, receive what is sent to a multicast
	// group (ibv_attach_mcast); DetachMcast ends that. The LID counts on InfiniBand only.
	AttachMcast(t Thread, group GID, lid uint16) error
	// DetachMcast is ibv_detach_mcast. EINVAL: the QP is not attached to the group.
	DetachMcast(t Thread, group GID, lid uint16) error
	// CreateFlow is ibv_create_flow ("flow"): packets that match the rule come to the QP. EPERM:
	// the caller lacks CAP_NET_RAW.
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
	// Query is ibv_query_srq.
	Query(t Thread) (SRQAttr, error)
	// Destroy is ibv_destroy_srq. EBUSY: a QP uses it.
	Destroy(t Thread) error
}

// AH is an address handle.
type AH interface{ Destroy(t Thread) error }

// MW is a memory window.
type MW interface {
	// Type returns the type given to AllocMW.
	Type() MWType
	// RKey is the field mw->rkey. BindMW changes it. For a window of type 2 the program changes it
	// with SetRKey, after it has posted the bind.
	RKey() uint32
	// SetRKey sets the field mw->rkey, as a program does after it has posted a bind.
	SetRKey(rkey uint32)
	// Dealloc is ibv_dealloc_mw.
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
