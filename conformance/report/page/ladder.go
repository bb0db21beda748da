package page

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/roce/ladder"
)

// ladderView is the frames around a failure.
type ladderView struct {
	Left, Right   string
	Before, After int // how many more there were
	Rungs         []rungView
}

// rungView is a frame, or the place of the failed check.
type rungView struct {
	Time, Head, Rest, Fate string
	Back, Lost, Check      bool   // Back: from right to left
	Between                string // other nodes than the two
}

// ladderOf is the ladder of a case, or nil without frames.
func ladderOf(c *report.Case) *ladderView {
	if len(c.Frames) == 0 {
		return nil
	}
	rows := make([]ladder.Row, len(c.Frames))
	for i, f := range c.Frames {
		rows[i] = ladder.Row(f)
	}
	left, right := ladder.Sides(rows)
	v := &ladderView{Left: plain.Line(left), Right: plain.Line(right), Before: c.FramesBefore, After: c.FramesAfter}
	check := rungView{Check: true, Head: "the check failed here"}
	if c.FailedNs > 0 {
		check.Time = micros(c.FailedNs)
	}
	failed := false
	for _, r := range rows {
		if !failed && c.FailedNs > 0 && r.AtNs > c.FailedNs {
			v.Rungs, failed = append(v.Rungs, check), true
		}
		v.Rungs = append(v.Rungs, rungOf(r, left, right))
	}
	if !failed {
		v.Rungs = append(v.Rungs, check)
	}
	return v
}

func rungOf(r ladder.Row, left, right string) rungView {
	head, rest, _ := strings.Cut(r.Text, ", ")
	rung := rungView{Time: micros(r.AtNs), Head: plain.Line(head), Rest: plain.Line(rest), Fate: plain.Line(r.Fate), Lost: ladder.Lost(r.Fate)}
	switch {
	case r.From == left && r.To == right:
	case r.From == right && r.To == left:
		rung.Back = true
	default:
		rung.Between = plain.Line(fmt.Sprintf("%s to %s", r.From, r.To))
	}
	return rung
}

func micros(ns int64) string { return fmt.Sprintf("%.3f us", float64(ns)/1e3) }
