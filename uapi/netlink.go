package uapi

import (
	"iter"
	"slices"
)

// Netlink messages (linux/netlink.h) of the family NETLINK_RDMA (rdma/rdma_netlink.h). A message is
// a header and attributes; both are padded to 4 bytes.
const (
	NetlinkHeaderSize = 16
	netlinkAttrSize   = 4
	netlinkAlign      = 4

	netlinkErrorType = 2 // NLMSG_ERROR
	netlinkDoneType  = 3 // NLMSG_DONE
	// NetlinkMinType is the first type that is not one of control (NLMSG_MIN_TYPE).
	NetlinkMinType = 0x10

	// Flags of a message (NLM_F_*).
	NetlinkRequest = 0x1
	NetlinkMulti   = 0x2
	NetlinkAck     = 0x4
	NetlinkDump    = 0x300

	// NetlinkNested is added to the number of an attribute that holds others where the kernel does
	// so (NLA_F_NESTED).
	NetlinkNested   = 0x8000
	netlinkTypeMask = 0x1fff // of an attribute, without the flags and RDMA_NLA_F_MANDATORY
)

// NetlinkHeader is struct nlmsghdr.
type NetlinkHeader struct {
	Len         uint32
	Type, Flags uint16
	Seq, PID    uint32
}

// NetlinkType is RDMA_NL_GET_TYPE of a command of the family's device interface.
func NetlinkType(cmd int) uint16 { return netlinkClient<<10 | uint16(cmd) }

// NetlinkCommand takes a type apart. ok is false for another client of the family than the device
// interface.
func NetlinkCommand(typ uint16) (cmd int, ok bool) {
	return int(typ & 0x3ff), typ>>10&0x3f == netlinkClient
}

// NetlinkMessages goes through the messages of a datagram, with what follows the header of each.
// Like netlink_rcv_skb it ends at a length that cannot be.
func NetlinkMessages(b []byte) iter.Seq2[NetlinkHeader, []byte] {
	return func(yield func(NetlinkHeader, []byte) bool) {
		for len(b) >= NetlinkHeaderSize {
			h := NetlinkHeader{Len: le.Uint32(b), Type: le.Uint16(b[4:]), Flags: le.Uint16(b[6:]), Seq: le.Uint32(b[8:]), PID: le.Uint32(b[12:])}
			if h.Len < NetlinkHeaderSize || uint64(h.Len) > uint64(len(b)) {
				return
			}
			if !yield(h, b[NetlinkHeaderSize:h.Len]) {
				return
			}
			b = b[min(len(b), align4(int(h.Len))):]
		}
	}
}

func align4(n int) int { return (n + netlinkAlign - 1) &^ (netlinkAlign - 1) }

// NetlinkAttrs are the attributes of a message, or of one that holds others, by number; of several
// with one number the last.
type NetlinkAttrs map[uint16][]byte

// ParseNetlinkAttrs takes attributes apart. ok is false where one does not fit.
func ParseNetlinkAttrs(b []byte) (a NetlinkAttrs, ok bool) {
	a = NetlinkAttrs{}
	for len(b) >= netlinkAttrSize {
		n := int(le.Uint16(b))
		if n < netlinkAttrSize || n > len(b) {
			return a, false
		}
		a[le.Uint16(b[2:])&netlinkTypeMask] = b[netlinkAttrSize:n]
		b = b[min(len(b), align4(n)):]
	}
	return a, true
}

// U32 is a number. ok is false without one, or with too few bytes.
func (a NetlinkAttrs) U32(attr uint16) (v uint32, ok bool) {
	if len(a[attr]) < 4 {
		return 0, false
	}
	return le.Uint32(a[attr]), true
}

// String is a text, up to its NUL. ok is false without one.
func (a NetlinkAttrs) String(attr uint16) (s string, ok bool) {
	b, ok := a[attr]
	if i := slices.Index(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b), ok
}

// NetlinkWriter makes the messages of one datagram.
type NetlinkWriter struct {
	B     []byte
	start int   // of the message
	nests []int // attributes that are open
}

// Begin begins a message; the one before ends.
func (w *NetlinkWriter) Begin(h NetlinkHeader) {
	w.start, w.nests = len(w.B), w.nests[:0]
	w.B = le.AppendUint32(w.B, NetlinkHeaderSize)
	w.B = le.AppendUint16(w.B, h.Type)
	w.B = le.AppendUint16(w.B, h.Flags)
	w.B = le.AppendUint32(w.B, h.Seq)
	w.B = le.AppendUint32(w.B, h.PID)
}

// Ack is NLMSG_ERROR: the answer to a request that asked for one, or failed with an errno.
func (w *NetlinkWriter) Ack(request NetlinkHeader, payload []byte, errno int) {
	w.Begin(NetlinkHeader{Type: netlinkErrorType, Seq: request.Seq, PID: request.PID})
	w.B = le.AppendUint32(w.B, uint32(-int32(errno)))
	w.B = le.AppendUint32(w.B, request.Len)
	w.B = le.AppendUint16(w.B, request.Type)
	w.B = le.AppendUint16(w.B, request.Flags)
	w.B = le.AppendUint32(w.B, request.Seq)
	w.B = le.AppendUint32(w.B, request.PID)
	if errno != 0 { // with the request's own bytes, as without NETLINK_CAP_ACK
		w.B = append(w.B, payload...)
	}
	w.end()
}

// Done is NLMSG_DONE, which ends a dump.
func (w *NetlinkWriter) Done(request NetlinkHeader, errno int) {
	w.Begin(NetlinkHeader{Type: netlinkDoneType, Flags: NetlinkMulti, Seq: request.Seq, PID: request.PID})
	w.B = le.AppendUint32(w.B, uint32(-int32(errno)))
	w.end()
}

// end writes the lengths of the message and of what is open in it.
func (w *NetlinkWriter) end() {
	for len(w.B)%netlinkAlign != 0 {
		w.B = append(w.B, 0)
	}
	le.PutUint32(w.B[w.start:], uint32(len(w.B)-w.start))
	for _, at := range w.nests {
		le.PutUint16(w.B[at:], uint16(len(w.B)-at))
	}
}

func (w *NetlinkWriter) attr(attr uint16, n int) {
	w.B = le.AppendUint16(w.B, uint16(netlinkAttrSize+n))
	w.B = le.AppendUint16(w.B, attr)
}

// U8 adds a number.
func (w *NetlinkWriter) U8(attr uint16, v uint8) {
	w.attr(attr, 1)
	w.B = append(w.B, v)
	w.end()
}

// U32 adds a number.
func (w *NetlinkWriter) U32(attr uint16, v uint32) {
	w.attr(attr, 4)
	w.B = le.AppendUint32(w.B, v)
	w.end()
}

// U64 adds a number.
func (w *NetlinkWriter) U64(attr uint16, v uint64) {
	w.attr(attr, 8)
	w.B = le.AppendUint64(w.B, v)
	w.end()
}

// Bytes adds a value of any form.
func (w *NetlinkWriter) Bytes(attr uint16, v []byte) {
	w.attr(attr, len(v))
	w.B = append(w.B, v...)
	w.end()
}

// String adds a text with its NUL.
func (w *NetlinkWriter) String(attr uint16, s string) {
	w.attr(attr, len(s)+1)
	w.B = append(append(w.B, s...), 0)
	w.end()
}

// Nest adds an attribute that holds those that f adds.
func (w *NetlinkWriter) Nest(attr uint16, f func()) {
	w.nests = append(w.nests, len(w.B))
	w.attr(attr, 0)
	f()
	w.end()
	w.nests = w.nests[:len(w.nests)-1]
}
