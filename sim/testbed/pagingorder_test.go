package testbed

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// Threads of two processes thrash: in lockstep and ahead of the queue they see the same bytes at
// the same times.
func TestPagingInAnyMode(t *testing.T) {
	const pages, page = 40, 4096
	program := func(change ...func(*Config)) string {
		change = append(change, func(c *Config) { c.Hosts[0].Resident, c.Hosts[0].Swap = 48*page, 1<<20 })
		var text [4]strings.Builder
		run(t, config(t, change...), func(x *rig) {
			thrash := func(out *strings.Builder, t verbs.Thread, b verbs.Buffer, k int) {
				for i := range 200 {
					at := int64((i * (2*k + 7)) % pages * page)
					var old [1]byte
					_, err := b.ReadAt(t, old[:], at)
					_, err2 := b.WriteAt(t, []byte{byte(i)}, at)
					fmt.Fprintln(out, i, t.Now(), old[0], err, err2)
				}
			}
			var threads []verbs.Thread
			host := x.t.Process().Host()
			other, err := host.NewProcess(x.t, nil)
			x.ok("process", err)
			for k := range text {
				p := []verbs.Process{x.t.Process(), other}[k/2]
				body := func(t verbs.Thread) {
					b, err := p.Map(t, pages*page, verbs.MapOptions{Lazy: true})
					if err != nil {
						fmt.Fprintln(&text[k], err)
						return
					}
					thrash(&text[k], t, b, k)
				}
				th := p.Start(x.t, fmt.Sprint("thread", k), -1, body)
				if k < 2 {
					threads = append(threads, th)
				}
			}
			for _, th := range threads {
				x.t.Join(th)
			}
			x.t.Sleep(1e9)
			fmt.Fprintf(&text[0], "%+v\n", x.bed.hosts[0].mem.Paging())
		})
		all := ""
		for k := range text {
			all += text[k].String()
		}
		return all
	}
	ahead, inStep := program(), program(lockstep)
	if ahead != inStep {
		a, b := strings.Split(ahead, "\n"), strings.Split(inStep, "\n")
		for i := range a {
			if i >= len(b) || a[i] != b[i] {
				t.Fatalf("line %d: ahead %q, in lockstep %q", i, a[i], b[min(i, len(b)-1)])
			}
		}
	}
	if !strings.Contains(ahead, "Reclaimed:") || strings.Contains(ahead, "Reclaimed:0 ") || strings.Contains(ahead, "cannot") {
		t.Errorf("no thrashing: %s", ahead[:200])
	}
}
