package perf

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// sideRoom is the room of a message by a queue pair, of which there is one for what is sent and one
// for what comes: a page of perftest's, and more than any message.
const sideRoom = 4096

// sideID is SYNC_SPEC_ID.
const sideID = 5

// sideLook is how long one wait for a message is, until events are looked at.
const sideLook = 10 * time.Millisecond

// side is the exchange by a queue pair of its own, with room for one message in either direction
// (use_rdma_cm).
type side struct {
	e    *End
	v    *events
	id   verbs.CMID
	qp   verbs.QP
	pd   verbs.PD
	cq   [2]verbs.CQ // of sends and receives
	buf  verbs.Buffer
	mr   verbs.MR
	gone bool // the peer has ended the connection
}

// connectSide makes the exchange by the connection manager.
func (e *End) connectSide(t verbs.Thread) (err error) {
	if err := e.reach(t); err != nil {
		return err
	}
	s := &side{e: e}
	if s.v, err = e.openEvents(t); err != nil {
		return err
	}
	if e.o.Host == "" {
		err = s.accept(t)
	} else {
		err = s.connect(t)
	}
	var already *StepError
	switch {
	case errors.As(err, &already), errors.Is(err, ErrInterrupted), errors.Is(err, io.EOF):
		return err
	case err != nil:
		words := map[bool]string{true: " Unable to perform rdma_server function\n", false: " Unable to perform rdma_client function\n"}[e.o.Host == ""]
		var u *unexpected
		if errors.As(err, &u) && u.typ != verbs.CMAddrError && u.typ != verbs.CMRouteError {
			words = fmt.Sprintf("Unexpected CM event bl blka %d\n", u.typ) + words
		}
		return &StepError{Err: err, Hint: e.cmHint(err), Words: words + " Unable to init the socket connection\n"}
	}
	e.ch = s
	return nil
}

func (s *side) connect(t verbs.Thread) (err error) {
	if s.id, err = s.v.id(t, RC); err != nil {
		return err
	}
	s.e.later(s.id.Destroy)
	if err := s.v.resolve(t, s.id, s.e.source, unset, true); err != nil {
		return err
	}
	if err := s.create(t); err != nil {
		return err
	}
	if err := s.id.Connect(t, &verbs.ConnParam{RetryCount: s.e.o.RetryCount, RNRRetryCount: retries}); err != nil {
		return fmt.Errorf("rdma_connect: %w", err)
	}
	return s.v.expect(t, verbs.CMEstablished, answerTime, nil)
}

func (s *side) accept(t verbs.Thread) error {
	listener, err := s.v.listen(t, RC)
	if err != nil {
		return err
	}
	if s.e.env.Listening != nil {
		own, err := s.e.ownAddress(t)
		if err != nil {
			return errors.Join(err, listener.Destroy(t))
		}
		s.e.env.Listening(own)
	}
	err = s.v.expect(t, verbs.CMConnectRequest, 0, func(ev *verbs.CMEvent) error {
		s.id = ev.ID
		s.e.later(s.id.Destroy)
		if err := s.create(t); err != nil {
			return err
		}
		if err := s.id.SetOption(t, verbs.CMOptionID, verbs.CMOptionACKTimeout, []byte{s.e.o.QPTimeout}); err != nil {
			return fmt.Errorf("timeout of acknowledgements: %w", err)
		}
		if err := s.id.Accept(t, &verbs.ConnParam{RetryCount: s.e.o.RetryCount, RNRRetryCount: retries}); err != nil {
			return fmt.Errorf("rdma_accept: %w", err)
		}
		return nil
	})
	return errors.Join(err, listener.Destroy(t))
}

// ownAddress is the address of IP of this end's port: on Ethernet that of the GID, on InfiniBand
// that of its interface of IPoIB.
func (e *End) ownAddress(t verbs.Thread) (netip.Addr, error) {
	if e.ethernet() {
		return netip.AddrFrom16(e.gid).Unmap(), nil
	}
	return verbs.InterfaceAddr(t, e.ctx, int(e.o.IBPort))
}

// create makes the queue pair with what it needs, and posts the receive of the first message.
func (s *side) create(t verbs.Thread) (err error) {
	ctx := s.id.Verbs()
	if s.pd, err = ctx.AllocPD(t); err != nil {
		return fmt.Errorf("ibv_alloc_pd of the exchange: %w", err)
	}
	s.e.later(s.pd.Dealloc)
	if s.buf, err = t.Process().Map(t, 2*sideRoom, verbs.MapOptions{}); err != nil {
		return fmt.Errorf("memory of the exchange: %w", err)
	}
	s.e.later(s.buf.Unmap)
	if s.mr, err = s.pd.RegMR(t, s.buf.Addr(), 2*sideRoom, verbs.AccessLocalWrite); err != nil {
		return fmt.Errorf("ibv_reg_mr of the exchange: %w", err)
	}
	s.e.later(s.mr.Dereg)
	for i := range s.cq {
		if s.cq[i], err = ctx.CreateCQ(t, verbs.CQAttr{CQE: 1}); err != nil {
			return fmt.Errorf("ibv_create_cq of the exchange: %w", err)
		}
		s.e.later(s.cq[i].Destroy)
	}
	s.qp, err = s.id.CreateQP(t, s.pd, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: s.cq[0], RecvCQ: s.cq[1], Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
	if err != nil {
		return fmt.Errorf("rdma_create_qp of the exchange: %w", err)
	}
	s.e.later(s.end)
	return s.post(t)
}

// end takes the connection and its queue pair back.
func (s *side) end(t verbs.Thread) error {
	_ = s.id.Disconnect(t) // the peer may have done it, or no connection has been made
	return s.id.DestroyQP(t)
}

func (s *side) post(t verbs.Thread) error {
	_, err := s.qp.PostRecv(t, []verbs.RecvWR{{ID: sideID, SGEs: []verbs.SGE{{Addr: s.buf.Addr() + sideRoom, Length: sideRoom, LKey: s.mr.LKey()}}}})
	if err != nil {
		return fmt.Errorf("ibv_post_recv of the exchange: %w", err)
	}
	return nil
}

// Send sends a message, and waits until the peer has it.
func (s *side) Send(t verbs.Thread, b []byte) error {
	if len(b) > sideRoom {
		return fmt.Errorf("a message of %d bytes, where %d are the most", len(b), sideRoom)
	}
	if _, err := s.buf.WriteAt(t, b, 0); err != nil {
		return err
	}
	bad, err := s.qp.PostSend(t, []verbs.SendWR{{ID: sideID, Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{{Addr: s.buf.Addr(), Length: uint32(len(b)), LKey: s.mr.LKey()}}}})
	if err != nil {
		return fmt.Errorf("ibv_post_send of the exchange (%d): %w", bad, err)
	}
	_, err = s.complete(t, s.cq[0])
	return err
}

// complete waits for a completion. Where the peer has gone none may come: io.EOF.
func (s *side) complete(t verbs.Thread, q verbs.CQ) (*verbs.WC, error) {
	var wc [1]verbs.WC
	for {
		gone := s.gone // whatever was sent before is there
		n, err := q.PollWait(t, wc[:], sideLook)
		switch {
		case err != nil:
			return nil, fmt.Errorf("ibv_poll_cq of the exchange: %w", err)
		case n > 0 && wc[0].Status != verbs.WCSuccess && s.lost(t):
			return nil, io.EOF
		case n > 0 && wc[0].Status != verbs.WCSuccess:
			return nil, fmt.Errorf("a message of the exchange has status %d, %s", wc[0].Status, s.id.Verbs().WCStatusStr(wc[0].Status))
		case n > 0:
			return &wc[0], nil
		case gone:
			return nil, io.EOF
		case s.e.o.Method != Infinite && s.e.interrupted():
			return nil, ErrInterrupted
		}
		s.lost(t)
	}
}

// lost reports whether the peer has ended the connection.
func (s *side) lost(t verbs.Thread) bool {
	for !s.gone && s.v.ch.Readable(t) {
		ev, err := s.v.ch.GetEvent(t, 0)
		if err != nil {
			break
		}
		s.gone = ev.Type != verbs.CMEstablished && ev.Type != verbs.CMAddrChange && ev.Type != verbs.CMTimewaitExit
		_ = s.v.ch.AckEvent(t, ev)
	}
	return s.gone
}

// sideLost reports whether there is an exchange by the connection manager whose peer has gone.
func (e *End) sideLost(t verbs.Thread) bool {
	s, ok := e.ch.(*side)
	return ok && s.lost(t)
}

// ReceiveMessage is the next message, of whatever length.
func (s *side) ReceiveMessage(t verbs.Thread) ([]byte, error) {
	w, err := s.complete(t, s.cq[1])
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(w.ByteLen, sideRoom))
	if _, err := s.buf.ReadAt(t, b, sideRoom); err != nil {
		return nil, err
	}
	return b, s.post(t)
}

// Receive is a message that has the length of b.
func (s *side) Receive(t verbs.Thread, b []byte) error {
	m, err := s.ReceiveMessage(t)
	if err == nil && copy(b, m) != len(b) {
		err = fmt.Errorf("a message of %d bytes came instead of one of %d", len(m), len(b))
	}
	return err
}

// Close does nothing: what the channel has is taken back with the rest of the end.
func (s *side) Close() error { return nil }
