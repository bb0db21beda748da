package roce

import "fmt"

// ICRCState is what is known about the ICRC of a frame.
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

// Frame is a pooled frame: on Ethernet from the destination MAC through the ICRC, without FCS; on
// native InfiniBand from the LRH through the ICRC, without the VCRC, which belongs to a link like
// the FCS. Whoever holds a reference may read it. Only its maker may write it, and only while
// nobody else holds a reference. A Frame belongs to one run and is not for concurrent use.
type Frame struct {
	// Packet is the frame decoded. Template.New fills it in; for bytes from elsewhere only
	// B is set until Decode.
	Packet

	pool    *Pool
	refs    int32
	decoded bool // Packet is that of the bytes as they are
	class   int8

	ICRC ICRCState
	LRH  bool // native InfiniBand: the first bytes are an LRH
}

// smallFrame is a frame of the first size class in one piece: with its bytes three lines of a
// cache, of which the shortest packets use two.
type smallFrame struct {
	Frame
	bytes [classSmall]byte
}

// FinishICRC fills in a pending ICRC. A tap, a real wire and a corruption call it, so that frames
// which nothing reads cost no CRC. It panics if the maker of the frame has left bytes that do not
// parse.
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

// ICRCOK reports whether the frame's ICRC is right; a pending ICRC counts as right. The CRC is
// computed at most once.
func (f *Frame) ICRCOK() bool {
	if f.ICRC == ICRCUnchecked {
		f.checkICRC()
	}
	return f.ICRC != ICRCInvalid
}

//go:noinline
func (f *Frame) checkICRC() {
	f.ICRC = ICRCInvalid
	if p, err := f.Parse(); err == nil && p.ICRCOK() {
		f.ICRC = ICRCValid
	}
}

// Touch must be called before bytes under the ICRC are changed on the way (corruption, a rewriting
// switch). It fills in the ICRC of the bytes as they were sent, and drops what was decoded and
// checked.
func (f *Frame) Touch() {
	f.FinishICRC()
	f.ICRC, f.decoded = ICRCUnchecked, false
}

// AppendWhole appends the frame to b as captures hold it: Ethernet without FCS, InfiniBand with the
// VCRC. A pending ICRC must be filled in first (FinishICRC).
func (f *Frame) AppendWhole(b []byte) []byte {
	b = append(b, f.B...)
	if f.LRH {
		v := VCRC(f.B)
		b = append(b, byte(v), byte(v>>8))
	}
	return b
}

// Parse decodes the frame's bytes with ParseInfiniBand if it has an LRH, else with Parse, whose
// errors it returns.
func (f *Frame) Parse() (Packet, error) {
	if f.LRH {
		return ParseInfiniBand(f.B)
	}
	return Parse(f.B)
}

// Decode returns the frame's packet, which is valid as long as the reference. It parses the bytes
// only if Packet does not describe them yet; its errors are those of Parse.
func (f *Frame) Decode() (*Packet, error) {
	if f.Decoded() {
		return &f.Packet, nil
	}
	return f.decode()
}

// Decoded reports whether Packet describes the bytes as they are.
func (f *Frame) Decoded() bool { return f.decoded && Opcode(f.B[f.bth]) == f.Op }

func (f *Frame) decode() (*Packet, error) {
	p, err := f.Parse()
	if err != nil {
		return nil, err
	}
	f.Packet, f.decoded = p, true
	return &f.Packet, nil
}

// Retain adds a reference and returns f.
func (f *Frame) Retain() *Frame {
	f.refs++
	return f
}

// Refs returns the number of references; a frame may be written only while it is 1.
func (f *Frame) Refs() int { return int(f.refs) }

// Release drops a reference; the last one returns the frame to its pool. It panics if there was
// none.
func (f *Frame) Release() {
	if f.refs--; f.refs <= 0 {
		f.recycle()
	}
}

// recycle returns a frame to its pool.
func (f *Frame) recycle() {
	if f.refs < 0 {
		panic("roce: frame released more often than retained")
	}
	f.pool.Live--
	if f.class >= 0 {
		free := &f.pool.free[f.class]
		*free = append(*free, f)
	}
}

// classSmall makes a smallFrame three lines of a cache.
const classSmall = 136

// classSizes fit a frame of each path MTU with the longest headers (78 to the
// BTH with VLAN and IPv6, 44 extended, 4 ICRC), and a jumbo frame.
var classSizes = [...]int{classSmall, 256 + 128, 512 + 128, 1024 + 128, 2048 + 128, 4096 + 128, 9216 + 128}

// Pool keeps released frames by size class. The zero Pool is ready. After warm-up
// Get allocates nothing for frames up to 9344 bytes; larger ones are not kept.
type Pool struct {
	free [len(classSizes)][]*Frame
	// Made counts the frames that were allocated, Live those that are not released.
	Made, Live uint64
}

// Get returns a frame of n bytes with one reference and undefined contents.
func (p *Pool) Get(n int) *Frame {
	f := p.take(n)
	f.ICRC, f.decoded, f.LRH = ICRCUnchecked, false, false
	return f
}

// take is Get of a frame whose state is undefined too.
func (p *Pool) take(n int) *Frame {
	p.Live++
	c := 0
	for c < len(classSizes) && classSizes[c] < n {
		c++
	}
	if c < len(classSizes) {
		if l := len(p.free[c]) - 1; l >= 0 {
			f := p.free[c][l]
			p.free[c] = p.free[c][:l]
			f.B, f.refs = f.B[:n], 1
			return f
		}
	}
	return p.make(c, n)
}

// make makes a frame of a class, or one that is too large for all.
//
//go:noinline
func (p *Pool) make(c, n int) *Frame {
	p.Made++
	if c == len(classSizes) {
		return &Frame{Packet: Packet{B: make([]byte, n)}, class: -1, refs: 1, pool: p}
	}
	var f *Frame
	if c == 0 {
		small := new(smallFrame)
		f = &small.Frame
		f.B = small.bytes[:n]
	} else {
		f = &Frame{Packet: Packet{B: make([]byte, classSizes[c])[:n]}}
	}
	f.class, f.refs, f.pool = int8(c), 1, p
	return f
}

// GetPlain returns a frame as Get does, for an Ethernet frame that is not RDMA: its opcode is a
// reserved one.
func (p *Pool) GetPlain(n int) *Frame {
	f := p.Get(n)
	f.Packet = Packet{B: f.B, Op: noOpcode}
	return f
}

// noOpcode is reserved, and so of no kind.
const noOpcode = 0xC0

// Copy returns a new frame with f's bytes and state, and one reference.
func (p *Pool) Copy(f *Frame) *Frame {
	g := p.Get(len(f.B))
	b := g.B
	copy(b, f.B)
	g.Packet, g.ICRC, g.decoded, g.LRH = f.Packet, f.ICRC, f.decoded, f.LRH
	g.B = b
	return g
}

// Pool returns the pool to which the frame goes back.
func (f *Frame) Pool() *Pool { return f.pool }
