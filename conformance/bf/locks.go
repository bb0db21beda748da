package bf

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// firstLocks makes two QPs in a process whose context has 16 static registers, 5 of them for low
// latency, and returns whether posting to the first two of those takes a lock.
func firstLocks(c *spec.C) [2]bool {
	o := kit.OpenOtherProcess(c, 0, map[string]string{"MLX5_NUM_LOW_LAT_UUARS": "5"})
	var locked [2]bool
	for i := range locked {
		locked[i] = o.CreateQP(c, player.CreateQP, nil).Values["bf_lock"] != 0
	}
	return locked
}

func firstOfItsClassLocked(c *spec.C) {
	c.Equal("locks of the first two QPs", firstLocks(c), [2]bool{true, false})
}

func firstOfItsClassUnlocked(c *spec.C) {
	c.Equal("locks of the first two QPs", firstLocks(c), [2]bool{false, false})
}
