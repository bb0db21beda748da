package pcap

import (
	"encoding/binary"
	"math/bits"
)

// Block types and options of pcapng (IETF draft-ietf-opsawg-pcapng).
const (
	blockSection        = 0x0A0D0D0A
	blockInterface      = 1
	blockPacket         = 2 // as it was before the enhanced one
	blockSimplePacket   = 3
	blockStatistics     = 5
	blockEnhancedPacket = 6

	byteOrderMagic = 0x1A2B3C4D

	optEnd        = 0
	optComment    = 1
	optIfName     = 2
	optIfTsResol  = 9
	optIfTsOffset = 14
	optIsbIfRecv  = 4
	optIsbIfDrop  = 5
	optUserAppl   = 4
	optEpbDrops   = 4
	optEpbFlags   = 2
)

// majorVersion is that of the format whose blocks are known. Minor versions only add to it.
const majorVersion = 1

// nextNg reads blocks up to the next packet.
func (c *Reader) nextNg() (Packet, error) {
	for {
		start := c.at
		if c.most > 0 && start > c.most { // blocks without packets have no end
			return Packet{}, errTooLong
		}
		typ, body, err := c.block(start)
		if err != nil {
			return Packet{}, err
		}
		switch typ {
		case blockSection:
			c.base = len(c.Interfaces)
			err = c.section(start, body)
		case blockInterface:
			err = c.addInterface(start, body)
		case blockStatistics:
			err = c.statistics(start, body)
		case blockEnhancedPacket:
			return c.enhanced(start, body)
		case blockPacket:
			return c.obsolete(start, body)
		case blockSimplePacket:
			return c.simple(start, body)
		}
		if err != nil {
			return Packet{}, err
		}
	}
}

// block reads one block and checks its two lengths.
func (c *Reader) block(start int64) (typ uint32, body []byte, err error) {
	h, err := c.take(8, start, "a block header")
	if err != nil {
		return 0, nil, err
	}
	lead := 8
	if binary.LittleEndian.Uint32(h) == blockSection {
		m, err := c.take(4, start, "a section header")
		if err != nil {
			return 0, nil, err
		}
		lead = 12
		switch {
		case binary.LittleEndian.Uint32(m) == byteOrderMagic:
			c.order = binary.LittleEndian
		case binary.BigEndian.Uint32(m) == byteOrderMagic:
			c.order = binary.BigEndian
		default:
			return 0, nil, c.broken(start, "byte-order mark % x of a section", m)
		}
	}
	if c.order == nil {
		return 0, nil, c.broken(start, "a block before the first section")
	}
	typ = c.order.Uint32(h)
	n := c.order.Uint32(h[4:])
	if n%4 != 0 || n < uint32(lead)+4 || n > maxRecord {
		return 0, nil, c.broken(start, "a block of type 0x%x with a length of %d", typ, n)
	}
	body, err = c.take(int(n)-lead, start, "a block")
	if err != nil {
		return 0, nil, err
	}
	last := len(body) - 4
	if again := c.order.Uint32(body[last:]); again != n {
		return 0, nil, c.broken(start, "a block of type 0x%x whose lengths are %d and %d", typ, n, again)
	}
	return typ, body[:last], nil
}

// section reads who wrote the file; body is what follows the byte-order mark.
func (c *Reader) section(start int64, b []byte) error {
	if len(b) < 12 {
		return c.broken(start, "a section header of %d bytes", len(b))
	}
	if v := c.order.Uint16(b); v != majorVersion {
		return c.broken(start, "pcapng version %d.%d, known is %d.0", v, c.order.Uint16(b[2:]), majorVersion)
	}
	application := ""
	err := c.options(start, b[12:], func(code uint16, v []byte) {
		if code == optUserAppl {
			application = string(v)
		}
	})
	if c.sections++; c.sections == 1 {
		c.Application = application
	} else if application != c.Application {
		c.Application = ""
	}
	return err
}

// options calls f for each option of a block; a malformed list ends the file.
func (c *Reader) options(start int64, b []byte, f func(code uint16, v []byte)) error {
	for len(b) >= 4 {
		code, n := c.order.Uint16(b), int(c.order.Uint16(b[2:]))
		if code == optEnd {
			return nil
		}
		if n > len(b)-4 {
			return c.broken(start, "option %d of %d bytes in a block that has %d left", code, n, len(b)-4)
		}
		f(code, b[4:4+n])
		b = b[min(4+n+pad(n), len(b)):]
	}
	if len(b) != 0 {
		return c.broken(start, "options that end in %d bytes", len(b))
	}
	return nil
}

func (c *Reader) addInterface(start int64, b []byte) error {
	if len(b) < 8 {
		return c.broken(start, "an interface block of %d bytes", len(b))
	}
	intf := Interface{LinkType: c.order.Uint16(b), SnapLen: c.order.Uint32(b[4:]), perSecond: 1e6}
	bad := ""
	err := c.options(start, b[8:], func(code uint16, v []byte) {
		switch {
		case code == optIfName:
			intf.Name = string(v)
		case code == optIfTsResol && len(v) == 1:
			if intf.perSecond = unitsPerSecond(v[0]); intf.perSecond == 0 {
				bad = "a time resolution that does not fit 64 bits"
			}
		case code == optIfTsOffset && len(v) == 8:
			intf.offset = int64(c.order.Uint64(v))
		case code == optIfTsResol || code == optIfTsOffset:
			bad = "a time option of the wrong length"
		}
	})
	if err == nil && bad != "" {
		err = c.broken(start, "an interface with %s", bad)
	}
	if len(c.Interfaces) >= mostInterfaces {
		return c.broken(start, "more than %d interfaces", mostInterfaces)
	}
	c.Interfaces = append(c.Interfaces, intf)
	return err
}

// unitsPerSecond reads if_tsresol; 0 does not fit.
func unitsPerSecond(v byte) uint64 {
	n := int(v & 0x7F)
	if v&0x80 != 0 {
		if n > 63 {
			return 0
		}
		return 1 << n
	}
	if n > 19 {
		return 0
	}
	u := uint64(1)
	for range n {
		u *= 10
	}
	return u
}

// nanoseconds converts a timestamp; false if it is out of range.
func (i *Interface) nanoseconds(ts uint64) (int64, bool) {
	sec, frac := ts/i.perSecond, ts%i.perSecond
	hi, lo := bits.Mul64(frac, 1e9)
	ns, _ := bits.Div64(hi, lo, i.perSecond) // frac < perSecond, so hi < perSecond
	const limit = 1 << 33                    // seconds; int64 nanoseconds hold 2^33.1
	if sec > limit || i.offset > limit || i.offset < -limit {
		return 0, false
	}
	total := int64(sec) + i.offset
	if total > limit || total < -limit {
		return 0, false
	}
	return total*1e9 + int64(ns), true
}

func (c *Reader) statistics(start int64, b []byte) error {
	if len(b) < 12 {
		return c.broken(start, "a statistics block of %d bytes", len(b))
	}
	intf, err := c.intf(start, c.order.Uint32(b))
	if err != nil {
		return err
	}
	return c.options(start, b[12:], func(code uint16, v []byte) {
		i := &c.Interfaces[intf]
		switch {
		case code == optIsbIfDrop && len(v) == 8:
			i.Dropped = max(i.between, c.order.Uint64(v))
		case code == optIsbIfRecv && len(v) == 8:
			i.Received, i.Counted = c.order.Uint64(v), true
		}
	})
}

// intf is an interface of the current section as an index of Interfaces.
func (c *Reader) intf(start int64, id uint32) (int, error) {
	if uint64(id) >= uint64(len(c.Interfaces)-c.base) {
		return 0, c.broken(start, "interface %d, the section has %d", id, len(c.Interfaces)-c.base)
	}
	return c.base + int(id), nil
}

func (c *Reader) enhanced(start int64, b []byte) (Packet, error) {
	if len(b) < 20 {
		return Packet{}, c.broken(start, "a packet block of %d bytes", len(b))
	}
	intf, err := c.intf(start, c.order.Uint32(b))
	if err != nil {
		return Packet{}, err
	}
	n, length := c.order.Uint32(b[12:]), c.order.Uint32(b[16:])
	if uint64(n) > uint64(len(b)-20) || n > length || length > maxRecord {
		return Packet{}, c.broken(start, "%d bytes of a packet of %d in a block with room for %d", n, length, len(b)-20)
	}
	p := Packet{Interface: intf, Data: b[20 : 20+n : 20+n], Length: int(length), Offset: start}
	var ok bool
	ts := uint64(c.order.Uint32(b[4:]))<<32 | uint64(c.order.Uint32(b[8:]))
	if p.Time, ok = c.Interfaces[intf].nanoseconds(ts); !ok {
		return Packet{}, c.broken(start, "a time of %d units", ts)
	}
	rest := b[min(20+int(n)+pad(int(n)), len(b)):]
	err = c.options(start, rest, func(code uint16, v []byte) {
		switch {
		case code == optComment:
			p.Comment = string(v)
		case code == optEpbDrops && len(v) == 8:
			c.Interfaces[intf].lost(c.order.Uint64(v))
		case code == optEpbFlags && len(v) == 4:
			p.Outgoing = c.order.Uint32(v)&3 == 2 // the direction of pcapng: outbound
		}
	})
	return p, err
}

// obsolete reads the block that packets had before the enhanced one: it counts lost packets where
// that has the upper half of the interface. Its options mean the same, but for the number of lost
// packets.
func (c *Reader) obsolete(start int64, b []byte) (Packet, error) {
	if len(b) < 4 {
		return Packet{}, c.broken(start, "a packet block of %d bytes", len(b))
	}
	intf, drops := c.order.Uint16(b), c.order.Uint16(b[2:])
	c.order.PutUint32(b, uint32(intf))
	p, err := c.enhanced(start, b)
	if err == nil && drops != 0xFFFF { // unknown
		c.Interfaces[p.Interface].lost(uint64(drops))
	}
	return p, err
}

// lost notes packets that were lost just before one.
func (i *Interface) lost(n uint64) {
	i.between += n
	i.Dropped = max(i.Dropped, i.between)
}

// simple reads a packet without a time, of the section's first interface.
func (c *Reader) simple(start int64, b []byte) (Packet, error) {
	intf, err := c.intf(start, 0)
	if err != nil {
		return Packet{}, err
	}
	if len(b) < 4 {
		return Packet{}, c.broken(start, "a packet block of %d bytes", len(b))
	}
	length := c.order.Uint32(b)
	if length > maxRecord {
		return Packet{}, c.broken(start, "a packet of %d bytes", length)
	}
	n := length
	if snap := c.Interfaces[intf].SnapLen; snap != 0 {
		n = min(n, snap)
	}
	if uint64(n) > uint64(len(b)-4) {
		return Packet{}, c.broken(start, "%d bytes of a packet in a block with room for %d", n, len(b)-4)
	}
	return Packet{Interface: intf, Data: b[4 : 4+n : 4+n], Length: int(length), Offset: start, Untimed: true}, nil
}
