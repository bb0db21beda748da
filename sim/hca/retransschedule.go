package hca

import "github.com/rdmasim/rdmasim/sim"

// RetransSchedule is a firmware's schedule of adaptive retransmission.
type RetransSchedule uint8

// Schedules.
const (
	ScheduleFW20   RetransSchedule = iota // ConnectX-6 with firmware 20.43, of 2026
	ScheduleLumina                        // ConnectX-6 Dx of 2022: Yu et al., Lumina, SIGCOMM 2023, section 6.3
)

// scheduleUnit is what the points of a schedule count: a third of 4.19 ms, which is the ACK timeout
// of code 10.
const scheduleUnit = sim.Time(4096<<10) * sim.Nanosecond / 3

// schedule is when adaptive retransmissions leave, counted from the request, by which of the points
// at the front may be left out.
type schedule struct {
	points []sim.Time // in scheduleUnit
	starts int        // points of which one is the first
}

var schedules = [...]schedule{
	ScheduleFW20:   {[]sim.Time{9, 15, 27, 51, 99, 171, 315, 699, 1275, 2811, 5883}, 4},
	ScheduleLumina: {[]sim.Time{4, 7, 13, 25, 43, 91}, 1},
}

// step is the n-th wait of a schedule that begins at point start. What follows the last published
// point doubles, which is assumed.
func (s *schedule) step(start, n int) sim.Time {
	start = min(start, s.starts-1)
	i, last := start+n, len(s.points)-1
	switch {
	case n == 0:
		return s.points[start] * scheduleUnit
	case i <= last:
		return (s.points[i] - s.points[i-1]) * scheduleUnit
	}
	return (s.points[last] - s.points[last-1]) * scheduleUnit << min(i-last, 32)
}

// silent is the wait, without the floor, that is counted and sends nothing. With it the schedule
// goes on beneath timeouts of the queue pair: where those are as long as the least timeout or
// longer, the first retransmission comes with the end of the adaptive phase, so one timeout after
// the wait; shorter ones begin at the last point that is not beyond the timeout. A hypothesis,
// chosen for the published waits of check 35: 4.26, 12.7, 37.9, 172.1, 440.3, 709 and 3,929.5 ms at
// timeouts 10, 12, 14, 16, 17, 18 and 20.
func (s *schedule) silent(nominal sim.Time, long bool) sim.Time {
	point, last := sim.Time(0), nominal
	for n := 0; ; n++ {
		step := s.step(0, n)
		if long && n > 0 && step > nominal {
			return min(point-nominal, nominal)
		}
		if point += step; !long && point > nominal {
			return last
		}
		last = point
	}
}

// IBAckTimer is what the ACK timer of an InfiniBand port goes by: what cards do there is not
// published.
type IBAckTimer uint8

// Choices.
const (
	IBTimerExact  IBAckTimer = iota // the formula of the specification
	IBTimerAsRoCE                   // as on a RoCE port
)
