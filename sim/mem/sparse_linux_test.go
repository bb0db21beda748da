package mem

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unsafe"
)

// A large backing has small pages also where transparent huge pages are always on: a run that
// touches a byte here and there would otherwise take all of it.
func TestLargeBackingsAreSparse(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil {
		t.Skip("needs a kernel with transparent huge pages: ", err)
	}
	x := &backing{m: New(1 << 30), n: 8 << 20}
	at := uintptr(unsafe.Pointer(&x.bytes()[4<<20]))
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("needs /proc/self/smaps: ", err)
	}
	entry := regexp.MustCompile(`^([0-9a-f]+)-([0-9a-f]+) `)
	inside := false
	for line := range strings.Lines(string(text)) {
		if m := entry.FindStringSubmatch(line); m != nil {
			var from, to uintptr
			fmt.Sscanf(m[1]+" "+m[2], "%x %x", &from, &to)
			inside = from <= at && at < to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			if !strings.Contains(flags, " nh") {
				t.Errorf("flags %s", flags)
			}
			return
		}
	}
	t.Error("the memory is not seen")
}
