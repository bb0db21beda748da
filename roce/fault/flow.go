package fault

import "sort"

// flowKey names a flow: what a port sends to a QP.
type flowKey struct {
	port string
	qp   uint32
}

// flow is the history of a flow.
type flow struct {
	number   int
	begun    bool // a request was seen
	first    uint32
	messages []uint32       // distance of each message's first PSN from first
	sent     map[uint32]int // transmissions by PSN, requests; the upper bit: responses
}

// seen is the place of a frame in the history of its flow.
type seen struct{ flow, packet, message, iteration int }

const responseBit = 1 << 31

// follow adds a frame to the history of its flow.
func (s *Script) follow(f *Frame) seen {
	if s.flows == nil {
		s.flows = map[flowKey]*flow{}
	}
	k := flowKey{f.Port, f.DestQP}
	w := s.flows[k]
	if w == nil {
		w = &flow{number: len(s.flows) + 1, sent: map[uint32]int{}}
		s.flows[k] = w
	}
	h := seen{flow: w.number}
	if f.Response {
		w.sent[f.PSN|responseBit]++
		h.iteration = w.sent[f.PSN|responseBit]
		return h
	}
	if !w.begun {
		w.begun, w.first = true, f.PSN
	}
	w.sent[f.PSN]++
	h.iteration = w.sent[f.PSN]
	at := (f.PSN - w.first) & 0xFFFFFF
	if n := len(w.messages); f.First && (n == 0 || at > w.messages[n-1]) && at < 1<<23 {
		w.messages = append(w.messages, at)
	}
	h.packet = int(at) + 1
	h.message = sort.Search(len(w.messages), func(i int) bool { return w.messages[i] > at })
	return h
}
