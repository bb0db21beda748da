package verbs

import (
	"syscall"
	"testing"
)

// Embedding alone must satisfy each interface.
var (
	_ Testbed     = UnimplementedTestbed{}
	_ Host        = UnimplementedHost{}
	_ Process     = UnimplementedProcess{}
	_ Buffer      = UnimplementedBuffer{}
	_ Thread      = UnimplementedThread{}
	_ Device      = UnimplementedDevice{}
	_ Context     = UnimplementedContext{}
	_ PD          = UnimplementedPD{}
	_ TD          = UnimplementedTD{}
	_ MR          = UnimplementedMR{}
	_ CQ          = UnimplementedCQ{}
	_ CompChannel = UnimplementedCompChannel{}
	_ QP          = UnimplementedQP{}
	_ UAR         = UnimplementedUAR{}
	_ SRQ         = UnimplementedSRQ{}
	_ AH          = UnimplementedAH{}
	_ MW          = UnimplementedMW{}
	_ DM          = UnimplementedDM{}
)

func TestUnimplementedIsEOPNOTSUPP(t *testing.T) {
	var c UnimplementedContext
	if _, err := c.AllocPD(nil); ErrnoOf(err) != syscall.EOPNOTSUPP {
		t.Errorf("AllocPD: %v, want EOPNOTSUPP", err)
	}
	var q UnimplementedQP
	if _, err := q.PostSend(nil, nil); ErrnoOf(err) != syscall.EOPNOTSUPP {
		t.Errorf("PostSend: %v, want EOPNOTSUPP", err)
	}
}
