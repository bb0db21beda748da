package experiment

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim/profile"
)

// limitLoads reach most units: all verbs with receives that run out, a congested switch with
// pauses, and paging. They are of messages, so that what takes longer ends later.
var limitLoads = []string{`
name: mixed
traffic:
  - {name: w, verb: write, payload: 64KiB, threads: 2, window: 4, messages: 6}
  - {name: r, verb: read, payload: 64KiB, window: 4, messages: 6, cores: [4]}
  - {name: s, verb: send, payload: 2KiB, window: 2, messages: 8, recv_depth: 2, cores: [6], signal_every: 2}
  - {name: a, verb: faa, window: 4, messages: 8, cores: [8]}
  - {name: i, verb: write, payload: 64B, inline: true, window: 4, messages: 12, cores: [10]}
`, `
name: incast
hosts: 3
link: switch
set: {link.pfc: "true", link.pfc_xoff: 256KiB, link.pfc_xon: 128KiB}
traffic:
  - {name: one, verb: write, payload: 2MiB, window: 2, messages: 2, from: 1, to: 0, mtu: 4096}
  - {name: two, verb: write, payload: 2MiB, window: 2, messages: 2, from: 2, to: 0, mtu: 4096}
`, `
name: paging
traffic:
  - {name: warm, verb: write, payload: 64KiB, window: 2, messages: 6, on_demand: explicit}
  - {name: cold, verb: read, payload: 16KiB, window: 1, messages: 4, on_demand: explicit, cold: true, measure: latency, cores: [4]}
`}

var everyValue = flag.Bool("every-value", false, "try every time, size and rate, not a share of them")

// The end of a run changes in one direction with a time, a size or a rate of the profile, from the
// least that is allowed to the most: a larger buffer never acts as a smaller one, nor a longer time
// as a shorter one, as they do where a product or a sum of them wraps. A run that fails because a
// limit of time is over ends later than all others.
func TestValuesActInOneDirection(t *testing.T) {
	unit := map[profile.Kind]string{profile.Time: "ps", profile.Rate: "bps", profile.Size: "B"}
	share := uint32(100)
	if !*everyValue {
		share = 15
	}
	if testing.Short() {
		share = 3
	}
	for n, text := range limitLoads {
		s, base := changed(t, text)
		rng := rand.New(rand.NewPCG(32, uint64(n)))
		never := time.Duration(1<<63 - 1)
		end := func(p *profile.Profile) (last time.Duration) {
			out, err := s.Run(context.Background(), 1, p)
			if err != nil {
				return never
			}
			for _, r := range out.Results {
				last = max(last, r.End)
			}
			return last
		}
		if end(base) == never {
			t.Fatalf("%s does not end", s.Name)
		}
		for _, v := range base.Values() {
			if unit[v.Kind] == "" || rng.Uint32N(100) >= share {
				continue
			}
			var values []*profile.Profile
			step := 6
			if v.Kind == profile.Size {
				step = 2
			}
			for k := rng.IntN(step); k < 63; k += step {
				p := base.Clone()
				if err := p.Set(v.Key, fmt.Sprint(uint64(1)<<k+rng.Uint64N(1<<k))+unit[v.Kind]); err == nil && p.Validate() == nil {
					values = append(values, p)
				}
			}
			if len(values) < 2 || end(values[0]) == end(values[len(values)-1]) && v.Kind == profile.Time {
				continue // a time that nothing of this load takes
			}
			least, most := never, time.Duration(0) // so far
			var rises, falls string
			for _, p := range values {
				e := end(p)
				what := fmt.Sprintf("%s %s: %v", v.Key, p.Get(v.Key), e)
				if float64(e) > 1.05*float64(least) {
					rises = what
				}
				if float64(e) < float64(most)/1.05 {
					falls = what
				}
				least, most = min(least, e), max(most, e)
			}
			if rises != "" && falls != "" {
				t.Errorf("load %s takes between %v and %v, longer with %s, and less long with %s", s.Name, least, most, rises, falls)
			}
		}
	}
}
