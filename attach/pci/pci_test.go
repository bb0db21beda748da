//go:build linux && amd64

package pci

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/prm"
)

func TestBringUp(t *testing.T) {
	for _, name := range []string{"connectx-5", "connectx-5-ib"} {
		cfg := config(t, 1, name)
		log := new(said)
		cfg.Logf = log.logf
		s := start(t, cfg)
		for range 2 { // lives of the device
			g := dial(t, s.Sockets()[0])
			for range 2 { // drivers in one boot
				g.bringUp()
				if g.bf {
					t.Error("the device offers BlueFlame unasked")
				}
				a, b := g.reg(prm.InitSegHealthCounter), uint32(0)
				g.until("the health counter", func() bool { b = g.reg(prm.InitSegHealthCounter); return b != a })
				var counted [8]byte
				if n, err := unix.Read(g.vector[0], counted[:]); n != 8 || err != nil {
					t.Errorf("no interrupt for the events of commands: %v", err)
				}
				g.ceq = nil // TEARDOWN takes it away, so that its own completion is polled for
				g.cmd(prm.NewIn(prm.OpTeardownHCA, 0))
				g.cmd(prm.NewIn(prm.OpDisableHCA, 0))
			}
			g.kill()
		}
		closed(t, s)
		for _, line := range []string{"connected (life 2", "initialised the device", "shut the device down", "2 lives"} {
			if !log.has(line) {
				t.Errorf("%s: nothing says %q: %q", name, line, log.lines)
			}
		}
		if log.has("does not know") || log.has("refused") {
			t.Errorf("%q", log.lines)
		}
	}
}
