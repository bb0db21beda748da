// Package pcap writes captures of a run (pcapng, nanoseconds of virtual time) and
// reads captures of any origin (pcap, pcapng). A reader of a broken file gives the
// packets before the break and says what is broken, and where.
//
// Files that this package writes depend on the packets alone: they name neither
// machine nor time of day.
package pcap

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Writer writes a pcapng file.
type Writer struct {
	out      *bufio.Writer
	app      string
	packets  []uint64 // by interface
	dropped  []uint64 // likewise: left out
	erf      []bool   // likewise
	record   []byte
	lastTime int64
	buf      []byte // the block that is written
	err      error
}

// NewWriter begins a file with one Ethernet interface per name; AddInterface adds more. The file's
// header names application ("rdmasim") as its writer.
func NewWriter(w io.Writer, application string, interfaces ...string) (*Writer, error) {
	p := &Writer{out: bufio.NewWriter(w), app: application}
	for _, name := range interfaces {
		if _, err := p.AddInterface(name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// AddInterface adds an Ethernet interface and returns its number. The error is the first of the
// writer.
func (w *Writer) AddInterface(name string) (int, error) {
	return w.AddInterfaceOf(name, LinkTypeEthernet)
}

// AddInterfaceOf adds an interface for packets of a link type, Ethernet or InfiniBand, and returns
// its number. A file of several runs has one section with interfaces for each run, because tshark
// 4.0 shows the frames of later sections under the interfaces of the first.
func (w *Writer) AddInterfaceOf(name string, linkType uint16) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	erf := linkType == LinkTypeInfiniBand
	if erf {
		linkType = LinkTypeERF
	}
	if w.Empty() {
		w.begin(blockSection)
		w.words(byteOrderMagic, majorVersion, 0xFFFFFFFF, 0xFFFFFFFF) // the length of the section is not known
		if w.app != "" {
			w.option(optUserAppl, w.app)
			w.word(optEnd)
		}
		w.end()
	}
	w.begin(blockInterface)
	w.words(uint32(linkType), 0) // no limit of lengths
	if name != "" {
		w.option(optIfName, name)
	}
	w.option(optIfTsResol, "\x09")
	w.word(optEnd)
	if w.end(); w.err != nil {
		return 0, w.err
	}
	w.packets, w.dropped, w.erf = append(w.packets, 0), append(w.dropped, 0), append(w.erf, erf)
	return len(w.packets) - 1, nil
}

// Write adds a frame of interface i, in the form of its link type, ns nanoseconds after the start
// of the run. The comment, which may be empty, is kept with the packet and says what the frame does
// not show, such as "dropped". The first error, also of an unknown interface or a negative time, is
// returned again by all later calls.
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
	}
	if w.err != nil {
		return w.err
	}
	w.begin(blockEnhancedPacket)
	w.words(uint32(i), uint32(uint64(ns)>>32), uint32(ns), uint32(len(frame)), uint32(len(frame)))
	w.bytes(frame)
	if comment != "" {
		w.option(optComment, comment)
		w.word(optEnd)
	}
	if w.end(); w.err == nil {
		w.packets[i]++
		w.lastTime = max(w.lastTime, ns)
	}
	return w.err
}

// LeaveOut counts a frame of interface i that is not in the file, so that readers see that the file
// is not the whole run.
func (w *Writer) LeaveOut(i int) { w.dropped[i]++ }

// begin starts a block: its type and room for its length.
func (w *Writer) begin(typ uint32) {
	w.buf = w.buf[:0]
	w.words(typ, 0)
}

func (w *Writer) word(v uint32) { w.buf = binary.LittleEndian.AppendUint32(w.buf, v) }

func (w *Writer) words(vs ...uint32) {
	for _, v := range vs {
		w.word(v)
	}
}

// bytes appends what has any length, up to the next multiple of four bytes.
func (w *Writer) bytes(b []byte) { w.buf = append(append(w.buf, b...), zeros[:pad(len(b))]...) }

// option appends an option, of which a value that is too long loses its end.
func (w *Writer) option(code uint16, value string) {
	value = value[:min(len(value), 0xFFFF)]
	w.word(uint32(code) | uint32(len(value))<<16)
	w.buf = append(append(w.buf, value...), zeros[:pad(len(value))]...)
}

// end writes the block, with its length at both ends.
func (w *Writer) end() {
	w.word(uint32(len(w.buf) + 4))
	copy(w.buf[4:8], w.buf[len(w.buf)-4:])
	if _, err := w.out.Write(w.buf); err != nil {
		w.err = err
	}
}

var zeros [4]byte

func pad(n int) int { return -n & 3 }

// Empty reports whether the file has no interface yet, and so no content.
func (w *Writer) Empty() bool { return len(w.packets) == 0 }

// Close ends the file with each interface's numbers of packets written and left out. It does not
// close the underlying writer. The error is the first of the writer.
func (w *Writer) Close() error {
	for i, n := range w.packets {
		if w.err != nil {
			return w.err
		}
		w.begin(blockStatistics)
		w.words(uint32(i), uint32(uint64(w.lastTime)>>32), uint32(w.lastTime))
		w.count(optIsbIfDrop, w.dropped[i])
		w.count(optIsbIfRecv, n+w.dropped[i])
		w.word(optEnd)
		w.end()
	}
	if w.err == nil {
		w.err = w.out.Flush()
	}
	return w.err
}

// count appends an option with a number of 64 bits.
func (w *Writer) count(code uint16, n uint64) {
	w.words(uint32(code)|8<<16, uint32(n), uint32(n>>32))
}
