package hca

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/mkey"
)

// dma moves payload between frames and the memory that keys name, of the host or on the device.
type dma struct {
	*core
	store  *frameStore
	memory *memory
	keys   *mkey.Table
	runs   []mkey.Run // where the last translation led
	result mkey.Result

	dropped []byte // what is read for the time that it takes
}

// readInto starts the DMA reads of [va, va+len(p)) of a key into p, a part of the
// frame of slot i. It has read nothing when the result is not OK.
func (m *dma) readInto(i int32, u mkey.User, key uint32, va uint64, p []byte, a mkey.Access) mkey.Result {
	runs, r := m.keys.Translate(u, key, va, len(p), a, m.runs[:0])
	if r != mkey.OK {
		return r
	}
	m.runs = runs
	s := m.store.slot(i)
	s.bytes += int32(len(p))
	m.store.txBytes += len(p)
	if len(runs) == 0 {
		clear(p)
	}
	for _, run := range runs {
		if run.PA >= onChip {
			m.memory.read(uint64(run.PA-onChip), p[:run.Len])
			p = p[run.Len:]
			continue
		}
		s.pending++
		m.bus.ReadDMA(run.PA, p[:run.Len], m.h.gather, uint64(i))
		p = p[run.Len:]
	}
	return mkey.OK
}

// writeTo posts the DMA writes of p to [va, va+len(p)) of a key, none when the result is not OK.
func (m *dma) writeTo(u mkey.User, key uint32, va uint64, p []byte, a mkey.Access) mkey.Result {
	runs, r := m.keys.Translate(u, key, va, len(p), a, m.runs[:0])
	if r != mkey.OK {
		return r
	}
	m.runs = runs
	m.writeRuns(p)
	return mkey.OK
}

// writeRuns posts the DMA writes of p to where a translation has just led.
func (m *dma) writeRuns(p []byte) {
	if len(m.runs) == 1 { // as nearly always
		m.writeAt(m.runs[0].PA, p[:m.runs[0].Len])
		return
	}
	for _, run := range m.runs {
		m.writeAt(run.PA, p[:run.Len])
		p = p[run.Len:]
	}
}

// writeAt writes p to memory of the host or on the device.
func (m *dma) writeAt(pa mem.PA, p []byte) {
	if pa < onChip {
		m.bus.WriteDMA(pa, p)
		return
	}
	m.memory.write(uint64(pa-onChip), p)
}

// peek reads [va, va+len(p)) of a key at once. It reports false when the access is refused.
func (m *dma) peek(u mkey.User, key uint32, va uint64, p []byte) bool {
	runs, r := m.keys.Translate(u, key, va, len(p), mkey.LocalRead, m.runs[:0])
	if r != mkey.OK {
		return false
	}
	m.runs = runs
	for _, run := range runs {
		if run.PA >= onChip {
			m.memory.read(uint64(run.PA-onChip), p[:run.Len])
		} else {
			m.bus.PeekDMA(run.PA, p[:run.Len])
		}
		p = p[run.Len:]
	}
	return true
}

// readAndDrop starts the DMA reads of n bytes at va of a key, which were read already, for the time
// that they take. It returns how many there are; each ends with done(arg).
func (m *dma) readAndDrop(u mkey.User, key uint32, va uint64, n int, done sim.Handler, arg uint64) (reads int) {
	runs, r := m.keys.Translate(u, key, va, n, mkey.LocalRead, m.runs[:0])
	if r != mkey.OK {
		return 0
	}
	m.runs = runs
	if len(m.dropped) < n {
		m.dropped = make([]byte, n)
	}
	for _, run := range runs {
		if run.PA < onChip {
			m.bus.ReadDMA(run.PA, m.dropped[:run.Len], done, arg)
			reads++
		}
	}
	return reads
}
