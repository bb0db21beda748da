package oracle_test

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
)

// A capture in which each frame breaks rules fills no memory with verdicts, and all of them are counted.
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

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
