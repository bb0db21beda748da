package perf

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// cmError is a step of the connections of a test that failed, in perftest's words.
func (e *End) cmError(err error) error {
	var already *StepError
	if err == nil || errors.As(err, &already) || errors.Is(err, ErrInterrupted) || errors.Is(err, io.EOF) {
		return err
	}
	return &StepError{Err: err, Hint: e.cmHint(err), Words: "Failed to create RDMA CM connection.\nFailed to create RDMA CM connection with resources.\n"}
}

// findQueues agrees that both ends are ready to connect. A client then finds the way of each queue
// pair to the server; a server listens until the first request comes, which says the device.
func (e *End) findQueues(t verbs.Thread) (err error) {
	if e.cm, err = e.openEvents(t); err != nil {
		return err
	}
	if err := e.handshake(t); err != nil {
		return err
	}
	e.ids = make([]verbs.CMID, e.o.QPs)
	if e.o.Host == "" {
		return e.cmError(e.firstRequest(t))
	}
	for i := range e.ids {
		if err := e.newID(t, i); err != nil {
			return e.cmError(err)
		}
	}
	return e.cmError(e.adopt(t, e.ids[0]))
}

// newID makes the id of a queue pair, and resolves it. It has the source address that the device
// asked for has.
func (e *End) newID(t verbs.Thread, i int) error {
	id, err := e.cm.id(t, e.o.Connection)
	if err != nil {
		return err
	}
	if e.ids[i] == nil {
		e.later(func(t verbs.Thread) error { return e.ids[i].Destroy(t) })
	}
	e.ids[i] = id
	src := e.source
	if a := netip.AddrFrom16(e.gid).Unmap(); !src.IsValid() && e.o.Device != "" && e.useGID && a.Is4() != e.o.IPv6 && !linkLocal(e.gid) {
		src = a
	}
	return e.cm.resolve(t, id, src, e.o.tos, e.o.Connection == RC)
}

// adopt takes the device, port and address that the connection manager has chosen.
func (e *End) adopt(t verbs.Thread, id verbs.CMID) (err error) {
	before := e.dev.Name()
	e.ctx, e.o.IBPort = id.Verbs(), id.Port()
	if e.dev = e.ctx.Device(); e.dev.Name() != before && e.o.Device != "" {
		fmt.Fprintf(e.env.Err, " The connection is on %s: its addresses decide, and not -d %s\n", e.dev.Name(), before)
	}
	if e.attr, err = e.ctx.QueryDevice(t); err != nil {
		return fmt.Errorf("query of %s: %w", e.dev.Name(), err)
	}
	if e.port, err = e.ctx.QueryPort(t, e.o.IBPort); err != nil {
		return fmt.Errorf("query of port %d: %w", e.o.IBPort, err)
	}
	want := verbs.GID(id.LocalAddr().Addr().As16())
	entries := make([]verbs.GIDEntry, max(e.port.GIDTblLen, 1)*max(int(e.attr.PhysPortCnt), 1))
	n, err := e.ctx.QueryGIDTable(t, entries, 0)
	if err != nil {
		return fmt.Errorf("query of the GID table: %w", err)
	}
	best := -1
	for _, g := range entries[:n] {
		if s := score(&g, true); int(g.Port) == e.o.IBPort && g.GID == want && s > best {
			best, e.useGID, e.gid, e.gidIndex = s, true, g.GID, int(g.Index)
		}
	}
	return nil
}

// firstRequest listens, and takes the request of the first queue pair.
func (e *End) firstRequest(t verbs.Thread) error {
	listener, err := e.cm.listen(t, e.o.Connection)
	if err != nil {
		return err
	}
	e.listener = listener
	e.later(func(t verbs.Thread) error { return e.stopListening(t) })
	if err := e.request(t, 0); err != nil {
		return err
	}
	return e.adopt(t, e.ids[0])
}

func (e *End) stopListening(t verbs.Thread) error {
	if e.listener == nil {
		return nil
	}
	l := e.listener
	e.listener = nil
	return l.Destroy(t)
}

// request waits for the request of a queue pair.
func (e *End) request(t verbs.Thread, i int) error {
	return e.cm.expect(t, verbs.CMConnectRequest, answerTime, func(ev *verbs.CMEvent) error {
		e.ids[i] = ev.ID
		e.depths = append(e.depths, [2]uint8{ev.Conn.InitiatorDepth, ev.Conn.ResponderResources})
		e.later(func(t verbs.Thread) error { return e.ids[i].Destroy(t) })
		return nil
	})
}

// connectQueues connects the queue pairs, one after the other, and agrees that both ends have.
func (e *End) connectQueues(t verbs.Thread) error {
	defer e.later(e.disconnect) // before the ids that are made here are taken back
	for i, c := range e.conns {
		do := e.connectOne
		if e.o.Host == "" {
			do = e.acceptOne
		}
		if err := do(t, c); err != nil {
			return e.cmError(fmt.Errorf("queue pair %d of %d: %w", i, len(e.conns), err))
		}
		e.connected++
	}
	if err := e.stopListening(t); err != nil {
		return fmt.Errorf("rdma_destroy_id of the listener: %w", err)
	}
	return e.handshake(t)
}

// param are the parameters of a connection: the reads that both can have outstanding.
func (e *End) param(initiator, responder uint8) *verbs.ConnParam {
	p := &verbs.ConnParam{RetryCount: e.o.RetryCount, RNRRetryCount: e.o.RetryCount}
	if reads(e.o.Test) {
		p.ResponderResources, p.InitiatorDepth = min(uint8(e.reads), initiator), min(uint8(e.reads), responder)
	}
	return p
}

// connectOne connects a queue pair. A server that does not listen yet is asked again.
func (e *End) connectOne(t verbs.Thread, c *conn) error {
	for n := 1; ; n++ {
		id := e.ids[c.index]
		if err := id.Connect(t, e.param(0xff, 0xff)); err != nil {
			return fmt.Errorf("rdma_connect: %w", err)
		}
		err := e.cm.expect(t, verbs.CMEstablished, answerTime, func(ev *verbs.CMEvent) error { return e.established(t, c, ev) })
		var u *unexpected
		if !errors.As(err, &u) || n == tries {
			return err
		}
		t.Sleep(betweenTry)
		if err := id.DestroyQP(t); err != nil {
			return fmt.Errorf("rdma_destroy_qp: %w", err)
		}
		if err := e.newID(t, c.index); err != nil {
			return err
		}
		if err := id.Destroy(t); err != nil {
			return fmt.Errorf("rdma_destroy_id: %w", err)
		}
		if err := e.createQP(t, c); err != nil {
			return err
		}
	}
}

// established notes the address of a server of datagrams, and tells it this end's number if it
// sends too.
func (e *End) established(t verbs.Thread, c *conn, ev *verbs.CMEvent) error {
	if e.o.Connection != UD {
		return nil
	}
	c.remoteQPN, c.remoteQKey = ev.UD.QPN, ev.UD.QKey
	if err := e.address(t, c, ev.UD.AH); err != nil || !e.o.answers() {
		return err
	}
	// What counts is the immediate; the message has 4 bytes of the buffer.
	wr := verbs.SendWR{Opcode: verbs.WRSendImm, Flags: verbs.SendSignaled, Imm: c.qp.QPN(), AH: c.ah, RemoteQPN: c.remoteQPN, RemoteQKey: c.remoteQKey,
		SGEs: []verbs.SGE{{Addr: c.addr(), Length: 4, LKey: c.mr.LKey()}}}
	if _, err := c.qp.PostSend(t, []verbs.SendWR{wr}); err != nil {
		return fmt.Errorf("ibv_post_send of the queue pair's number: %w", err)
	}
	_, err := e.single(t, e.sendCQ)
	return err
}

// answers reports whether the server of datagrams sends, and so needs to learn where to.
func (o *Options) answers() bool { return o.Connection == UD && (o.Test.Latency || o.BothWays) }

func (e *End) address(t verbs.Thread, c *conn, a verbs.AHAttr) error {
	ah, err := e.pd.CreateAH(t, a)
	if err != nil {
		return &StepError{Err: fmt.Errorf("ibv_create_ah: %w", err), Words: "Failed to create AH for RDMA CM connection.\n"}
	}
	c.ah = ah
	e.later(ah.Destroy)
	return nil
}

// single waits for the one completion that is on its way.
func (e *End) single(t verbs.Thread, q verbs.CQ) (*verbs.WC, error) {
	var wc [1]verbs.WC
	for began := t.Now(); ; {
		n, err := q.PollWait(t, wc[:], look)
		switch {
		case err != nil:
			return nil, fmt.Errorf("ibv_poll_cq: %w", err)
		case n > 0 && wc[0].Status != verbs.WCSuccess:
			return nil, fmt.Errorf("the message with the queue pair's number has status %d, %s", wc[0].Status, e.ctx.WCStatusStr(wc[0].Status))
		case n > 0:
			return &wc[0], nil
		case e.tired(t.Now() - began):
			return nil, e.quiet(0, 1)
		}
	}
}

// acceptOne accepts the request of a queue pair.
func (e *End) acceptOne(t verbs.Thread, c *conn) error {
	if c.index > 0 {
		if err := e.request(t, c.index); err != nil {
			return err
		}
		if err := e.createQP(t, c); err != nil {
			return err
		}
	}
	id := e.ids[c.index]
	if e.o.answers() {
		if _, err := c.qp.PostRecv(t, []verbs.RecvWR{{SGEs: []verbs.SGE{{Addr: c.buf.Addr() + c.in, Length: verbs.GRHSize + 4, LKey: c.mr.LKey()}}}}); err != nil {
			return fmt.Errorf("ibv_post_recv of the queue pair's number: %w", err)
		}
	}
	if e.o.Connection == RC {
		if err := id.SetOption(t, verbs.CMOptionID, verbs.CMOptionACKTimeout, []byte{e.o.QPTimeout}); err != nil {
			return fmt.Errorf("timeout of acknowledgements %d: %w", e.o.QPTimeout, err)
		}
	}
	d := e.depths[c.index]
	if err := id.Accept(t, e.param(d[0], d[1])); err != nil {
		return fmt.Errorf("rdma_accept: %w", err)
	}
	if e.o.Connection == RC {
		attr := verbs.QPAttr{MinRNRTimer: minRNRTimer}
		if err := c.qp.Modify(t, &attr, verbs.QPMaskMinRNRTimer); err != nil {
			return fmt.Errorf("ibv_modify_qp of the RNR timer: %w", err)
		}
		return nil
	}
	if !e.o.answers() {
		return nil
	}
	return e.learnAddress(t, c)
}

// learnAddress takes the client's number from its first message
// (rdma_cm_initialize_ud_connection_parameters).
func (e *End) learnAddress(t verbs.Thread, c *conn) error {
	w, err := e.single(t, e.rcq)
	if err != nil {
		return err
	}
	grh := make([]byte, verbs.GRHSize)
	if _, err := c.buf.ReadAt(t, grh, int64(c.in)); err != nil {
		return fmt.Errorf("routing header of a datagram: %w", err)
	}
	a, err := e.ctx.InitAHFromWC(t, e.o.IBPort, w, grh)
	if err != nil {
		return fmt.Errorf("ibv_init_ah_from_wc: %w", err)
	}
	attr, _, err := c.qp.Query(t, verbs.QPMaskQKey)
	if err != nil {
		return fmt.Errorf("ibv_query_qp: %w", err)
	}
	c.remoteQPN, c.remoteQKey = w.Imm, attr.QKey
	return e.address(t, c, a)
}

// goodbye is how long an end waits for the other to end a connection.
const goodbye = 5 * time.Second

// disconnect ends the connections: the server begins, and the client waits for it, unless its test
// has failed.
func (e *End) disconnect(t verbs.Thread) error {
	if e.o.Connection == UD {
		return nil
	}
	end := func() {
		for _, id := range e.ids[:e.connected] {
			_ = id.Disconnect(t) // the other end may have been faster
		}
	}
	begins := e.o.Host == "" || e.broken
	if begins {
		end()
	}
	for left, began := e.connected, t.Now(); left > 0 && !e.broken && t.Now()-began < goodbye; {
		ev, err := e.cm.ch.GetEvent(t, eventSlice)
		if err != nil {
			continue
		}
		if ev.Type == verbs.CMDisconnected {
			left--
		}
		_ = e.cm.ch.AckEvent(t, ev)
	}
	if !begins {
		end()
	}
	return nil
}
