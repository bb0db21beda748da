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

// Event is rdma_ucm_event_resp. Private data is as long as its length says; it is not to be
// changed.
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

// File is an open file of the channel device (/dev/infiniband/rdma_cm). Its methods are the
// commands of the user ABI (ucma_cmd_table of core/ucma.c), one each, in its terms: an id is a
// number of all files of the machine, and is found by the file that has it only. ENOENT: there is
// none. EINVAL: it belongs to another file. ENXIO: it is being destroyed. Each takes effect at
// once; a caller that is a simulated thread pays for the system call.
type File struct {
	m       *Manager
	owner   *kernel.Process
	events  []queued
	waiting []*sim.Proc
	closed  bool
	notify  func()
}

// OnReadable sets the function that is called, in the engine's thread, whenever an event is queued:
// the file is readable then (POLLIN) until GetEvent has taken them all. It is for readers outside
// the simulation.
func (f *File) OnReadable(fn func()) { f.notify = fn }

// Readable says whether an event waits.
func (f *File) Readable() bool {
	return len(f.events) > 0 && !f.m.breaks(rule.EventsMakeChannelsReadable)
}
