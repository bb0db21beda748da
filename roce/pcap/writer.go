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
	ng       *pcapgo.NgWriter
	ports    int
	packets  []uint64 // by interface
	lastTime int64
	buf      bytes.Buffer
	err      error
}

// NewWriter begins a file with one interface per name. Application goes into the
// file's header ("rdmasim").
func NewWriter(w io.Writer, application string, interfaces ...string) (*Writer, error) {
	if len(interfaces) == 0 {
		return nil, fmt.Errorf("pcap: a file needs an interface")
	}
	p := &Writer{out: w, ports: len(interfaces), packets: make([]uint64, len(interfaces))}
	var err error
	for i, name := range interfaces {
		intf := pcapgo.NgInterface{Name: name, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9}
		if i == 0 {
			options := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: application}}
			p.ng, err = pcapgo.NewNgWriterInterface(w, intf, options)
		} else {
			_, err = p.ng.AddInterface(intf)
		}
		if err != nil {
			return nil, fmt.Errorf("pcap: %w", err)
		}
	}
	return p, nil
}

// Write adds an Ethernet frame (without FCS) of interface i, ns nanoseconds after
// the start of the run. comment may be empty; it is kept with the packet and tells
// what a reader cannot see, such as "dropped". The first error is returned again
// by all later calls.
func (w *Writer) Write(i int, ns int64, frame []byte, comment string) error {
	switch {
	case w.err != nil:
		return w.err
	case i < 0 || i >= w.ports:
		w.err = fmt.Errorf("pcap: interface %d of %d", i, w.ports)
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

// Close ends the file with each interface's number of packets, and none dropped.
// It does not close the underlying writer.
func (w *Writer) Close() error {
	for i, n := range w.packets {
		if w.err == nil {
			w.err = w.ng.WriteInterfaceStats(i, pcapgo.NgInterfaceStatistics{
				LastUpdate: time.Unix(0, w.lastTime), PacketsReceived: n, PacketsDropped: 0,
			})
		}
	}
	if w.err == nil {
		w.err = w.ng.Flush()
	}
	return w.err
}
