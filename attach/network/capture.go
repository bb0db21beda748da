package network

import (
	"bufio"
	"fmt"
	"io"

	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/link"
)

// capture writes what the ports send as pcapng, in virtual time.
type capture struct {
	out   *bufio.Writer
	w     *pcap.Writer
	order *link.Ordered
	index map[string]int
	// After limit bytes of frames (0: no limit) the rest is left out.
	limit uint64
	count Captured
	whole []byte // the present frame
}

// Captured counts the frames of a capture: those in the file with their bytes, and those that the
// limit left out.
type Captured struct{ Frames, Bytes, LeftOut uint64 }

// write adds a frame, or leaves it out when there is no room for it or was none for an earlier one.
func (c *capture) write(s link.Sent) {
	i := c.index[s.Port]
	if c.count.LeftOut == 0 {
		c.whole = s.Frame.AppendWhole(c.whole[:0])
	}
	n := uint64(len(c.whole))
	if c.limit != 0 && (c.count.LeftOut > 0 || c.count.Bytes+n > c.limit) {
		c.count.LeftOut++
		c.w.LeaveOut(i)
		return
	}
	c.count.Bytes += n
	c.count.Frames++
	comment := ""
	if s.Loopback {
		comment = "loopback"
	}
	// The writer keeps the first error for Close.
	_ = c.w.Write(i, int64(s.At/sim.Nanosecond), c.whole, comment)
}

// Capture has every port's frames written to out, up to limit bytes of them (0: all).
func (n *Network) Capture(out io.Writer, limit uint64) error {
	c := &capture{out: bufio.NewWriterSize(out, 1<<16), index: map[string]int{}, limit: limit}
	var err error
	if c.w, err = pcap.NewWriter(c.out, "rdmasim"); err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	typ := uint16(pcap.LinkTypeEthernet)
	if n.manager != nil {
		typ = pcap.LinkTypeInfiniBand
	}
	for _, p := range n.ports {
		if c.index[p.name], err = c.w.AddInterfaceOf(p.name, typ); err != nil {
			return fmt.Errorf("capture: %w", err)
		}
	}
	c.order = link.NewOrdered(n.eng, c.write)
	for _, p := range n.ports {
		p.link.Tap(c.order.Tap)
	}
	n.capture = c
	return nil
}

// Captured is what the capture has so far.
func (n *Network) Captured() Captured {
	if n.capture == nil {
		return Captured{}
	}
	return n.capture.count
}

// Close finishes the capture. The engine has ended before.
func (n *Network) Close() error {
	if n.capture == nil {
		return nil
	}
	n.capture.order.Close()
	err := n.capture.w.Close()
	if err == nil {
		err = n.capture.out.Flush()
	}
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}
