package testbed

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// tap stands before a device's face: it logs register writes and breaks them by
// script.
type tap struct {
	pcie.Function
	ahead pcie.AheadFunction // the same, if it is one
	tb    *Testbed
	uars  prm.UARMap

	tearN, tearKeep int
	tearing         bool // the push under way is being torn

	swapPairs int
	held      []heldWrite // the first of a pair
}

type heldWrite struct {
	off uint64
	p   []byte
}

func newTap(tb *Testbed, f pcie.Function, bfRegSize int) *tap {
	t := &tap{Function: f, tb: tb}
	t.ahead, _ = f.(pcie.AheadFunction)
	for s := bfRegSize; s > 1; s >>= 1 {
		t.uars.LogBFRegSize++
	}
	if bfRegSize == 0 {
		t.uars.LogBFRegSize = 9 // the registers stay where they are
	}
	return t
}

// MMIOWrite passes a register write on, unless a fault has a say in it.
func (t *tap) MMIOWrite(off uint64, p []byte) {
	if t.tearN == 0 && !t.tearing && t.swapPairs == 0 && len(t.held) == 0 {
		t.pass(off, p)
		return
	}
	a := t.uars.Decode(off)
	if a.Kind != prm.UARKindBF {
		t.pass(off, p)
		return
	}
	if p = t.tear(a, p); len(p) > 0 {
		t.swap(a, off, p)
	}
}

// MMIOWriteAt passes a write on ahead of its time, unless writes are logged, torn or swapped.
func (t *tap) MMIOWriteAt(at sim.Place, off uint64, p []byte) bool {
	if t.ahead == nil || t.tb.log.on || t.tearN != 0 || t.tearing || t.swapPairs != 0 || len(t.held) > 0 {
		return false
	}
	return t.ahead.MMIOWriteAt(at, off, p)
}

// pass logs a write and gives it to the device.
func (t *tap) pass(off uint64, p []byte) {
	if t.tb.log.on {
		t.tb.log.write(t.tb.eng.Now(), t.uars, off, p)
	}
	t.Function.MMIOWrite(off, p)
}

// tear keeps the first bytes of a BlueFlame push, whose blocks arrive one by one.
func (t *tap) tear(a prm.UARAccess, p []byte) []byte {
	if a.Off == 0 {
		t.tearing = false
		if t.tearN > 0 && len(p) > prm.DoorbellSize {
			t.tearN--
			t.tearing = true
		}
	}
	if !t.tearing {
		return p
	}
	return p[:min(len(p), max(0, t.tearKeep-int(a.Off)))]
}

// swap holds a write and its further blocks until the first block of another has
// passed.
func (t *tap) swap(a prm.UARAccess, off uint64, p []byte) {
	switch {
	case len(t.held) > 0 && a.Off == 0:
		t.pass(off, p)
		held := t.held
		t.held = nil
		for _, h := range held {
			t.pass(h.off, h.p)
		}
	case len(t.held) > 0 || t.swapPairs > 0 && a.Off == 0:
		if len(t.held) == 0 {
			t.swapPairs--
		}
		t.held = append(t.held, heldWrite{off, append([]byte(nil), p...)})
	default:
		t.pass(off, p)
	}
}

// mmioLog records register writes as they arrive, and the stores of doorbell records
// among them in the order in which the cores made them.
type mmioLog struct {
	on      bool
	log     []verbs.MMIOWrite
	latency sim.Time // of a register write, at least
	begun   uint32   // recordings
	stores  []verbs.MMIOWrite
	seen    sim.Handler // of a store
}

func newMMIOLog(latency sim.Time) *mmioLog {
	l := &mmioLog{latency: latency}
	l.seen = l.onStore
	return l
}

// Start begins a recording.
func (l *mmioLog) Start() {
	l.on, l.log, l.stores = true, nil, nil
	l.begun++
}

// Stop ends it.
func (l *mmioLog) Stop() []verbs.MMIOWrite {
	w := l.log
	l.on, l.log, l.stores = false, nil, nil
	return w
}

func (l *mmioLog) write(at sim.Time, m prm.UARMap, off uint64, p []byte) {
	w := verbs.MMIOWrite{At: provider.Duration(at), Kind: verbs.MMIOOther, UARPage: uint32(off / prm.UARPageSize),
		Offset: uint32(off % prm.UARPageSize), Len: len(p), Data: append([]byte(nil), p...)}
	a := m.Decode(off)
	switch {
	case a.Kind == prm.UARKindCQArm:
		w.Kind = verbs.MMIOCQArm
	case a.Kind == prm.UARKindBF && len(p) > prm.DoorbellSize:
		w.Kind = verbs.MMIOBlueFlame
	case a.Kind == prm.UARKindBF && a.Off == 0 && len(p) == prm.DoorbellSize:
		w.Kind = verbs.MMIODoorbell
	}
	if a.Kind == prm.UARKindBF && a.Off == 0 && len(p) >= prm.DoorbellSize {
		c := prm.CtrlSegment(p)
		w.QPN, w.Index = c.QPN(), c.WQEIndex()
	}
	l.log = append(l.log, w)
}

// doorbellRecord logs what the library stores in memory. A register write that the
// thread makes before this store must come before it in the log, although it arrives
// later: so the store takes its place when a register write made now would arrive.
func (l *mmioLog) doorbellRecord(t *provider.Thread, qpn uint32, counter uint16) {
	if !l.on {
		return
	}
	l.stores = append(l.stores, verbs.MMIOWrite{At: t.Now(), Kind: verbs.MMIODoorbellRecord, Len: 4, QPN: qpn, Index: counter})
	t.P.Post(l.latency, l.seen, uint64(l.begun)<<32|uint64(len(l.stores)-1))
}

func (l *mmioLog) onStore(x uint64) {
	if l.on && uint32(x>>32) == l.begun {
		l.log = append(l.log, l.stores[uint32(x)])
	}
}

// faults breaks the first device of the calling thread's host.
type faults struct{ tb *Testbed }

// TearBlueFlame keeps the first bytes of the next pushes to the first device of the
// caller's host.
func (f faults) TearBlueFlame(t verbs.Thread, n, keep int) error {
	d, err := f.device(t)
	if err != nil {
		return err
	}
	if n < 0 || keep < prm.DoorbellSize || keep%8 != 0 {
		return fmt.Errorf("tear %d pushes after %d bytes: %w", n, keep, syscall.EINVAL)
	}
	d.tap.tearN, d.tap.tearKeep = d.tap.tearN+n, keep
	return nil
}

// SwapDoorbells reorders the next pairs of register writes to the first device of the
// caller's host. A pair whose second write never comes keeps the first.
func (f faults) SwapDoorbells(t verbs.Thread, n int) error {
	d, err := f.device(t)
	if err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("swap %d pairs: %w", n, syscall.EINVAL)
	}
	d.tap.swapPairs += n
	return nil
}

// FailNext makes a request of a QP of the first device of the caller's host fail.
func (f faults) FailNext(t verbs.Thread, qpn uint32, syndrome, vendor uint8) error {
	d, err := f.device(t)
	if err != nil {
		return err
	}
	x, ok := any(d.hca).(interface {
		FailNext(qpn uint32, syndrome, vendor uint8) error
	})
	if !ok {
		return fmt.Errorf("the device cannot fail requests by script: %w", syscall.EOPNOTSUPP)
	}
	return x.FailNext(qpn, syndrome, vendor)
}

func (f faults) device(t verbs.Thread) (*device, error) {
	provider.Of(t).P.Sync()
	h, ok := t.Process().Host().(*host)
	if !ok || len(h.devices) == 0 {
		return nil, fmt.Errorf("a fault on a host without a device: %w", syscall.ENODEV)
	}
	return h.devices[0], nil
}
