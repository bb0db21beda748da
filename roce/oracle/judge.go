package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rdmasim/rdmasim/roce"
)

// judge holds the state of one judgement.
type judge struct {
	o        Options
	res      *Result
	merged   map[mergeKey]int // verdicts that are given once for a flow; leftOut where it was not kept
	left     map[ruleKind]int // how many verdicts are not kept
	streams  []*stream
	newest   map[endpoint]*stream
	ported   map[ported]*stream
	marked   map[endpoint]bool // CE-marked packets came from here
	markable map[endpoint]bool // packets that a switch may have marked did
	seen     map[endpoint]bool // any packets did
	landings map[roce.GID][]landing
	words    map[word]uint64 // what atomics left, for OnlyAtomics

	notifiers map[notifier]*notifying

	parser
	cutFrames, headerless int // frames that were cut, behind and within their headers
}

type mergeKey struct {
	ruleKind
	flow string
}

// mostOthers is how many frames a verdict that is given once names besides its own.
const mostOthers = 8

const leftOut = -1

// Judge replays one run and returns its flows and the verdicts, in the order of frames.
func Judge(c Capture, o Options) *Result {
	j := &judge{
		o: o, res: &Result{Name: c.Name, Frames: len(c.Frames), Flows: []Flow{}, Verdicts: []Verdict{}},
		merged: map[mergeKey]int{}, left: map[ruleKind]int{}, newest: map[endpoint]*stream{}, ported: map[ported]*stream{}, marked: map[endpoint]bool{}, markable: map[endpoint]bool{}, seen: map[endpoint]bool{}, landings: map[roce.GID][]landing{},
		words:     map[word]uint64{},
		notifiers: map[notifier]*notifying{},
	}
	j.o.Kept = cmp.Or(j.o.Kept, &Kept{})
	j.integrity(&c)
	for i := range c.Frames {
		if r := j.decode(&c.Frames[i]); r != nil {
			j.assignStream(r)
		}
	}
	j.reading(&c)
	if j.res.Whole = len(j.res.Broken) == 0; j.res.Whole {
		j.replay()
	}
	for _, s := range j.streams {
		j.res.Flows = append(j.res.Flows, s.flow())
	}
	for of, n := range j.left {
		j.res.LeftOut = append(j.res.LeftOut, LeftOut{Rule: of.rule, Kind: of.kind, Count: n})
	}
	slices.SortFunc(j.res.LeftOut, func(a, b LeftOut) int { return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Kind, b.Kind)) })
	slices.SortStableFunc(j.res.Verdicts, func(a, b Verdict) int { return cmp.Compare(a.Frame, b.Frame) })
	return j.res
}

// integrity proves that the capture is whole, or says why it is not.
func (j *judge) integrity(c *Capture) {
	if c.Dropped > 0 {
		j.broken(0, "the tap lost %d frames", c.Dropped)
	}
	for i := range c.Frames {
		f := &c.Frames[i]
		if f.Untimed {
			j.broken(f.Number, "frame %d has no time (its block of pcapng is a simple one)", f.Number)
			break
		}
		if i == 0 || f.Time >= c.Frames[i-1].Time {
			continue
		}
		j.broken(f.Number, "time goes back by %d ns at frame %d (up to %d ns are put in order; reordercap does it for any, if the time stamps are right)",
			c.Frames[i-1].Time-f.Time, f.Number, mostDisorder)
		break
	}
}

// broken notes why the capture is not whole.
func (j *judge) broken(frame int, format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	j.res.Broken = append(j.res.Broken, text)
	j.verdict(Inconclusive, "OR-001", frame, "", "%s: no rule that needs history is judged", text)
}

// verdict gives a verdict, and returns its place or leftOut.
func (j *judge) verdict(k Kind, rule string, frame int, flow, format string, a ...any) int {
	if of := (ruleKind{rule, k}); !j.o.Kept.room(of) {
		j.left[of]++
		return leftOut
	}
	j.res.Verdicts = append(j.res.Verdicts, Verdict{Rule: rule, Kind: k, Frame: frame, Count: 1, Flow: flow, Text: fmt.Sprintf(format, a...)})
	return len(j.res.Verdicts) - 1
}

// constant gives a verdict that is true of many frames of a flow once.
func (j *judge) constant(k Kind, rule string, r *rec, flow, format string, a ...any) {
	key := mergeKey{ruleKind{rule, k}, flow}
	if i, ok := j.merged[key]; ok {
		if i == leftOut {
			return
		}
		v := &j.res.Verdicts[i]
		if v.Count++; len(v.Others) < mostOthers && k == Inconclusive {
			v.Others = append(v.Others, r.Number)
		}
		return
	}
	j.merged[key] = j.verdict(k, rule, r.Number, flow, format, a...)
}

// landing is a frame that may have changed the memory of the host to which it went.
type landing struct {
	at     int64
	number int
	from   string // flow
}

// lands notes a frame that carries bytes into the memory of its receiver.
func (j *judge) lands(r *rec, dst roce.GID, flow string) {
	if c := r.info.Class; c == roce.ClassAtomicAck || c == roce.ClassAtomic || c == roce.ClassAtomicWrite || r.p.PayloadLen() > 0 {
		j.landings[dst] = append(j.landings[dst], landing{r.Time, r.Number, flow})
	}
}

// landed is the number of the last frame of another flow that may have changed the memory of a host
// between two times; 0: none has, of those that are looked at.
func (j *judge) landed(host roce.GID, flow string, from, to int64) int {
	l := j.landings[host]
	i, _ := slices.BinarySearchFunc(l, to, func(x landing, t int64) int { return cmp.Compare(x.at, t) })
	for k := i - 1; k >= max(0, i-lookBack) && l[k].at >= from; k-- {
		if l[k].from != flow {
			return l[k].number
		}
	}
	return 0
}
