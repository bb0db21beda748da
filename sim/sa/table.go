package sa

import (
	"slices"

	"github.com/rdmasim/rdmasim/roce/mad"
)

// maxTransfers is how many tables are under way: the oldest gives way to another one.
const maxTransfers = 64

// transfer is a table that is sent in segments, of which the first is out. The other end allows
// more by acknowledgements.
type transfer struct {
	tid      uint64
	to       Peer
	request  [mad.Size]byte
	size     int // of a record, with what fills it up
	data     []byte
	sent     uint32 // segments
	segments uint32
}

// sendTable answers with a table. One of a single segment ends with it.
func (n *Node) sendTable(to *Peer, m mad.MAD, records [][]byte, size int) {
	size = (size + 7) &^ 7
	x := transfer{tid: m.TID(), to: *to, size: size, request: [mad.Size]byte(m)}
	for _, r := range records {
		x.data = append(x.data, r...)
		x.data = append(x.data, make([]byte, size-len(r))...)
	}
	x.segments = max(1, uint32((len(x.data)+mad.SADataSize-1)/mad.SADataSize))
	n.drop(&x.to, x.tid)
	n.segment(&x)
	if x.segments == 1 {
		return
	}
	if len(n.tables) == maxTransfers {
		n.tables = slices.Delete(n.tables, 0, 1)
	}
	n.tables = append(n.tables, x)
}

// segment sends the next one.
func (n *Node) segment(x *transfer) {
	data := x.data[min(len(x.data), int(x.sent)*mad.SADataSize):]
	data = data[:min(len(data), mad.SADataSize)]
	x.sent++
	n.send(&x.to, func(a mad.MAD) {
		head(a, x.request[:], mad.TableResp, mad.StatusOK)
		a.SetAttributeOffset(uint16(x.size / 8))
		h := a.RMPP()
		h.SetVersion(mad.RMPPVersion)
		h.SetType(mad.RMPPData)
		h.SetSegment(x.sent)
		flags, payload := uint8(mad.RMPPActive), uint32(0)
		if x.sent == 1 { // the length of all: each segment has the header of the class
			flags |= mad.RMPPFirst
			payload = uint32(len(x.data)) + x.segments*mad.SAHeaderSize
		}
		if x.sent == x.segments {
			flags |= mad.RMPPLast
			payload = uint32(len(data)) + mad.SAHeaderSize
		}
		h.SetFlags(flags)
		h.SetPayload(payload)
		copy(a.Data(), data)
	})
}

// control takes what the receiver of a table says: an acknowledgement opens the window, all else
// ends the transfer.
func (n *Node) control(from *Peer, m mad.MAD) {
	i := n.find(from, m.TID())
	if i < 0 {
		return
	}
	h, x := m.RMPP(), &n.tables[i]
	if h.Type() != mad.RMPPAck || h.Segment() > x.sent {
		n.drop(from, m.TID())
		return
	}
	for x.sent < x.segments && x.sent < h.Window() {
		n.segment(x)
	}
	if h.Segment() == x.segments {
		n.drop(from, m.TID())
	}
}

func (n *Node) find(to *Peer, tid uint64) int {
	return slices.IndexFunc(n.tables, func(x transfer) bool { return x.tid == tid && x.to.LID == to.LID && x.to.QPN == to.QPN })
}

func (n *Node) drop(to *Peer, tid uint64) {
	if i := n.find(to, tid); i >= 0 {
		n.tables = slices.Delete(n.tables, i, i+1)
	}
}
