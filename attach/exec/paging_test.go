//go:build linux && amd64

package exec

import (
	"flag"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

var (
	pagingSteps = flag.Int("paging.steps", 120, "changes of memory that TestPaging makes in each session")
	pagingSeed  = flag.Uint64("paging.seed", 1, "seed of the first session's changes")
	pagingRace  = flag.Int("paging.race", 100, "for how many milliseconds threads of TestPagingRace change memory")
)

// pagingSessions are the flags of sessions, and the schemes in which faults are reported.
var pagingSessions = [][]string{{}, {"-path-calls"}, {"-copy-queues"}, {"-memory-scheme"}, {"-profile", "generic-roce"}}

// TestPaging runs a program that changes its memory in every way between operations of the device
// on it, and checks each byte.
//
//	go test ./attach/exec -run '^TestPaging$' -paging.steps 100000 -paging.seed 42
func TestPaging(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "paging")
	each(t, func(t *testing.T, u user) {
		for i, flags := range u.sessions(pagingSessions...) {
			seed := strconv.FormatUint(*pagingSeed+uint64(i), 10)
			u.paging(t, flags, "", bin, "check", seed, strconv.Itoa(*pagingSteps))
		}
	})
}

// TestCallsTakePages makes every call that the filter hands over because it takes pages from a
// device, and looks for it in the files of the counters.
func TestCallsTakePages(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "paging")
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions(pagingSessions...) {
			u.paging(t, flags, "", bin, "calls")
		}
	})
}

// TestPagesThatWereRead has the device read memory that nobody has touched, and then write it: on
// kernels that share one page of zeroes, and on those that give each read a page.
func TestPagesThatWereRead(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "paging")
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions(pagingSessions...) {
			u.paging(t, flags, "", bin, "reads")
		}
	})
}

// TestPagingRace has threads change memory, also by calls that make no sense, while the device
// accesses it. Another program of the session does not notice.
func TestPagingRace(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "paging")
	sessions := pagingSessions
	if testing.Short() {
		sessions = sessions[:3] // the others differ in what the device reports
	}
	each(t, func(t *testing.T, u user) {
		for i, flags := range u.sessions(sessions...) {
			seed := strconv.FormatUint(*pagingSeed+uint64(i), 10)
			u.paging(t, flags, quote(bin)+" race "+seed+" "+strconv.Itoa(*pagingRace)+"; ", bin, "calls")
		}
	})
}

// paging runs a program in a session, after what a shell does before it.
func (u user) paging(t *testing.T, flags []string, before string, program ...string) {
	t.Helper()
	out, status := u.session(t, append(append(append([]string{"-v"}, flags...), "--", "sh", "-c", before+`exec "$@"`, "sh"), program...)...)
	if status != 0 || !strings.Contains(out, program[1]+": as it should be") || strings.Contains(out, "goroutine ") || strings.Contains(out, "not given back") {
		t.Errorf("%v: status %d:\n%s", flags, status, lastOf(out, 3000))
	}
}

// TestCountersAreNobodysToChange has programs write to the files of the counters.
func TestCountersAreNobodysToChange(t *testing.T) {
	needs(t, "ibv_devinfo")
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions(nil, []string{"-path-calls"}) {
			out, status := u.session(t, append(flags, "--", "sh", "-c", `f=/sys/class/infiniband_verbs/uverbs0/num_page_faults
				echo 7 >$f; echo 7 >>$f; dd if=/dev/zero of=$f conv=notrunc count=1; rm -f $f; cat $f; exec ibv_devices >/dev/null`)...)
			if status != 0 || !strings.HasSuffix(out, "\n0\n") {
				t.Errorf("%v: status %d:\n%s", flags, status, out)
			}
		}
	})
}

// TestWithoutPaging takes on-demand paging away: programs see no capability and no counters, and
// the filter nothing of their memory.
func TestWithoutPaging(t *testing.T) {
	needs(t, "ibv_devinfo", "gcc")
	u := users()[0]
	for flags, want := range map[string]string{"-no-odp": "", "-path-calls": "ODP_SUPPORT"} {
		out, status := u.session(t, flags, "--", "sh", "-c", "ibv_devinfo -v; ls /sys/class/infiniband_verbs/uverbs0/num_page_faults 2>/dev/null || cat /sys/class/infiniband_verbs/uverbs0/num_page_faults")
		has := strings.Contains(out, "\t\t\t\t\tODP_SUPPORT\n")
		if has != (want != "") || (status == 0) != has {
			t.Errorf("%s: capability %v, status %d:\n%s", flags, has, status, lastOf(out, 3000))
		}
	}
	out, status := u.session(t, "-no-odp", "--", compile(t, "paging"), "calls")
	if status != 1 || !strings.Contains(out, "without --odp=false they have") {
		t.Errorf("status %d, and no word of the flag:\n%s", status, lastOf(out, 3000))
	}
	for _, odp := range []bool{false, true} {
		seen := false
		for _, r := range rules(false, odp) {
			seen = seen || r.Nr == unix.SYS_MUNMAP
		}
		if seen != odp {
			t.Errorf("odp %v: the filter hands over munmap: %v", odp, seen)
		}
	}
}
