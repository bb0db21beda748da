//go:build linux && amd64

package pci

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/uapi"
)

// BenchmarkRegisterRead is an access to a register, as the guest's processor waits for it: there
// and back over the socket.
func BenchmarkRegisterRead(b *testing.B) {
	s := start(b, config(b, 1, "connectx-5"))
	g := dial(b, s.Sockets()[0])
	var p [4]byte
	b.ReportAllocs()
	for b.Loop() {
		g.check(g.c.Read(uapi.VFIORegionBAR0, prm.InitSegHealthCounter, p[:]))
	}
	b.StopTimer()
	g.kill()
	closed(b, s)
}

// BenchmarkCommand is a command that the driver polls for.
func BenchmarkCommand(b *testing.B) {
	s := start(b, config(b, 1, "connectx-5"))
	g := dial(b, s.Sockets()[0])
	g.makeQueue()
	g.cmd(prm.NewIn(prm.OpEnableHCA, 0))
	b.ReportAllocs()
	for b.Loop() {
		g.cmd(prm.NewIn(prm.OpNOP, 0))
	}
	b.StopTimer()
	g.kill()
	closed(b, s)
}
