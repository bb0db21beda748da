package experiment

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// losses are what packets met on their way in a run: a rate alone does not tell that most of what a
// wire carried was thrown away.
type losses struct {
	sent       float64 // packets of requests and responses, each as often as it was sent
	dropped    float64 // by switches
	discarded  float64 // by receivers, behind a gap; with selective repeat those that came behind one
	unkept     float64 // of these, with selective repeat
	duplicates float64 // requests that receivers had already
	naks       float64 // sequence NAKs that arrived
	timeouts   float64
}

func (out *Outcome) losses() (l losses) {
	for _, c := range []struct {
		sum  *float64
		name string
	}{
		{&l.sent, "hca.tx_packets"}, {&l.dropped, "switch.tx_discards_phy"}, {&l.discarded, "hw_counters.out_of_sequence"},
		{&l.duplicates, "hw_counters.duplicate_request"}, {&l.naks, "hw_counters.packet_seq_err"},
		{&l.timeouts, "hw_counters.local_ack_timeout_err"}, {&l.timeouts, "hw_counters.roce_adp_retrans"}, {&l.timeouts, "hca.repeat_timeouts"}, {&l.unkept, "hca.early_discarded"},
	} {
		v, _ := out.Counter(c.name)
		*c.sum += v
	}
	return l
}

// noteLosses says what packets were lost or thrown away, and how long timers held queue pairs up.
func (out *Outcome) noteLosses(env *Env) {
	l := out.losses()
	if l.sent == 0 || l.dropped+l.discarded+l.timeouts == 0 {
		return
	}
	share := func(n float64) string { return fmt.Sprintf("%.3g %%", 100*n/l.sent) }
	var parts []string
	if l.dropped > 0 {
		parts = append(parts, fmt.Sprintf("the switch dropped %.0f (%s)", l.dropped, share(l.dropped)))
	}
	if verb := "receivers discarded"; l.discarded > 0 {
		if out.device.SelectiveRepeat {
			verb = "there came"
		}
		part := fmt.Sprintf("%s %.0f behind a gap (%s)", verb, l.discarded, share(l.discarded))
		if l.unkept > 0 {
			part += fmt.Sprintf(", of which responders discarded %.0f (hca.early_discarded)", l.unkept)
		}
		parts = append(parts, part)
	}
	if l.duplicates > 0 {
		parts = append(parts, fmt.Sprintf("%.0f had arrived before", l.duplicates))
	}
	what := ""
	if len(parts) > 0 {
		what = fmt.Sprintf("Of %.0f packets that devices sent, %s. ", l.sent, strings.Join(parts, ", "))
	}
	env.Note("%sSenders went back after %.0f sequence NAKs and %.0f ACK timeouts%s.", what, l.naks, l.timeouts, out.stalled())
	out.noteDropped(env, l.dropped)
}

// noteCongestion says what marks and pauses there were: a run in which senders are told of
// congestion may have the same rates as one without.
func (out *Outcome) noteCongestion(env *Env) {
	marked, _ := out.Counter("hca.np_ecn_marked_roce_packets")
	notices, _ := out.Counter("hca.rp_cnp_handled")
	pauses := 0.0
	for class := range roce.Classes {
		n, _ := out.Counter(fmt.Sprintf("port.rx_prio%d_pause", class))
		pauses += n
	}
	var parts []string
	if marked > 0 {
		parts = append(parts, fmt.Sprintf("%.0f packets arrived with ECN marks, for which senders handled %.0f CNPs", marked, notices))
	}
	if pauses > 0 {
		parts = append(parts, fmt.Sprintf("devices received %.0f pause frames", pauses))
	}
	if len(parts) > 0 {
		env.Note("Congestion: %s.", strings.Join(parts, "; "))
	}
}

// noteUnmarked says why senders were never told to slow down although congestion.dcqcn is on.
func (out *Outcome) noteUnmarked(env *Env, s *Scenario, prof *profile.Profile) {
	if marked, _ := out.Counter("hca.np_ecn_marked_roce_packets"); !prof.HCA.Congestion.DCQCN || marked > 0 {
		return
	}
	sw, why := &prof.Switch, ""
	switch {
	case s.Link != "switch":
		why = "only a switch marks packets, and link is " + s.Link
	case sw.ECNMax == 0:
		why = "no packet is marked while switch.ecn_max is 0"
	default:
		why = fmt.Sprintf("no packet was marked, since no queue of the switch was above switch.ecn_min=%dB for long", sw.ECNMin)
		if prof.Link.PFC {
			why += fmt.Sprintf(", and link.pfc pauses a sender that has link.pfc_xoff=%dB in it", prof.Link.PFCXoff)
		}
	}
	env.Note("congestion.dcqcn changes nothing here: %s.", why)
}

// stalled says for how much of the time ACK timers held queue pairs up, on the device where that
// was most.
func (out *Outcome) stalled() string {
	w, most := &out.use, 0
	if w.before == nil || w.after == nil {
		return ""
	}
	for _, l := range w.after.Since(w.before) {
		if l.Resource == sim.AckTimer {
			most = max(most, l.PerMille)
		}
	}
	if most < 10 {
		return ""
	}
	return fmt.Sprintf("; ACK timers held queue pairs up for %.3g %% of the measured time", float64(most)/10)
}

// noteDropped says what a switch drops for, and what would keep it from that.
func (out *Outcome) noteDropped(env *Env, dropped float64) {
	switch {
	case dropped == 0:
	case out.device.Congestion.DCQCN:
	case out.lossless:
		env.Note("The switch drops packets although link.pfc is on: before it pauses a sender, that one may fill link.pfc_xoff of switch.buffer. With fewer senders to a port, a smaller link.pfc_xoff or a larger switch.buffer there is room for all.")
	default:
		env.Note("The switch drops what does not fit into switch.buffer, for nothing slows the senders down: link.pfc=true pauses them, and congestion.dcqcn=true with switch.ecn_min, switch.ecn_max and switch.ecn_chance lowers their rates.")
	}
}
