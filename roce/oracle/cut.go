package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// Of a frame that was cut behind its headers, these and the lengths that IP, UDP and LRH state are
// known: most rules need no more.

// cutRules are those that need more.
const cutRules = "OR-010 (UDP checksum), OR-011 (ICRC), OR-018 (pad bytes), OR-026 (VCRC), OR-036 (payload) and OR-097 to OR-101 (connection manager)"

// snapLength keeps the headers of every frame: 20 bytes of a cooked header, 8 of VLAN tags, 40 of
// IPv6, 8 of UDP, 12 of the BTH and 28 of an atomic are 116.
const snapLength = 128

// errHeadersCut says that a frame was cut within its headers.
var errHeadersCut = errors.New("the capture was cut within the headers")

// cut says whether the capture lacks the end of the frame.
func (f *Frame) cut() bool { return f.Length > len(f.Data) }

// parser decodes frames; of cut ones the payload and ICRC of the packet must not be asked for.
type parser struct{ whole []byte }

// parse decodes a frame.
func (d *parser) parse(f *Frame) (roce.Packet, error) {
	parse := roce.Parse
	if f.InfiniBand {
		parse = roce.ParseInfiniBand
	}
	if !f.cut() {
		return parse(f.Data)
	}
	const headers = 256 // more than all headers together
	n, have := min(f.Length, 1<<16), len(f.Data)
	if cap(d.whole) < n {
		d.whole = make([]byte, 1<<16)
	}
	b := d.whole[:n]
	clear(b[copy(b, f.Data):min(n, have+headers)])
	p, err := parse(b)
	if h := ether.Parse(f.Data); err == roce.DropUDPChecksum && h.Transport > 0 { // it cannot be checked
		binary.BigEndian.PutUint16(b[h.Transport+6:], 0)
		p, err = parse(b)
	}
	p.B = f.Data
	switch bth := p.BTHOffset(); {
	case bth == 0:
		if networkCut(f) {
			return p, errHeadersCut
		}
	case bth+roce.BTHSize > have, err == nil && headerEnd(&p) > have:
		return p, errHeadersCut
	}
	return p, err
}

// networkCut says whether the capture lacks headers before the BTH by which a packet of RDMA is
// known.
func networkCut(f *Frame) bool {
	if f.InfiniBand {
		return len(f.Data) < roce.LRHSize+roce.GRHSize
	}
	switch h := ether.Parse(f.Data); h.Type {
	case roce.EtherTypeIPv4, roce.EtherTypeIPv6:
		return h.Version == 0 || h.Proto == roce.ProtoUDP && h.Transport == 0 && !h.Fragment
	case roce.EtherTypeRoCE:
		return len(f.Data) < h.Net+roce.GRHSize
	}
	return len(f.Data) < roce.EthernetSize
}

// headerEnd is where the extended headers of a packet end.
func headerEnd(p *roce.Packet) int { return p.BTHOffset() + roce.BTHSize + int(p.Info().HeaderLen) }

// wasCut takes a frame of RDMA that was cut; whether within its headers.
func (j *judge) wasCut(f *Frame, inHeaders bool) {
	if !inHeaders {
		j.cutFrames++
		return
	}
	if j.headerless++; j.headerless == 1 {
		j.broken(f.Number, "frame %d was cut to %d of %d bytes, within its headers (capture with a snap length of %d or more)", f.Number, len(f.Data), f.Length, snapLength)
	}
	j.constant(Inconclusive, "OR-016", &rec{Frame: f}, "", "the capture was cut: %d of %d bytes", len(f.Data), f.Length)
}

// reading tells how the capture was read, where that was not frame by frame as it stands.
func (j *judge) reading(c *Capture) {
	say := func(n int, format string, a ...any) {
		if n > 0 {
			j.res.Reading = append(j.res.Reading, fmt.Sprintf(format, a...))
		}
	}
	r := &c.Read
	say(r.Sorted, "frames that stand behind later ones by at most %d ns: %d; all are judged in the order of their time stamps, and numbered in it, as reordercap writes them", r.Back, r.Sorted)
	say(r.Twice, "frames that another interface or direction of the same host has seen too: %d; each counts once", r.Twice)
	say(r.Unknown, "packets of link types that are not read: %d", r.Unknown)
	say(j.cutFrames, "frames of which the capture has only the headers: %d; what these show is judged, and these rules are not: %s", j.cutFrames, cutRules)
}
