package prm

import "errors"

// What can be wrong with the form of a send WQE. A device answers each with a local
// QP operation error.
var (
	ErrWQETruncated = errors.New("send WQE: fewer bytes than its DS count says")
	ErrWQEOpcode    = errors.New("send WQE: opcode not known on this transport")
	ErrWQELength    = errors.New("send WQE: DS count leaves no room for the segments of its opcode")
	ErrWQEInline    = errors.New("send WQE: inline data overruns the WQE, or is not allowed here")
)

// SendWQE is a parsed send WQE. Its views lie in the bytes it was parsed from; those
// that the opcode does not have are nil.
type SendWQE struct {
	SendSegments
	rare bool // more of them are not nil than Ctrl and Raddr

	// Bytes is the sum of the data segments' lengths.
	Bytes uint64
	// Memory: some data segment names a range of memory.
	Memory bool
	// Segments is how many data segments there are, inline ones included.
	Segments int

	data  []byte
	first SGE // where there is one
	next  int // behind it
	other SGE // what Data gave out last
}

// SendSegments are the segments of a send WQE but its data.
type SendSegments struct {
	Ctrl   CtrlSegment
	XRC    XRCSegment
	AV     AVSegment
	Raddr  RaddrSegment
	Atomic AtomicSegment
	UMR    UMRCtrlSegment
	MKC    MKC    // context segment of a UMR
	Inline []byte // entries of a UMR, nil when they come by a data segment
	MMO    MMOSegment
}

// SGE is one data segment: bytes in the WQE, or a range of memory.
type SGE struct {
	Inline []byte // nil for a range of memory
	Addr   uint64
	LKey   uint32
	Len    uint32 // of either kind
}

type segKind uint8

const (
	opUnknown segKind = iota
	opPlain           // data
	opNone            // nothing
	opWrite           // raddr, data
	opRead            // raddr, data that is not inline
	opAtomic          // raddr, atomic, data that is not inline
	opUMR             // UMR control, mkey context, entries
	opMMO             // MMO control, data that is not inline
)

var wqeKinds = [256]segKind{
	WQEOpNOP: opNone, WQEOpSend: opPlain, WQEOpSendImm: opPlain, WQEOpSendInv: opPlain,
	WQEOpRDMAWrite: opWrite, WQEOpRDMAWriteImm: opWrite, WQEOpRDMARead: opRead,
	WQEOpAtomicCS: opAtomic, WQEOpAtomicFA: opAtomic, WQEOpUMR: opUMR,
	WQEOpAtomicWrite: opWrite, WQEOpMMO: opMMO,
}

// ParseSendWQE lays w over the send WQE at the beginning of b for a QP of service
// type st (STRC and so on). The whole WQE must be in b, unwrapped. It allocates
// nothing, checks the DS count, the opcode and the order and room of its segments,
// and walks the data segments once, so that iteration cannot fail afterwards.
// Addresses, keys and indexes are not checked.
func ParseSendWQE(b []byte, st uint32, w *SendWQE) error {
	w.Bytes, w.Memory, w.Segments = 0, false, 0
	if st == STRC && !w.rare && len(b) >= CtrlSegmentSize+RaddrSegmentSize { // most are
		w.Ctrl = CtrlSegment(b[:CtrlSegmentSize:CtrlSegmentSize])
		n := uint(w.Ctrl.DS()) * DSSize
		if wqeKinds[w.Ctrl.Opcode()] == opWrite && n >= CtrlSegmentSize+RaddrSegmentSize && n <= uint(len(b)) {
			w.Raddr = RaddrSegment(b[CtrlSegmentSize : CtrlSegmentSize+RaddrSegmentSize : CtrlSegmentSize+RaddrSegmentSize])
			w.data = b[CtrlSegmentSize+RaddrSegmentSize : n]
			return w.checkData(true)
		}
	}
	return w.parseElse(b, st)
}

// parseElse is ParseSendWQE of what is no plain WRITE of a reliable connection.
//
//go:noinline
func (w *SendWQE) parseElse(b []byte, st uint32) error {
	if w.rare {
		w.clearRare()
	}
	w.Ctrl, w.Raddr, w.data = nil, nil, nil
	if len(b) < CtrlSegmentSize {
		return ErrWQETruncated
	}
	w.Ctrl = CtrlSegment(b[:CtrlSegmentSize:CtrlSegmentSize])
	ds := w.Ctrl.DS()
	if ds < 1 {
		return ErrWQELength
	}
	if len(b) < ds*DSSize {
		return ErrWQETruncated
	}
	kind := wqeKinds[w.Ctrl.Opcode()]
	return w.parseSegments(b[CtrlSegmentSize:ds*DSSize], kind, st)
}

// parseSegments is the rest of ParseSendWQE behind the control segment.
func (w *SendWQE) parseSegments(rest []byte, kind segKind, st uint32) error {
	switch kind {
	case opUnknown:
		return ErrWQEOpcode
	case opNone: // a NOP may be padded with anything
		return nil
	case opUMR:
		return w.parseUMR(rest)
	case opMMO:
		return w.parseMMO(rest)
	}
	rest, err := w.parseTransport(rest, kind, st)
	if err != nil {
		return err
	}
	if kind == opWrite || kind == opRead || kind == opAtomic {
		if len(rest) < RaddrSegmentSize {
			return ErrWQELength
		}
		w.Raddr, rest = RaddrSegment(rest[:RaddrSegmentSize:RaddrSegmentSize]), rest[RaddrSegmentSize:]
	}
	if kind == opAtomic {
		w.rare = true
		if len(rest) < AtomicSegmentSize {
			return ErrWQELength
		}
		w.Atomic, rest = AtomicSegment(rest[:AtomicSegmentSize:AtomicSegmentSize]), rest[AtomicSegmentSize:]
	}
	w.data = rest
	return w.checkData(kind == opPlain || kind == opWrite)
}

//go:noinline
func (w *SendWQE) clearRare() { w.SendSegments, w.rare = SendSegments{}, false }

// parseTransport takes the segment that the service type puts behind the control
// segment and refuses opcodes the transport does not carry.
func (w *SendWQE) parseTransport(rest []byte, kind segKind, st uint32) ([]byte, error) {
	switch st {
	case STRC:
	case STUC:
		if kind == opRead || kind == opAtomic || w.Ctrl.Opcode() == WQEOpSendInv || w.Ctrl.Opcode() == WQEOpAtomicWrite {
			return nil, ErrWQEOpcode
		}
	case STXRC:
		w.rare = true
		if len(rest) < XRCSegmentSize {
			return nil, ErrWQELength
		}
		w.XRC, rest = XRCSegment(rest[:XRCSegmentSize:XRCSegmentSize]), rest[XRCSegmentSize:]
	case STUD, STQP1:
		w.rare = true
		if op := w.Ctrl.Opcode(); op != WQEOpSend && op != WQEOpSendImm {
			return nil, ErrWQEOpcode
		}
		return w.takeAV(rest)
	case STDCI:
		w.rare = true
		return w.takeAV(rest)
	default:
		return nil, ErrWQEOpcode
	}
	return rest, nil
}

// takeAV takes the address vector: all of it, or only its beginning.
func (w *SendWQE) takeAV(rest []byte) ([]byte, error) {
	if len(rest) < AVBaseSegmentSize {
		return nil, ErrWQELength
	}
	n := AVBaseSegmentSize
	if AVSegment(rest).Extended() {
		n = AVSegmentSize
	}
	if len(rest) < n {
		return nil, ErrWQELength
	}
	w.AV = AVSegment(rest[:n:n])
	return rest[n:], nil
}

func (w *SendWQE) parseUMR(rest []byte) error {
	w.rare = true
	if len(rest) < UMRCtrlSegmentSize+MKCSize {
		return ErrWQELength
	}
	w.UMR, rest = UMRCtrlSegment(rest[:UMRCtrlSegmentSize:UMRCtrlSegmentSize]), rest[UMRCtrlSegmentSize:]
	w.MKC, rest = MKC(rest[:MKCSize:MKCSize]), rest[MKCSize:]
	units := int(w.UMR.XLTOctowords())
	if w.UMR.Flags()&UMRInline != 0 {
		if units*DSSize > len(rest) {
			return ErrWQELength
		}
		w.Inline = rest[:units*DSSize]
		return nil
	}
	w.data = rest
	return w.checkData(false)
}

func (w *SendWQE) parseMMO(rest []byte) error {
	w.rare = true
	if len(rest) < MMOSegmentSize {
		return ErrWQELength
	}
	w.MMO, w.data = MMOSegment(rest[:MMOSegmentSize:MMOSegmentSize]), rest[MMOSegmentSize:]
	return w.checkData(false)
}

// checkData walks the data segments, counts them, adds up their lengths and reads the first.
func (w *SendWQE) checkData(inline bool) error {
	if p := w.data; inline && len(p) > InlineHeaderSize { // inline data alone, as most
		if n := be32(p, 0); n&InlineFlag != 0 {
			if k := uint(n &^ InlineFlag); k <= uint(len(p)-InlineHeaderSize) && InlineSize(int(k)) == len(p) {
				w.Bytes, w.Segments, w.next = uint64(k), 1, len(p)
				w.first = SGE{Inline: p[InlineHeaderSize : InlineHeaderSize+k : InlineHeaderSize+k], Len: uint32(k)}
				return nil
			}
		}
	}
	return w.checkList(inline)
}

//go:noinline
func (w *SendWQE) checkList(inline bool) error {
	for p := w.data; len(p) > 0; w.Segments++ {
		n, size := be32(p, 0), DataSegmentSize
		if n&InlineFlag == 0 {
			w.Bytes += uint64(byteCount(n))
			w.Memory = true
		} else {
			k := int(n &^ InlineFlag)
			if !inline || k > len(p)-InlineHeaderSize {
				return ErrWQEInline
			}
			w.Bytes += uint64(k)
			size = InlineSize(k)
		}
		if w.Segments == 0 {
			w.first.read(p, n)
			w.next = size
		}
		p = p[size:]
	}
	return nil
}

// byteCount is the length that a data segment's byte count means: 0 is 2 GiB, as
// the kernel's fault parser reads it (mlx5_ib odp.c, pagefault_data_segments).
func byteCount(n uint32) uint32 {
	if n == 0 {
		return 1 << 31
	}
	return n
}

// Data iterates over the data segments: give it 0 first and then what it returned,
// until ok is false. s is good until the next call.
func (w *SendWQE) Data(at int) (s *SGE, next int, ok bool) {
	if at == 0 {
		return &w.first, w.next, w.Segments > 0
	}
	return w.further(at)
}

// OnlyInline is the inline data of a WQE that has no other; nil: it has none, or has others too.
func (w *SendWQE) OnlyInline() []byte {
	if w.Segments != 1 {
		return nil
	}
	return w.first.Inline
}

// further is Data behind the first segment.
func (w *SendWQE) further(at int) (s *SGE, next int, ok bool) {
	s = &w.other
	if len(w.data)-at < DataSegmentSize {
		return s, at, false
	}
	p := w.data[at:]
	n := be32(p, 0)
	s.read(p, n)
	if s.Inline != nil {
		return s, at + InlineSize(int(s.Len)), true
	}
	return s, at + DataSegmentSize, true
}

// read fills in s from the data segment that begins at p, where n stands.
func (s *SGE) read(p []byte, n uint32) {
	if n&InlineFlag == 0 {
		*s = SGE{Addr: be64(p, 8), LKey: be32(p, 4), Len: byteCount(n)}
		return
	}
	k := int(n &^ InlineFlag)
	*s = SGE{Inline: p[InlineHeaderSize : InlineHeaderSize+k : InlineHeaderSize+k], Len: uint32(k)}
}

// RecvSGE reads the scatter entry at byte at of a receive WQE of whose length b is,
// and reports false at its end: the ring's stride or the terminator that software
// writes behind a short list. Inline data does not exist here: the top bit of the
// count is ignored.
func RecvSGE(b []byte, at int) (s SGE, next int, ok bool) {
	if len(b)-at < DataSegmentSize {
		return s, at, false
	}
	d := DataSegment(b[at:])
	n := d.ByteCount() &^ InlineFlag
	if n == 0 && d.LKey() == InvalidLKey {
		return s, at, false
	}
	return SGE{Addr: d.Addr(), LKey: d.LKey(), Len: byteCount(n)}, at + DataSegmentSize, true
}
