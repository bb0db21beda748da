package verbs

// XRCDInitAttr is ibv_xrcd_init_attr. libibverbs demands both bits of CompMask.
type XRCDInitAttr struct {
	CompMask uint32 // XRCDInitFD, XRCDInitOFlags
	FD       int    // a file of the process whose inode names the domain; -1: a domain without a name
	OFlags   int    // O_CREAT, O_EXCL
}

// Bits of XRCDInitAttr.CompMask.
const (
	XRCDInitFD     uint32 = 1 << 0
	XRCDInitOFlags uint32 = 1 << 1
)

// XRCD is an XRC domain, as one process has it open.
type XRCD interface {
	// Close is ibv_close_xrcd. EBUSY: an object was made with this handle and lives.
	Close(t Thread) error
}

// QPInitXRCD is the bit of QPInitAttr.CompMask that goes with XRCD.
const QPInitXRCD uint32 = 1 << 1

// QPOpenAttr is ibv_qp_open_attr. libibverbs demands all bits of CompMask but that of Context.
type QPOpenAttr struct {
	CompMask uint32
	QPN      uint32
	XRCD     XRCD
	Context  any
	Type     QPType
}

// Bits of QPOpenAttr.CompMask.
const (
	QPOpenNum     uint32 = 1 << 0
	QPOpenXRCD    uint32 = 1 << 1
	QPOpenContext uint32 = 1 << 2
	QPOpenType    uint32 = 1 << 3
	// QPOpenAll is all of these bits.
	QPOpenAll = QPOpenNum | QPOpenXRCD | QPOpenContext | QPOpenType
)

// SRQType is IBV_SRQT_*.
type SRQType uint32

// Types of shared receive queues.
const (
	SRQBasic       SRQType = 0
	SRQXRC         SRQType = 1
	SRQTagMatching SRQType = 2
)

// SRQInitAttrEx is ibv_srq_init_attr_ex without tag matching.
type SRQInitAttrEx struct {
	SRQInitAttr
	CompMask uint32
	Type     SRQType
	PD       PD
	XRCD     XRCD
	CQ       CQ // for messages that arrive through XRC
}

// Bits of SRQInitAttrEx.CompMask.
const (
	SRQInitType uint32 = 1 << 0
	SRQInitPD   uint32 = 1 << 1
	SRQInitXRCD uint32 = 1 << 2
	SRQInitCQ   uint32 = 1 << 3
	// SRQInitAll is all of these bits, which an XRC SRQ needs.
	SRQInitAll = SRQInitType | SRQInitPD | SRQInitXRCD | SRQInitCQ
)

// FileOpener is implemented by processes that can open files by name, such as those that name XRC
// domains. Names are of one folder, which the processes of a host share; they have no slashes.
// CloseFD is also a method of Importer.
type FileOpener interface {
	// OpenFile is open(2) for reading, with O_CREAT and O_EXCL of flags. ENOENT, EEXIST: as open.
	OpenFile(t Thread, name string, flags int) (fd int, err error)
	// CloseFD is close(2). EBADF: the descriptor is not open.
	CloseFD(t Thread, fd int) error
	// RemoveFile is unlink(2): open descriptors keep the inode.
	RemoveFile(t Thread, name string) error
}

// XRCReceiveQPs is implemented by contexts whose kernel may have the XRC receive QPs of the time
// before mainline's XRC: they are named by number and belong to no process ("xrc.rcv_qp"). A kernel
// of another design answers ENOSYS.
type XRCReceiveQPs interface {
	// AllocXRCRcvQP is alloc_xrc_rcv_qp as it was proposed in December 2007: one call takes the QP
	// from RESET through INIT to RTR. It lives until its domain ends. EINVAL: an attribute is
	// missing or not among those that the call takes.
	AllocXRCRcvQP(t Thread, xrcd XRCD, attr *QPAttr, mask QPAttrMask) (qpn uint32, err error)
	// CreateXRCRcvQP is ibv_create_xrc_rcv_qp of OFED 1.3, which registers the process as a user.
	CreateXRCRcvQP(t Thread, xrcd XRCD) (qpn uint32, err error)
	// ModifyXRCRcvQP is ibv_modify_xrc_rcv_qp, with the ordinary rules of states.
	ModifyXRCRcvQP(t Thread, xrcd XRCD, qpn uint32, attr *QPAttr, mask QPAttrMask) error
	// QueryXRCRcvQP is ibv_query_xrc_rcv_qp.
	QueryXRCRcvQP(t Thread, xrcd XRCD, qpn uint32, mask QPAttrMask) (QPAttr, error)
	// RegXRCRcvQP is ibv_reg_xrc_rcv_qp: the process becomes a user of the QP; a second call
	// changes nothing.
	RegXRCRcvQP(t Thread, xrcd XRCD, qpn uint32) error
	// UnregXRCRcvQP is ibv_unreg_xrc_rcv_qp: the QP ends with its last user. EINVAL: the process is
	// no user.
	UnregXRCRcvQP(t Thread, xrcd XRCD, qpn uint32) error
}
