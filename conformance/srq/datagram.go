package srq

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// datagrams has two UD QPs share receives.
func datagrams(c *spec.C) {
	e := kit.Open(c)
	s, rcq := e.CreateSRQ(c, 16, 2), e.CreateCQ(c, 64)
	o := kit.DefaultFor(verbs.QPTUD)
	o.SRQ, o.RecvCQ = s.SRQ, rcq
	var to [2]*kit.QP
	for i := range to {
		to[i] = e.CreateQP(c, o)
		to[i].BringUp(c, kit.Peer{}, verbs.QPSRTS)
	}
	from, ah := e.NewUD(c), e.CreateAH(c, e.AHTo(e.LocalAddr))
	mem := e.Buffer(c, 4096, kit.AllAccess)
	want := mem.FillRandom(c)
	for i := range uint64(4) {
		s.RecvInto(c, 10+i, mem.SGE(1024+int(i)*256, 100), mem.SGE(1024+int(i)*256+100, 100))
	}
	for i := range 4 {
		q := to[i%2]
		c.Status("send", from.PostAndPoll(c, kit.Datagram(uint64(i), ah, q.QPN(), mem.SGE(8*i, 70))), verbs.WCSuccess)
		wc := kit.ExpectSuccess(c, rcq, 1)[0]
		c.Equal("wr_id", wc.ID, uint64(10+i))
		c.True("QP", wc.QPN == q.QPN(), "%#x, want %#x", wc.QPN, q.QPN())
		c.Equal("byte_len", wc.ByteLen, uint32(verbs.GRHSize+70))
		c.Equal(fmt.Sprintf("bytes %d", i), mem.Get(c, 1024+i*256+verbs.GRHSize, 70), want[8*i:8*i+70])
	}
	c.Status("send with none left", from.PostAndPoll(c, kit.Datagram(9, ah, to[0].QPN(), mem.SGE(0, 8))), verbs.WCSuccess)
	kit.ExpectNoCompletion(c, rcq, kit.QuietPeriod)
}
