package hca

import (
	"github.com/rdmasim/rdmasim/sim"
)

// standStill keeps both receive pipelines and the send engine from taking anything new for
// Params.RNRStall, once an RNR NAK is on its way. What they took before goes on.
//
// Kong et al. (Husky, NSDI 2023, 3.3) found that handling the error stalls the processing
// units of ConnectX-5 and 6: the device that is not ready does not even take ACKs. How
// long is not public; later firmware does not do it (Lou et al., Harmonic, NSDI 2024, 6.3).
func (d *units) standStill() {
	if d.p.RNRStall == 0 {
		return
	}
	d.c.RNRStalls++
	for _, s := range []*sim.Server{&d.rxReq, &d.rxRsp, &d.readEng, &d.issue} {
		s.Hold(d.e.Now() + d.p.RNRStall)
	}
}
