package modes

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// busyThread works without a look at anything that others see, and posts in between.
func busyThread(proc, core, ep int) Thread {
	t := Thread{Proc: proc, Core: core}
	for k := range 60 {
		t.Ops = append(t.Ops, Op{Do: "work", EP: ep, Ns: int64(700 + 13*k)})
		if k%7 == 6 {
			t.Ops = append(t.Ops, Op{Do: "post", EP: ep, To: ep ^ 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendInline, Len: 8, N: 1})
		}
	}
	return t
}

// upsetting is a program of a busy thread of process 1 on core 1 of its host, and of a thread that
// does something after a while.
func upsetting(seed uint64, after int64, then ...Op) *Program {
	return &Program{
		Seed: seed, Profile: "connectx-5", Hosts: 2, Cores: 4, Tail: 20_000,
		Procs: []Process{{Host: 0}, {Host: 0}, {Host: 1}},
		Conns: []Conn{{Type: verbs.QPTRC, Procs: [2]int{1, 2}, MTU: verbs.MTU1024, Send: 64, Recv: 16, CQE: 63, Inline: 64, Timeout: 8, Retry: 2, Reads: 1},
			{Type: verbs.QPTRC, Procs: [2]int{0, 2}, MTU: verbs.MTU1024, Send: 64, Recv: 16, CQE: 63, Inline: 64, Timeout: 8, Retry: 2, Reads: 1}},
		Threads: []Thread{busyThread(1, 1, 0), {Proc: 0, Core: 2, Ops: slices.Concat([]Op{{Do: "sleep", EP: 2, Ns: after}}, then)}},
	}
}

// TestKilledThreadsAreNotAhead: a process is ended while its threads run, and a thread is started
// on a core on which another runs: threads that run ahead of the event queue are not ahead of
// these.
func TestKilledThreadsAreNotAhead(t *testing.T) {
	work := Op{Do: "work", EP: 2, Ns: 500}
	for name, then := range map[string][]Op{
		"kill":                 {{Do: "kill", EP: 2, N: 1}, work},
		"kill twice":           {{Do: "kill", EP: 2, N: 1}, {Do: "kill", EP: 2, N: 1}, {Do: "kill", EP: 2, N: 2}, work},
		"start beside":         {{Do: "beside", EP: 2, N: 1, Len: 7, Ns: 900}, work},
		"start beside, kill":   {{Do: "beside", EP: 0, N: 1, Len: 7, Ns: 900}, work, {Do: "kill", EP: 2, N: 1}},
		"start beside oneself": {{Do: "beside", EP: 2, N: 2, Len: 7, Ns: 900}, work, work, work, work},
		"start twice":          {{Do: "beside", EP: 2, N: 3, Len: 15, Ns: 900}, {Do: "beside", EP: 2, N: 3, Len: 15, Ns: 700}, {Do: "beside", EP: 2, N: 3, Len: 15, Ns: 800}, work},
	} {
		for _, after := range []int64{0, 700, 9_000, 20_001} {
			if err := upsetting(1, after, then...).Check(); err != nil {
				t.Errorf("%s after %d ns: %v", name, after, err)
			}
		}
	}
}

// TestUpsetSpinning: of two threads that stream through one QP, one mostly waits for the lock
// that the other holds. Whether such a thread runs does not depend on how far ahead the
// holder is.
func TestUpsetSpinning(t *testing.T) {
	stream := Thread{Proc: 1, Ops: []Op{{Do: "stream", To: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendInline, Len: 60, N: 24}}}
	one, other := stream, stream
	one.Core, other.Core = 1, 3
	for name, then := range map[string]Op{
		"kill":         {Do: "kill", EP: 2, N: 1},
		"start beside": {Do: "beside", EP: 2, N: 1, Len: 7, Ns: 900},
	} {
		for after := int64(2000); after < 4000; after += 130 {
			p := upsetting(1, after, then)
			p.Threads = append(p.Threads[1:], one, other)
			if err := p.Check(); err != nil {
				t.Errorf("%s after %d ns: %v", name, after, err)
			}
		}
	}
}

// TestEndWhileOthersRun: the main thread ends the run while threads that nobody joins run.
func TestEndWhileOthersRun(t *testing.T) {
	for _, tail := range []int64{0, 699, 2_000, 9_001} {
		p := upsetting(1, 0, Op{Do: "beside", EP: 2, N: 1, Len: 15, Ns: 700}, Op{Do: "beside", EP: 0, N: 3, Len: 15, Ns: 1100})
		p.Threads, p.Tail = p.Threads[1:], tail
		if err := p.Check(); err != nil {
			t.Errorf("%d ns after the last was joined: %v", tail, err)
		}
	}
}
