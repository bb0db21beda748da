package wire

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// TestLab drops a frame of a real stack: scripts/lab runs it with LAB_WIRE set, between two
// Soft-RoCE devices.
func TestLab(t *testing.T) {
	a, b, ok := strings.Cut(os.Getenv("LAB_WIRE"), ",")
	if !ok {
		t.Skip("needs LAB_WIRE, two interfaces, as scripts/lab sets it")
	}
	w, err := Open(a, b, time.Now(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.StartTap(nil); err != nil {
		t.Fatal(err)
	}
	err = w.Inject(nil, verbs.WireRule{Match: verbs.WireMatchPacket | verbs.WireMatchIteration | verbs.WireMatchDirection, Packet: 3, Iteration: 1,
		Action: verbs.WireDrop, Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	pingpong(t)
	frames, err := w.StopTap(nil)
	if err != nil {
		t.Fatal(err)
	}
	lost, requests, again := 0, 0, map[uint32]int{}
	for _, f := range frames {
		p, err := roce.Parse(f.Data)
		if err != nil {
			t.Fatal(err)
		}
		if f.Acted == verbs.WireDrop {
			lost++
			again[p.BTH().PSN()]++
		} else if again[p.BTH().PSN()] > 0 && p.Info().Kind != roce.KindResponse {
			again[p.BTH().PSN()]++
		}
		if p.Info().Kind != roce.KindResponse {
			requests++
		}
	}
	if lost != 1 || requests < 20 {
		t.Errorf("%d frames, %d requests, %d dropped", len(frames), requests, lost)
	}
	for psn, n := range again {
		if n < 2 {
			t.Errorf("PSN %#x was dropped and not sent again", psn)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	pingpong(t) // by the kernel again
}

func pingpong(t *testing.T) {
	t.Helper()
	server := exec.Command("ibv_rc_pingpong", "-d", "rxe1", "-g", "1", "-n", "10", "-s", "1000")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	if out, err := exec.Command("ibv_rc_pingpong", "-d", "rxe0", "-g", "1", "-n", "10", "-s", "1000", "127.0.0.1").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
		_ = server.Process.Kill()
	}
	if err := server.Wait(); err != nil {
		t.Errorf("server: %v", err)
	}
}
