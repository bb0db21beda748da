package hca

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca/dcqcn"
)

// reaction is the reaction point of a QP, with what waits for its rate.
type reaction struct {
	dcqcn.Reaction
	waking  bool // an event is set for the next packet
	held    bool // the responder waits for it
	ticking bool // an event is set for the next raise
}

// notices is the notification point: when the last CNP was sent, at all and by destination.
type notices struct {
	cnpAt sim.Time
	cnpTo map[roce.GID]*sim.Time // looked up, never walked
}

func newNotices() notices { return notices{cnpAt: -sim.Second, cnpTo: map[roce.GID]*sim.Time{}} }

// isMarked says whether a packet is one whose marks count: a request, or data of a READ.
func isMarked(p *roce.Packet) bool {
	return p.TrafficClass()&3 == 3 && (p.Info().Kind == roce.KindRequest || p.Info().Class == roce.ClassReadResponse)
}

// ectTrafficClass is a traffic class with ECT(0), unless it says something itself.
func ectTrafficClass(tc uint8) uint8 {
	if tc&3 == 0 {
		return tc | 2
	}
	return tc
}
