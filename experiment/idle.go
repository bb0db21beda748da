package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// idle names the settings that can act on nothing in the scenario, each with the reason: what
// somebody has set, he expects to matter. Of a load these are the keys that its file or --set
// gives, of the profile those of set and the switches that are on. Faults, which may be nil, may
// hold packets up.
func (s *Scenario) idle(p *profile.Profile, faults *fault.Plan) (out []string) {
	calm := faults == nil && s.apart() // no packet of a switch waits behind others
	say := func(key, format string, args ...any) {
		out = append(out, fmt.Sprintf("%s changes nothing here: %s.", key, fmt.Sprintf(format, args...)))
	}
	switched := s.Link == "switch"
	if p.Link.PFC && switched && calm && p.Link.PFCXoff >= roomy {
		say("link.pfc", "each host receives from one other at most, so that no queue of the switch fills")
	}
	if p.Link.PFC && !switched && !slices.ContainsFunc(s.Traffic, func(t Traffic) bool { return t.Memory == "gpu" }) {
		say("link.pfc", "it pauses where a switch or the memory of a GPU takes packets more slowly than they come, and link is %s", s.Link)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Set)) {
		section, _, _ := strings.Cut(key, ".")
		switch {
		case section == "switch" && !switched:
			say(key, "there is no switch, for link is %s", s.Link)
		case section == "switch" && strings.HasPrefix(key, "switch.ecn_") && !p.HCA.Congestion.DCQCN:
			say(key, "devices take no notice of marks while congestion.dcqcn is off")
		case section == "congestion" && key != "congestion.dcqcn" && !p.HCA.Congestion.DCQCN:
			say(key, "congestion.dcqcn is off")
		case strings.HasPrefix(key, "link.pfc_") && !p.Link.PFC:
			say(key, "link.pfc is off")
		case section == "gpu" && !slices.ContainsFunc(s.Traffic, func(t Traffic) bool { return t.Memory == "gpu" }):
			say(key, "no load has memory: gpu")
		}
	}
	used := map[int]bool{}
	for i := range s.Traffic {
		used[s.Traffic[i].From], used[*s.Traffic[i].To] = true, true
	}
	if n := s.Hosts - len(used); n > 0 && s.given != nil && s.given.Hosts > 0 && s.Hosts > 2 {
		say("hosts", "no load uses %d of the %d", n, s.Hosts)
	}
	if s.given == nil {
		return out
	}
	for i := range s.given.Traffic {
		for _, x := range s.given.Traffic[i].idle() {
			say("traffic."+strconv.Itoa(i)+"."+x[0], "%s", x[1])
		}
	}
	return out
}

// roomy is how many bytes a queue of a switch never has that takes packets as fast as they come: a
// few packets of the largest MTU.
const roomy = 32 << 10

// apart reports whether each host receives from one other at most, answers included, and no memory
// is slower than a link.
func (s *Scenario) apart() bool {
	from := map[int]int{}
	hears := func(host, sender int) bool {
		first, ok := from[host]
		from[host] = sender
		return !ok || first == sender
	}
	for i := range s.Traffic {
		t := &s.Traffic[i]
		if t.Memory == "gpu" || !hears(*t.To, t.From) || !hears(t.From, *t.To) {
			return false
		}
	}
	return true
}

// hypothetical names what decides a result and is no published behaviour of any part.
func hypothetical(p *profile.Profile) []string {
	if !p.HCA.SelectiveRepeat {
		return nil
	}
	const is = "hca.selective_repeat is a hypothesis: what a card does is not published. hca.repeat_scheme="
	const keeps = "a responder keeps hca.repeat_window=%d early packets (assumed), and a packet that is lost twice, or comes beyond them, waits for the ACK timer; with two losses in a round trip that decides the rate."
	switch h := &p.HCA; h.RepeatScheme {
	case hca.RepeatSACK:
		return []string{fmt.Sprintf(is+"sack follows IRN (SIGCOMM 2018): each early packet draws a NAK that names it, all that is missing below is sent again, and a requester has at most hca.repeat_window=%d packets out, so that the window and the round trip limit its rate. Only a packet that is lost twice, or is the last one, waits, for hca.repeat_timeout=%v, which must be longer than a round trip.", h.RepeatWindow, h.RepeatTimeout)}
	case hca.RepeatByOperation:
		return []string{fmt.Sprintf(is+"by-operation follows a patent (US 11,870,590): what takes a receive goes back N; of WRITEs, READs and atomics a NAK asks for one packet, "+keeps, h.RepeatWindow)}
	default:
		return []string{fmt.Sprintf(is+"single follows a patent (US 10,430,374): a NAK asks for one packet, "+keeps, h.RepeatWindow)}
	}
}

// idle are keys that a load gives, and that can act on nothing in it, with the reason.
func (t *Traffic) idle() (out [][2]string) {
	say := func(given bool, key, why string) {
		if given {
			out = append(out, [2]string{key, why})
		}
	}
	verbs := []string{t.Verb}
	for _, m := range t.Mix {
		verbs = append(verbs, m.Verb)
	}
	some := func(names ...string) bool {
		return slices.ContainsFunc(verbs, func(v string) bool { return slices.Contains(names, v) })
	}
	if t.Measure == "latency" {
		const one = "a load that measures latency keeps one request outstanding"
		say(t.Window > 0, "window", one)
		say(t.Spread > 0, "spread", one)
		say(t.Postlist > 1, "postlist", one)
		say(t.SignalEvery > 1, "signal_every", one)
		say(t.Drain, "drain", one)
	}
	if t.Transport == "uc" || t.Transport == "ud" {
		const unheard = "nothing is acknowledged on "
		say(t.AckTimeout != nil, "ack_timeout", unheard+t.Transport)
		say(t.RetryCnt != nil, "retry_cnt", unheard+t.Transport)
		say(t.RNRRetry != nil, "rnr_retry", unheard+t.Transport)
		say(t.RNRTimer != nil, "min_rnr_timer", unheard+t.Transport)
	}
	if t.Churn == "" {
		say(t.RdAtomic > 0 && !some("read", "cas", "faa"), "rd_atomic", "the load posts neither READs nor atomics")
		if receives := some("send", "write_imm") || t.Verb == "" && t.Transport == "ud"; !receives {
			const none = "no message of the load takes a receive"
			say(t.RecvDepth > 0, "recv_depth", none)
			say(t.RecvPost > 0, "recv_postlist", none)
		}
	}
	return out
}
