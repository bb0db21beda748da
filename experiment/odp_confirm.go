package experiment

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim"
)

// confirmed runs a row of goodput again with more of what it was limited by, if the user asks for that, and says in it whether the goodput
// rises. A wider window helps only where the sender has one.
func (x *odpRun) confirmed(row *table.Row, name string, windowed bool, again func(y *odpRun) (table.Row, error)) error {
	word, ok := row.Get(limitedBy).(string)
	if !x.confirm || !ok {
		return nil
	}
	before, _ := row.Float("goodput_gbps")
	c := &confirmation{unit: "Gb/s", before: before}
	env := *x.Env
	env.rec, env.Progress = x.rec.silent(), nil
	env.Out = &Result{} // hypotheses and notes are those of the first run
	y := *x
	y.Env = &env
	var err error
	switch r := resourceOf(word); {
	case r == sim.Window && windowed && x.window < 1024:
		y.window = min(2*x.window, 1024)
		c.what = fmt.Sprintf("window %d -> %d", x.window, y.window)
	case r == sim.Window:
		c.why = "nothing of the experiment has more messages outstanding"
	default:
		up := raises[r]
		if r == sim.Wire {
			up = raiseWire(x.Profile)
		}
		if env.Profile, c.what, err = up.apply(x.Profile); err != nil {
			c.why = fmt.Sprintf("the profile does not allow more of it: %v", err)
		} else if r == sim.CPU { // what copying takes is a parameter of the experiment
			y.copyGbps *= 2
			c.what += ", copy_gbps doubled"
		}
	}
	if c.why == "" {
		second, err := again(&y)
		if err != nil {
			return fmt.Errorf("--confirm, with %s: %w", c.what, err)
		}
		c.after, _ = second.Float("goodput_gbps")
		if then, ok := second.Get(limitedBy).(string); ok {
			c.then = ", where the limit is " + then
		}
	}
	row.Set(confirmed, c.verdict())
	busy, _ := row.Float(limitPercent)
	x.Note("%s: limited by %s (%v, %s %% busy); %s.", name, word, row.Get(limitUnit), table.Short(busy), c)
	return nil
}

// resourceOf is the resource of a word.
func resourceOf(word string) sim.Resource {
	for _, r := range sim.Resources() {
		if strings.EqualFold(r.String(), word) {
			return r
		}
	}
	return sim.Window
}
