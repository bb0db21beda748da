package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// flight is a packet on its way through flow tables, of which it has a reference to the frame. It
// changes a copy.
type flight struct {
	f     *roce.Frame
	h     ether.Headers
	key   flowKey
	keyed bool // key is of the frame as it is
	tag   uint32
	regs  [headerRegs]uint64
}

// headers is what tables with masks look at.
func (p *flight) headers() *flowKey {
	if !p.keyed {
		p.key, p.keyed = keyOf(&p.h, p.f.B), true
	}
	return &p.key
}

// fork is the packet for another way, with a reference of its own.
func (p *flight) fork() flight {
	q := *p
	q.f.Retain()
	return q
}

// own has the frame be no other's.
func (p *flight) own() {
	if p.f.Refs() > 1 {
		g := p.f.Pool().GetPlain(len(p.f.B))
		copy(g.B, p.f.B)
		p.replace(g)
	}
}

// replace takes another frame, and looks at its headers again.
func (p *flight) replace(f *roce.Frame) {
	p.f.Release()
	p.f = f
	p.changed()
}

func (p *flight) changed() { p.h, p.keyed = ether.Parse(p.f.B), false }

// maxFlight is how long a packet may become.
const maxFlight = 1 << 14

// pushTag puts a VLAN tag in front of others: EtherType and TCI. It reports false for a packet that
// becomes too long.
func (p *flight) pushTag(tag uint32) bool {
	if len(p.f.B)+roce.VLANSize > maxFlight {
		return false
	}
	g := p.f.Pool().GetPlain(len(p.f.B) + roce.VLANSize)
	ether.PutTag(g.B, p.f.B, tag)
	p.replace(g)
	return true
}

// popTag takes the first VLAN tag away, if there is one.
func (p *flight) popTag() {
	if p.h.Tagged || p.h.STagged {
		g := p.f.Pool().GetPlain(len(p.f.B) - roce.VLANSize)
		ether.TakeTag(g.B, p.f.B)
		p.replace(g)
	}
}

// encapsulate puts the headers of a tunnel in front. It reports false for a packet that becomes too
// long.
func (p *flight) encapsulate(headers []byte) bool {
	if len(headers)+len(p.f.B) > maxFlight {
		return false
	}
	g := p.f.Pool().GetPlain(len(headers) + len(p.f.B))
	ether.Encapsulate(g.B, headers, p.f.B)
	p.replace(g)
	return true
}

// decapsulate leaves what is in a tunnel. It reports false for a packet that is in none.
func (p *flight) decapsulate() bool {
	at, _, ok := p.h.Tunnel(p.f.B)
	if ok {
		g := p.f.Pool().GetPlain(p.h.End - at)
		copy(g.B, p.f.B[at:])
		p.replace(g)
	}
	return ok
}

// headerField is a field of headers as entries change it (dr_ste_v0_action_mdfy_fld of rdma-core):
// one of ether.Field, or a register of the packet's own.
type headerField uint8

const (
	fieldReg0     headerField = 0x0c
	fieldReg3     headerField = 0x0f
	fieldMetadata headerField = 0x16
	headerRegs                = 5
)

// register is the place of a register among those of the packet, or -1.
func (x headerField) register() int {
	switch {
	case x >= fieldReg0 && x <= fieldReg3:
		return int(x - fieldReg0)
	case x == fieldMetadata:
		return headerRegs - 1
	}
	return -1
}

// load reads a field; false: the packet has no such header.
func (p *flight) load(x headerField) (v uint64, ok bool) {
	if r := x.register(); r >= 0 {
		return p.regs[r], true
	}
	return p.h.Load(p.f.B, ether.Field(x))
}

// store writes a field that load has read, of a frame that is the packet's own.
func (p *flight) store(x headerField, v uint64) {
	if r := x.register(); r >= 0 {
		p.regs[r] = v
		return
	}
	p.h.Store(p.f.B, ether.Field(x), v)
	p.h = ether.Parse(p.f.B)
}

// headerChange changes bits of a field: to a value, by a value, or to those of another field.
type headerChange struct {
	op           changeOp
	field, from  headerField
	shift, lift  uint8 // of the bits in the field, and in that of a copy
	bits         uint8 // how many, 64 at most
	data         uint32
	onlyV, proto uint8 // of IP, and behind it; 0: any
}

type changeOp uint8

const (
	changeSet changeOp = iota
	changeAdd
	changeCopy
)

// apply makes header changes. Checksums that were right stay so. What a packet has no header for
// changes nothing.
func (p *flight) apply(list []headerChange) {
	p.own()
	net, transport := p.h.NetworkOK(p.f.B), p.h.TransportOK(p.f.B)
	transport = transport && !(p.h.Transport > 0 && p.h.Proto == roce.ProtoUDP && roce.UDP(p.f.B[p.h.Transport:]).Checksum() == 0)
	for i := range list {
		p.change(&list[i])
	}
	p.changed()
	if net {
		p.h.FillNetwork(p.f.B)
	}
	if transport {
		p.h.FillTransport(p.f.B)
	}
}

func (p *flight) change(c *headerChange) {
	if c.onlyV != 0 && p.h.Version != c.onlyV || c.proto != 0 && (p.h.Transport == 0 || p.h.Proto != c.proto) {
		return
	}
	old, ok := p.load(c.field)
	if !ok || c.shift > 63 {
		return
	}
	v := uint64(c.data)
	if c.op == changeCopy {
		if v, ok = p.load(c.from); !ok || c.lift > 63 {
			return
		}
		v >>= c.lift
	}
	if c.op == changeAdd {
		v += old >> c.shift
	}
	mask := (^uint64(0) >> (64 - min(c.bits, 64))) << c.shift
	p.store(c.field, old&^mask|v<<c.shift&mask)
}
