package kernel

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// umrQueue is the driver's queue for work requests that change memory keys, with a CQ of its own
// (struct umr_common). It is made with the first region (mlx5r_umr_resource_init).
//
// A call takes effect at the instant at which it is made, and so does a UMR of the device, whose
// doorbell rings then; the completion comes later. A thread waits for it at the end of its call,
// and whoever is no thread (a process that has ended, a program outside the simulation) does not.
// What the completion of a revocation will say is read off the key.
type umrQueue struct {
	driverQueue
	list mem.PA // translations, for which there is room
	room uint64

	pi      uint16 // basic blocks posted
	posted  uint64 // requests
	done    uint64
	waiting []umrWaiter
}

// umrWaiter is a thread that waits until a number of requests have completed.
type umrWaiter struct {
	p     *sim.Proc
	until uint64
}

// Sizes of the queue: MAX_UMR_WR requests of three basic blocks, and the entries of its CQ.
const (
	maxUMRs      = 128
	umrBlocks    = 3
	logUMRBlocks = 9
	logUMRCQ     = 8
	umrRing      = prm.WQEBBSize << logUMRBlocks
)

// umrs is the queue, which the first call makes.
func (k *call) umrs() (*umrQueue, error) {
	d := k.d
	if d.umr != nil {
		return d.umr, nil
	}
	u := &umrQueue{driverQueue: driverQueue{logCQ: logUMRCQ}}
	for _, step := range []func(*call) error{u.allocate, u.makeKey, u.makeCQ, u.makeQP, u.start} {
		if err := step(k); err != nil {
			u.discard(k)
			return nil, fmt.Errorf("the driver's queue for UMRs: %w", err)
		}
	}
	d.umr = u
	d.cqs[u.cqn] = (*umrTarget)(d)
	u.arm(d)
	return u, nil
}

// discard gives back what was made of a queue.
func (u *umrQueue) discard(k *call) {
	for _, x := range [...]struct {
		op prm.Opcode
		n  uint32
	}{{prm.OpDestroyQP, u.qpn}, {prm.OpDestroyCQ, u.cqn}, {prm.OpDestroyMKey, u.lkey >> 8}} {
		if x.n != 0 {
			in := prm.NewIn(x.op, 0)
			prm.DestroyQPIn(in).SetQPN(x.n) // the same place in all of them
			k.mustDestroy(in)
		}
	}
	for _, x := range u.memory(umrRing) {
		if *x.at != 0 {
			k.d.mem.Free(*x.at, x.n)
		}
	}
}

func (u *umrQueue) allocate(k *call) error { return u.driverQueue.allocate(k, u.memory(umrRing)) }

func (u *umrQueue) makeQP(k *call) error {
	return u.driverQueue.makeQP(k, prm.STRegUMR, umrRing, func(c prm.QPC) {
		c.SetRQType(prm.RQTypeNone)
		c.SetLatencySensitive(true)
		c.SetFRE(true)
		c.SetRLKY(true)
		c.SetLogSQSize(logUMRBlocks)
	})
}

func (u *umrQueue) start(k *call) error { return u.driverQueue.start(k, prm.STRegUMR, 0) }

// umrRequest is a UMR to be posted.
type umrRequest struct {
	key   uint32
	flags uint8
	mask  uint64
	mkc   func(c prm.MKC)
	list  prm.MTT // nil: none
	// offset is where the list begins, in units of umrUnit, with the flag for it.
	offset uint64
}

// umrAlign is of how many bytes lists of translations are (MLX5_UMR_FLEX_ALIGNMENT).
const umrAlign = 64

// post is mlx5r_umr_post_send: one request, with a CQE of its own.
func (k *call) post(r *umrRequest) error {
	u, err := k.umrs()
	if err != nil {
		return err
	}
	if u.posted-u.done >= maxUMRs { // nobody waits between them: they have taken effect
		if err := u.restart(k); err != nil {
			return err
		}
	}
	d := k.d
	var b [umrBlocks * prm.WQEBBSize]byte
	n := prm.CtrlSegmentSize
	umr := prm.UMRCtrlSegment(b[n : n+prm.UMRCtrlSegmentSize])
	n += prm.UMRCtrlSegmentSize
	umr.SetMKeyMask(r.mask)
	umr.SetFlags(r.flags)
	if r.flags&prm.UMRTranslationOffset != 0 {
		umr.SetXLTOffset(r.offset)
	}
	r.mkc(prm.MKC(b[n : n+prm.MKCSize]))
	n += prm.MKCSize
	if r.list != nil {
		if err := u.putList(d, r.list); err != nil {
			return err
		}
		umr.SetXLTOctowords(uint16(len(r.list) / 16))
		prm.DataSegment(b[n:n+prm.DataSegmentSize]).Set(uint32(len(r.list)), u.lkey, uint64(u.list))
		n += prm.DataSegmentSize
	}
	prm.CtrlSegment(b[:]).Set(prm.WQEOpUMR, 0, u.pi, u.qpn, n/prm.DSSize, prm.CtrlCQUpdate|prm.CtrlSmallFence, r.key)
	blocks := (n + prm.WQEBBSize - 1) / prm.WQEBBSize
	for i := range blocks {
		at := (int(u.pi) + i) & (1<<logUMRBlocks - 1) * prm.WQEBBSize
		d.mem.Write(u.ring+mem.PA(at), b[i*prm.WQEBBSize:(i+1)*prm.WQEBBSize])
	}
	u.pi += uint16(blocks)
	u.writeRecord(d)
	d.link.Function().MMIOWrite(uint64(d.uar)*prm.UARPageSize+prm.UARBFOffset, b[:prm.DoorbellSize])
	if k.outside {
		d.link.Drain()
	}
	u.posted++
	k.umr, k.numUMRs = u.posted, k.numUMRs+1
	return nil
}

// putList puts a list where the device reads it. The one before has taken effect; the device may
// still read there, so that smaller places stay.
func (u *umrQueue) putList(d *Device, list prm.MTT) error {
	if n := uint64(len(list)); n > u.room {
		size := max(prm.PageSize, uint64(1)<<bits.Len64(n-1))
		pa, err := d.mem.Alloc(size, prm.PageSize)
		if err != nil {
			return fmt.Errorf("%d B for translations: %w", n, syscall.ENOMEM)
		}
		u.list, u.room = pa, size
	}
	d.mem.Write(u.list, list)
	return nil
}

func (u *umrQueue) writeRecord(d *Device) {
	var rec [prm.DBRecSize]byte
	prm.QPDBRec(rec[:]).SetSend(u.pi)
	d.mem.Write(u.record, rec[:])
}

// restart takes the queue through RESET (mlx5r_umr_recover): what is under way completes no more.
func (u *umrQueue) restart(k *call) error {
	in := prm.NewIn(prm.Op2RstQP, 0)
	prm.Cmd2RstQPIn(in).SetQPN(u.qpn)
	if err := k.exec(in, prm.NewOut(prm.Op2RstQP, 0)); err != nil {
		return err
	}
	u.pi = 0
	u.writeRecord(k.d)
	u.finish(k.d, u.posted)
	return u.start(k)
}

// finish has requests completed, and wakes who waits for them.
func (u *umrQueue) finish(d *Device, until uint64) {
	u.done = max(u.done, until)
	keep := u.waiting[:0]
	for _, w := range u.waiting {
		if w.until > u.done {
			keep = append(keep, w)
			continue
		}
		w.p.Wake(d.eng.Now() + d.p.Wakeup)
	}
	u.waiting = keep
}

// awaitUMRs waits for what the call has posted. One after the other takes as long as one, each. Of
// lists, which take the device itself long, what was waited for is the device's time for all, and
// each but the last has its own interrupt and wake-up.
func (k *call) awaitUMRs() {
	u, start := k.d.umr, k.c.P.Now()
	for u.done < k.umr && !k.d.removed {
		u.sleep(k.c.P, k.umr)
	}
	took := k.c.P.Now() - start
	if k.lists {
		took = k.d.p.Interrupt + k.d.p.Wakeup
	}
	if k.numUMRs > 1 {
		k.c.P.Sleep(sim.Time(k.numUMRs-1) * took)
	}
}

func (u *umrQueue) sleep(p *sim.Proc, until uint64) {
	u.waiting = append(u.waiting, umrWaiter{p, until})
	defer func() { // of a thread that is killed
		for i, w := range u.waiting {
			if w.p == p {
				u.waiting = append(u.waiting[:i], u.waiting[i+1:]...)
				break
			}
		}
	}()
	p.Park("a change of a memory key")
}

// umrTarget takes the completions of the queue.
type umrTarget Device

func (t *umrTarget) event(e prm.EQE) bool {
	d := (*Device)(t)
	if e.Type() != prm.EventComp {
		return false
	}
	u, done := d.umr, d.umr.done
	for {
		if _, ok := u.next(d); !ok {
			break
		}
		done = min(done+1, u.posted)
	}
	u.finish(d, done)
	u.arm(d)
	return true
}

// umrFailed says whether the device has refused to make a key free and the driver's, and if so
// takes the queue out of its error.
func (k *call) umrFailed(key uint32) bool {
	in, out := prm.NewIn(prm.OpQueryMKey, 0), prm.NewOut(prm.OpQueryMKey, 0)
	prm.QueryMKeyIn(in).SetMKeyIndex(key >> 8)
	busy := k.dev // the driver learns it from the completion
	err := k.exec(in, out)
	k.dev = busy
	if c := prm.QueryMKeyOut(out).MKC(); err == nil && c.Free() && c.PD() == k.d.pdn {
		return false
	}
	if err := k.d.umr.restart(k); err != nil {
		panic(fmt.Sprintf("kernel: %v: %s: %v", k.d.eng.Now(), k.d.name, err))
	}
	return true
}
