package sim

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpansWriteJSON(t *testing.T) {
	var s Spans
	core, pu := s.Track("host0/core 3"), s.Track("mlx5_0/PU 2")
	irq := s.Track("host0/\"irq\"")
	s.Span(pu, "fetch", 2_000_001, 3_500_000, 7)
	s.Span(core, "post", 1, 1_000_001, 0)
	s.Span(irq, "handler", 9_007_199_254_740_993, 9_007_199_254_740_994, 1) // no float holds it
	var b bytes.Buffer
	if err := s.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	want := `{"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"host0"}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"core 3"}},
{"ph":"M","pid":2,"tid":0,"name":"process_name","args":{"name":"mlx5_0"}},
{"ph":"M","pid":2,"tid":2,"name":"thread_name","args":{"name":"PU 2"}},
{"ph":"M","pid":1,"tid":3,"name":"thread_name","args":{"name":"\"irq\""}},
{"ph":"X","pid":1,"tid":1,"ts":0.000001,"dur":1,"name":"post","args":{"arg":0}},
{"ph":"X","pid":2,"tid":2,"ts":2.000001,"dur":1.499999,"name":"fetch","args":{"arg":7}},
{"ph":"X","pid":1,"tid":3,"ts":9007199254.740993,"dur":0.000001,"name":"handler","args":{"arg":1}}
]}
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
	if !json.Valid(b.Bytes()) {
		t.Error("not JSON")
	}
	b.Reset()
	if err := new(Spans).WriteJSON(&b); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("an empty timeline is %q", b.String())
	}
}

func TestCountersAreSorted(t *testing.T) {
	var c Counters
	var x, y, z uint64 = 1, 2, 3
	c.Add("mlx5_0", "tx", &x)
	c.Add("host0/core 1", "misses", &y)
	c.Add("mlx5_0", "rx", &z)
	z = 30
	wait := 5 * Nanosecond
	c.AddTime("mlx5_0", "wait_ps", &wait)
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	if want := "host0/core 1 misses 2\nmlx5_0 rx 30\nmlx5_0 tx 1\nmlx5_0 wait_ps 5000\n"; b.String() != want {
		t.Errorf("got %q", b.String())
	}
	c.Add("mlx5_0", "rx", &x)
	defer func() {
		if recover() == nil {
			t.Error("a counter registered twice went unnoticed")
		}
	}()
	c.Sorted()
}
