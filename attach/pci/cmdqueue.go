//go:build linux && amd64

package pci

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

// The size of the command queue: 32 entries of 64 bytes.
const (
	logEntries = 5
	logStride  = 6
)

// nicDisabled is the interface without a driver (MLX5_NIC_IFC_DISABLED).
const nicDisabled = 1

// maxMailbox is the longest mailbox that is gathered. The page list of a region of 2^30 pages is
// longer; drivers register such a region with larger pages.
const maxMailbox = 16 << 20

// commander is the device as its command queue sees it. sim/hca implements it.
type commander interface {
	Command(in, out []byte) sim.Time
	WantsCommandEvents() bool
	CommandsDone(entries uint32)
	Params() *hca.Params
}

// commandQueue carries commands from entries in the guest's memory to the device, one after the
// other. Mailboxes that do not fit into an entry are chains of blocks.
type commandQueue struct {
	eng    *sim.Engine
	bus    pcie.Bus
	device commander
	// told is called after each command with its mailboxes; entries that could not be read as a
	// command have none.
	told func(in, out []byte, d prm.CommandDelivery)

	regs    [prm.CommandQueueRegsSize]byte
	waiting uint32 // entries whose doorbell was rung
	running int    // the entry that is being carried out, -1: none
	at      mem.PA // of that entry
	life    uint64 // counts resets
	answer  sim.Handler

	entry   [prm.CommandEntrySize]byte
	block   [prm.CommandBlockSize]byte
	in, out []byte
	blocks  []mem.PA // where the rest of out goes
	event   bool     // the completion is reported to an EQ
	status  prm.CommandDelivery
}

func newCommandQueue(e *sim.Engine, b pcie.Bus, d commander, told func(in, out []byte, d prm.CommandDelivery)) *commandQueue {
	q := &commandQueue{eng: e, bus: b, device: d, told: told}
	q.answer = q.onAnswer
	q.reset()
	return q
}

// reset puts the queue into the state after power-on. A command that is being carried out gets no
// answer.
func (q *commandQueue) reset() {
	q.life++
	q.running, q.waiting = -1, 0
	clear(q.regs[:])
	r := prm.CommandQueueRegs(q.regs[:])
	r.SetLogEntries(logEntries)
	r.SetLogStride(logStride)
	// Until a driver gives the queue an address the interface is off (assumed). That is how a
	// driver below which the function is reset learns of it: its health poll takes this for fatal,
	// and begins anew.
	r.SetNICInterface(nicDisabled)
}

// busy reports whether the guest waits for commands.
func (q *commandQueue) busy() bool { return q.running >= 0 }

// write is a register of the queue that the guest writes.
func (q *commandQueue) write(off uint64, v uint32) {
	r := prm.CommandQueueRegs(q.regs[:])
	var word [prm.CommandQueueRegsSize]byte
	w := prm.CommandQueueRegs(word[:])
	switch off {
	case prm.InitSegCommandQueue:
		r.SetAddressHigh(v)
	case prm.InitSegCommandQueue + 4:
		prm.SetRegisterWord(word[4:], v)
		r.SetAddressLow(w.AddressLow())
		r.SetNICInterface(w.NICInterface())
	case prm.InitSegCommandQueue + 8:
		// Without an address there is no queue; with another interface the driver has taken this
		// one down.
		if q.base() != 0 && r.NICInterface() == 0 {
			q.waiting |= v
			q.next()
		}
	}
}

func (q *commandQueue) base() mem.PA {
	r := prm.CommandQueueRegs(q.regs[:])
	return mem.PA(r.AddressHigh())<<32 | mem.PA(r.AddressLow())<<12
}

// next begins to carry out the lowest entry that waits.
func (q *commandQueue) next() {
	for q.running < 0 && q.waiting != 0 {
		i := bits.TrailingZeros32(q.waiting)
		q.waiting &^= 1 << i
		q.at = q.base() + mem.PA(i)<<logStride
		q.bus.PeekDMA(q.at, q.entry[:])
		if !prm.CommandEntry(q.entry[:]).DeviceOwns() {
			continue // there is none
		}
		q.running = i
		t := q.carryOut()
		q.eng.After(t, q.answer, q.life)
	}
}

// carryOut executes the entry, and returns the time that it takes.
func (q *commandQueue) carryOut() sim.Time {
	// The command that makes the EQ of completions is polled for, and that which destroys it too.
	q.event = q.device.WantsCommandEvents()
	if q.status = q.gather(); q.status != prm.DeliveryOK {
		q.out = q.out[:0]
		q.told(nil, nil, q.status)
		return q.device.Params().Commands.Base
	}
	t := q.device.Command(q.in, q.out)
	q.event = q.event && q.device.WantsCommandEvents()
	q.told(q.in, q.out, q.status)
	return t
}

// gather reads the in mailbox and finds the room of the out mailbox.
func (q *commandQueue) gather() prm.CommandDelivery {
	e := prm.CommandEntry(q.entry[:])
	q.blocks = q.blocks[:0]
	in, out := int64(e.InLength()), int64(e.OutLength())
	switch {
	case e.Type() != prm.CommandTransportPCI:
		return prm.DeliveryDescriptor
	case in < 8 || in > maxMailbox:
		return prm.DeliveryInLength
	case out < 8 || out > maxMailbox:
		return prm.DeliveryOutLength
	}
	q.in = append(q.in[:0], e.In()[:min(in, prm.CommandInline)]...)
	st := q.chain(e.InMailbox(), in, prm.DeliveryInPointer, func(_ mem.PA, n int) {
		q.in = append(q.in, prm.CommandBlock(q.block[:]).Data()[:n]...)
	})
	if st != prm.DeliveryOK {
		return st
	}
	q.out = append(q.out[:0], make([]byte, out)...)
	return q.chain(e.OutMailbox(), out, prm.DeliveryOutPointer, func(pa mem.PA, _ int) { q.blocks = append(q.blocks, pa) })
}

// chain walks the blocks of a mailbox of n bytes, of which the first are in the entry.
func (q *commandQueue) chain(at uint64, n int64, bad prm.CommandDelivery, each func(pa mem.PA, n int)) prm.CommandDelivery {
	token := prm.CommandEntry(q.entry[:]).Token()
	b := prm.CommandBlock(q.block[:])
	n -= prm.CommandInline
	for number := uint32(0); n > 0; number++ {
		if at == 0 || at%prm.CommandBlockAlign != 0 {
			return bad
		}
		q.bus.PeekDMA(mem.PA(at), q.block[:])
		switch {
		case b.Token() != token:
			return prm.DeliveryToken
		case b.Number() != number:
			return prm.DeliveryBlockNumber
		}
		each(mem.PA(at), int(min(n, prm.CommandBlockData)))
		at, n = b.Next(), n-prm.CommandBlockData
	}
	return prm.DeliveryOK
}

// onAnswer writes the answer, the owner bit behind all else, and goes on.
func (q *commandQueue) onAnswer(life uint64) {
	if life != q.life {
		return
	}
	e, out := prm.CommandEntry(q.entry[:]), q.out
	clear(e.Out())
	out = out[copy(e.Out(), out):]
	for _, pa := range q.blocks {
		n := min(len(out), prm.CommandBlockData)
		q.bus.WriteDMA(pa, out[:n])
		out = out[n:]
	}
	e.SetDelivery(q.status)
	e.SetDeviceOwns(false)
	q.bus.WriteDMA(q.at+prm.CommandAnswer, e[prm.CommandAnswer:])
	if q.event {
		q.device.CommandsDone(1 << q.running)
	}
	q.running = -1
	q.next()
}
