package testbed

import (
	"bufio"
	"fmt"
	"slices"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/link"
)

// capture writes what every port sends as pcapng with nanoseconds of virtual time,
// counted from 1970. Nothing in it depends on the machine that ran the simulation.
type capture struct {
	out   *bufio.Writer // nil when the file is another's
	w     *pcap.Writer
	order *link.Ordered
	index map[string]int // port to interface
	buf   []byte

	keep  int    // see Config.PcapKeep
	last  []kept // from first on
	first int
	size  int // bytes of the frames in last
}

// kept is a frame of a capture that has only the last ones.
type kept struct {
	port    int
	at      int64
	data    []byte
	comment string
}

// newCapture begins a capture with one interface for each port, named after its device. It keeps no
// frame longer than until no earlier one can come. In a file of several runs that can no longer be
// written there is no more capture, which its owner learns when it closes the file; the runs go on.
func newCapture(tb *Testbed) (*capture, error) {
	c := &capture{w: tb.cfg.Capture, index: map[string]int{}, keep: tb.cfg.PcapKeep}
	if c.w == nil {
		c.out = bufio.NewWriterSize(tb.cfg.Pcap, 1<<16)
		var err error
		if c.w, err = pcap.NewWriter(c.out, "rdmasim"); err != nil {
			return nil, fmt.Errorf("capture: %w", err)
		}
	}
	c.order = link.NewOrdered(tb.eng, c.write)
	for _, h := range tb.hosts {
		for _, d := range h.devices {
			name := d.path()
			if tb.cfg.PcapName != "" {
				name = tb.cfg.PcapName + " " + name
			}
			typ := uint16(pcap.LinkTypeEthernet)
			if d.port.InfiniBand() {
				typ = pcap.LinkTypeInfiniBand
			}
			i, err := c.w.AddInterfaceOf(name, typ)
			if err != nil && c.out == nil {
				return nil, nil
			}
			if err != nil {
				return nil, fmt.Errorf("capture: %w", err)
			}
			c.index[d.path()] = i
			d.port.Tap(c.order.Tap)
			if peer := d.port.Peer(); tb.cfg.Switched && d.port.Lossless() != 0 {
				// What the switch says to the port's own MAC is of the port's link too.
				c.index[peer.Name()] = i
				peer.Tap(func(s link.Sent) {
					if _, ok := roce.ParsePFC(s.Frame.B); ok {
						c.order.Tap(s)
					}
				})
			}
		}
	}
	return c, nil
}

// write adds a frame as it was sent. The writer keeps the first error for close.
func (c *capture) write(s link.Sent) {
	port, at, data := c.index[s.Port], int64(s.At/sim.Nanosecond), c.whole(s.Frame)
	if c.keep == 0 {
		_ = c.w.Write(port, at, data, comment(s))
		return
	}
	c.last = append(c.last, kept{port, at, slices.Clone(data), comment(s)})
	for c.size += len(data); c.size > c.keep && c.first < len(c.last)-1; c.first++ {
		oldest := &c.last[c.first]
		c.w.LeaveOut(oldest.port)
		c.size -= len(oldest.data)
		oldest.data = nil
	}
	if c.first > len(c.last)/2 {
		c.last, c.first = slices.Delete(c.last, 0, c.first), 0
	}
}

// writeKept writes the frames that were kept.
func (c *capture) writeKept() {
	for _, f := range c.last[c.first:] {
		_ = c.w.Write(f.port, f.at, f.data, f.comment)
	}
	c.last, c.first = nil, 0
}

// whole is a frame as captures have it: one of InfiniBand with its VCRC.
func (c *capture) whole(f *roce.Frame) []byte {
	if !f.LRH {
		return f.B
	}
	c.buf = f.AppendWhole(c.buf[:0])
	return c.buf
}

// comment describes what the bytes of a frame do not show: that it never left its device, and
// what a rule does to it after it was sent.
func comment(s link.Sent) string {
	switch {
	case s.Acted != fault.Pass && s.Loopback:
		return "loopback, " + acts[s.Acted]
	case s.Acted != fault.Pass:
		return acts[s.Acted]
	case s.Loopback:
		return "loopback"
	}
	return ""
}

var acts = map[fault.Action]string{
	fault.Drop: "dropped by a rule", fault.Corrupt: "corrupted by a rule after it was sent",
	fault.Truncate:   "truncated by a rule after it was sent",
	fault.CorruptFCS: "corrupted (FCS) by a rule after it was sent", fault.Edit: "edited by a rule after it was sent",
	fault.Spoil: "edited by a rule after it was sent, and its ICRC left",
	fault.Delay: "delayed by a rule", fault.Duplicate: "duplicated by a rule",
	fault.Reorder: "delayed by a rule behind the next frame", fault.Mark: "marked by a rule (ECN)",
}

// close writes what is left and reports the first error.
func (c *capture) close() error {
	c.order.Close()
	c.writeKept()
	if c.out == nil {
		return nil
	}
	err := c.w.Close()
	if err == nil {
		err = c.out.Flush()
	}
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}
