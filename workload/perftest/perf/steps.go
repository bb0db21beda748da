package perf

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// CallCount is how often a call of verbs was made.
type CallCount struct {
	Name string
	N    int
}

// Step is one step of the flow of an end, with the time that it took by the thread's clock.
type Step struct {
	Name  string
	Took  time.Duration
	Calls []CallCount
}

// Steps are those of one end, in order.
type Steps struct{ All []Step }

// Parsed notes the steps before a testbed is there: defaults and flags, which take no time that is
// modelled.
func (s *Steps) Parsed() {
	s.All = append(s.All, Step{Name: "defaults"}, Step{Name: "parse"})
}

// add notes a step; one that follows itself, as with several sizes, is the same.
func (s *Steps) add(x Step) { s.All = append(s.All, x) }

// Write prints the steps as a table.
func (s *Steps) Write(w io.Writer, of string) error {
	fmt.Fprintf(w, "\nSteps of the %s, with the time that each took and the verbs that it called:\n", of)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range s.All {
		x := &s.All[i]
		var calls []string
		for _, c := range x.Calls {
			if c.N == 1 {
				calls = append(calls, c.Name)
			} else {
				calls = append(calls, fmt.Sprintf("%s x%d", c.Name, c.N))
			}
		}
		fmt.Fprintf(tw, "  %s\t%v\t%s\n", x.Name, x.Took, strings.Join(calls, " "))
	}
	return tw.Flush()
}
