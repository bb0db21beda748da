// Package provider is libmlx5 as a simulated program calls it: it chooses bfregs,
// builds work requests in the ring, rings doorbells, takes locks, polls
// completions, and pays the CPU time of each. It speaks to the device only through
// bytes in memory and MMIO, and to the kernel through sim/kernel.
//
// Its files stand in layers, each on those before it: threads and processes; contexts;
// registers, domains, rings and doorbell records; CQs and SRQs; QPs; posting and polling;
// creation. A queue behind a user index is known to CQs as a completer only.
//
// The model is rdma-core, providers/mlx5: today's at 691953d8d, a library of the static
// generation at 1eee3c83. File and function names in comments are of that tree.
package provider

import (
	"fmt"
	"reflect"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
)

// Params are what the library costs on a core, apart from what sim/cpu charges for
// fences, locks, register stores and lines that come from elsewhere. The zero value
// is not usable; Validate says which field is missing.
//
// The sum over one signalled inline 2-byte write is what UCX's performance estimates
// (src/uct/ib) give to building one WQE and to the verbs API: 25 + 35 ns on x86 at 2.0
// to 2.5 GHz.
type Params struct {
	// PostCall is entry and exit of ibv_post_send or ibv_post_recv: the indirect
	// call, the loop's prologue, the checks made once per call.
	PostCall sim.Time
	// BuildWQE is the fixed part of one send work request: checks, the control
	// segment, the wrid and wqe_head tables.
	BuildWQE sim.Time
	// BuildSegment is one 16-byte segment (raddr, atomic, each data pointer).
	BuildSegment sim.Time
	// BuildLine is each further 64-byte line of the ring that the request touches.
	BuildLine sim.Time
	// InlineCopy is the copy of each started 64 bytes of inline payload.
	InlineCopy sim.Time
	// BuildRecv is the fixed part of one receive work request.
	BuildRecv sim.Time
	// DoorbellRecord is the store to a doorbell record in an owned line.
	DoorbellRecord sim.Time
	// Bookkeeping is head, tail and offset updates and the BlueFlame decision, once
	// for each call that rings.
	Bookkeeping sim.Time
	// BFCopyLine is the core's own work to move one 64-byte line into a
	// write-combining buffer, besides the stores that sim/cpu charges.
	BFCopyLine sim.Time

	// BFLines is how many 64-byte lines of a WQE are pushed at most; 4, the whole half,
	// is what libmlx5 does. Fewer goes with the device's uar.bf_lines: a hypothesis.
	BFLines int `bounds:"1..4"`

	// PollCall is entry and exit of ibv_poll_cq, with the consumer index record that
	// it writes each time.
	PollCall sim.Time
	// PollEmpty is one turn of a program's loop around a poll that finds nothing,
	// PollCall included. It sets the phase at which a poller sees a completion.
	PollEmpty sim.Time
	// ConsumeCQE is to parse one CQE and fill the work completion.
	ConsumeCQE sim.Time
	// CleanCQE is to look at one CQE when the CQ is swept of a dying QP.
	CleanCQE sim.Time
	// ExpandCQE is to write one CQE out of a session of compressed ones.
	ExpandCQE sim.Time
	// ReqNotify is the work of ibv_req_notify_cq besides its store and fences.
	ReqNotify sim.Time

	// Control is the library's part of any control verb, besides the kernel's.
	Control sim.Time
	// InUseCheck replaces a lock of a single-threaded object.
	InUseCheck sim.Time

	// ScatterToCQE is the default of MLX5_SCATTER_TO_CQE (libmlx5: on).
	ScatterToCQE bool
	// TDKeepsQPLock keeps the locks of a QP made on a thread domain, as the library did
	// before the change of May 2018 that drops them.
	TDKeepsQPLock bool
	// IndependentTD offers the independent attribute of thread domains (the scalable
	// endpoints proposal). Stock libraries refuse it with EINVAL.
	IndependentTD bool
	// AtomicWrite offers atomic writes by the extended way to post, which libmlx5 does not.
	AtomicWrite bool
	// Foreign says that the device is another provider's than libmlx5: direct verbs, which a
	// program may call on any device, give EOPNOTSUPP.
	Foreign bool
	// IndependentTDMax bounds independent thread domains of today's library, for which the
	// proposal defines no table: a hypothesis. In a static one the limit is num_dyn_bfregs/4,
	// as proposed. The bound is far above the registers of a context.
	IndependentTDMax int `bounds:"0..2^20"`
	// Generation of the library's UAR rules, whatever the kernel's are: Dynamic asks for UAR
	// objects and falls back to the static table, Static knows the table only.
	Generation kernel.Generation `words:"dynamic static"`
}

// Validate reports the first cost that is not positive.
func (p *Params) Validate() error {
	v := reflect.ValueOf(*p)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if t, ok := v.Field(i).Interface().(sim.Time); ok && t <= 0 {
			return fmt.Errorf("provider: %s is %v, and must be positive: %w", f.Name, t, syscall.EINVAL)
		}
	}
	if s := sim.TooLong(p, nil); s != "" {
		return fmt.Errorf("provider: %s: %w", s, syscall.EINVAL)
	}
	if errs := sim.OutOfBounds("provider", p); errs != nil {
		return fmt.Errorf("%v: %w", errs[0], syscall.EINVAL) // one error, at the value that it names
	}
	return nil
}
