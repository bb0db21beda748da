//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// compile builds a program of testdata where every user can run it.
func compile(t *testing.T, name string) string {
	t.Helper()
	bin := filepath.Join(shared(t), name)
	if out, err := osexec.Command("gcc", "-O1", "-Wall", "-Werror", "-o", bin, "testdata/"+name+".c", "-libverbs", "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// TestMemoryFilesKeepTheirSize changes the size of a memory file, by each description that a
// program can get of it.
func TestMemoryFilesKeepTheirSize(t *testing.T) {
	m, err := newMemfd(4 * pageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	f, err := m.open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int64{0, pageSize, 5 * pageSize} {
		if err := f.Truncate(size); !errors.Is(err, unix.EPERM) {
			t.Errorf("to %d bytes: %v, want EPERM", size, err)
		}
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); !errors.Is(err, unix.EPERM) {
		t.Errorf("a program's own seal: %v, want EPERM", err)
	}
}

func TestProgramCannotTakeMemoryFromTheSupervisor(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "truncate")
	each(t, func(t *testing.T, u user) {
		for _, flags := range [][]string{{}, {"-copy-queues"}, {"-dynamic"}} {
			out, status := u.session(t, append(flags, "--", bin)...)
			if status != 0 || !strings.Contains(out, "all kept") {
				t.Errorf("%v: status %d:\n%s", flags, status, out)
			}
		}
	})
}

// TestNobodyWaitsForAnothersMmap counts the rounds in which the calls on one file were answered while an mmap of another
// waited. They are all but those in which the machine took a second for ten calls.
func TestNobodyWaitsForAnothersMmap(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "stall")
	each(t, func(t *testing.T, u user) {
		const rounds = 4
		out, status := u.session(t, "--", bin, strconv.Itoa(rounds))
		var answered int
		if _, err := fmt.Sscanf(out, "answered in %d of", &answered); err != nil || status != 0 || 2*answered <= rounds {
			t.Errorf("status %d, in most of %d rounds the calls come after the mmap:\n%s", status, rounds, out)
		}
	})
}
