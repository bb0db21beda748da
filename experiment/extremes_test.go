package experiment

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/workload"
)

var (
	extremes      = flag.Int("extremes.runs", 60, "how many runs TestExtremeValues makes, of one or two values at their limits")
	extremesFirst = flag.Uint64("extremes.first", 1, "the seed of the first run")
)

// atLimits are the lowest and the highest allowed value of each numeric key of a load and of a profile.
func atLimits(t *testing.T, p *profile.Profile) (all [][2]Setting) {
	t.Helper()
	traffic := reflect.TypeFor[Traffic]()
	for i := range traffic.NumField() {
		tag := traffic.Field(i).Tag
		least, most, key := tag.Get("min"), tag.Get("max"), "traffic.0."+tag.Get("yaml")
		if most == "" || tag.Get("yaml") == "from" || tag.Get("yaml") == "to" {
			continue
		}
		if least == "" {
			least = map[string]string{"time": "0ns", "size": "0B"}[tag.Get("unit")]
		}
		all = append(all, [2]Setting{{key, least}, {key, most}})
	}
	units := map[profile.Kind]string{profile.Time: "ps", profile.Size: "B", profile.Rate: "bps", profile.Freq: "kHz", profile.Count: ""}
	for _, v := range p.Values() {
		unit, numeric := units[v.Kind]
		if !numeric {
			continue
		}
		allowed := func(n uint64) bool {
			q := p.Clone()
			return q.Set(v.Key, strconv.FormatUint(n, 10)+unit) == nil && q.Validate() == nil
		}
		now := number(t, v)
		// A limit is looked for by powers of two, then one bit at a time: lists of allowed values may have others beyond it.
		low, high := now, now
		for low > 0 && allowed(low/2) {
			low /= 2
		}
		for step := low / 2; step > 0; step /= 2 {
			if low >= step && allowed(low-step) {
				low -= step
			}
		}
		for high < 1<<62 && allowed(2*high+1) {
			high = 2*high + 1
		}
		for step := high; step > 0; step /= 2 {
			if allowed(high + step) {
				high += step
			}
		}
		all = append(all, [2]Setting{{v.Key, strconv.FormatUint(low, 10) + unit}, {v.Key, strconv.FormatUint(high, 10) + unit}})
	}
	return all
}

// number is a value in the smallest unit of its kind.
func number(t *testing.T, v profile.Value) (n uint64) {
	t.Helper()
	var err error
	switch v.Kind {
	case profile.Time:
		var ps int64
		ps, err = input.ParseTime(v.Text)
		n = uint64(ps)
	case profile.Size:
		n, err = input.ParseSize(v.Text)
	case profile.Rate:
		n, err = input.ParseRate(v.Text)
	case profile.Freq:
		n, err = input.ParseFrequency(v.Text)
	default:
		n, err = input.Whole(v.Text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// patience is a context that is over when it has been asked a number of times: an engine asks at a number of events.
type patience struct {
	context.Context
	left int
}

func (p *patience) Err() error {
	if p.left--; p.left < 0 {
		return context.Canceled
	}
	return nil
}

// tooFast says that a load moved more than its line carries, or more messages than may be under way for the time of the line. What was
// under way when counting began is not held against it.
func tooFast(l *workload.Load, r *workload.Result, p *profile.Profile) string {
	underWay := float64(l.Threads * l.QPs * l.Window)
	delivered, seconds := r.Rate()*(r.End-r.Begin).Seconds(), (r.End - r.Begin).Seconds()
	for _, rate := range []uint64{p.Link.Bandwidth, p.PCIe.Bandwidth} {
		if most := float64(rate) * seconds; (delivered-underWay)*float64(l.Payload)*8 > most {
			return fmt.Sprintf("%g messages of %d bytes in %g s on a line of %d bit/s", delivered, l.Payload, seconds, rate)
		}
	}
	if there := 2 * provider.Duration(p.Link.Propagation).Seconds(); (delivered-underWay)*there > underWay*seconds {
		return fmt.Sprintf("%g messages in %g s, of which %g may be under way, and a cable of %g s there and back", delivered, seconds, underWay, there)
	}
	return ""
}

// nonsense says what is impossible in a result, or "".
func nonsense(out *Outcome, p *profile.Profile) string {
	for i, r := range out.Results {
		row := trafficRow(out.loads[i], r)
		if why := impossible(row); why != "" {
			return why
		}
		if r.Begin < 0 || r.End < r.Begin {
			return fmt.Sprintf("measured from %v to %v", r.Begin, r.End)
		}
		for k := range r.Threads {
			th := &r.Threads[k]
			if th.End < th.Begin || th.Delivered < 0 {
				return fmt.Sprintf("thread %d from %v to %v: %v messages", k, th.Begin, th.End, th.Delivered)
			}
			for _, d := range th.Latency {
				if d <= 0 {
					return fmt.Sprintf("a latency of %v", d)
				}
			}
		}
		if why := tooFast(out.loads[i], r, p); why != "" {
			return why
		}
	}
	for _, c := range out.counters {
		if c.Value > 1<<60 {
			return fmt.Sprintf("counter %s of %s has grown by %v", c.Name, c.Unit, c.Value)
		}
	}
	if out.Span < 0 {
		return fmt.Sprintf("a span of %v", out.Span)
	}
	return ""
}

// impossible names a number of a row below zero.
func impossible(row table.Row) string {
	for _, key := range row.Keys() {
		if v, ok := row.Get(key).(float64); ok && v < 0 {
			return fmt.Sprintf("%s is %v", key, v)
		}
	}
	return ""
}

// Each numeric key of a load and of a profile may have its lowest and its highest allowed value, alone and beside another key's: the run ends with a
// sensible result, or is refused in words, and nothing overflows.
func TestExtremeValues(t *testing.T) {
	const file = "name: x\ncores: 1024\nlink: switch\ntraffic:\n  - {payload: 4KiB, window: 8, warmup: 5us, duration: 20us}\n"
	base, err := ParseScenario("s.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	p, err := base.LoadProfile()
	if err != nil {
		t.Fatal(err)
	}
	limits := atLimits(t, p)
	refused, ran := 0, 0
	for seed := *extremesFirst; seed < *extremesFirst+uint64(*extremes); seed++ {
		rng := rand.New(rand.NewPCG(seed, 17))
		var chosen []Setting
		for range 1 + rng.IntN(2) {
			chosen = append(chosen, limits[rng.IntN(len(limits))][rng.IntN(2)])
		}
		s, err := base.With(chosen...)
		if err != nil {
			refused++
			continue
		}
		prof, err := s.LoadProfile()
		if err != nil {
			t.Fatal(err)
		}
		const tail = 200 * time.Millisecond // what goes on is waited for no longer
		out, err := s.runUntil(&patience{t.Context(), 40}, 1, prof, nil, "", tail)
		switch bad := (*UsageError)(nil); {
		case errors.As(err, &bad):
			refused++
			continue
		case err != nil && !errors.Is(err, ErrInterrupted):
			t.Errorf("seed %d, %v: %v", seed, chosen, err)
			continue
		}
		if len(out.Results) > 0 {
			ran++
		}
		if why := nonsense(out, prof); why != "" {
			t.Errorf("seed %d, %v: %s", seed, chosen, why)
		}
	}
	t.Logf("%d keys, %d runs with a result, %d refused", len(limits), ran, refused)
	if 2*ran < *extremes {
		t.Errorf("only %d of %d runs have a result", ran, *extremes)
	}
}
