package post

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// inlineWrite is what follows the control segment of a WRITE of inline data, whose header says n
// bytes and of which there are 12.
func inlineWrite(to *kit.Buffer, n int) []byte {
	body := make([]byte, prm.RaddrSegmentSize+prm.DSSize)
	prm.RaddrSegment(body).Set(to.Addr(0), to.MR.RKey())
	prm.InlineSegment(body[prm.RaddrSegmentSize:]).SetLen(n)
	for i := range 12 {
		body[prm.RaddrSegmentSize+prm.InlineHeaderSize+i] = byte(i + 1)
	}
	return body
}

// malformedWQEs posts requests behind the library's back: one that is whole, one with the number of
// another QP, and one whose inline data ends behind it.
func malformedWQEs(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, tc := range []struct {
		step  string
		n     int
		other bool
		want  verbs.WCStatus
	}{
		{"a whole request", 12, false, verbs.WCSuccess},
		{"the number of another QP", 12, true, verbs.WCLocQPOpErr},
		{"inline data that ends behind the request", 60, false, verbs.WCLocQPOpErr},
	} {
		p := e.Pair(c, kit.Default())
		want := make([]byte, 64)
		mem.FillByte(c, 0)
		qpn := p.A.QPN()
		if tc.other {
			qpn = p.B.QPN()
		}
		kit.PostRaw(c, p.A, prm.WQEOpRDMAWrite, qpn, 0, inlineWrite(mem, tc.n)...)
		c.Status(tc.step, kit.PollRaw(c, p.A.SendCQ), tc.want)
		if tc.want == verbs.WCSuccess {
			copy(want, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
		} else {
			c.Equal("state after "+tc.step, p.A.QueryState(c), verbs.QPSErr)
		}
		mem.ExpectContents(c, "memory after "+tc.step, want)
	}
}

// foreignOpcodes posts, behind the library's back, operations that the device does not have on the
// service, and an atomic whose old value has more room than it needs.
func foreignOpcodes(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	mem.FillByte(c, 0)
	attr, err := e.Ctx.QueryDeviceEx(c.T, 0)
	kit.Must(c, "query_device_ex", err)
	if attr.CapFlagsEx&verbs.DeviceAtomicWrite == 0 { // the device, whatever its library can post
		body := inlineWrite(mem, 8)
		p := e.Pair(c, kit.Default())
		kit.PostRaw(c, p.A, prm.WQEOpAtomicWrite, p.A.QPN(), 0, body...)
		c.Status("ATOMIC WRITE on a device without it", kit.PollRaw(c, p.A.SendCQ), verbs.WCLocQPOpErr)
	}
	p := e.Pair(c, kit.Default())
	body := make([]byte, prm.RaddrSegmentSize+prm.AtomicSegmentSize+prm.DataSegmentSize)
	prm.RaddrSegment(body).Set(mem.Addr(0), mem.MR.RKey())
	prm.DataSegment(body[prm.RaddrSegmentSize+prm.AtomicSegmentSize:]).Set(16, mem.MR.LKey(), mem.Addr(32))
	kit.PostRaw(c, p.A, prm.WQEOpAtomicFA, p.A.QPN(), 0, body...)
	c.Status("an atomic into 16 bytes", kit.PollRaw(c, p.A.SendCQ), verbs.WCLocLenErr)
	q := e.NewUD(c)
	change := make([]byte, prm.UMRCtrlSegmentSize+prm.MKCSize)
	prm.UMRCtrlSegment(change).SetFlags(prm.UMRInline)
	kit.PostRaw(c, q, prm.WQEOpUMR, q.QPN(), 0, change...)
	c.Status("change of a memory key on UD", kit.PollRaw(c, q.SendCQ), verbs.WCLocQPOpErr)
	mem.ExpectContents(c, "memory", make([]byte, 64))
}
