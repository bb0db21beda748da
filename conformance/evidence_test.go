package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/fake"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// sendTo is a frame with an empty SEND from 10.0.0.1 to 10.0.0.2.
func sendTo(t *testing.T, psn uint32) []byte {
	t.Helper()
	gid := func(last byte) roce.GID { return roce.GID{10: 0xff, 11: 0xff, 12: 10, 15: last} }
	path, err := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: gid(1), DstGID: gid(2), HopLimit: 64, SrcPort: 0xC000,
		PKey: roce.DefaultPKey, DestQP: 0x12, MigReq: true})
	if err != nil {
		t.Fatal(err)
	}
	var pool roce.Pool
	f := path.New(&pool, roce.RC.Opcode(roce.OpSendOnly), psn, 0, 0)
	f.FinishICRC()
	return f.B
}

// Where time is real, the frames around a failure are those that the case has recorded; a case that
// passes has none.
func TestFramesOfAFailureInRealTime(t *testing.T) {
	dir := t.TempDir()
	r := &conformance.Runner{Target: fake.Target{Capabilities: map[string]verbs.Capability{spec.ExactTime: verbs.Absent}},
		Evidence: func(id string) string { return filepath.Join(dir, id) }}
	var frames []verbs.WireFrame
	for i := range 40 {
		frames = append(frames, verbs.WireFrame{At: time.Duration(i) * time.Microsecond, Data: sendTo(t, uint32(i))})
	}
	frames[39].Acted = verbs.WireDrop
	fails := true
	body := func(c *spec.C) {
		c.KeepFrames(frames)
		if fails {
			c.Failf("no answer")
		}
	}
	got := run(t, r, "DEV-001", body)
	if len(got.Frames) != 24 || got.FramesBefore != 16 || got.FramesAfter != 0 {
		t.Fatalf("%d frames, %d before and %d after", len(got.Frames), got.FramesBefore, got.FramesAfter)
	}
	last := got.Frames[23]
	if last.From != "10.0.0.1" || last.To != "10.0.0.2" || last.AtNs != 39000 || !strings.Contains(last.Text, "RC SEND Only, PSN 39") || last.Fate != "dropped by a rule of the case" {
		t.Errorf("last frame %+v", last)
	}
	if st, err := os.Stat(filepath.Join(dir, "DEV-001")); err != nil || st.Size() == 0 {
		t.Errorf("the capture: %v", err)
	}
	if got.RealNs == 0 {
		t.Error("the record does not say how long the case took")
	}
	fails = false
	if got := run(t, r, "DEV-002", body); got.Outcome != report.Pass || got.Frames != nil {
		t.Errorf("a case that passes: %+v", got)
	}
}
