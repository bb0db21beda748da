//go:build hw

package mlx5

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
)

func plan(t *testing.T, text string) *fault.Plan {
	t.Helper()
	p, err := fault.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What cannot be carried out is told with its place in the file.
func TestCheckFaults(t *testing.T) {
	loose := &Setup{nodes: []Node{{Device: "rxe0", Port: 1}, {Device: "rxe1", Port: 1}}}
	wired := &Setup{nodes: loose.nodes, link: [2]string{"w0", "w1"}}
	for _, c := range []struct {
		s          *Setup
		text, want string
	}{
		{loose, "events: [{at: 1s, do: kill, process: host1/p2}, {at: 1s, do: unmap, process: host0/p1, region: 1}]", ""},
		{loose, "events: [{at: 1s, do: remove, device: host0/rxe0}]", "f.yaml:1:23: remove cannot be injected here: "},
		{loose, "events: [{at: 1s, do: kill, process: host2/p2}]", `f.yaml:1:38: there is no host "host2"`},
		{loose, "faults: [{do: drop}]", "--wire"},
		{wired, "faults: [{do: drop, from: host1/rxe1}]\nlinks: [{port: host0/rxe0, at: 1s, to: down}]", ""},
		{wired, "faults: [{do: drop, from: host1/mlx5_0}]", `f.yaml:1:27: there is no port "host1/mlx5_0"`},
	} {
		err := c.s.CheckFaults(plan(t, c.text))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}

// Memory of this process goes, and comes back, under a region that was registered.
func TestMemoryEvents(t *testing.T) {
	tb := bed()
	p := plan(t, `events:
  - {at: 100ms, do: unmap, process: host0/p1, region: 1, offset: 4KiB, length: 1B}
  - {at: 100ms, do: unmap, process: host0/p1, region: 9}
  - {at: 100ms, do: unmap, process: host0/p1, region: 1, offset: 1MiB}
  - {at: 400ms, do: remap, process: host0/p1, region: 1}
  - {at: 3600s, do: kill, process: host0/p1}
`)
	if err := tb.ApplyFaults(p); err != nil {
		t.Fatal(err)
	}
	err := tb.Run(time.Minute, func(vt verbs.Thread) {
		b, err := vt.Process().Map(vt, 3*4096, verbs.MapOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		tb.regions.registered(b.Addr(), b.Len())
		if _, err := b.WriteAt(vt, []byte{7}, 8192); err != nil {
			t.Error(err)
		}
		var got [1]byte
		at := func(off int64) error { _, err := b.ReadAt(vt, got[:], off); return err }
		for at(4096) == nil {
			vt.Sleep(time.Millisecond)
		}
		if err := at(4096); !errors.Is(err, syscall.EFAULT) {
			t.Errorf("memory that was unmapped: %v", err)
		}
		if err := at(8192); err != nil || got[0] != 7 {
			t.Errorf("memory beside it: %d, %v", got[0], err)
		}
		for at(8192) == nil && got[0] == 7 {
			vt.Sleep(time.Millisecond)
		}
		if err := at(4096); err != nil || got[0] != 0 {
			t.Errorf("memory that was mapped anew: %d, %v", got[0], err)
		}
	})
	if err := errors.Join(err, tb.Close()); err != nil {
		t.Error(err)
	}
}

// A player is told of its own memory only, in its own time.
func TestEventsOfPlayers(t *testing.T) {
	tb := bed()
	tb.events = plan(t, `events:
  - {at: 100s, do: unmap, process: host1/p2, region: 1}
  - {at: 0ns, do: remap, process: host1/p2, region: 2}
  - {at: 5s, do: kill, process: host1/p2}
  - {at: 5s, do: unmap, process: host1/p3, region: 1}
`).Events
	got := tb.memoryOf("host1/p2")
	if len(got) != 2 || got[0].At <= 0 || got[0].At >= 100e12 || got[1].At != 0 || got[1].Region != 2 {
		t.Errorf("%+v", got)
	}
}

// A player is killed by its name, at its time.
func TestPlayerKilled(t *testing.T) {
	tb := bed()
	killed := make(chan string, 2)
	for _, name := range []string{"host1/p2", "host1/p3"} {
		tb.players = append(tb.players, &playerProcess{name: name, kill: func() { killed <- name }, clean: func() {}})
	}
	if err := tb.ApplyFaults(plan(t, "events: [{at: 10ms, do: kill, process: host1/p3}, {at: 10ms, do: kill, process: host1/p9}]")); err != nil {
		t.Fatal(err)
	}
	if name := <-killed; name != "host1/p3" {
		t.Errorf("%s was killed", name)
	}
	tb.players = nil
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
}
