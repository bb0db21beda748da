package roce

import (
	"fmt"
	"math/bits"
)

// Opcode is the BTH opcode: transport in bits 7:5, operation in bits 4:0.
type Opcode uint8

// Transport is a transport service: the upper three bits of an opcode, in place.
type Transport uint8

// Transports.
const (
	RC  Transport = 0x00
	UC  Transport = 0x20
	RD  Transport = 0x40
	UD  Transport = 0x60
	CNP Transport = 0x80
	XRC Transport = 0xA0
	// DC is the dynamically connected transport, for which this project takes the manufacturer's
	// range (0xC0 is reserved). How mlx5 devices put it on the wire is not public: its opcodes and
	// its header, DCETH, are an assumption, and what prints them says so.
	DC Transport = 0xE0
)

var transportNames = map[Transport]string{RC: "RC", UC: "UC", RD: "RD", UD: "UD", CNP: "CNP", XRC: "XRC", DC: "DC (assumed form)"}

// String returns the name, such as "RC".
func (t Transport) String() string {
	if n, ok := transportNames[t]; ok {
		return n
	}
	return fmt.Sprintf("Transport(0x%02x)", uint8(t))
}

// Operations, the lower five bits of an opcode (ib_pack.h, IB_OPCODE_*).
const (
	OpSendFirst          = 0x00
	OpSendMiddle         = 0x01
	OpSendLast           = 0x02
	OpSendLastImm        = 0x03
	OpSendOnly           = 0x04
	OpSendOnlyImm        = 0x05
	OpWriteFirst         = 0x06
	OpWriteMiddle        = 0x07
	OpWriteLast          = 0x08
	OpWriteLastImm       = 0x09
	OpWriteOnly          = 0x0A
	OpWriteOnlyImm       = 0x0B
	OpReadRequest        = 0x0C
	OpReadResponseFirst  = 0x0D
	OpReadResponseMiddle = 0x0E
	OpReadResponseLast   = 0x0F
	OpReadResponseOnly   = 0x10
	OpAcknowledge        = 0x11
	OpAtomicAcknowledge  = 0x12
	OpCmpSwap            = 0x13
	OpFetchAdd           = 0x14
	OpResync             = 0x15 // RD only
	OpSendLastInv        = 0x16
	OpSendOnlyInv        = 0x17
	OpDCConnect          = 0x18 // DC only
	OpDCDisconnect       = 0x19 // DC only
	OpSelectiveNAK       = 0x1B // RC and XRC, assumed; see SACKETH
	OpFlush              = 0x1C
	OpAtomicWrite        = 0x1D
)

// Opcodes of the reliable connection service. Those of UC and XRC are
// UC.Opcode(op) and XRC.Opcode(op).
const (
	RCSendFirst          = Opcode(RC) | OpSendFirst
	RCSendMiddle         = Opcode(RC) | OpSendMiddle
	RCSendLast           = Opcode(RC) | OpSendLast
	RCSendLastImm        = Opcode(RC) | OpSendLastImm
	RCSendOnly           = Opcode(RC) | OpSendOnly
	RCSendOnlyImm        = Opcode(RC) | OpSendOnlyImm
	RCWriteFirst         = Opcode(RC) | OpWriteFirst
	RCWriteMiddle        = Opcode(RC) | OpWriteMiddle
	RCWriteLast          = Opcode(RC) | OpWriteLast
	RCWriteLastImm       = Opcode(RC) | OpWriteLastImm
	RCWriteOnly          = Opcode(RC) | OpWriteOnly
	RCWriteOnlyImm       = Opcode(RC) | OpWriteOnlyImm
	RCReadRequest        = Opcode(RC) | OpReadRequest
	RCReadResponseFirst  = Opcode(RC) | OpReadResponseFirst
	RCReadResponseMiddle = Opcode(RC) | OpReadResponseMiddle
	RCReadResponseLast   = Opcode(RC) | OpReadResponseLast
	RCReadResponseOnly   = Opcode(RC) | OpReadResponseOnly
	RCAcknowledge        = Opcode(RC) | OpAcknowledge
	RCAtomicAcknowledge  = Opcode(RC) | OpAtomicAcknowledge
	RCCmpSwap            = Opcode(RC) | OpCmpSwap
	RCFetchAdd           = Opcode(RC) | OpFetchAdd
	RCSendLastInv        = Opcode(RC) | OpSendLastInv
	RCSendOnlyInv        = Opcode(RC) | OpSendOnlyInv
	RCFlush              = Opcode(RC) | OpFlush
	RCAtomicWrite        = Opcode(RC) | OpAtomicWrite
	RCSelectiveNAK       = Opcode(RC) | OpSelectiveNAK

	UDSendOnly    = Opcode(UD) | OpSendOnly
	UDSendOnlyImm = Opcode(UD) | OpSendOnlyImm

	// CNPacket is the congestion notification packet of RoCEv2.
	CNPacket = Opcode(CNP) | 0x01
)

// Opcode returns the opcode of an operation (the low 5 bits of op) of the transport.
func (t Transport) Opcode(op uint8) Opcode { return Opcode(uint8(t) | op&0x1F) }

// Transport returns the transport service to which the opcode belongs.
func (o Opcode) Transport() Transport { return Transport(o & 0xE0) }

// Operation returns the lower five bits, one of OpSendFirst and the like.
func (o Opcode) Operation() uint8 { return uint8(o & 0x1F) }

// Headers is a set of extended headers. In a packet they follow the BTH in the
// order of these bits.
type Headers uint16

// Extended headers.
const (
	HasRDETH Headers = 1 << iota
	HasDETH
	HasXRCETH
	HasDCETH
	HasFETH
	HasRETH
	HasAtomicETH
	HasAETH
	HasAtomicAckETH
	HasImmDt
	HasIETH
	HasCNPReserved
	HasSACKETH

	headerKinds = iota
)

var headerSizes = [headerKinds]uint8{
	RDETHSize, DETHSize, XRCETHSize, DCETHSize, FETHSize, RETHSize, AtomicETHSize,
	AETHSize, AtomicAckETHSize, ImmDtSize, IETHSize, CNPReservedSize, SACKETHSize,
}

// Size returns the length of the headers in the set, in bytes.
func (h Headers) Size() int {
	n := 0
	for i, s := range headerSizes {
		if h&(1<<i) != 0 {
			n += int(s)
		}
	}
	return n
}

// Has reports whether all of want are in the set.
func (h Headers) Has(want Headers) bool { return h&want == want }

// PayloadRule says how much payload packets of an opcode carry; M is the path MTU in bytes.
type PayloadRule uint8

// Payload rules.
const (
	PayloadNone    PayloadRule = iota // 0
	PayloadFull                       // exactly M
	PayloadSome                       // 1..M
	PayloadAny                        // 0..M
	PayloadAtomic8                    // exactly 8
)

// Allows reports whether n bytes of payload obey the rule at a path MTU of m bytes.
func (r PayloadRule) Allows(n, m int) bool {
	switch r {
	case PayloadFull:
		return n == m
	case PayloadSome:
		return 1 <= n && n <= m
	case PayloadAny:
		return 0 <= n && n <= m
	case PayloadAtomic8:
		return n == 8
	}
	return n == 0
}

// Kind says which side handles a packet.
type Kind uint8

// Kinds.
const (
	KindReserved     Kind = iota // undefined opcode
	KindRequest                  // handled by the responder
	KindResponse                 // handled by the requester
	KindNotification             // CNP
)

// Class is the operation to which a packet belongs.
type Class uint8

// Classes.
const (
	ClassReserved Class = iota
	ClassSend
	ClassWrite
	ClassReadRequest
	ClassReadResponse
	ClassAck
	ClassAtomicAck
	ClassAtomic // CmpSwap, FetchAdd
	ClassFlush
	ClassAtomicWrite
	ClassResync
	ClassCNP
	ClassDCConnect
	ClassDCDisconnect
	ClassSelectiveNAK
)

// OpInfo is what an opcode says about its packets. It is read-only.
type OpInfo struct {
	Name      string // such as "RC SEND Only with Immediate"
	Headers   Headers
	HeaderLen uint8 // of Headers; the BTH is not counted
	Payload   PayloadRule
	Kind      Kind
	Class     Class
	First     bool // starts a message: First, Only, and all one-packet requests
	Last      bool // ends a message; for a request the responder's MSN rises by one
	// TakesReceive: the packet needs a receive WQE; Completes: it completes one.
	TakesReceive bool
	Completes    bool

	offset [headerKinds]uint16 // noHeader: it has none
}

// Valid reports whether the opcode is defined for its transport.
func (i *OpInfo) Valid() bool { return i.Kind != KindReserved }

// Offset returns where header h (one bit) starts, in bytes from the end of the BTH. It is beyond
// every frame if the opcode has no such header.
func (i *OpInfo) Offset(h Headers) int { return int(i.offset[bits.TrailingZeros16(uint16(h))]) }

// noHeader is the offset of a header that an opcode lacks.
const noHeader = 1<<16 - 1

// opBase is a row of the table for RC; the other transports derive from it.
type opBase struct {
	name    string
	headers Headers
	payload PayloadRule
	class   Class
	flags   string // Q request, P response; F first, L last; R takes, C completes a receive
	where   string // transports: r RC, u UC, d RD, x XRC, c DC
}

var opBases = [32]opBase{
	OpSendFirst:          {"SEND First", 0, PayloadFull, ClassSend, "QFR", "rudxc"},
	OpSendMiddle:         {"SEND Middle", 0, PayloadFull, ClassSend, "Q", "rudxc"},
	OpSendLast:           {"SEND Last", 0, PayloadSome, ClassSend, "QLC", "rudxc"},
	OpSendLastImm:        {"SEND Last with Immediate", HasImmDt, PayloadSome, ClassSend, "QLC", "rudxc"},
	OpSendOnly:           {"SEND Only", 0, PayloadAny, ClassSend, "QFLRC", "rudxc"},
	OpSendOnlyImm:        {"SEND Only with Immediate", HasImmDt, PayloadAny, ClassSend, "QFLRC", "rudxc"},
	OpWriteFirst:         {"RDMA WRITE First", HasRETH, PayloadFull, ClassWrite, "QF", "rudxc"},
	OpWriteMiddle:        {"RDMA WRITE Middle", 0, PayloadFull, ClassWrite, "Q", "rudxc"},
	OpWriteLast:          {"RDMA WRITE Last", 0, PayloadSome, ClassWrite, "QL", "rudxc"},
	OpWriteLastImm:       {"RDMA WRITE Last with Immediate", HasImmDt, PayloadSome, ClassWrite, "QLRC", "rudxc"},
	OpWriteOnly:          {"RDMA WRITE Only", HasRETH, PayloadAny, ClassWrite, "QFL", "rudxc"},
	OpWriteOnlyImm:       {"RDMA WRITE Only with Immediate", HasRETH | HasImmDt, PayloadAny, ClassWrite, "QFLRC", "rudxc"},
	OpReadRequest:        {"RDMA READ Request", HasRETH, PayloadNone, ClassReadRequest, "QFL", "rdxc"},
	OpReadResponseFirst:  {"RDMA READ Response First", HasAETH, PayloadFull, ClassReadResponse, "PF", "rdxc"},
	OpReadResponseMiddle: {"RDMA READ Response Middle", 0, PayloadFull, ClassReadResponse, "P", "rdxc"},
	OpReadResponseLast:   {"RDMA READ Response Last", HasAETH, PayloadSome, ClassReadResponse, "PL", "rdxc"},
	OpReadResponseOnly:   {"RDMA READ Response Only", HasAETH, PayloadAny, ClassReadResponse, "PFL", "rdxc"},
	OpAcknowledge:        {"Acknowledge", HasAETH, PayloadNone, ClassAck, "PFL", "rdxc"},
	OpAtomicAcknowledge:  {"ATOMIC Acknowledge", HasAETH | HasAtomicAckETH, PayloadNone, ClassAtomicAck, "PFL", "rdxc"},
	OpCmpSwap:            {"CmpSwap", HasAtomicETH, PayloadNone, ClassAtomic, "QFL", "rdxc"},
	OpFetchAdd:           {"FetchAdd", HasAtomicETH, PayloadNone, ClassAtomic, "QFL", "rdxc"},
	OpResync:             {"RESYNC", 0, PayloadNone, ClassResync, "QFL", "d"},
	OpSendLastInv:        {"SEND Last with Invalidate", HasIETH, PayloadSome, ClassSend, "QLC", "rxc"},
	OpSendOnlyInv:        {"SEND Only with Invalidate", HasIETH, PayloadAny, ClassSend, "QFLRC", "rxc"},
	OpDCConnect:          {"Connect", 0, PayloadNone, ClassDCConnect, "QFL", "c"},
	OpDCDisconnect:       {"Disconnect", 0, PayloadNone, ClassDCDisconnect, "QFL", "c"},
	OpSelectiveNAK:       {"NAK with SACK (assumed form)", HasAETH | HasSACKETH, PayloadNone, ClassSelectiveNAK, "PFL", "rx"},
	OpFlush:              {"FLUSH", HasFETH | HasRETH, PayloadNone, ClassFlush, "QFL", "rdx"},
	OpAtomicWrite:        {"ATOMIC WRITE", HasRETH, PayloadAtomic8, ClassAtomicWrite, "QFL", "rx"},
}

// opTable is filled once and never changes.
var opTable = *makeOpTable()

func makeOpTable() *[256]OpInfo {
	t := new([256]OpInfo)
	for i := range t {
		t[i].Name = fmt.Sprintf("reserved opcode 0x%02x", i)
	}
	for op, b := range opBases {
		for _, w := range b.where {
			switch w {
			case 'r':
				t[RC.Opcode(uint8(op))] = b.info("RC", 0)
			case 'u':
				t[UC.Opcode(uint8(op))] = b.info("UC", 0)
			case 'd':
				extra := HasRDETH
				if b.flags[0] == 'Q' {
					extra |= HasDETH
				}
				t[RD.Opcode(uint8(op))] = b.info("RD", extra)
			case 'x':
				extra := Headers(0)
				if b.flags[0] == 'Q' {
					extra = HasXRCETH
				}
				t[XRC.Opcode(uint8(op))] = b.info("XRC", extra)
			case 'c':
				extra := Headers(0)
				if b.flags[0] == 'Q' {
					extra = HasDCETH
				}
				t[DC.Opcode(uint8(op))] = b.info(DC.String(), extra)
			}
		}
	}
	t[UDSendOnly] = opBases[OpSendOnly].info("UD", HasDETH)
	t[UDSendOnlyImm] = opBases[OpSendOnlyImm].info("UD", HasDETH)
	cnp := OpInfo{Name: "CNP", Headers: HasCNPReserved, Kind: KindNotification, Class: ClassCNP, First: true, Last: true}
	cnp.place()
	t[CNPacket] = cnp
	return t
}

func (b *opBase) info(transport string, extra Headers) OpInfo {
	i := OpInfo{Name: transport + " " + b.name, Headers: b.headers | extra, Payload: b.payload, Class: b.class}
	for _, f := range b.flags {
		switch f {
		case 'Q':
			i.Kind = KindRequest
		case 'P':
			i.Kind = KindResponse
		case 'F':
			i.First = true
		case 'L':
			i.Last = true
		case 'R':
			i.TakesReceive = true
		case 'C':
			i.Completes = true
		}
	}
	i.place()
	return i
}

func (i *OpInfo) place() {
	n := uint8(0)
	for k, s := range headerSizes {
		i.offset[k] = noHeader
		if i.Headers&(1<<k) != 0 {
			i.offset[k] = uint16(n)
			n += s
		}
	}
	i.HeaderLen = n
}

// Info returns the opcode's row of the table; it must not be changed.
func (o Opcode) Info() *OpInfo { return &opTable[o] }

// Valid reports whether the opcode is defined.
func (o Opcode) Valid() bool { return opTable[o].Kind != KindReserved }

// String returns transport and operation, such as "RC SEND Only".
func (o Opcode) String() string { return opTable[o].Name }
