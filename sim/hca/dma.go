package hca

import (
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/mkey"
)

// readInto starts the DMA reads of [va, va+len(p)) of a key into p, a part of the
// frame of slot i. It reports false, having read nothing, when the access is refused.
func (d *Device) readInto(i int32, u mkey.User, key uint32, va uint64, p []byte, a mkey.Access) bool {
	runs, r := d.keys.Translate(u, key, va, len(p), a, d.runs[:0])
	if r != mkey.OK {
		return false
	}
	d.runs = runs
	s := d.slot(i)
	s.bytes += int32(len(p))
	d.txBytes += len(p)
	if len(runs) == 0 {
		clear(p)
	}
	for _, run := range runs {
		if run.PA >= onChip {
			d.memory.read(uint64(run.PA-onChip), p[:run.Len])
			p = p[run.Len:]
			continue
		}
		s.pending++
		d.bus.ReadDMA(run.PA, p[:run.Len], d.h.gather, uint64(i))
		p = p[run.Len:]
	}
	return true
}

// writeTo posts the DMA writes of p to [va, va+len(p)) of a key.
func (d *Device) writeTo(u mkey.User, key uint32, va uint64, p []byte, a mkey.Access) bool {
	runs, r := d.keys.Translate(u, key, va, len(p), a, d.runs[:0])
	if r != mkey.OK {
		return false
	}
	d.runs = runs
	d.writeRuns(p)
	return true
}

// writeRuns posts the DMA writes of p to where a translation has just led.
func (d *Device) writeRuns(p []byte) {
	for _, run := range d.runs {
		d.writeAt(run.PA, p[:run.Len])
		p = p[run.Len:]
	}
}

// writeAt writes p to memory of the host or on the device.
func (d *Device) writeAt(pa mem.PA, p []byte) {
	if pa >= onChip {
		d.memory.write(uint64(pa-onChip), p)
		return
	}
	d.bus.WriteDMA(pa, p)
}

// Atomics work on 8-byte values in the host's order, which is little endian
// (atomic_req_8B_endianness_mode 1).
func host64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func putHost64(b []byte, v uint64) {
	_ = b[7]
	for i := range 8 {
		b[i] = byte(v >> (8 * i))
	}
}
