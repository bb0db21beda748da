package roce

import "fmt"

// ICRCState is what is known about the last four bytes of a frame.
type ICRCState uint8

// States.
const (
	// ICRCUnchecked: the bytes came from outside or were changed; the ICRC is computed
	// when it is needed.
	ICRCUnchecked ICRCState = iota
	// ICRCPending: built here and right by construction, the bytes are not filled
	// in yet, as nothing has read them.
	ICRCPending
	// ICRCValid and ICRCInvalid: computed and compared.
	ICRCValid
	ICRCInvalid
)

// Frame is a pooled frame: on Ethernet destination MAC through ICRC, without FCS; on
// native InfiniBand LRH through ICRC, without VCRC, which belongs to a link as the FCS.
// The holder of a reference may read it; only its maker, while no other holds
// one, may write it. A Frame belongs to one run and is not for concurrent use.
type Frame struct {
	B    []byte
	pool *Pool
	refs int32

	// Set by Template.New. made says that the bytes were not changed since.
	ext     uint16 // behind the BTH
	payload uint16
	made    bool
	framing Framing
	op      Opcode
	net     uint8
	pad     uint8
	class   int8

	ICRC ICRCState
	LRH  bool // native InfiniBand: the first bytes are an LRH
}

// smallFrame is a frame of the first size class in one piece: with its bytes three lines of a
// cache, of which the shortest packets use two.
type smallFrame struct {
	Frame
	bytes [144]byte
}

// Ext is the room for extended headers in a frame made by Template.New, zeroed.
func (f *Frame) Ext() []byte { return f.B[f.ext:f.payload] }

// Payload is the room for the payload in a frame made by Template.New. It holds
// whatever was there before, and the sender fills all of it.
func (f *Frame) Payload() []byte {
	return f.B[f.payload : len(f.B)-ICRCSize-int(f.pad)]
}

// BTH is the BTH of a frame made by Template.New.
func (f *Frame) BTH() BTH { return BTH(f.B[f.ext-BTHSize : f.ext]) }

// RETH is the RETH of a frame made by Template.New with an opcode that has one;
// so for the others.
func (f *Frame) RETH() RETH                 { return f.header(HasRETH, RETHSize) }
func (f *Frame) AETH() AETH                 { return f.header(HasAETH, AETHSize) }
func (f *Frame) AtomicETH() AtomicETH       { return f.header(HasAtomicETH, AtomicETHSize) }
func (f *Frame) AtomicAckETH() AtomicAckETH { return f.header(HasAtomicAckETH, AtomicAckETHSize) }
func (f *Frame) ImmDt() ImmDt               { return f.header(HasImmDt, ImmDtSize) }
func (f *Frame) IETH() IETH                 { return f.header(HasIETH, IETHSize) }
func (f *Frame) DETH() DETH                 { return f.header(HasDETH, DETHSize) }
func (f *Frame) XRCETH() XRCETH             { return f.header(HasXRCETH, XRCETHSize) }

func (f *Frame) header(h Headers, size int) []byte {
	at := int(f.ext) + f.op.Info().Offset(h)
	return f.B[at : at+size]
}

// FinishICRC fills in a pending ICRC. A tap, a real wire and a corruption call
// it; a frame that nothing reads is never charged for it.
func (f *Frame) FinishICRC() {
	if f.ICRC != ICRCPending {
		return
	}
	p, err := f.Parse()
	if err != nil {
		panic(fmt.Sprintf("roce: frame with a pending ICRC does not parse: %v", err))
	}
	PutICRC(f.B[p.end:], p.ComputeICRC())
	f.ICRC = ICRCValid
}

// ICRCOK reports whether the frame's ICRC is right (or will be, when it is filled
// in). The answer is computed at most once.
func (f *Frame) ICRCOK() bool {
	if f.ICRC == ICRCUnchecked {
		f.ICRC = ICRCInvalid
		if p, err := f.Parse(); err == nil && p.ICRCOK() {
			f.ICRC = ICRCValid
		}
	}
	return f.ICRC != ICRCInvalid
}

// Touch must be called before bytes under the ICRC are changed on the way (corruption,
// a rewriting switch): it fills in the ICRC of the bytes as they were sent, and forgets
// what is known of the frame.
func (f *Frame) Touch() {
	f.FinishICRC()
	f.ICRC, f.made = ICRCUnchecked, false
}

// AppendWhole appends the frame as captures have it: bytes of Ethernet without FCS, of
// InfiniBand with the VCRC.
func (f *Frame) AppendWhole(b []byte) []byte {
	b = append(b, f.B...)
	if f.LRH {
		v := VCRC(f.B)
		b = append(b, byte(v), byte(v>>8))
	}
	return b
}

// Parse decodes the frame's bytes, by Parse or ParseInfiniBand.
func (f *Frame) Parse() (Packet, error) {
	if f.LRH {
		return ParseInfiniBand(f.B)
	}
	return Parse(f.B)
}

// Packet is the frame decoded as by Parse. A frame of a template that is as it was
// made is known without reading its bytes.
func (f *Frame) Packet() (p Packet, err error) {
	err = f.Decode(&p)
	return p, err
}

// Decode is Packet into p.
func (f *Frame) Decode(p *Packet) (err error) {
	if !f.made || f.BTH().Opcode() != f.op {
		*p, err = f.Parse()
		return err
	}
	p.Frame, p.Framing, p.Op, p.pad, p.net, p.bth = f.B, f.framing, f.op, f.pad, uint16(f.net), f.ext-BTHSize
	p.payload, p.end = f.payload, uint16(len(f.B)-ICRCSize)
	return nil
}

// Op and PadCount are the opcode and the number of pad bytes of a frame made by
// Template.New.
func (f *Frame) Op() Opcode    { return f.op }
func (f *Frame) PadCount() int { return int(f.pad) }

// Retain adds a reference and returns f.
func (f *Frame) Retain() *Frame {
	f.refs++
	return f
}

// Refs is the number of references; a frame may be written only at 1.
func (f *Frame) Refs() int { return int(f.refs) }

// Release drops a reference; the last one returns the frame to its pool.
func (f *Frame) Release() {
	f.refs--
	if f.refs > 0 {
		return
	}
	if f.refs < 0 {
		panic("roce: frame released more often than retained")
	}
	f.pool.put(f)
}

// classSizes fit a frame of each path MTU with the longest headers (78 to the
// BTH with VLAN and IPv6, 44 extended, 4 ICRC), and a jumbo frame.
var classSizes = [...]int{144, 256 + 128, 512 + 128, 1024 + 128, 2048 + 128, 4096 + 128, 9216 + 128}

// Pool keeps released frames by size class. The zero Pool is ready. After warm-up
// Get allocates nothing for frames up to 9344 bytes; larger ones are not kept.
type Pool struct {
	free [len(classSizes)][]*Frame
	// Made counts the frames that were allocated, Live those that are not released.
	Made, Live uint64
}

// Get is a frame of n bytes with one reference and undefined contents.
func (p *Pool) Get(n int) *Frame {
	p.Live++
	c := 0
	for c < len(classSizes) && classSizes[c] < n {
		c++
	}
	if c == len(classSizes) {
		p.Made++
		return &Frame{B: make([]byte, n), class: -1, refs: 1, pool: p}
	}
	if l := len(p.free[c]); l > 0 {
		f := p.free[c][l-1]
		p.free[c] = p.free[c][:l-1]
		f.B, f.refs, f.ICRC = f.B[:n], 1, ICRCUnchecked
		f.made, f.LRH, f.ext, f.payload, f.pad = false, false, 0, 0, 0
		return f
	}
	p.Made++
	var f *Frame
	if c == 0 {
		small := new(smallFrame)
		f = &small.Frame
		f.B = small.bytes[:n]
	} else {
		f = &Frame{B: make([]byte, classSizes[c])[:n]}
	}
	f.class, f.refs, f.pool = int8(c), 1, p
	return f
}

// Copy is a frame of its own with f's bytes and state.
func (p *Pool) Copy(f *Frame) *Frame {
	g := p.Get(len(f.B))
	copy(g.B, f.B)
	g.ICRC, g.ext, g.payload, g.pad = f.ICRC, f.ext, f.payload, f.pad
	g.made, g.framing, g.op, g.net, g.LRH = f.made, f.framing, f.op, f.net, f.LRH
	return g
}

// Pool is the pool that the frame returns to.
func (f *Frame) Pool() *Pool { return f.pool }

func (p *Pool) put(f *Frame) {
	p.Live--
	if f.class < 0 {
		return
	}
	p.free[f.class] = append(p.free[f.class], f)
}
