package workload

import (
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// motion is how many queue pairs of a load got on in each part of the measured time. While some
// wait, for a timer say, others may keep an engine or a port full: the rate of all of them does not
// show it.
type motion struct {
	sums   [][2]uint64 // of each queue pair at the latest edge of a part, or none: bytes delivered, and requests completed
	edges  int
	moving [parts]int
}

// watchMotion has it read at the edges of the parts. On UC and UD nothing waits for an answer.
func (s *Started) watchMotion() {
	m, ok := s.tb.(verbs.DeliveryMeter)
	if !ok || s.l.Churn != "" || s.l.Latency || s.stop() == 0 || types[s.l.Transport] != verbs.QPTRC {
		return
	}
	for k := range time.Duration(parts + 1) {
		m.DeliveriesAt(s.begin()+s.l.Duration/parts*k+s.l.Duration%parts*k/parts, s.seeMotion)
	}
}

// seeMotion reads it. A queue pair that cannot be read stands still.
func (s *Started) seeMotion(of func(host int, qpn uint32) (verbs.Delivered, bool)) {
	m, i := &s.motion, 0
	for g, set := range s.a.qps {
		for q, c := range set {
			there, _ := of(s.l.To, c.peer.qp.QPN())
			here, _ := of(s.l.From, c.qp.QPN())
			sum := [2]uint64{there.Received + here.Read}
			for thread := range s.l.QPShare {
				sum[1] += s.flows[g*s.l.QPShare+thread][q].completed.Load()
			}
			if m.edges == 0 {
				m.sums = append(m.sums, sum)
			} else if m.sums[i] != sum {
				m.moving[m.edges-1]++
			}
			m.sums[i] = sum
			i++
		}
	}
	m.edges++
}

// seen are the numbers of the parts; nil if the measured time had not all of them.
func (m *motion) seen() []int {
	if m.edges <= parts {
		return nil
	}
	return m.moving[:]
}
