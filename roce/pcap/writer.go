// Package pcap writes captures of a run (pcapng, nanoseconds of virtual time) and
// reads captures of any origin (pcap, pcapng). A reader of a broken file gives the
// packets before the break and says what is broken, and where.
//
// Files that this package writes depend on the packets alone: they name neither
// machine nor time of day.
package pcap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// Writer writes a pcapng file.
type Writer struct {
	out      io.Writer
	app      string
	ng       *pcapgo.NgWriter // nil before the first interface
	packets  []uint64         // by interface
	dropped  []uint64         // likewise: left out
	erf      []bool           // likewise
	record   []byte
	lastTime int64
	buf      bytes.Buffer
	err      error
}

// NewWriter begins a file with one interface per name; AddInterface adds more.
// Application goes into the file's header ("rdmasim").
func NewWriter(w io.Writer, application string, interfaces ...string) (*Writer, error) {
	p := &Writer{out: w, app: application}
	for _, name := range interfaces {
		if _, err := p.AddInterface(name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// AddInterface adds an Ethernet interface.
func (w *Writer) AddInterface(name string) (int, error) {
	return w.AddInterfaceOf(name, LinkTypeEthernet)
}

// AddInterfaceOf adds an interface for packets with a link type, Ethernet or InfiniBand, and returns its number. A file of several runs has
// one section with interfaces for each run, since tshark 4.0 shows the frames of
// later sections under the interfaces of the first.
func (w *Writer) AddInterfaceOf(name string, linkType uint16) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	erf := linkType == LinkTypeInfiniBand
	if erf {
		linkType = LinkTypeERF
	}
	intf := pcapgo.NgInterface{Name: name, LinkType: layers.LinkType(linkType), TimestampResolution: 9}
	if w.ng == nil {
		options := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: w.app}}
		w.ng, w.err = pcapgo.NewNgWriterInterface(w.out, intf, options)
	} else {
		_, w.err = w.ng.AddInterface(intf)
	}
	if w.err != nil {
		w.err = fmt.Errorf("pcap: %w", w.err)
		return 0, w.err
	}
	w.packets, w.dropped, w.erf = append(w.packets, 0), append(w.dropped, 0), append(w.erf, erf)
	return len(w.packets) - 1, nil
}

// Write adds a frame, as its interface's link type has it, of interface i, ns nanoseconds after
// the start of the run. comment may be empty; it is kept with the packet and says
// what a reader cannot see, such as "dropped". The first error is returned again
// by all later calls.
func (w *Writer) Write(i int, ns int64, frame []byte, comment string) error {
	if i >= 0 && i < len(w.erf) && w.erf[i] && ns >= 0 {
		w.record = appendERF(w.record[:0], i, ns, frame)
		frame = w.record
	}
	switch {
	case w.err != nil:
		return w.err
	case i < 0 || i >= len(w.packets):
		w.err = fmt.Errorf("pcap: interface %d of %d", i, len(w.packets))
	case ns < 0:
		w.err = fmt.Errorf("pcap: time %d ns", ns)
	case comment != "":
		w.err = w.writeCommented(i, ns, frame, comment)
	default:
		w.err = w.ng.WritePacket(gopacket.CaptureInfo{
			Timestamp: time.Unix(0, ns), CaptureLength: len(frame), Length: len(frame), InterfaceIndex: i,
		}, frame)
	}
	if w.err == nil {
		w.packets[i]++
		w.lastTime = max(w.lastTime, ns)
	}
	return w.err
}

// LeaveOut counts a frame of interface i that the file does not get. Readers see that the file is not the whole run.
func (w *Writer) LeaveOut(i int) { w.dropped[i]++ }

// writeCommented writes an enhanced packet block with a comment, which pcapgo
// cannot (pcapng, sections 4.3 and 3.5).
func (w *Writer) writeCommented(i int, ns int64, frame []byte, comment string) error {
	if err := w.ng.Flush(); err != nil {
		return err
	}
	if len(comment) > 0xFFFF {
		comment = comment[:0xFFFF]
	}
	le := binary.LittleEndian
	b := w.buf.AvailableBuffer()
	b = le.AppendUint32(b, blockEnhancedPacket)
	b = le.AppendUint32(b, 0) // length, below
	b = le.AppendUint32(b, uint32(i))
	b = le.AppendUint32(b, uint32(uint64(ns)>>32))
	b = le.AppendUint32(b, uint32(ns))
	b = le.AppendUint32(b, uint32(len(frame)))
	b = le.AppendUint32(b, uint32(len(frame)))
	b = append(b, frame...)
	b = append(b, zeros[:pad(len(frame))]...)
	b = le.AppendUint16(b, optComment)
	b = le.AppendUint16(b, uint16(len(comment)))
	b = append(b, comment...)
	b = append(b, zeros[:pad(len(comment))]...)
	b = le.AppendUint32(b, optEnd)
	b = le.AppendUint32(b, uint32(len(b)+4))
	le.PutUint32(b[4:], uint32(len(b)))
	_, err := w.out.Write(b)
	return err
}

var zeros [4]byte

func pad(n int) int { return -n & 3 }

// Empty says that the file has no interface yet, and so no content.
func (w *Writer) Empty() bool { return w.ng == nil }

// Close ends the file with each interface's number of packets, and of those that were left out.
// It does not close the underlying writer.
func (w *Writer) Close() error {
	for i, n := range w.packets {
		if w.err == nil {
			w.err = w.ng.WriteInterfaceStats(i, pcapgo.NgInterfaceStatistics{
				LastUpdate: time.Unix(0, w.lastTime), PacketsReceived: n + w.dropped[i], PacketsDropped: w.dropped[i],
			})
		}
	}
	if w.err == nil && w.ng != nil {
		w.err = w.ng.Flush()
	}
	return w.err
}
