package cm

import (
	"net/netip"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// ECE are the options of enhanced connection establishment, which a provider gives and gets.
type ECE struct{ Vendor, Options uint32 }

// Event is rdma_ucm_event_resp. Private data is as long as its length says; it is not to be changed.
type Event struct {
	UID    uint64
	ID     uint32 // of a connection request the new id's, of a multicast event the handle of the group
	Type   verbs.CMEventType
	Status int32
	IsUD   bool // UD is what counts, in every event of an id of type UD
	Conn   verbs.ConnParam
	UD     verbs.UDParam
	ECE    ECE
}

// Addr is what QUERY answers of an id's addresses. Without a device all but the addresses is zero.
type Addr struct {
	Device   *kernel.Device // nil: none
	NodeGUID uint64
	Port     uint8
	PKey     uint16
	Src, Dst netip.AddrPort // zero: none
}

// GIDs is what QUERY answers of an id's GIDs, with the service ids of the ports.
type GIDs struct {
	Addr
	SGID, DGID     verbs.GID
	SrcSID, DstSID uint64
}

// ID options by their levels are those of package verbs.

// File is an open file of the channel device (/dev/infiniband/rdma_cm). Its methods are the commands of the user ABI (ucma_cmd_table of
// core/ucma.c), one each, in its terms: an id is a number of all files of the machine, and is found by the file that has it only.
// ENOENT: there is none. EINVAL: it belongs to another file. ENXIO: it is being destroyed. Each takes effect at once; a caller
// that is a simulated thread pays for the system call.
type File struct {
	m       *Manager
	owner   *kernel.Process
	events  []queued
	waiting []*sim.Proc
	closed  bool
	notify  func()
}

// OnReadable sets the function that is called, in the engine's thread, whenever an event is queued: the file is readable then (POLLIN)
// until GetEvent has taken them all. It is for readers outside the simulation.
func (f *File) OnReadable(fn func()) { f.notify = fn }

// Readable says whether an event waits.
func (f *File) Readable() bool {
	return len(f.events) > 0 && !f.m.breaks(rule.EventsMakeChannelsReadable)
}

// Close is the last close of the file: all its ids are destroyed.
func (f *File) Close(c kernel.Caller) { f.close(c) }

// CreateID is CREATE_ID. uid is the caller's name of the id in events. EINVAL: no such port space.
func (f *File) CreateID(c kernel.Caller, uid uint64, ps verbs.PortSpace, typ verbs.QPType) (id uint32, err error) {
	return f.createID(c, uid, ps, typ)
}

// DestroyID is DESTROY_ID. It returns how many events of the id were taken.
func (f *File) DestroyID(c kernel.Caller, id uint32) (reported uint32, err error) {
	return f.destroyID(c, id)
}

// Bind is BIND and BIND_IP.
func (f *File) Bind(c kernel.Caller, id uint32, addr netip.AddrPort) error {
	return f.bind(c, id, addr)
}

// ResolveAddr is RESOLVE_ADDR and RESOLVE_IP: the zero src is an absent one.
func (f *File) ResolveAddr(c kernel.Caller, id uint32, src, dst netip.AddrPort, timeout sim.Time) error {
	return f.resolveAddr(c, id, src, dst, timeout)
}

// ResolveRoute is RESOLVE_ROUTE.
func (f *File) ResolveRoute(c kernel.Caller, id uint32, timeout sim.Time) error {
	return f.resolveRoute(c, id, timeout)
}

// QueryAddr is QUERY of the addresses.
func (f *File) QueryAddr(c kernel.Caller, id uint32) (Addr, error) { return f.queryAddr(c, id) }

// QueryGID is QUERY of the GIDs.
func (f *File) QueryGID(c kernel.Caller, id uint32) (GIDs, error) { return f.queryGID(c, id) }

// QueryPath is QUERY of the path records, and what QUERY_ROUTE has of them.
func (f *File) QueryPath(c kernel.Caller, id uint32) ([]verbs.PathRecord, error) {
	return f.queryPath(c, id)
}

// InitQPAttr is INIT_QP_ATTR.
func (f *File) InitQPAttr(c kernel.Caller, id uint32, state verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	return f.initQPAttr(c, id, state)
}

// Connect is CONNECT. The number of the QP is in p.
func (f *File) Connect(c kernel.Caller, id uint32, p *verbs.ConnParam, ece ECE) error {
	return f.connect(c, id, p, ece)
}

// Listen is LISTEN. Backlog 0, and what is beyond the limit, is the limit.
func (f *File) Listen(c kernel.Caller, id uint32, backlog int) error {
	return f.listen(c, id, backlog)
}

// Accept is ACCEPT. With p the id of a connection request answers it and has its events under uid from then on; nil (valid = 0) is
// the end of an active connection.
func (f *File) Accept(c kernel.Caller, id uint32, uid uint64, p *verbs.ConnParam, ece ECE) error {
	return f.accept(c, id, uid, p, ece)
}

// Reject is REJECT. Reason 0 stands for 28, consumer defined.
func (f *File) Reject(c kernel.Caller, id uint32, reason uint8, private []byte) error {
	return f.reject(c, id, reason, private)
}

// Disconnect is DISCONNECT.
func (f *File) Disconnect(c kernel.Caller, id uint32) error { return f.disconnect(c, id) }

// GetEvent is GET_EVENT: it takes the oldest event, and waits for one until deadline if the caller is a simulated thread. EAGAIN:
// there is none. EINTR: a signal came first. EBADF: the file was closed.
func (f *File) GetEvent(c kernel.Caller, deadline sim.Time) (Event, error) {
	return f.getEvent(c, deadline)
}

// SetOption is SET_OPTION, with the value's bytes in the order of the host.
func (f *File) SetOption(c kernel.Caller, id uint32, level verbs.CMOptionLevel, name int, value []byte) error {
	return f.setOption(c, id, level, name, value)
}

// Notify is NOTIFY.
func (f *File) Notify(c kernel.Caller, id uint32, ev verbs.EventType) error {
	return f.notifyID(c, id, ev)
}

// JoinMulticast is JOIN_MCAST and JOIN_IP_MCAST. It returns the group's handle.
func (f *File) JoinMulticast(c kernel.Caller, id uint32, uid uint64, group netip.Addr, flags verbs.MulticastFlags) (handle uint32, err error) {
	return f.joinMulticast(c, id, uid, group, flags)
}

// LeaveMulticast is LEAVE_MCAST, by the group's handle. It returns how many events of the group were taken.
func (f *File) LeaveMulticast(c kernel.Caller, handle uint32) (reported uint32, err error) {
	return f.leaveMulticast(c, handle)
}

// MigrateID is MIGRATE_ID, by which an id and its waiting events come to this file from another. It returns how many events of the id
// were taken.
func (f *File) MigrateID(c kernel.Caller, id uint32, from *File) (reported uint32, err error) {
	return f.migrateID(c, id, from)
}
