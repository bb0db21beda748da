package exec_test

import (
	"context"
	"fmt"

	"github.com/rdmasim/rdmasim/attach/exec"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// A program runs with two simulated adapters. Whoever calls Run calls Child first in main: the
// supervisor starts its program again.
func ExampleRun() {
	exec.Child()
	p, err := profile.Load("connectx-5")
	if err != nil {
		fmt.Println(err)
		return
	}
	status, err := exec.Run(context.Background(), &exec.Config{Args: []string{"ibv_devices"}, Profile: p, Devices: 2, Seed: 1})
	fmt.Println(status, err)
}
