package perf

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// backlog is how long what an end receives waits to be polled, while the end posts a receive for
// each that it takes. An end that is slower than the messages come has messages that wait longer
// and longer, and none is late until the receives that were posted before the test have been used
// up: a short test measures how fast those are filled.
type backlog struct {
	times  verbs.TimedCQ    // nil: nobody knows
	posted uint64           // receives, before the test
	total  uint64           // messages that are looked at: those for which a receive is posted in the test, if there are any
	waits  [3]time.Duration // the longest, in each third of them
	short  bool             // many of the receives were posted before the test
}

// newBacklog is that of an end that has posted its receives and is to take a number of messages.
func (e *End) newBacklog(total uint64) (b backlog) {
	for _, c := range e.conns {
		b.posted += c.rposted
	}
	if q, ok := e.rcq.(verbs.TimedCQ); ok && !e.o.Timed && e.o.Method != Infinite && q.KeepTimes(1) {
		b.times, b.total = q, total
		if b.posted < total {
			b.total -= b.posted
		}
		b.short = total < shortTest*b.posted
	}
	return b
}

// polled takes note of how long the first of a poll has waited, when so many had been taken before.
func (b *backlog) polled(got uint64, now time.Duration) {
	if b.times == nil || got >= b.total {
		return
	}
	w := &b.waits[3*got/b.total]
	*w = max(*w, now-b.times.CompletedAt(0))
}

// What waits before an end that keeps up varies with bursts and with the batches of polls. It has
// fallen behind if in the end so many messages wait, and more than in the beginning by a part, or
// half as many as receives were posted.
const (
	leastBehind = 24
	moreBehind  = 1.25
)

// behind is after how many messages of a rate (in a second) the receives are used up that were
// posted before the test; 0 if that is not seen.
func (b *backlog) behind(rate float64) (after uint64) {
	first, last := b.waits[0].Seconds()*rate, b.waits[2].Seconds()*rate
	if last < leastBehind || last < moreBehind*first && 2*last < float64(b.posted) {
		return 0
	}
	// Where as many wait in the beginning, they have come to wait within the first third.
	grown := max(last-first, last/3)
	return uint64(float64(b.posted) * float64(b.total) * 2 / 3 / grown)
}

// A test is short if it has fewer messages than shortTest times the receives that were posted
// before it. perMessage is from what rate (in a second) on it matters what an end does for each
// message that it takes.
const (
	shortTest  = 20
	perMessage = 3e6
)

// noteShort says that an end had less to do than in a longer test.
func (e *End) noteShort() {
	if len(e.short) == 0 || e.env.Note == nil {
		return
	}
	sizes := strings.Trim(strings.ReplaceAll(fmt.Sprint(e.short), " ", ", "), "[]")
	total := e.o.Iters * uint64(e.o.QPs)
	e.env.Note(fmt.Sprintf("at -s %s, %d of the %d messages that the %s took found receives that were posted before the test. How fast it posts others shows only in a longer test: compare -n %d.",
		sizes, min(e.posted, total), total, e.name(), shortTest*e.posted/uint64(e.o.QPs)))
}

func (e *End) name() string {
	if e.o.Host == "" {
		return "server"
	}
	return "client"
}

// fellBehind is a size at which an end has fallen behind.
type fellBehind struct {
	size, after, posted uint64
	wait                time.Duration
}

// judgeBacklog sees whether the end kept up with a size.
func (e *End) judgeBacklog(b *backlog, got uint64, now time.Duration) {
	if span := (now - e.times.first).Seconds(); b.times != nil && span > 0 {
		after := b.behind(float64(got) / span)
		if b.short && after == 0 && float64(got)/span > perMessage {
			e.short, e.posted = append(e.short, e.size), b.posted
		}
		if after > 0 {
			e.behind = append(e.behind, fellBehind{e.size, after, b.posted, b.waits[2]})
		}
	}
}

// noteBacklog says what the rates do not show of an end that fell behind.
func (e *End) noteBacklog() {
	e.noteShort()
	if len(e.behind) == 0 || e.env.Note == nil {
		return
	}
	sizes, most, worst := "", uint64(0), e.behind[0]
	for i, b := range e.behind {
		if i > 0 {
			sizes += ", "
		}
		sizes += fmt.Sprint(b.size)
		most = max(most, b.after)
		if b.wait > worst.wait {
			worst = b
		}
	}
	n := 4 * most / uint64(e.o.QPs) // of which three quarters come behind
	unit := uint64(math.Pow10(len(fmt.Sprint(n)) - 1))
	then := fmt.Sprintf("messages wait for receives, at the worst for the RNR timer of 0.64 ms: see the rate with -n %d", (n+unit-1)/unit*unit)
	if e.o.Connection != RC {
		then = "messages are lost"
	}
	e.env.Note(fmt.Sprintf("the %s fell behind at -s %s: messages waited for it ever longer, up to %v, and the %d receives that it had posted before the test let them in. A longer test uses these up, and then %s.",
		e.name(), sizes, worst.wait.Round(100*time.Nanosecond), worst.posted, then))
}
