package kit

import (
	"bytes"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/verbs"
)

// Steered is a raw packet QP that sends, and others, in another context of the same port, to which
// rules may lead: a device gives no packet back to the context that sent it. Each receiver has
// one rule of priority 0 from the start, for a marker packet that comes to all of them after what
// was sent before it.
type Steered struct {
	From   *QP
	To     []*Receiver
	MAC    [6]byte // of the port
	out    *Buffer
	marker []byte
}

// Receiver is a raw packet QP with receives.
type Receiver struct {
	*QP
	in      *Buffer
	unsteer func(c *spec.C) // destroys the rule of the last packet
}

// Received is what a receive has taken.
type Received struct {
	WC    verbs.WC
	Bytes []byte
}

// Sizes of a Steered: how many packets may be under way, and their length.
const (
	SteeredDepth  = 32
	SteeredLength = 2048
)

// NewSteered creates a sender and n receivers.
func NewSteered(c *spec.C, n int) *Steered {
	to, from := Open(c), Open(c)
	s := &Steered{From: from.NewRaw(c), MAC: to.PortMAC(c), out: from.Buffer(c, SteeredDepth*SteeredLength, AllAccess)}
	s.marker = (&ether.Packet{DstMAC: s.MAC, SrcMAC: [6]byte{2, 0, 0, 'e', 'n', 'd'}, EtherType: TypeExperimental}).Build(make([]byte, LeastPacket))
	for range n {
		s.AddReceiver(c, to)
	}
	return s
}

// AddReceiver creates another receiver, in a context.
func (s *Steered) AddReceiver(c *spec.C, e *Env) *Receiver {
	r := &Receiver{QP: e.NewRaw(c), in: e.Buffer(c, SteeredDepth*SteeredLength, AllAccess)}
	for i := range SteeredDepth {
		r.post(c, i)
	}
	r.unsteer = r.NewFlow(c, FlowOf(verbs.FlowSpec{Type: verbs.FlowSpecEth,
		Val:  verbs.FlowFilter{DstMAC: s.MAC, SrcMAC: [6]byte(s.marker[6:12]), EtherType: TypeExperimental},
		Mask: verbs.FlowFilter{DstMAC: allOnes, SrcMAC: allOnes, EtherType: 0xffff}}))
	s.To = append(s.To, r)
	return r
}

var allOnes = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Close destroys the queue pairs, to which no other rules may lead.
func (s *Steered) Close(c *spec.C) {
	for _, r := range s.To {
		r.unsteer(c)
		r.DestroyNow(c)
		r.in.Dereg(c)
	}
	s.From.DestroyNow(c)
	s.out.Dereg(c)
}

func (r *Receiver) post(c *spec.C, i int) {
	r.RecvInto(c, uint64(i), r.in.SGE(i*SteeredLength, SteeredLength))
}

// Send sends packets in their order, and returns when all have been sent.
func (s *Steered) Send(c *spec.C, packets ...[]byte) {
	for i, p := range packets {
		at := i * SteeredLength
		s.out.Set(c, at, p)
		s.From.Post(c, Send(uint64(i), s.out.SGE(at, len(p))))
	}
	ExpectSuccess(c, s.From.SendCQ, len(packets))
}

// Arrived sends the marker packet and returns what has come to each receiver between it and the one
// before. It reports false if the marker did not come to all.
func (s *Steered) Arrived(c *spec.C) (got [][]Received, whole bool) {
	s.Send(c, s.marker)
	whole = true
	for _, r := range s.To {
		var l []Received
		for {
			wc := PollWithin(c, r.RecvCQ, 1, CompletionTimeout)
			if len(wc) == 0 {
				whole = false
				break
			}
			x := Received{WC: wc[0]}
			if x.WC.Status != verbs.WCSuccess {
				l, whole = append(l, x), false
				break
			}
			i := int(x.WC.ID)
			x.Bytes = r.in.Get(c, i*SteeredLength, int(min(x.WC.ByteLen, SteeredLength)))
			r.post(c, i)
			if bytes.Equal(x.Bytes, s.marker) {
				break
			}
			l = append(l, x)
		}
		got = append(got, l)
	}
	return got, whole
}

// Deliver sends a packet and returns what comes to each receiver. It fails the case if the packets
// do not all arrive whole.
func (s *Steered) Deliver(c *spec.C, packets ...[]byte) [][]Received {
	s.Send(c, packets...)
	got, whole := s.Arrived(c)
	if !whole {
		c.Failf("the packet behind %d others did not come to all of %d receivers: %+v", len(packets), len(s.To), got)
	}
	return got
}

// ExpectAt sends a packet, and checks that it comes, once and whole, to the receivers of the given
// numbers and to no other.
func (s *Steered) ExpectAt(c *spec.C, step string, packet []byte, want ...int) {
	at := []int{}
	for i, l := range s.Deliver(c, packet) {
		for _, x := range l {
			c.True(step+": bytes", bytes.Equal(x.Bytes, packet), "want the %d bytes that were sent, got % x", len(packet), x.Bytes)
			at = append(at, i)
		}
	}
	c.Equal(step, at, append([]int{}, want...))
}
