package wire

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/verbs"
)

// loop is an end without a kernel.
type loop struct {
	name string
	from chan []byte
	to   chan []byte
	up   chan bool
}

func newLoop(name string) *loop {
	return &loop{name: name, from: make(chan []byte, 16), to: make(chan []byte, 16), up: make(chan bool, 4)}
}

func (l *loop) Name() string { return l.name }
func (l *loop) Receive(buf []byte, began time.Time) (int, time.Duration, error) {
	f, ok := <-l.from
	if !ok {
		return 0, 0, errClosed
	}
	return copy(buf, f), time.Since(began), nil
}
func (l *loop) Send(f []byte) error   { l.to <- f; return nil }
func (l *loop) Lost() (int, error)    { return 0, nil }
func (l *loop) SetLink(up bool) error { l.up <- up; return nil }
func (l *loop) Close() error          { close(l.from); return nil }
func (l *loop) next(t *testing.T) []byte {
	t.Helper()
	select {
	case f := <-l.to:
		return f
	case <-time.After(5 * time.Minute): // only when it hangs
		t.Fatal("no frame arrives")
		return nil
	}
}

// request is a recorded frame of a Soft-RoCE.
func request(t *testing.T) []byte {
	t.Helper()
	files, err := filepath.Glob("../../fixtures/captures/rxe/6.1/*.pcap*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		_, packets, err := pcap.Read(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range packets {
			if pk, err := roce.Parse(p.Data); err == nil && pk.Info().Kind != roce.KindResponse && len(pk.Payload()) > 8 {
				return p.Data
			}
		}
	}
	t.Fatal("no capture with a request")
	return nil
}

func rig(t *testing.T) (*Wire, *loop, *loop) {
	t.Helper()
	a, b := newLoop("w0"), newLoop("w1")
	w := newWire(time.Now(), 1, nil, a, b)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, a, b
}

func TestRulesOnTheWire(t *testing.T) {
	w, a, b := rig(t)
	data := request(t)
	p, err := roce.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.StartTap(nil); err != nil {
		t.Fatal(err)
	}
	match := verbs.WireRule{Match: verbs.WireMatchPSN | verbs.WireMatchOpcode, PSN: p.BTH().PSN(), Opcode: uint8(p.Op), Count: 1}
	var want []verbs.WireAction
	send := func(action verbs.WireAction, more func(*verbs.WireRule)) {
		t.Helper()
		r := match
		r.Action = action
		if more != nil {
			more(&r)
		}
		if _, err := w.ClearRules(nil); err != nil {
			t.Fatal(err)
		}
		if err := w.Inject(nil, r); err != nil {
			t.Fatal(err)
		}
		want = append(want, action)
		a.from <- bytes.Clone(data)
		wait := time.Now()
		for seen := 0; seen < len(want); time.Sleep(time.Millisecond) { // the rule must not go before it was asked
			if time.Since(wait) > time.Minute {
				t.Fatalf("waited a minute for the tap to have frame %d; it has %d", len(want), seen)
			}
			w.mu.Lock()
			seen = len(w.frames)
			w.mu.Unlock()
		}
	}
	right := func(f []byte) bool {
		q, err := roce.Parse(f)
		return err == nil && q.ComputeICRC() == roce.GetICRC(f[q.Len()-roce.ICRCSize:])
	}

	send(verbs.WireDrop, nil)
	send(verbs.WirePass, nil)
	if got := b.next(t); !bytes.Equal(got, data) {
		t.Error("a frame that passes is changed, or the one to drop arrived")
	}
	send(verbs.WireCorrupt, nil)
	if got := b.next(t); right(got) || len(got) != len(data) {
		t.Error("a corrupt frame has a right ICRC")
	}
	send(verbs.WireEdit, func(r *verbs.WireRule) { r.Edits = []verbs.ByteEdit{{Offset: 7, Value: 0x55}} })
	if got := b.next(t); !right(got) || got[p.BTHOffset()+7] != 0x55 {
		t.Error("an edited frame has a wrong ICRC, or is not edited")
	}
	send(verbs.WireSpoil, func(r *verbs.WireRule) { r.Edits = []verbs.ByteEdit{{Offset: 7, Value: 0x55}} })
	if got := b.next(t); right(got) || got[p.BTHOffset()+7] != 0x55 {
		t.Error("a spoilt frame has a right ICRC, or is not edited")
	}
	send(verbs.WireDuplicate, nil)
	if x, y := b.next(t), b.next(t); !bytes.Equal(x, y) {
		t.Error("two different frames")
	}
	send(verbs.WireTruncate, func(r *verbs.WireRule) { r.Keep = roce.EthernetSize - 1 }) // nothing that an interface takes
	send(verbs.WireTruncate, func(r *verbs.WireRule) { r.Keep = roce.EthernetSize })
	if got := b.next(t); !bytes.Equal(got, data[:roce.EthernetSize]) {
		t.Errorf("%d bytes of a truncated frame", len(got))
	}
	send(verbs.WireDelay, func(r *verbs.WireRule) { r.Delay = time.Millisecond })
	if got := b.next(t); !bytes.Equal(got, data) {
		t.Error("a late frame is changed")
	}
	frames, err := w.StopTap(nil)
	if err != nil || len(frames) != len(want) {
		t.Fatalf("%d frames, %v; want %d", len(frames), err, len(want))
	}
	for i, f := range frames {
		if f.Acted != want[i] || !bytes.Equal(f.Data, data) || i > 0 && f.At < frames[i-1].At {
			t.Errorf("frame %d: action %v at %v, want %v", i, f.Acted, f.At, want[i])
		}
	}
	if _, err := w.StopTap(nil); err == nil {
		t.Error("a recording ends twice")
	}
}

func TestWhatIsNoRoCEPasses(t *testing.T) {
	w, a, b := rig(t)
	if err := w.Inject(nil, verbs.WireRule{Action: verbs.WireDrop}); err != nil {
		t.Fatal(err)
	}
	arp := slices.Concat(bytes.Repeat([]byte{0xff}, 6), make([]byte, 6), []byte{0x08, 0x06}, make([]byte, 46))
	b.from <- arp
	if got := a.next(t); !bytes.Equal(got, arp) {
		t.Error("address resolution is disturbed")
	}
	if err := w.SetLink(nil, 1, 1, false); err != nil || <-b.up {
		t.Errorf("link of the second host: %v", err)
	}
	for _, bad := range [][2]int{{2, 1}, {-1, 1}, {0, 2}} {
		if err := w.SetLink(nil, bad[0], bad[1], true); verbs.ErrnoOf(err) != syscall.EINVAL {
			t.Errorf("link %v: %v", bad, err)
		}
	}
	if err := w.Inject(nil, verbs.WireRule{Action: 99}); verbs.ErrnoOf(err) != syscall.EINVAL {
		t.Errorf("an unknown action: %v", err)
	}
}

func TestReorderAndMark(t *testing.T) {
	w, a, b := rig(t)
	data := request(t)
	plan, err := fault.Parse("x.yaml", []byte("faults:\n- {do: reorder, iteration: 1, count: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Plan(plan, [2]string{"host0/a", "host1/b"}); err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(data)
	other[len(other)-1] ^= 0xff
	a.from <- bytes.Clone(data)
	a.from <- bytes.Clone(other)
	if x, y := b.next(t), b.next(t); !bytes.Equal(x, other) || !bytes.Equal(y, data) {
		t.Error("the held frame is not behind the next one")
	}
	marked := bytes.Clone(data)
	applyRule(marked, &fault.Rule{Action: fault.Mark})
	p, err := roce.Parse(marked)
	if err != nil || p.IPv4().TOS()&3 != 3 || p.IPv4().Checksum() != p.IPv4().ComputeChecksum() {
		t.Errorf("a marked frame: %v", err)
	}
}
