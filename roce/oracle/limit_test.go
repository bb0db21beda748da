package oracle_test

import (
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
)

// A capture in which each frame breaks rules fills no memory with verdicts, and all of them are
// counted.
func TestVerdictsOfAForgedCaptureAreBounded(t *testing.T) {
	const frames = 200_000
	c := load(t, filepath.Join(captures, "7.2", "send_only.pcap"))
	edit(t, &c, 1, func(p *roce.Packet) {
		p.BTH().SetPKey(1)
		p.BTH().SetDestQP(0xFFFFFF)
	})
	forged := oracle.Capture{}
	for i := range frames {
		forged.Frames = append(forged.Frames, oracle.Frame{Number: i + 1, Time: int64(i), Data: c.Frames[0].Data, Length: len(c.Frames[0].Data)})
	}
	before := heap()
	res := oracle.Judge(forged, oracle.Options{PKey: 0xFFFF})
	if more := heap() - before; more > 4<<20 {
		t.Errorf("the judgement holds %d MiB", more>>20)
	}
	kept, left := map[string]int{}, map[string]int{}
	for _, v := range res.Verdicts {
		kept[v.Rule]++
	}
	sum := len(res.Verdicts)
	for _, l := range res.LeftOut {
		left[l.Rule] += l.Count
		sum += l.Count
	}
	for _, rule := range []string{"OR-019", "OR-020"} {
		if kept[rule] != oracle.MostVerdicts || kept[rule]+left[rule] != frames {
			t.Errorf("%s: %d verdicts are kept and %d left out, of %d frames", rule, kept[rule], left[rule], frames)
		}
	}
	counted := 0
	for k := range oracle.Kinds {
		counted += res.Count(k)
	}
	if counted != sum || counted < 2*frames {
		t.Errorf("%d verdicts are counted, of which %d are violations; kept and left out are %d", counted, res.Count(oracle.Violation), sum)
	}
}

// What a capture can make the judge look at is bounded: flows with all source ports, unanswered
// READs, QPs without end.
func TestForgedCapturesTakeNoLongTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const frames = 60_000
	for name, c := range map[string]struct {
		capture string
		change  func(p *roce.Packet, i int)
		o       oracle.Options
	}{
		"source ports": {"ud_send", func(p *roce.Packet, i int) { p.UDP().SetSrcPort(uint16(i)) }, oracle.Options{}},
		"QPs":          {"send_only", func(p *roce.Packet, i int) { p.BTH().SetDestQP(uint32(i)) }, oracle.Options{}},
		"READs": {"read", func(p *roce.Packet, i int) {
			p.BTH().SetPSN(uint32(i))
			p.RETH().SetLength(1)
		}, oracle.Options{MTU: 1024, MaxRdAtomic: ref(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			one := load(t, filepath.Join(captures, "7.2", c.capture+".pcap"))
			forged := oracle.Capture{}
			for i := range frames {
				again := oracle.Capture{Frames: []oracle.Frame{{Number: i + 1, Time: int64(i), Data: one.Frames[0].Data, Length: len(one.Frames[0].Data)}}}
				edit(t, &again, 1, func(p *roce.Packet) { c.change(p, i) })
				forged.Frames = append(forged.Frames, again.Frames[0])
			}
			began := cpuTime(t)
			oracle.Judge(forged, c.o)
			if took := cpuTime(t) - began; took > 4*time.Second {
				t.Errorf("%d frames take %v of CPU time", frames, took)
			}
		})
	}
}

// Runs of one file that share what is kept do not multiply it.
func TestVerdictsOfRunsAreBoundedTogether(t *testing.T) {
	c := load(t, filepath.Join(captures, "7.2", "send_only.pcap"))
	edit(t, &c, 1, func(p *roce.Packet) { p.BTH().SetPKey(1) })
	kept, sum, all := &oracle.Kept{}, 0, 0
	for range 3 * oracle.MostVerdicts {
		res := oracle.Judge(c, oracle.Options{PKey: 0xFFFF, Kept: kept})
		for _, v := range res.Verdicts {
			if v.Rule == "OR-019" {
				sum++
			}
		}
		all += res.Count(oracle.Violation)
	}
	if sum != oracle.MostVerdicts || all < 3*oracle.MostVerdicts {
		t.Errorf("%d are kept, want %d; %d are counted", sum, oracle.MostVerdicts, all)
	}
}

// cpuTime is what the process has used, which other work of the machine does not change much.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano())
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
