package experiment

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/sim"
)

// Service is a time that varies: that of a handler, a turnaround or a disk.
type Service struct {
	Mean         int64  `yaml:"mean" unit:"time" max:"1s" help:"mean, such as 2.5us"`
	Distribution string `yaml:"distribution" oneof:"fixed,uniform,exponential,two" help:"fixed; uniform: from 0.5 to 1.5 times the mean; exponential; two: the mean, but one in rare takes long (default uniform)"`
	Rare         int    `yaml:"rare" min:"2" max:"1000000" help:"with distribution two: one in this many takes long (default 100)"`
	Long         int64  `yaml:"long" unit:"time" max:"1s" help:"with distribution two: the time of that one"`
}

// check says what is impossible; what is the name of the time.
func (s *Service) check() error {
	if s == nil {
		return nil
	}
	if s.Distribution != "two" && (s.Rare != 0 || s.Long != 0) {
		return fmt.Errorf("rare and long belong to distribution two")
	}
	if s.Distribution == "two" && s.Long <= s.Mean {
		return fmt.Errorf("distribution two needs long, which is longer than the mean: such as {mean: 10us, distribution: two, rare: 100, long: 1ms}")
	}
	return nil
}

// draw makes a function that draws times of s; nil for nil.
func (s *Service) draw() func(*sim.Rand) time.Duration {
	if s == nil {
		return nil
	}
	mean, long := time.Duration(s.Mean/1000), time.Duration(s.Long/1000)
	switch s.Distribution {
	case "fixed":
		return func(*sim.Rand) time.Duration { return mean }
	case "exponential":
		return func(r *sim.Rand) time.Duration { return exponential(r, mean) }
	case "two":
		rare := cmp.Or(s.Rare, mostlyRare)
		return func(r *sim.Rand) time.Duration {
			if r.Intn(rare) == 0 {
				return long
			}
			return mean
		}
	}
	return func(r *sim.Rand) time.Duration { return mean/2 + time.Duration(r.Intn(int(mean)+1)) }
}

// mean is the mean of what is drawn.
func (s *Service) mean() time.Duration {
	m := s.Mean
	if s.Distribution == "two" {
		m += (s.Long - s.Mean) / int64(cmp.Or(s.Rare, mostlyRare))
	}
	return time.Duration(m / 1000)
}

// mostlyRare is how rare long times are unless the file says.
const mostlyRare = 100

// worst is the longest time that is likely.
func (s *Service) worst() time.Duration {
	switch {
	case s == nil:
		return 0
	case s.Distribution == "" || s.Distribution == "uniform":
		return time.Duration(s.Mean / 1000 * 3 / 2)
	}
	return time.Duration(max(s.Mean, s.Long) / 1000)
}

// exponential draws from an exponential distribution without a floating point number, by von
// Neumann's comparison of uniform draws: a run that descends is of odd length with the probability
// of the first draw's density.
func exponential(r *sim.Rand, mean time.Duration) time.Duration {
	const one = 1 << 30
	for whole := time.Duration(0); ; whole++ {
		first := r.Intn(one)
		n := 1
		for last := first; ; n++ {
			next := r.Intn(one)
			if next >= last {
				break
			}
			last = next
		}
		if n%2 == 1 {
			return whole*mean + time.Duration(int64(mean)/1024*int64(first)/(one/1024))
		}
	}
}
