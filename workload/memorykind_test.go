package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// What cannot be done with memory of a GPU is refused before anything runs, with what to do.
func TestMemoryRefusals(t *testing.T) {
	good := func() Load {
		return Load{Threads: 1, Contexts: 1, PDs: 1, QPs: 1, QPShare: 1, Window: 1, Postlist: 1, SignalEvery: 1, MRs: 1, MRSize: 4096, Payload: 64,
			Duration: time.Millisecond, RecvDepth: 1, RecvPostlist: 1, Mix: []Mix{{Write, 1}}, Memory: verbs.MemoryGPU}
	}
	if l := good(); l.Validate() != nil {
		t.Fatal(l.Validate())
	}
	for _, c := range []struct {
		change func(*Load)
		want   string
	}{
		{func(l *Load) { l.Inline = true }, "leave inline out"},
		{func(l *Load) { l.Latency = true }, "write_imm"},
		{func(l *Load) { l.OnDemand = Explicit }, "leave on_demand out"},
		{func(l *Load) { l.PageSize = 2 << 20 }, "leave page_size out"},
		{func(l *Load) { l.Memory, l.MemoryAt = verbs.MemoryHost, Peer }, "give memory as well"},
	} {
		l := good()
		c.change(&l)
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	for _, change := range []func(*Load){
		func(l *Load) { l.Inline, l.MemoryAt = true, Peer }, // the processor copies from memory of the host
		func(l *Load) { l.Latency, l.Mix = true, []Mix{{Read, 1}} },
		func(l *Load) { l.Latency, l.Memory = true, verbs.MemoryUdmabuf },
	} {
		l := good()
		if change(&l); l.Validate() != nil {
			t.Errorf("%+v: %v", l, l.Validate())
		}
	}
	l := good()
	if l.MemoryAt = Peer; l.environment(false) != nil || l.environment(true)["MLX5_SCATTER_TO_CQE"] != "0" {
		t.Errorf("environments %v, %v", l.environment(false), l.environment(true))
	}
}
