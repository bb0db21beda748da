// Package kernel does what ib_core and mlx5_ib do: it keeps object tables, reference counts and UAR
// pages, sends the commands that create objects on the device, and returns their errnos. It knows
// the device only as a pcie.Function.
//
// Its calls are seam 2: one for each uverbs method, with the values of the ABI as
// plain fields. sim/provider calls them for simulated programs, and attach/exec
// for unmodified ones. Rules and errnos are those of Linux
// 6.12 (drivers/infiniband/core and hw/mlx5); functions named in comments are there.
//
// Its files stand in layers, each on those before it: parameters and capabilities; the device;
// commands and handles; pinned memory and event files; contexts; objects; bring-up and removal. To
// the layer of the device an object is only a target of events.
package kernel

import (
	"net/netip"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// Device is an ib_device on one function.
type Device struct {
	eng  *sim.Engine
	name string
	link *pcie.Link
	mem  *mem.Memory
	p    Params

	cmds       sim.Server // the command interface
	caps       caps
	uar        uint32    // the kernel's own, for its EQs
	pdn        uint32    // the kernel's own
	qcnt       uint32    // counter set of user QPs; 0: none
	xrcd       [2]uint32 // the domains that QPs of other transports name
	xrc        xrcTable
	mkeys      uint8 // variant byte of the last mkey made
	keys       keyCache
	umr        *umrQueue // nil until the first region
	special    [2]*GSI   // QP0 and QP1, once they are open
	odp        odpTable
	memicPages []bool                     // pages of BAR 0 where device memory is seen
	flows      [flowTables + 1]*flowTable // by priority, and flowEgress
	icm        [steeringAreas]icmArea

	eqs  []*eq // async, then completion; eqs[i] has MSI-X vector i
	poll sim.Handler

	gids       []gidEntry
	vlans      []uint16 // of VLAN interfaces over the port's, by index; 0: removed
	neighbours func(uint16, netip.Addr) (MAC, bool)
	ipoib      ipoib // of an InfiniBand port

	files []openFile             // in the order of opening
	cqs   map[uint32]eventTarget // by CQN
	qps   map[uint32]eventTarget // by QPN
	srqs  map[uint32]eventTarget // by SRQN
	res   Resources
	count Counters

	tracked trackNumbers

	removed bool
}

// openFile is an open device file with its context, as the device sees it.
type openFile interface {
	// portEvent queues an event of the port for the program.
	portEvent(t verbs.EventType)
	// disassociate takes the device away from the file.
	disassociate()
}

// eventTarget is an object that entries of event queues are about.
type eventTarget interface {
	// event takes an entry, and reports whether it is of a type that the object knows.
	event(e prm.EQE) bool
}

// Resources counts what the processes of a device own, as `rdma resource show` does. Objects that
// the kernel made for itself do not count.
type Resources struct {
	Ctx, PD, CQ, QP, SRQ, MR, CompChannel int
	XRCD                                  int // XRC domains of the device, those of dead processes included

	UAR         int // hardware UARs of user contexts
	PinnedPages int
}

// Counters of the kernel's side of a device.
type Counters struct {
	Calls         uint64 // system calls
	Commands      uint64
	CommandErrors uint64 // commands that were answered with a status
	Interrupts    uint64
	EQEs          uint64 // taken from event queues
	CompEvents    uint64 // completion events queued to channels
	AsyncEvents   uint64 // asynchronous events queued to contexts
	LeakedUARs    uint64 // still in use when their context ended
	StrayEvents   uint64 // EQEs about objects that are gone, or of a type that no object takes
	LoggedEvents  uint64 // of XRC target QPs that no process has: a kernel writes them to its log
	Paging        PagingCounters
	PagingTimes   PagingTimes
}

// breaks says whether the run breaks a rule of the kernel, to see whether that is noticed
// (sim/mutant).
func (d *Device) breaks(r rule.Rule) bool { return rule.Mutants && d.eng.Broken().Has(r) }

// Name returns the device's name, such as mlx5_0.
func (d *Device) Name() string { return d.name }

// NodeGUID returns the device's node GUID.
func (d *Device) NodeGUID() uint64 { return d.caps.nodeGUID }

// MAC returns the Ethernet address of the port.
func (d *Device) MAC() MAC { return d.caps.mac }

// Resources counts the objects that processes own.
func (d *Device) Resources() Resources { return d.res }

// Counters returns the counters.
func (d *Device) Counters() Counters { return d.count }

// Generation returns the kernel's UAR rules.
func (d *Device) Generation() Generation { return d.p.Generation }

// NumCompVectors returns the number of completion vectors.
func (d *Device) NumCompVectors() int { return len(d.eqs) - 1 }

// broadcast queues an event of the port to every open context.
func (d *Device) broadcast(t verbs.EventType) {
	for i, f := range d.files {
		if i > 0 && d.breaks(rule.PortEventsReachEveryContext) {
			break
		}
		f.portEvent(t)
	}
}
