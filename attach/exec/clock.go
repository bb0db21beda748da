//go:build linux && amd64

package exec

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// MapClock implements uverbs.Pages: from now on the page holds the device's clock, as
// of the engine's last look.
func (f *file) MapClock(n uint64) error {
	b, err := unix.Mmap(int(f.own.Fd()), int64(n*pageSize), pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map page %d of the device file: %w", n, err)
	}
	f.clock = b
	f.s.eng.clocks = append(f.s.eng.clocks, f)
	f.tick()
	return nil
}

// UnmapClock implements uverbs.Pages.
func (f *file) UnmapClock(uint64) {
	e := f.s.eng
	e.clocks = slices.DeleteFunc(e.clocks, func(x *file) bool { return x == f })
	_ = unix.Munmap(f.clock)
	f.clock = nil
}

// tick stores the device's clock where programs read it: both words at once.
func (f *file) tick() {
	var b [prm.TimerSize]byte
	f.dev.hca.MMIORead(prm.InitSegTimer, b[:])
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&f.clock[prm.InitSegTimer%pageSize])), *(*uint64)(unsafe.Pointer(&b[0])))
}

// ticks shows the time to programs that have mapped the clock. While the device is idle
// it goes on at the pace of real time: it may not stand still for a program that waits
// for it.
func (e *engine) ticks(idle bool) {
	if len(e.clocks) == 0 {
		return
	}
	if now := e.real(); idle && now > e.m.eng.Now() {
		e.passTo(now)
	}
	if now := e.m.eng.Now(); now != e.shown {
		e.shown = now
		for _, f := range e.clocks {
			f.tick()
		}
	}
}

// passTo lets virtual time pass to t, at which nothing need be due.
func (e *engine) passTo(t sim.Time) {
	if e.m.eng.Next() > t {
		e.m.eng.At(t, func(uint64) {}, 0)
	}
	e.runUntil(t)
}
