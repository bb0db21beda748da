package rc

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// atomicWrite writes words of 8 equal bytes while another thread looks at the target, which
// never holds two different ones. A target that is not aligned is refused and stays as it was.
func atomicWrite(c *spec.C) {
	const rounds = 200
	o := kit.Default()
	o.SendOps = kit.OpsRC | verbs.QPExAtomicWrite
	p := kit.NewPair(c, o)
	dst := p.Buffer(c, 32, kit.AllAccess)
	at := 8 - int(dst.Addr(0)%8)
	dst.FillByte(c, 0)
	var done atomic.Bool
	watcher := c.Go("watcher", -1, func(c *spec.C) {
		for !done.Load() {
			if w := dst.Get(c, at, 8); bytes.Count(w, w[:1]) != 8 {
				c.Failf("the target holds parts of two writes: % x", w)
			}
			c.T.Sleep(100 * time.Nanosecond)
		}
	})
	for i := range rounds {
		wc := writeWord(c, p.A, dst, at, byte(i+1))
		c.Status("atomic write", wc, verbs.WCSuccess)
		c.Equal("opcode", wc.Opcode, verbs.WCOpAtomicWrite)
		if w := dst.Get(c, at, 8); !bytes.Equal(w, bytes.Repeat([]byte{byte(i + 1)}, 8)) {
			c.Failf("the target holds % x after write %d", w, i+1)
		}
	}
	done.Store(true)
	kit.JoinThreads(c, watcher)
	before := dst.Get(c, 0, dst.Len)
	c.StatusIn("a target that is not aligned", writeWord(c, p.A, dst, at+4, 0xee), verbs.WCRemInvReqErr, verbs.WCRemAccessErr)
	dst.ExpectContents(c, "memory after it", before)
}

// writeWord writes 8 bytes of v by the extended way to post and takes the completion.
func writeWord(c *spec.C, q *kit.QP, dst *kit.Buffer, off int, v byte) verbs.WC {
	x := q.QPEx(c)
	x.WRStart(c.T)
	x.SetWR(1, verbs.SendSignaled)
	x.WRAtomicWrite(c.T, dst.MR.RKey(), dst.Addr(off), [8]byte(bytes.Repeat([]byte{v}, 8)))
	kit.Must(c, "wr_complete", x.WRComplete(c.T))
	return kit.PollOne(c, q.SendCQ)
}
