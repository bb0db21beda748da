//go:build linux && amd64

package exec

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A device file is sparse, and so long that a program which writes to it, in place of storing to
// the pages that it maps, could fill it with as much memory as it likes. What lies outside the
// pages of the device is taken back.

// trimPeriod is how often device files are looked at, and trimSlack how many pages more than those
// of the device they may have.
const (
	trimPeriod = time.Second
	trimSlack  = 256
)

// trim takes back what programs wrote to their device files. It runs beside the engine's thread,
// since a long file takes a while.
func (t *files) trim() {
	var holes []func()
	t.s.eng.do(func() {
		for _, w := range t.byWatch {
			f := w.f
			if w.b != nil {
				continue
			}
			if gaps := f.excess(); gaps != nil {
				raw, err := f.own.SyscallConn() // holds the descriptor
				if err != nil {
					continue
				}
				holes = append(holes, func() {
					_ = raw.Control(func(fd uintptr) {
						for _, g := range gaps {
							punch(fd, g.from, g.to)
						}
					})
				})
			}
		}
	})
	for _, h := range holes {
		h()
	}
}

// gap are pages of a device file from one to before another.
type gap struct{ from, to uint64 }

// excess are the gaps between the pages of the device when they hold much, nil otherwise.
func (f *file) excess() []gap {
	var st unix.Stat_t
	kept := f.devicePages()
	const block = 512 // of st_blocks
	if unix.Fstat(int(f.own.Fd()), &st) != nil || st.Blocks*block <= int64(len(kept)+trimSlack)*pageSize {
		return nil
	}
	gaps, at := []gap{}, uint64(0)
	for _, n := range append(kept, deviceFileSize/pageSize) {
		if n > at {
			gaps = append(gaps, gap{at, n})
		}
		at = n + 1
	}
	return gaps
}

// devicePages are the pages of the device file that show something of the device, rising.
func (f *file) devicePages() []uint64 {
	kept := slices.Collect(maps.Keys(f.pages))
	for n, b := range f.memory {
		for i := range len(b) / pageSize {
			kept = append(kept, n+uint64(i))
		}
	}
	for _, c := range f.s.eng.clocks {
		if c.f == f {
			kept = append(kept, c.n)
		}
	}
	slices.Sort(kept)
	return kept
}

// punch empties pages of a memory file, and gives their memory back.
func punch(fd uintptr, from, to uint64) {
	_ = unix.Fallocate(int(fd), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(from*pageSize), int64((to-from)*pageSize))
}
