//go:build linux && amd64

package exec

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/prm"
)

// postPrograms is how many programs of posts are run for each kind of registers.
const postPrograms = 45

// TestUARLog runs random programs of posts by libmlx5 in a session and by sim/provider on a
// testbed. What was stored to registers, the WQEs, the doorbell records, the completions and
// the memory must be the same, but for keys, addresses and the numbers of queue pairs and
// UARs.
func TestUARLog(t *testing.T) {
	bin := buildPosts(t)
	canListen(t)
	n := postPrograms * *times
	if testing.Short() {
		n /= 3 // fewer programs may post nothing, and the log of nothing is not read
	}
	for _, c := range []struct{ dynamic, copied bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprintf("dynamic=%v,copied=%v", c.dynamic, c.copied), func(t *testing.T) {
			count := n
			if c.copied {
				count /= 3
			}
			var programs []int
			for i := range count {
				programs = append(programs, i)
			}
			// A program that the machine interrupts inside a push seems to have only rung: what
			// differs is run again.
			var diffs []string
			for range 3 {
				if programs, diffs = comparePosts(t, bin, programs, c.dynamic, c.copied); len(programs) == 0 {
					return
				}
			}
			for i, d := range diffs[:min(3, len(diffs))] {
				t.Errorf("program %d: -libmlx5 +sim/provider\n%s\n%s", programs[i], d, head(newPostProgram(programs[i])))
			}
			t.Errorf("%d of %d programs differ: %v", len(programs), n, programs)
		})
	}
}

// comparePosts runs programs in one session, and each on a testbed, and returns those
// that differ.
func comparePosts(t *testing.T, bin string, programs []int, dynamic, copied bool) (bad []int, diffs []string) {
	t.Helper()
	var all strings.Builder
	for _, i := range programs {
		all.WriteString(newPostProgram(i))
	}
	got := splitPrograms(runPosts(t, bin, all.String(), dynamic, copied))
	if len(got) != len(programs) {
		t.Fatalf("%d programs have run, of %d", len(got), len(programs))
	}
	for k, i := range programs {
		want := normalPosts(t, simulatePosts(t, newPostProgram(i), dynamic))
		if d := cmp.Diff(normalPosts(t, got[k]), want); d != "" {
			bad, diffs = append(bad, i), append(diffs, d)
		}
	}
	return bad, diffs
}

// head is a program without its posts.
func head(program string) string {
	return regexp.MustCompile(`(?m)^(wr|[0-9 ]+|post.*|)\b.*\n`).ReplaceAllString(program, "")
}

// buildPosts compiles testdata/posts.c.
func buildPosts(t *testing.T) string {
	t.Helper()
	needsLibrary(t)
	bin := filepath.Join(t.TempDir(), "posts")
	if out, err := osexec.Command("gcc", "-O2", "-Wall", "-Werror", "-o", bin, "testdata/posts.c", "-libverbs", "-lmlx5").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// runPosts runs programs in one session and returns what posts.c prints, each post
// followed by its line of the log.
func runPosts(t *testing.T, bin, programs string, dynamic, copied bool) string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "uar")
	args := []string{runArg, "-uar-log", log}
	if !dynamic {
		args = append(args, "-static")
	}
	if copied {
		args = append(args, "-copy-queues")
	}
	c := osexec.Command("/proc/self/exe", append(args, "--", bin)...)
	c.Stdin = strings.NewReader(programs)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { _ = c.Process.Kill() })
	err := c.Wait()
	timer.Stop()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &errs, tail(out.String()))
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	slices.SortStableFunc(lines, func(a, b string) int { return number(a) - number(b) })
	return mergeLog(t, out.String(), lines)
}

// number is the one that a line of the log begins with.
func number(line string) int {
	n, _ := strconv.Atoi(strings.Fields(line)[0])
	return n
}

// tail is the end of a long text.
func tail(s string) string { return s[max(0, len(s)-2000):] }

// mergeLog puts the lines of the log behind the posts that they are of: each post that
// adds to the ring rings once.
func mergeLog(t *testing.T, out string, log []string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		b.WriteString(line)
		if strings.HasPrefix(line, "wqes ") {
			if len(log) == 0 {
				t.Fatal("the log has fewer lines than there are posts")
			}
			fmt.Fprintln(&b, "ring", strings.Join(strings.Fields(log[0])[2:], " "))
			log = log[1:]
		}
	}
	if len(log) > 0 {
		t.Fatalf("the log has %d lines more than there are posts: %s ...", len(log), log[0])
	}
	return b.String()
}

func splitPrograms(out string) (l []string) {
	for _, s := range strings.Split("\n"+out, "\nprogram ")[1:] {
		l = append(l, "program "+s+"\n")
	}
	return l
}

// normalPosts replaces what two runs may have different: the key, numbers of queue pairs
// (by those of the program), and UARs (by the order of their first use).
func normalPosts(t *testing.T, out string) (lines []string) {
	n := &normaliser{t: t, uars: map[string]int{}, qps: map[uint32]uint32{}}
	for line := range strings.Lines(out) {
		if s := n.line(strings.Fields(line)); s != "" {
			lines = append(lines, s)
		}
	}
	return lines
}

type normaliser struct {
	t    *testing.T
	key  string
	base uint64
	uars map[string]int
	qps  map[uint32]uint32
}

func (n *normaliser) line(f []string) string {
	if len(f) == 0 {
		return ""
	}
	switch f[0] {
	case "key":
		n.key = f[1]
		n.base, _ = strconv.ParseUint(f[3], 16, 64)
		return ""
	case "qp":
		var id, qpn uint32
		if k, _ := fmt.Sscanf(strings.Join(f[1:], " "), "%d qpn %x", &id, &qpn); k == 2 {
			n.qps[qpn] = id
			f[3] = "."
		}
	case "wqes":
		f[3] = n.wqes(f[3])
	case "ring":
		if _, ok := n.uars[f[1]]; !ok {
			n.uars[f[1]] = len(n.uars)
		}
		f[1] = fmt.Sprintf("uar=#%d", n.uars[f[1]])
		f[5] = "."
		f[7] = "bytes=" + n.wqes(strings.TrimPrefix(f[7], "bytes="))
	}
	return strings.Join(f, " ")
}

// wqes normalises WQEs, or the 8 bytes of a doorbell, and cuts them into lines.
func (n *normaliser) wqes(s string) string {
	b, err := hex.DecodeString(s)
	if err != nil {
		n.t.Fatal(err)
	}
	var out strings.Builder
	for len(b) > 0 {
		c := prm.CtrlSegment(b)
		id, ok := n.qps[c.QPN()]
		if !ok {
			n.t.Fatalf("QP %#x of a WQE is not of the program: %x", c.QPN(), b)
		}
		blocks := (c.DS()*prm.DSSize + prm.WQEBBSize - 1) / prm.WQEBBSize
		c.SetQPN(id)
		wqe := b[:min(len(b), max(1, blocks)*prm.WQEBBSize)]
		b = b[len(wqe):]
		for at := 0; at < len(wqe); at += 8 {
			if at%prm.DSSize == 0 {
				out.WriteByte('\n')
			}
			out.WriteString(n.words(wqe[at:at+8], at < prm.CtrlSegmentSize))
		}
	}
	return out.String()
}

// words normalises 8 bytes: an address, or two words of which one may be the key.
func (n *normaliser) words(b []byte, ctrl bool) string {
	s := hex.EncodeToString(b)
	if ctrl {
		return s
	}
	if v, _ := strconv.ParseUint(s, 16, 64); v >= n.base && v < n.base+postMemory {
		return fmt.Sprintf("memory+%9x", v-n.base)
	}
	for i, word := range []string{s[:8], s[8:]} {
		if word == n.key {
			s = s[:8*i] + "---key--" + s[8*i+8:]
		}
	}
	return s
}
