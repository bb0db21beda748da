package simulator_test

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
)

// A case of one's own is an entry and a body; a runner judges it on a target.
func Example() {
	target, err := simulator.New(simulator.Config{Profile: "connectx-5"})
	if err != nil {
		fmt.Println(err)
		return
	}
	entry := conformance.Entry{ID: "NIC-900", Area: "NIC", Text: "The device has a name", Strength: conformance.Exact}
	body := func(c *spec.C) {
		devices, err := c.T.Process().Devices(c.T)
		c.Errno("list the devices", err, 0)
		c.Equal("name", devices[0].Name(), "mlx5_0")
	}
	runner := conformance.Runner{Target: target, Seed: 1}
	got := runner.Run(entry, spec.Case{ID: entry.ID, Body: body})
	fmt.Println(got.ID, got.Outcome)
	// Output: NIC-900 pass
}
