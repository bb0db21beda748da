package testbed

import (
	"fmt"
	"io"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/link"
)

// capture writes what every port sends as pcapng with nanoseconds of virtual time,
// counted from 1970. Nothing in it tells of the machine that ran the simulation.
type capture struct {
	w     *pcapgo.NgWriter
	order *link.Ordered
	index map[string]int // port to interface
	err   error
}

func newCapture(tb *Testbed, out io.Writer) (*capture, error) {
	c := &capture{index: map[string]int{}}
	opt := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "rdmasim"}}
	c.order = link.NewOrdered(tb.eng, c.write)
	for _, h := range tb.hosts {
		for _, d := range h.devices {
			intf := pcapgo.NgInterface{Name: d.path(), LinkType: layers.LinkTypeEthernet, TimestampResolution: 9}
			var err error
			if c.w == nil {
				c.w, err = pcapgo.NewNgWriterInterface(out, intf, opt)
			} else {
				_, err = c.w.AddInterface(intf)
			}
			if err != nil {
				return nil, fmt.Errorf("capture: %w", err)
			}
			c.index[d.path()] = len(c.index)
			d.port.Tap(c.order.Tap)
		}
	}
	return c, nil
}

func (c *capture) write(s link.Sent) {
	if c.err != nil {
		return
	}
	n := len(s.Frame.B)
	c.err = c.w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(s.At/sim.Nanosecond)), CaptureLength: n, Length: n,
		InterfaceIndex: c.index[s.Port]}, s.Frame.B)
}

// close writes what is left and reports the first error.
func (c *capture) close() error {
	c.order.Close()
	if c.w == nil {
		return nil
	}
	if c.err == nil {
		c.err = c.w.Flush()
	}
	if c.err != nil {
		return fmt.Errorf("capture: %w", c.err)
	}
	return nil
}
