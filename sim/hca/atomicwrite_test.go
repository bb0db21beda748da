package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
)

// TestAtomicWrite: the 8 bytes are written once, also when the answer is lost and the request comes
// again; a wrong address or key is refused, and a device without the operation sends none.
func TestAtomicWrite(t *testing.T) {
	p := testParams()
	p.AtomicWrite = true
	ha, hb, a, _, _, ba := twoHosts(t, p, 1, defaults())
	r := hb.newMR(64, rightsAll)
	w := wr{op: prm.WQEOpAtomicWrite, raddr: r.va + 8, rkey: r.rkey, inline: []byte("12345678")}
	hb.d.SetWire(&skip{w: ba, n: 1})
	a.post(w)
	run(t, ha.e, ms)
	if got := r.bytes(8, 8); !bytes.Equal(got, w.inline) {
		t.Fatalf("the target holds %q", got)
	}
	r.fill(func(int) byte { return 'x' })
	run(t, ha.e, 100*ms) // the request comes again
	if e := a.scq.expect(prm.CQEReq); e.SOp() != prm.WQEOpAtomicWrite {
		t.Errorf("completed as %#x", e.SOp())
	}
	if got := r.bytes(0, 64); !bytes.Equal(got, bytes.Repeat([]byte("x"), 64)) {
		t.Errorf("written again: %q", got)
	}
	if n := hb.counter(prm.QCDuplicateRequest); n != 1 {
		t.Errorf("%d duplicates, want 1", n)
	}
	w.raddr += 4
	a.post(w)
	run(t, ha.e, ms)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteInvalReq)
}

// TestAtomicWriteRefused: by the device that has no such operation, on either side, and by the key.
func TestAtomicWriteRefused(t *testing.T) {
	for _, x := range []struct {
		name     string
		near     bool
		key      uint32
		syndrome prm.Syndrome
	}{
		{"the sender lacks it", false, 0, prm.SyndromeLocalQPOp},
		{"the key is wrong", true, 1, prm.SyndromeRemoteAccess},
	} {
		p := testParams()
		p.AtomicWrite = x.near
		ha, hb, a, _, _, _ := twoHosts(t, p, 1, defaults())
		r := hb.newMR(64, rightsAll)
		a.post(wr{op: prm.WQEOpAtomicWrite, raddr: r.va, rkey: r.rkey + x.key, inline: []byte("12345678")})
		run(t, ha.e, ms)
		t.Log(x.name)
		a.scq.expectError(prm.CQEReqErr, x.syndrome)
	}
}
