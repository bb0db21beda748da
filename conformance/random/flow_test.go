package random

import (
	"reflect"
	"testing"
)

// TestDrawnFlows: drawn programs are valid, the same for a seed, and have steps of each kind.
func TestDrawnFlows(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(500) {
		p := drawFlows(seed)
		if err := p.Valid(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, p.String())
		}
		if !reflect.DeepEqual(p, drawFlows(seed)) {
			t.Fatalf("seed %d gives two programs", seed)
		}
		for i := range p.Steps {
			seen[p.Steps[i].Kind]++
		}
	}
	for _, kind := range []string{FlowCreate, FlowDestroy, FlowSend} {
		if seen[kind] < 500 {
			t.Errorf("%d steps %q of 500 programs", seen[kind], kind)
		}
	}
}
