package errs

import (
	"cmp"
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// nakCodes turns the acknowledgement of a write into a NAK.
func nakCodes(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	mem, far := e.Buffer(c, 64, kit.AllAccess), other.Buffer(c, 64, kit.AllAccess, 0)
	for _, tc := range []struct {
		syndrome roce.Syndrome
		want     verbs.WCStatus
	}{
		{roce.NAKInvalidRequest, verbs.WCRemInvReqErr}, {roce.NAKRemoteAccess, verbs.WCRemAccessErr},
		{roce.NAKRemoteOp, verbs.WCRemOpErr},
	} {
		a, _ := e.PairWith(c, other, kit.WithLongTimeout(c, kit.Default()))
		kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchOpcode, DestQPN: a.QPN(),
			Opcode: uint8(roce.RCAcknowledge), Count: 1, Action: verbs.WireEdit,
			Edits: []verbs.ByteEdit{{Offset: roce.BTHSize, Value: byte(tc.syndrome)}}})
		wc := a.PostAndPoll(c, far.WriteTo(1, 32, mem.SGE(0, 8)))
		c.Equal("acknowledgements edited", kit.ClearRules(c), []int{1})
		c.Status(fmt.Sprintf("NAK %#02x", uint8(tc.syndrome)), wc, tc.want)
		c.Equal("state", a.QueryState(c), verbs.QPSErr)
	}
}

// statusOfSyndrome is what a syndrome of a requester's error CQE means; any other is WCGeneralErr
// (providers/mlx5/cq.c, mlx5_handle_error_cqe).
var statusOfSyndrome = map[uint8]verbs.WCStatus{
	0x01: verbs.WCLocLenErr, 0x02: verbs.WCLocQPOpErr, 0x04: verbs.WCLocProtErr, 0x05: verbs.WCWRFlushErr, 0x06: verbs.WCMWBindErr,
	0x10: verbs.WCBadRespErr, 0x11: verbs.WCLocAccessErr, 0x12: verbs.WCRemInvReqErr, 0x13: verbs.WCRemAccessErr, 0x14: verbs.WCRemOpErr,
	0x15: verbs.WCRetryExcErr, 0x16: verbs.WCRNRRetryExcErr, 0x22: verbs.WCRemAbortErr,
}

func syndromes(c *spec.C) {
	faults := c.TB.Faults()
	if faults == nil {
		c.Errorf("the testbed gives no faults")
	}
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	for s := range 256 {
		if err := faults.FailNext(c.T, p.A.QPN(), uint8(s), 0x33); err != nil {
			c.Errorf("arm the fault: %v", err)
		}
		wc := p.A.PostAndPoll(c, kit.Write(uint64(s), mem, 32, mem.SGE(0, 8)))
		if want := cmp.Or(statusOfSyndrome[uint8(s)], verbs.WCGeneralErr); wc.Status != want {
			c.Status(fmt.Sprintf("syndrome %#02x", s), wc, want)
		}
		if wc.VendorErr != 0x33 || wc.ID != uint64(s) {
			c.Failf("syndrome %#02x: vendor_err %#x, wr_id %d", s, wc.VendorErr, wc.ID)
		}
		p.A.ModifyState(c, verbs.QPSReset)
		p.B.ModifyState(c, verbs.QPSReset)
		p.Connect(c)
	}
	c.Observe("syndromes", 256)
}

// badResponse makes the answer to a read an acknowledgement of an atomic.
func badResponse(c *spec.C) {
	e := kit.Open(c)
	a, b := e.RemotePair(c, kit.WithLongTimeout(c, kit.Default()))
	src, dst := b.Process.Buffer(c, 64, kit.AllAccess, 0), e.Buffer(c, 64, kit.AllAccess)
	want := c.Rand().Bytes(32)
	src.Set(c, 0, want)
	kit.Inject(c, verbs.WireRule{Match: verbs.WireMatchDestQPN | verbs.WireMatchOpcode, DestQPN: a.QPN(),
		Opcode: uint8(roce.RCReadResponseOnly), Count: 1, Action: verbs.WireEdit,
		Edits: []verbs.ByteEdit{{Offset: 0, Value: uint8(roce.RCAtomicAcknowledge)}}})
	wc := a.PostAndPoll(c, src.ReadFrom(1, 0, dst.SGE(0, 32)))
	c.Equal("responses edited", kit.ClearRules(c), []int{1})
	if c.StatusIn("read", wc, verbs.WCBadRespErr, verbs.WCSuccess) == verbs.WCSuccess {
		dst.ExpectContents(c, "bytes after the retry", want)
	}
}
