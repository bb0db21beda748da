package sim

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Counters is the registry of what the units of a run count. A unit adds pointers
// to its plain fields once, when it is made; reading them costs it nothing.
type Counters struct{ list []Counter }

// Counter is one number of one unit: "host0/pcie0", "rx_bytes".
type Counter struct {
	Unit, Name string
	p          *uint64
	t          *Time
}

// Value reads the counter; a sum of time is in picoseconds.
func (c *Counter) Value() uint64 {
	if c.t != nil {
		return uint64(*c.t)
	}
	return *c.p
}

// Add registers the counter that p points to. The same unit and name twice is a
// bug, and panics when the counters are read.
func (c *Counters) Add(unit, name string, p *uint64) {
	c.list = append(c.list, Counter{unit, name, p, nil})
}

// AddTime registers a sum of time; its name should end in "_ps".
func (c *Counters) AddTime(unit, name string, t *Time) {
	c.list = append(c.list, Counter{unit, name, nil, t})
}

// Sorted is every counter by unit and name.
func (c *Counters) Sorted() []Counter {
	slices.SortStableFunc(c.list, func(a, b Counter) int {
		if n := strings.Compare(a.Unit, b.Unit); n != 0 {
			return n
		}
		return strings.Compare(a.Name, b.Name)
	})
	for i := 1; i < len(c.list); i++ {
		if a, b := c.list[i-1], c.list[i]; a.Unit == b.Unit && a.Name == b.Name {
			panic(fmt.Sprintf("sim: counter %s/%s is registered twice", a.Unit, a.Name))
		}
	}
	return slices.Clone(c.list)
}

// Write prints one line for each counter: unit, name and value.
func (c *Counters) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, x := range c.Sorted() {
		fmt.Fprintf(b, "%s %s %d\n", x.Unit, x.Name, x.Value())
	}
	return b.Flush()
}
