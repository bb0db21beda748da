package experiment

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/rdmasim/rdmasim/sim/profile"
)

// latencyPart is a part of the way of a message: the sections of the profile with its times, and
// its rates.
type latencyPart struct {
	name     string
	sections []string
	rates    []string
}

// latencyParts are what a latency may consist of.
var latencyParts = []latencyPart{
	{"CPU and library", []string{"cpu", "provider"}, nil},
	{"kernel and page faults", []string{"kernel", "odp"}, nil},
	{"PCIe", []string{"pcie"}, []string{"pcie.bandwidth"}},
	{"device", []string{"hca", "uar"}, nil},
	{"wire and switch", []string{"link", "ib", "switch"}, []string{"link.bandwidth", "hca.wire_rate"}},
	{"GPU", []string{"gpu"}, []string{"gpu.switch_write", "gpu.switch_read", "gpu.root_write", "gpu.root_read", "gpu.socket_write", "gpu.socket_read"}},
}

// latencyRaise raises all parts at once.
var latencyRaise = func() (r raise) {
	for _, p := range latencyParts {
		r.sections, r.double = append(r.sections, p.sections...), append(r.double, p.rates...)
	}
	return r
}()

const (
	leastPart = 0.5 // part of a latency in percent below which it is not named
	leastRest = 3.0 // what the parts lack, or have too much where one depends on another
)

// latencyParts says what the latency consists of: a run in which the times of one part are halved
// is shorter by half of that part. before is the rate, in millions, with the profile as it is.
func (s *Scenario) latencyParts(ctx context.Context, seed uint64, p *profile.Profile, rec *recorder, name string, before float64) (string, error) {
	var words []string
	rest := 100.0
	for _, part := range latencyParts {
		r := raise{sections: part.sections, double: part.rates}
		raised, _, err := r.apply(p)
		if err != nil {
			continue // it cannot be told from the rest
		}
		out, err := s.run(ctx, seed, raised, rec.silent(), name)
		if err != nil {
			return "", err
		}
		if rate := totalRate(out.Results) / 1e6; rate > 0 {
			if share := 200 * (1 - before/rate); share >= leastPart {
				words, rest = append(words, fmt.Sprintf("%s %.0f %%", part.name, share)), rest-share
			}
		}
	}
	if len(words) == 0 {
		return "", nil
	}
	if math.Abs(rest) >= leastRest {
		words = append(words, fmt.Sprintf("the rest %.0f %%", rest))
	}
	return "; a request consists of: " + strings.Join(words, ", "), nil
}
