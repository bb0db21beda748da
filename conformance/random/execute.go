package random

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// run is a program under way, with the model that judges it.
type run struct {
	c     *spec.C
	p     *Program
	on    *kit.Env // with the GID of the path
	world *model.World
	out   *Outcome
	ended bool // a violation, or nothing more can be told

	qps       [2]*kit.QP
	qm        [2]*model.QP
	cqs       []verbs.CQ
	cm        []*model.CQ
	destroyCQ []func(c *spec.C)
	ch        verbs.CompChannel // nil: the program arms no CQ

	mem  []verbs.Buffer
	mm   []*model.Memory
	mrs  []verbs.MR // nil: refused, or ended
	rm   []*model.MR
	keys [][2]uint32
	base []uint64   // address of the memory's first byte by the region's key
	mws  [2]*window // nil: never bound

	other verbs.PD // that of no queue pair; nil: none was needed yet
	td    *kit.TD  // nil: none was needed yet

	srq *kit.SRQ // nil: each side has a receive queue
	sm  *model.SRQ

	domainXRC *kit.XRCD // of XRC, with its SRQs
	named     [2]verbs.SRQ
	namedM    [2]*model.SRQ
	numbers   [3]uint32

	ahs   [3]verbs.AH // of UD: to side 0 and 1, and to the group
	last  *kit.Buffer // of UC: where the request behind those of a step writes its number
	lastM *model.MR
	sent  uint64 // that number

	renewed int        // the step that made the queue pairs, but for the first
	awaited [2][]Piece // of receives that are posted

	*Session
}

// Session runs programs one after the other in one process. Each program has objects of its own.
type Session struct {
	env   *kit.Env
	ipv6  *kit.Env           // with the GID of an IPv6 address; nil: there is none
	mtu   int                // of the port, in bytes
	text  bool               // outcomes are compared with those of another target
	tap   bool               // the frames are looked at
	all   []verbs.Buffer     // memory of the regions
	most  verbs.DeviceAttr   // what the device announces
	model [maxRegions][]byte // what the model has of it
	rows  [memorySize]byte
	wcs   [maxNumber]verbs.WC
}

// NewSession opens the device until the case ends; text keeps the streams of outcomes.
func NewSession(c *spec.C, text bool) *Session {
	s := &Session{env: kit.Open(c), text: text}
	attr, err := s.env.Ctx.QueryPort(c.T, int(s.env.Port))
	kit.Must(c, "query_port", err)
	s.mtu = attr.ActiveMTU.Bytes()
	s.most, err = s.env.Ctx.QueryDevice(c.T)
	kit.Must(c, "query_device", err)
	if gid, err := player.PickIPv6(c.T, s.env.Ctx, uint32(s.env.Port)); err == nil && !s.env.IB {
		e := *s.env
		e.GID, e.LocalAddr = gid, kit.Addr{GID: gid.GID}
		s.ipv6 = &e
	}
	for i := range s.model {
		s.all, s.model[i] = append(s.all, kit.Map(c, memorySize)), make([]byte, memorySize)
	}
	return s
}

// patience is how long a completion may take on a device that works.
const patience = 10 * time.Second

// Times after which a queue pair sends again: 16 ms, and 0.64 ms for want of a receive. A machine
// that is busy, or emulated, may answer later than after 16 ms: 0.5 s there.
const (
	timeout     = 12
	realTimeout = 17
	realRetries = 3
	rnrTimer    = 12
)

// options are those of both queue pairs.
func (r *run) options() kit.Options {
	o := r.p.options()
	if r.p.RdAtomic >= tooMany {
		o.RdAtomic = uint8(min(r.most.MaxQPInitRdAtom, r.most.MaxQPRdAtom, 255))
	}
	if r.p.Domain {
		o.PD = r.domain().PD
	}
	if !r.c.Has(kit.ExactTime) {
		o.Timeout, o.RetryCnt = realTimeout, max(o.RetryCnt, realRetries)
	}
	return o
}

// Execute runs a program, judges it by the model and returns the outcome. A failure of c is a
// failure of the harness.
func (s *Session) Execute(c *spec.C, p *Program) (out *Outcome) {
	c.Within(func() {
		if s.tap {
			kit.Must(c, "start the tap", c.TB.Wire().StartTap(c.T))
		}
		if out = s.execute(c, p); s.tap {
			frames, err := c.TB.Wire().StopTap(c.T)
			kit.Must(c, "stop the tap", err)
			h := sha256.New()
			for i := range frames {
				h.Write(frames[i].Data)
			}
			out.Wire = hex.EncodeToString(h.Sum(nil)[:8])
		}
	})
	return out
}

func (s *Session) execute(c *spec.C, p *Program) *Outcome {
	r := &run{c: c, p: p, Session: s, world: &model.World{}, out: &Outcome{}, on: s.env}
	if p.IPv6 && s.ipv6 != nil {
		r.on = s.ipv6
	}
	r.world.Lossy = len(p.Faults) > 0 || p.paged()
	if s.text {
		r.out.Streams = map[string][]string{}
	}
	r.open()
	if len(p.Faults) > 0 && injects(c) {
		defer kit.ClearRules(c)
	}
	for i := range p.Steps {
		if r.ended {
			break
		}
		r.step(i, &p.Steps[i])
	}
	if !r.ended {
		r.end(len(p.Steps))
	}
	for k := range r.qps {
		r.leaveGroup(len(p.Steps), k)
	}
	for n := range r.mws {
		r.dropWindow(n)
	}
	for _, m := range r.mrs {
		if m != nil {
			kit.Must(c, "dereg_mr", m.Dereg(c.T))
		}
	}
	r.out.Vague = r.world.Vague
	r.out.Cover = &r.world.Cover
	return r.out
}

// judge ends the program where the model does not allow what was seen.
func (r *run) judge(step int, what string, err error) bool {
	if r.world.Vague {
		r.ended = true
		return false
	}
	if err == nil || r.ended {
		return !r.ended
	}
	r.ended = true
	v, ok := err.(*model.Violation)
	if !ok {
		r.c.Failf("%s: %v", what, err)
	}
	r.out.Violation = &Violation{Step: step + 1, What: what, Want: v.Want, Got: v.Got, Rule: v.Rule.Text, Source: v.Rule.Source}
	return false
}

// open makes the objects.
func (r *run) open() {
	c, p, e := r.c, r.p, r.env
	o := r.options()
	for i := range p.Steps {
		if p.Steps[i].Kind == StepArm && r.ch == nil {
			r.ch = e.Channel(c)
		}
	}
	r.createCQs(o.CQE)
	if p.XRC {
		r.openXRC()
	}
	if p.SRQ {
		r.srq = e.CreateSRQ(c, p.depth(), p.sges())
		r.sm = &model.SRQ{World: r.world, Cap: int(r.srq.Caps().MaxWR), SGEs: int(r.srq.Caps().MaxSGE)}
		o.SRQ = r.srq.SRQ
		a, err := r.srq.Query(c.T)
		kit.Must(c, "query_srq", err)
		r.sm.Most = max(r.sm.Cap, int(a.MaxWR))
	}
	for i := range p.Regions {
		r.addRegion(i)
	}
	if p.UC {
		r.last = e.Buffer(c, 16, kit.AllAccess)
		r.lastM = &model.MR{World: r.world, Mem: &model.Memory{Name: "last", Bytes: make([]byte, 16)}, Len: 16, Access: kit.AllAccess, Alive: true}
	}
	for k := range r.ahs {
		if p.UD && (k != toGroup || p.Group) {
			to := r.path(r.on.LocalAddr)
			if k == toGroup {
				to = r.path(e.Group(r.group()))
			}
			ah, err := e.PD.CreateAH(c.T, to)
			kit.Must(c, "create_ah", err)
			kit.DestroyOnce(c, "destroy_ah", ah.Destroy)
			r.ahs[k] = ah
		}
	}
	r.create(o)
	r.connect(-1)
	r.fill()
}

// createCQs makes the CQs, on the channel if there is one.
func (r *run) createCQs(n int) {
	r.cqs, r.cm, r.destroyCQ = nil, nil, nil
	for _, name := range []string{"CQ 1", "CQ 2", "CQ 3", "CQ 4"} {
		cq, err := r.env.Ctx.CreateCQ(r.c.T, r.cqAttr(n))
		kit.Must(r.c, "create_cq", err)
		r.destroyCQ = append(r.destroyCQ, kit.DestroyOnce(r.c, "destroy_cq", cq.Destroy))
		r.cqs = append(r.cqs, cq)
		r.cm = append(r.cm, &model.CQ{Name: name, World: r.world, Cap: cq.Cap()})
		if r.p.Shared {
			break
		}
	}
}

// path is the way to an address.
func (r *run) path(to kit.Addr) verbs.AHAttr {
	a := r.on.PathTo(to)
	if r.p.UD {
		a = r.on.AHTo(to)
	}
	a.SL, a.GRH.FlowLabel = r.p.SL, r.p.Flow
	if a.GRH.TrafficClass = r.p.Class; r.p.Hops > 0 {
		a.GRH.HopLimit = r.p.Hops
	}
	return a
}

// header is what is known of the routing header of a datagram: of an IPv4 address the packet's
// header behind 20 bytes (UD-002).
func (r *run) header(group bool) (b []byte, known uint64) {
	b = make([]byte, verbs.GRHSize)
	a := r.path(r.on.LocalAddr)
	gid, to := a.GRH.DGID, a.GRH.DGID
	if group {
		to = r.group()
	}
	switch {
	case r.on.IB:
		return b, 0
	case r.p.IPv6:
		b[0], b[1], b[7] = 6<<4|a.GRH.TrafficClass>>4, a.GRH.TrafficClass<<4|uint8(r.p.Flow>>16), a.GRH.HopLimit
		b[2], b[3] = uint8(r.p.Flow>>8), uint8(r.p.Flow)
		copy(b[8:], gid[:])
		copy(b[24:], to[:])
		return b, 1<<40 - 1<<7 | 3
	}
	b[21], b[28] = a.GRH.TrafficClass, a.GRH.HopLimit
	copy(b[32:], gid[12:])
	copy(b[36:], to[12:])
	return b, 0xff<<32 | 1<<28 | 1<<21
}

// cq is the number of the CQ of a side's sends or receives.
func (r *run) cq(side int, recv bool) int {
	if r.p.Shared {
		return 0
	}
	if recv {
		side += 2
	}
	return side
}

// create makes both queue pairs.
func (r *run) create(o kit.Options) {
	if r.p.XRC {
		r.createXRC(o)
	}
	for k := range r.qps {
		if r.p.XRC {
			break
		}
		o.Access = r.p.Access[k]
		o.SendCQ, o.RecvCQ = r.cqs[r.cq(k, false)], r.cqs[r.cq(k, true)]
		q := r.env.CreateQP(r.c, o)
		r.qps[k] = q
		r.qm[k] = r.world.NewQP(&model.QP{Name: side(k), Type: o.Type, Number: q.QPN(), Cap: q.Caps(), SigAll: o.SigAll, Extended: o.SendOps != 0,
			SendCQ: r.cm[r.cq(k, false)], RecvCQ: r.cm[r.cq(k, true)], SRQ: r.sm, MostRd: r.most.MaxQPInitRdAtom, MostDestRd: r.most.MaxQPRdAtom})
		o.PSN = o.NthPSN(0x1000)
	}
	r.qm[0].Peer, r.qm[1].Peer = r.qm[1], r.qm[0]
	r.disturb()
}

// connect brings both from RESET to RTS, B first.
func (r *run) connect(i int) {
	for _, k := range []int{1, 0} {
		q := r.qps[k]
		for s := verbs.QPSInit; s <= verbs.QPSRTS; s++ {
			a := q.AttrFor(r.qps[1-k].Peer())
			a.State, a.AH = s, r.path(r.on.LocalAddr)
			if r.p.RdAtomic == tooMany {
				r.tooManyReads(i, k, a)
			}
			if !r.modify(i, k, &a, kit.MaskFor(q.Opt.Type, s)) {
				return
			}
		}
	}
}

// modify is ibv_modify_qp.
func (r *run) modify(i, k int, a *verbs.QPAttr, mask verbs.QPAttrMask) bool {
	err := r.qps[k].Modify(r.c.T, a, mask)
	what := "modify_qp of " + side(k)
	if mask&verbs.QPMaskState != 0 {
		what += " to " + a.State.String()
	}
	if r.out.Streams != nil {
		r.call("step %d: %s: %s", i+1, what, errnoName(err))
	}
	return r.judge(i, what, r.qm[k].Modify(a, mask, err)) && err == nil
}

// depth is that of the queues.
func (p *Program) depth() int {
	if p.Depth > 0 {
		return p.Depth
	}
	return queueDepth
}

// options are those of both queue pairs on a simulator.
func (p *Program) options() kit.Options {
	o := kit.Default()
	o.MTU, o.RNRRetry, o.RetryCnt, o.SigAll, o.Timeout = p.MTU, p.RNRRetry, p.Retries, p.SigAll, timeout
	n := uint32(p.depth())
	o.Cap = verbs.QPCap{MaxSendWR: n, MaxRecvWR: n, MaxSendSGE: uint32(p.sges()), MaxRecvSGE: uint32(p.sges()), MaxInline: maxInline}
	if p.PSN > 0 {
		o.PSN = p.PSN
	}
	if p.RdAtomic > 0 {
		o.RdAtomic = p.RdAtomic
	}
	if p.Inline > 0 {
		o.Cap.MaxInline = uint32(p.Inline)
	}
	if o.MinRNRTimer = rnrTimer; p.RNRTimer > 0 {
		o.MinRNRTimer = p.RNRTimer
	}
	if p.Timeout > 0 {
		o.Timeout = p.Timeout
	}
	if o.CQE = cqe; p.CQE > 0 {
		o.CQE = p.CQE
	}
	switch {
	case p.UC:
		o.Type = verbs.QPTUC
	case p.UD:
		o.Type = verbs.QPTUD
	case p.XRC:
		o.Type = verbs.QPTXRCSend
	}
	if p.Extended {
		if o.SendOps = sendOps[o.Type]; p.Window == verbs.MWType2 {
			o.SendOps |= verbs.QPExBindMW | verbs.QPExLocalInv | verbs.QPExSendInv
		} else if p.Window == verbs.MWType1 {
			o.SendOps |= verbs.QPExBindMW
		}
	}
	return o
}

// sendOps are the operations of drawn programs: a provider may lack others.
var sendOps = map[verbs.QPType]uint64{verbs.QPTUD: kit.OpsUD, verbs.QPTUC: opsUC, verbs.QPTXRCSend: opsRC, verbs.QPTRC: opsRC}

const opsRC = opsUC | verbs.QPExRDMARead | verbs.QPExAtomicCmpSwp | verbs.QPExAtomicFetchAdd

const opsUC = verbs.QPExSend | verbs.QPExSendImm | verbs.QPExRDMAWrite | verbs.QPExRDMAWriteImm

// cqe is the size of CQs of which a program says nothing.
const cqe = 63

// guard is how much memory there is behind a region.
const guard = kit.Page

// memorySize is how much memory a region may be of.
const memorySize = regionSize + guard

// pattern is the byte at an offset of a region at first.
func pattern(region, off int) byte { return byte(off*7 + off>>8*13 + region*89 + 1) }

// patterns are the first bytes of each region.
var patterns [maxRegions][memorySize]byte

func init() {
	for i := range patterns {
		for k := range patterns[i] {
			patterns[i][k] = pattern(i, k)
		}
	}
}

func (r *run) fill() {
	for i, m := range r.mem {
		_, err := m.WriteAt(r.c.T, patterns[i][:], 0) // behind the region too, whence inline data may come
		kit.Must(r.c, "fill memory", err)
		r.mm[i].Reset(patterns[i][:])
	}
}

func side(k int) string { return [2]string{"A", "B"}[k] }
