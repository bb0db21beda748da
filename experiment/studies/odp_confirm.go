package studies

import (
	"fmt"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim"
)

// confirmed runs a row of goodput again with more of what it was limited by, if the user asks for
// that, and says in it whether the goodput rises. A wider window helps only where the sender has
// one.
func (x *odpRun) confirmed(row *table.Row, name string, windowed bool, again func(y *odpRun) (table.Row, error)) error {
	word, ok := row.Get(experiment.LimitedBy).(string)
	if !x.Confirm || !ok {
		return nil
	}
	before, _ := row.Float("goodput_gbps")
	c := &experiment.Confirmation{Unit: "Gb/s", Before: before}
	y := *x
	y.Env = x.Silent() // hypotheses and notes are those of the first run
	var err error
	switch r := resourceOf(word); {
	case r == sim.Window && windowed && x.window < 1024:
		y.window = min(2*x.window, 1024)
		c.What = fmt.Sprintf("window %d -> %d", x.window, y.window)
	case r == sim.Window:
		c.Why = "nothing of the experiment has more messages outstanding"
	default:
		if y.Profile, c.What, err = experiment.Raise(r, x.Profile); err != nil {
			c.Why = fmt.Sprintf("the profile does not allow more of it: %v", err)
		} else if r == sim.CPU { // what copying takes is a parameter of the experiment
			y.copyGbps *= 2
			c.What += ", copy_gbps doubled"
		}
	}
	if c.Why == "" {
		second, err := again(&y)
		if err != nil {
			return fmt.Errorf("--confirm, with %s: %w", c.What, err)
		}
		c.After, _ = second.Float("goodput_gbps")
		if then, ok := second.Get(experiment.LimitedBy).(string); ok {
			c.Then = ", where the limit is " + then
		}
	}
	x.Confirmed(row, name, c)
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
