package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// The longest message, 1 GiB, may be a READ at the smallest MTU too. With what a new request may
// find outstanding it fills the window of PSNs and no more.
func TestLongestReadFitsTheWindowOfPSNs(t *testing.T) {
	q := &requester{connection: &connection{u: &units{}}}
	q.mtu = roce.MTU256.Bytes()
	for n, want := range map[uint64]bool{1 << 30: true, 1<<30 + 1: false} {
		if got := q.readLengthOK(&msg{kind: msgRead}, &prm.SendWQE{Bytes: n}); got != want {
			t.Errorf("a READ of %d bytes: %t", n, got)
		}
	}
	q.psn = roce.MaxOutstandingPSN/2 - 1
	if q.windowFull() {
		t.Fatal("the window is full too early")
	}
	if end := q.psn + roce.PacketsOf(1<<30, q.mtu); end > roce.MaxOutstandingPSN {
		t.Errorf("%d PSNs are outstanding", end)
	}
}
