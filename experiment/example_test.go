package experiment_test

import (
	"context"
	"fmt"

	"github.com/rdmasim/rdmasim/experiment"
)

// A scenario is run, and its rows are read by key.
func Example() {
	s, err := experiment.ParseScenario("writes.yaml", []byte("name: writes\ntraffic: [{verb: write, payload: 4KiB, window: 16, messages: 500}]\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := s.Experiment().Execute(context.Background(), experiment.Request{Seed: 1}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	rate, _ := res.Rows[0].Float("rate_mps")
	fmt.Printf("complete: %v, profile %s, a rate above 1 million messages/s: %v\n", res.Complete, res.Profile, rate > 1)
	// Output: complete: true, profile connectx-5, a rate above 1 million messages/s: true
}
