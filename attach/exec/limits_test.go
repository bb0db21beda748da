//go:build linux && amd64

package exec

import (
	"math"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
)

// TestLargestLimit: four times the largest number of objects is no negative one.
func TestLargestLimit(t *testing.T) {
	for _, n := range []int{math.MaxInt, math.MaxInt/allProcesses + 1, 1} {
		if l := newLimits(&Config{LimitObjects: n}); l.objects.Most < min(n, math.MaxInt/allProcesses) {
			t.Errorf("with %d objects in one process all of them may have %d", n, l.objects.Most)
		}
	}
}

func TestSizeOfALimit(t *testing.T) {
	for n, want := range map[uint64]string{4096: "4096 bytes", 3 << 19: "1572864 bytes", 4 << 30: "4096 MiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestLimitOfFiles: the memory files of devices count for the limit of the size of files.
func TestLimitOfFiles(t *testing.T) {
	out, _ := osexec.Command("/bin/sh", "-c", `ulimit -f 16; exec "$0" `+runArg+` -- true`, os.Args[0]).CombinedOutput()
	if !strings.Contains(string(out), "files are limited to 8 KiB") && !strings.Contains(string(out), "files are limited to 16 KiB") || !strings.Contains(string(out), "need 1048576: raise the limit (ulimit -f)") {
		t.Errorf("%s", out)
	}
}
