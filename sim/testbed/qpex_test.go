package testbed

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// extendedRC is what the queue pairs of these tests may post.
const extendedRC = verbs.QPExSend | verbs.QPExRDMAWrite | verbs.QPExRDMARead | verbs.QPExBindMW | verbs.QPExLocalInv

// extended gives the node an extended QP that is connected to itself.
func (x *rig) extended(n *node, peer *node, ops uint64) verbs.QPEx {
	x.Helper()
	q, err := n.pd.CreateQP(x.t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: n.cq, RecvCQ: n.cq, CompMask: verbs.QPInitSendOpsFlags,
		SendOpsFlags: ops, Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInline: 64}})
	x.ok("qp", err)
	x.connect(x.t, q, n.gid, peer.gid, q.QPN(), verbs.MTU1024) // to itself
	n.qp = q
	return q.Ex()
}

// One batch rings once; BlueFlame takes a batch of one request.
func TestExtendedPostRings(t *testing.T) {
	run(t, config(t), func(x *rig) {
		a := x.node(x.t, 8192)
		if a.qp.Ex() != nil {
			t.Error("a QP of the plain call is an ibv_qp_ex")
		}
		e := x.extended(a, a, extendedRC)
		rung := func() (uint64, uint64) { return a.qp.(*provider.QP).Pushes() }
		for _, c := range []struct {
			name             string
			n                int
			inline           bool
			doorbells, pushs uint64
		}{{"one inline", 1, true, 0, 1}, {"one", 1, false, 0, 1}, {"five inline", 5, true, 1, 0}, {"five", 5, false, 1, 0}, {"none", 0, false, 0, 0}} {
			d, p := rung()
			e.WRStart(x.t)
			for i := range c.n {
				e.SetWR(uint64(i), verbs.SendSignaled)
				e.WRRDMAWrite(x.t, a.mr.RKey(), a.buf.Addr()+4096)
				if c.inline {
					e.SetInlineData(x.t, a.buf.Addr(), 16)
				} else {
					e.SetSGE(x.t, a.sge(0, 16)[0])
				}
			}
			x.ok("wr_complete", e.WRComplete(x.t))
			for i := range c.n {
				if w := x.wait(x.t, a); w.ID != uint64(i) {
					t.Errorf("%s: completion %d has wr_id %d", c.name, i, w.ID)
				}
			}
			if dd, pp := rung(); dd-d != c.doorbells || pp-p != c.pushs {
				t.Errorf("%s: %d doorbells and %d pushes, want %d and %d", c.name, dd-d, pp-p, c.doorbells, c.pushs)
			}
		}
		x.none(a)
	})
}

// A bind and a local invalidate need no setter, and the write behind a bind waits for
// it.
func TestExtendedPostUMR(t *testing.T) {
	run(t, config(t), func(x *rig) {
		a := x.node(x.t, 8192)
		e := x.extended(a, a, extendedRC)
		mw, err := a.pd.AllocMW(x.t, verbs.MWType2)
		x.ok("mw", err)
		key := verbs.IncRKey(mw.RKey())
		info := verbs.MWBindInfo{MR: a.mr, Addr: a.buf.Addr() + 4096, Length: 64, Access: verbs.AccessRemoteWrite}
		e.SetWR(1, verbs.SendSignaled)
		e.WRStart(x.t)
		e.WRBindMW(x.t, mw, key, info)
		e.WRRDMAWrite(x.t, key, info.Addr)
		e.SetInlineData(x.t, a.buf.Addr(), 8)
		x.ok("wr_complete", e.WRComplete(x.t))
		for _, want := range []verbs.WCOpcode{verbs.WCOpBindMW, verbs.WCOpRDMAWrite} {
			if w := x.wait(x.t, a); w.Opcode != want {
				t.Errorf("opcode %v, want %v", w.Opcode, want)
			}
		}
		e.WRStart(x.t)
		e.WRLocalInv(x.t, key)
		x.ok("wr_complete", e.WRComplete(x.t))
		if w := x.wait(x.t, a); w.Opcode != verbs.WCOpLocalInv {
			t.Errorf("opcode %v, want LOCAL_INV", w.Opcode)
		}
		e.WRStart(x.t)
		info.MR = nil
		e.WRBindMW(x.t, mw, key, info)
		if err := e.WRComplete(x.t); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("a bind to no region: %v, want EINVAL", err)
		}
		x.none(a)
	})
}

// On UD the address and the data come in either order.
func TestExtendedPostDatagram(t *testing.T) {
	run(t, config(t), func(x *rig) {
		a := x.node(x.t, 8192)
		q, err := a.pd.CreateQP(x.t, verbs.QPInitAttr{Type: verbs.QPTUD, SendCQ: a.cq, RecvCQ: a.cq, CompMask: verbs.QPInitSendOpsFlags,
			SendOpsFlags: verbs.QPExSend, Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInline: 64}})
		x.ok("qp", err)
		st := verbs.QPAttr{State: verbs.QPSInit, Port: 1, QKey: 5}
		x.ok("INIT", q.Modify(x.t, &st, verbs.QPMaskState|verbs.QPMaskPKeyIndex|verbs.QPMaskPort|verbs.QPMaskQKey))
		st.State = verbs.QPSRTR
		x.ok("RTR", q.Modify(x.t, &st, verbs.QPMaskState))
		st.State = verbs.QPSRTS
		x.ok("RTS", q.Modify(x.t, &st, verbs.QPMaskState|verbs.QPMaskSQPSN))
		ah, err := a.pd.CreateAH(x.t, verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: a.gid.GID, SGIDIndex: uint8(a.gid.Index), HopLimit: 1}})
		x.ok("ah", err)
		e := q.Ex()
		_, err = q.PostRecv(x.t, []verbs.RecvWR{{ID: 10, SGEs: a.sge(4096, 1024)}, {ID: 11, SGEs: a.sge(6144, 1024)}})
		x.ok("recv", err)
		x.write(x.t, a.buf, []byte("a datagram"), 0)
		e.WRStart(x.t)
		e.SetWR(1, 0)
		e.WRSend(x.t)
		e.SetUDAddr(x.t, ah, q.QPN(), 5)
		e.SetSGE(x.t, a.sge(0, 10)[0])
		e.WRSend(x.t)
		e.SetInlineDataList(x.t, []verbs.DataBuf{{Addr: a.buf.Addr(), Length: 2}, {Addr: a.buf.Addr() + 2, Length: 8}})
		e.SetUDAddr(x.t, ah, q.QPN(), 5)
		x.ok("wr_complete", e.WRComplete(x.t))
		for i := range 2 {
			w := x.wait(x.t, a)
			if got := string(x.read(x.t, a.buf, 4096+2048*i+40, 10)); w.ByteLen != 50 || got != "a datagram" {
				t.Errorf("datagram %d: %d bytes, %q", i, w.ByteLen, got)
			}
		}
	})
}

// A builder that the type lacks is a null pointer.
func TestExtendedPostOfAnotherType(t *testing.T) {
	b, err := New(config(t))
	if err != nil {
		t.Fatal(err)
	}
	err = b.Run(0, func(th verbs.Thread) {
		x := &rig{TB: t, bed: b, t: th}
		a := x.node(th, 4096)
		q, err := a.pd.CreateQP(th, verbs.QPInitAttr{Type: verbs.QPTUD, SendCQ: a.cq, RecvCQ: a.cq, CompMask: verbs.QPInitSendOpsFlags,
			SendOpsFlags: verbs.QPExSend, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
		x.ok("qp", err)
		q.Ex().WRStart(th)
		q.Ex().WRRDMAWrite(th, 1, 2)
		t.Error("a UD QP built an RDMA write")
	})
	if err == nil || !strings.Contains(err.Error(), "segmentation fault") {
		t.Errorf("run: %v, want a segmentation fault", err)
	}
}
