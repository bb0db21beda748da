package testbed_test

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// A testbed of two hosts with a cable is opened, and a program on the first one queries its device.
func Example() {
	p, err := profile.Load("connectx-5")
	if err != nil {
		fmt.Println(err)
		return
	}
	host := testbed.HostConfig{Cores: 4, Memory: 1 << 30, Devices: 1}
	a, b := host, host
	a.Name, b.Name = "a", "b"
	tb, err := testbed.New(testbed.Config{Seed: 1, Profile: p, OutOfBand: 20 * sim.Microsecond, Hosts: []testbed.HostConfig{a, b}})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = tb.Run(time.Second, func(t verbs.Thread) {
		devices, err := t.Process().Devices(t)
		if err != nil {
			fmt.Println(err)
			return
		}
		ctx, err := devices[0].Open(t)
		if err != nil {
			fmt.Println(err)
			return
		}
		port, err := ctx.QueryPort(t, 1)
		fmt.Println(devices[0].Name(), port.State == verbs.PortActive, err)
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: mlx5_0 true <nil>
}
