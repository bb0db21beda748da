// Package kernel is what ib_core and mlx5_ib do: object tables and reference
// counts, UAR pages, the commands that make objects on the device, and their
// errnos. It knows the device only as a pcie.Function.
//
// Its calls are seam 2: one for each uverbs method, with the values of the ABI as
// plain fields. sim/provider calls them for simulated programs, and attach/exec
// will call the very same for unmodified ones.
package kernel

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/verbs"
)

// Caller is the thread that makes a call: its program and its core.
type Caller struct {
	P    *sim.Proc
	Core *cpu.Core
}

// Device is an ib_device over one function.
type Device struct{ impl }

type impl struct{}

// NewDevice brings the function up (the commands of mlx5_core's load as far as they are
// modelled) and returns the device.
func NewDevice(e *sim.Engine, name string, link *pcie.Link, m *mem.Memory, p Params) (*Device, error) {
	panic("skeleton")
}

// Interrupt is the handler to give to pcie.Link.Attach.
func (d *Device) Interrupt(vector int) { panic("skeleton") }

// Process is what the kernel knows of a process.
type Process struct {
	Name  string
	Space *mem.Space
	// MemlockLimit in bytes and whether the process may ignore it.
	MemlockLimit uint64
	IPCLock      bool
	NetRaw       bool
}

// UcontextReq is mlx5_ib_alloc_ucontext_req_v2.
type UcontextReq struct {
	TotalBFRegs, LowLatBFRegs uint32
	Flags, CompMask           uint32
	LibCaps                   uint64 // 1 4K_UAR, 2 DYN_UAR
	MaxCQEVersion             uint8
}

// UcontextResp is mlx5_ib_alloc_ucontext_resp.
type UcontextResp struct {
	QPTabSize, BFRegSize, TotBFRegs, CacheLine uint32
	MaxSQDescSz, MaxRQDescSz, MaxSendWQEBB     uint32
	MaxRecvWR, MaxSRQRecvWR                    uint32
	NumPorts                                   uint16
	CQEVersion                                 uint8
	LogUARSize, NumUARsPerPage, NumDynBFRegs   uint32
}

// Ucontext is an open device file with its context.
type Ucontext struct{ impl }

// AllocUcontext is GET_CONTEXT.
func (d *Device) AllocUcontext(c Caller, p *Process, req UcontextReq) (*Ucontext, UcontextResp, error) {
	panic("skeleton")
}

// Close destroys whatever the context still has, in the order of uverbs' cleanup,
// and the context. It serves process death too.
func (u *Ucontext) Close(c Caller) { panic("skeleton") }

// MmapUAR is mmap of command cmd (0 regular, 2 WC, 3 NC, 6 ALLOC_WC) with its argument.
func (u *Ucontext) MmapUAR(c Caller, cmd, arg uint32) (*cpu.Mapping, error) { panic("skeleton") }

// UARObject is a UAR of the dynamic generation.
type UARObject struct {
	PageID  uint32
	Map     *cpu.Mapping
	MmapOff uint64
	MmapLen uint64
}

// AllocUAR is MLX5_IB_METHOD_UAR_OBJ_ALLOC: typ 0 BlueFlame, 1 non-cached.
func (u *Ucontext) AllocUAR(c Caller, typ uint32) (*UARObject, error) { panic("skeleton") }
func (u *Ucontext) FreeUAR(c Caller, o *UARObject) error              { panic("skeleton") }

// Handle is an object handle of one context.
type Handle uint32

func (u *Ucontext) AllocPD(c Caller) (h Handle, pdn uint32, err error) { panic("skeleton") }
func (u *Ucontext) DeallocPD(c Caller, pd Handle) error                { panic("skeleton") }

// RegMR is ibv_reg_mr_iova: it pins, and makes an mkey of MTTs.
func (u *Ucontext) RegMR(c Caller, pd Handle, addr, length, iova uint64, access verbs.AccessFlags) (h Handle, lkey, rkey uint32, err error) {
	panic("skeleton")
}
func (u *Ucontext) DeregMR(c Caller, mr Handle) error { panic("skeleton") }

// CQReq is mlx5_ib_create_cq with the core's fields. BufAddr and DBAddr are
// addresses in the process.
type CQReq struct {
	Entries         uint32 // power of two: the ring
	CQE             uint32 // what the application asked for, checked against the caps
	CompVector      uint32
	Channel         *Channel // nil: none
	Cookie          uint64
	BufAddr, DBAddr uint64
	CQESize         uint32
	UARPage         uint32 // for arming; with UARValid
	UARValid        bool
	IgnoreOverrun   bool
}

func (u *Ucontext) CreateCQ(c Caller, r CQReq) (h Handle, cqn uint32, err error) { panic("skeleton") }

// ResizeCQ is ibv_cmd_resize_cq.
func (u *Ucontext) ResizeCQ(c Caller, cq Handle, entries uint32, bufAddr uint64) error {
	panic("skeleton")
}

// DestroyCQ returns how many events of each kind were reported, for the ack accounting.
func (u *Ucontext) DestroyCQ(c Caller, cq Handle) (compEvents, asyncEvents uint32, err error) {
	panic("skeleton")
}

// QPReq is mlx5_ib_create_qp with the core's fields.
type QPReq struct {
	Type                               verbs.QPType
	PD, SendCQ, RecvCQ, SRQ            Handle
	HasSRQ                             bool
	Cap                                verbs.QPCap
	SigAll                             bool
	BufAddr, DBAddr                    uint64
	SQWQECount, RQWQECount, RQWQEShift uint32
	Flags                              uint32
	UIDX                               uint32
	// BFRegIndex with BFRegMode: 0 the kernel chooses, 1 BFREG_INDEX, 2 UAR_PAGE_INDEX.
	BFRegIndex   uint32
	BFRegMode    uint8
	ScatterToCQE bool
	Cookie       uint64
}

// QPResp is mlx5_ib_create_qp_resp.
type QPResp struct {
	QPN        uint32
	BFRegIndex uint32 // gross numbering; bit 31: none assigned
	Cap        verbs.QPCap
}

func (u *Ucontext) CreateQP(c Caller, r QPReq) (Handle, QPResp, error) { panic("skeleton") }

// ModifyQP checks the tables of ib_core, then sends the transition's command.
func (u *Ucontext) ModifyQP(c Caller, qp Handle, a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	panic("skeleton")
}
func (u *Ucontext) QueryQP(c Caller, qp Handle, mask verbs.QPAttrMask) (verbs.QPAttr, error) {
	panic("skeleton")
}
func (u *Ucontext) DestroyQP(c Caller, qp Handle) (asyncEvents uint32, err error) { panic("skeleton") }

func (u *Ucontext) QueryDevice(c Caller) (verbs.DeviceAttrEx, error)     { panic("skeleton") }
func (u *Ucontext) QueryPort(c Caller, port int) (verbs.PortAttr, error) { panic("skeleton") }
func (u *Ucontext) QueryGIDEntry(c Caller, port, index int) (verbs.GIDEntry, error) {
	panic("skeleton")
}
func (u *Ucontext) QueryPKey(c Caller, port, index int) (uint16, error) { panic("skeleton") }
func (u *Ucontext) NumCompVectors() int                                 { panic("skeleton") }

// Channel is a completion event channel.
type Channel struct{ impl }

func (u *Ucontext) CreateChannel(c Caller) (*Channel, error)   { panic("skeleton") }
func (u *Ucontext) DestroyChannel(c Caller, ch *Channel) error { panic("skeleton") }

// Wait blocks for an event until deadline (sim.Never: for ever) and returns the
// cookie of its CQ; EAGAIN when the deadline passes.
func (ch *Channel) Wait(c Caller, deadline sim.Time) (cookie uint64, err error) { panic("skeleton") }

// AsyncEvent is what the async fd delivers.
type AsyncEvent struct {
	Type   verbs.EventType
	Cookie uint64 // of the QP or CQ
	Port   int
}

// WaitAsync is the read of the async fd.
func (u *Ucontext) WaitAsync(c Caller, deadline sim.Time) (AsyncEvent, error) { panic("skeleton") }
