package hca

import (
	"math/rand/v2"
	"testing"
)

// numbersOf are those of the device with a number in its network.
func numbersOf(device int, log uint32) *numbers {
	v := &queuePairs{units: &units{core: core{id: Identity{Number: device}}}}
	v.limitQPs(log)
	return &v.qpNums
}

// Each device hands out each number of its range once, none below the first, and devices of a
// network have different ones as long as each has few.
func TestNumbersOfDevices(t *testing.T) {
	for log := uint32(7); log <= 18; log++ {
		owner, devices := map[uint32]int{}, min(1<<(log-7), 256)
		each := min(1<<log/devices, 4096) - 2*firstQPN
		for device := range devices {
			n := numbersOf(device, log)
			for range each {
				x, ok := n.alloc()
				if other, twice := owner[x]; !ok || twice || x < firstQPN || x >= 1<<log {
					t.Fatalf("2^%d numbers, device %d: %#x, %t; device %d has it: %t", log, device, x, ok, other, twice)
				}
				owner[x] = device
			}
		}
	}
	for _, device := range []int{0, 1, 2, 3, 100, 511} {
		const log = 12
		n, seen := numbersOf(device, log), map[uint32]bool{}
		for {
			x, ok := n.alloc()
			if !ok {
				break
			}
			if seen[x] || x < firstQPN || x >= 1<<log {
				t.Fatalf("device %d: %#x", device, x)
			}
			seen[x] = true
		}
		if want := 1<<log - firstQPN; len(seen) < want-firstQPN || len(seen) > want {
			t.Errorf("device %d has %d numbers, want %d, or %d fewer", device, len(seen), want, firstQPN)
		}
	}
}

// A range begins at a multiple of its length and shares no number with what is handed out besides.
func TestRangesOfNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n, seen := numbersOf(rng.IntN(2000), 12), map[uint32]bool{}
		take := func(x uint32) {
			if seen[x] || x < firstQPN || x >= 1<<12 {
				t.Fatalf("flip %#x: %#x is handed out twice, or is none: %t", n.flip, x, seen[x])
			}
			seen[x] = true
		}
		for range 200 {
			if log := rng.Uint32N(11); rng.IntN(4) == 0 {
				if first, ok := n.allocRange(log); ok {
					if first&(1<<log-1) != 0 {
						t.Fatalf("range of %d begins at %#x", 1<<log, first)
					}
					for i := range uint32(1) << log {
						take(first + i)
					}
				}
			} else if x, ok := n.alloc(); ok {
				take(x)
			}
		}
	}
}
