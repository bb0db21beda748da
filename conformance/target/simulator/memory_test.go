package simulator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
	"github.com/rdmasim/rdmasim/verbs"
)

// Space that is not written costs nothing; a case that writes to more than its share of memory is
// an error.
func TestMemoryOfACase(t *testing.T) {
	target, err := simulator.New(simulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for written, want := range map[int64]string{1 << 20: "", 65 << 20: "the case wrote to 6"} {
		bed, err := target.NewTestbed(1, spec.BedOptions{})
		if err != nil {
			t.Fatal(err)
		}
		err = bed.Run(time.Second, func(th verbs.Thread) {
			b, err := th.Process().Map(th, 1<<30, verbs.MapOptions{})
			for off := int64(0); err == nil && off < written; off += 1 << 20 {
				_, err = b.WriteAt(th, make([]byte, 1<<20), off)
			}
			if err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Error(err)
		}
		err = bed.Close()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d bytes written: %v", written, err)
		}
	}
}
