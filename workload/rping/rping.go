// Package rping does what rping of librdmacm does, over package verbs: the client offers bytes, the
// server reads them, and writes them back. A real one may be the peer. Source:
// librdmacm/examples/rping.c of rdma-core.
package rping

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload/perftest/exchange"
)

// Options are the settings of one end.
type Options struct {
	Client  bool
	Server  netip.AddrPort // of the server; where it listens
	Size    int            // bytes of a ping
	Count   int            // pings; 0: a client goes on until it is interrupted, a server until its client ends
	Verbose bool           // print each ping
}

// Default is what the program does without flags.
func Default() Options { return Options{Size: 64} }

// Port is that of the program, and LeastSize and MostSize bound a ping.
const (
	Port      = 7174
	LeastSize = 26
	MostSize  = 1<<16 - 1
)

// Validate reports what is impossible.
func (o *Options) Validate() error {
	switch {
	case o.Size < LeastSize || o.Size > MostSize:
		return fmt.Errorf("-S %d: a size from %d to %d bytes is needed", o.Size, LeastSize, MostSize)
	case o.Count < 0:
		return fmt.Errorf("-C %d: a number of pings from 0 is needed", o.Count)
	}
	return nil
}

// End is one end.
type End struct {
	o           Options
	out         io.Writer
	interrupted func() bool

	undo   []func(verbs.Thread) error
	ch     verbs.EventChannel
	id     verbs.CMID
	cq     verbs.CQ
	qp     verbs.QP
	buf    verbs.Buffer
	mr     verbs.MR
	got    [kinds]int // completions that nobody has waited for yet
	advert []byte     // of the last message
	pings  int
	gone   bool // the peer has disconnected
}

// Kinds of completions, which are the IDs of requests.
const (
	receive = iota
	send
	read
	write
	kinds
)

// Places in the memory of an end.
const (
	receiveAt = 0
	sendAt    = 64
	startAt   = 4096
	pingAt    = startAt + 1<<16
	memory    = pingAt + 1<<16
)

// New makes an end of valid options. interrupted reports whether the user wants the end.
func New(o Options, out io.Writer, interrupted func() bool) *End {
	return &End{o: o, out: out, interrupted: interrupted}
}

// Peer is the address of the other end, not valid before there is one.
func (e *End) Peer() netip.AddrPort {
	if e.id == nil || e.qp == nil {
		return netip.AddrPort{}
	}
	return e.id.PeerAddr()
}

// Pings is how many are complete.
func (e *End) Pings() int { return e.pings }

// Run runs the program in a thread. What it has made is taken back when it returns.
func (e *End) Run(t verbs.Thread) (err error) {
	defer func() {
		for _, f := range slices.Backward(e.undo) {
			if bad := f(t); bad != nil && err == nil {
				err = bad
			}
		}
	}()
	m, ok := t.Process().(verbs.ConnectionManager)
	if !ok {
		return errors.New("there is no connection manager")
	}
	if e.ch, err = m.CreateEventChannel(t); err != nil {
		return fmt.Errorf("rdma_create_event_channel: %w", err)
	}
	e.later(e.ch.Destroy)
	if e.o.Client {
		return e.client(t)
	}
	return e.server(t)
}

func (e *End) later(f func(verbs.Thread) error) { e.undo = append(e.undo, f) }

// Waits: of an address or a route, of anything that the peer does, and between two looks at the
// user.
const (
	resolveTime = 2 * time.Second
	patience    = 120 * time.Second
	look        = 50 * time.Millisecond
)

// ErrInterrupted is the end of a wait by the user.
var ErrInterrupted = errors.New("interrupted")

var errQuiet = fmt.Errorf("nothing has come for %v: the peer has ended, or UDP port 4791 does not get through", patience)

// event waits for an event of the connection manager, for so long (0: without end).
func (e *End) event(t verbs.Thread, want verbs.CMEventType, most time.Duration, use func(*verbs.CMEvent)) error {
	for began := t.Now(); ; {
		ev, err := e.ch.GetEvent(t, look)
		switch {
		case errors.Is(err, syscall.EAGAIN) && e.interrupted():
			return ErrInterrupted
		case errors.Is(err, syscall.EAGAIN) && most > 0 && t.Now()-began > most:
			return errQuiet
		case errors.Is(err, syscall.EAGAIN):
			continue
		case err != nil:
			return fmt.Errorf("rdma_get_cm_event: %w", err)
		}
		typ, status := ev.Type, ev.Status
		if typ == want && use != nil {
			use(ev)
		}
		if err := e.ch.AckEvent(t, ev); err != nil {
			return fmt.Errorf("rdma_ack_cm_event: %w", err)
		}
		switch {
		case typ == want:
			return nil
		case typ == verbs.CMRejected:
			return fmt.Errorf("the server rejects the connection (reason %d): it has to run, and listen to port %d", status, e.o.Server.Port())
		case want != verbs.CMConnectRequest:
			return fmt.Errorf("the connection manager says %v, status %d, before %v", typ, status, want)
		}
	}
}

// build makes the queue pair of the id and its memory, and posts a receive.
func (e *End) build(t verbs.Thread) error {
	ctx := e.id.Verbs()
	pd, err := ctx.AllocPD(t)
	if err != nil {
		return fmt.Errorf("ibv_alloc_pd: %w", err)
	}
	e.later(pd.Dealloc)
	if e.cq, err = ctx.CreateCQ(t, verbs.CQAttr{CQE: 32}); err != nil {
		return fmt.Errorf("ibv_create_cq: %w", err)
	}
	e.later(e.cq.Destroy)
	if e.buf, err = t.Process().Map(t, memory, verbs.MapOptions{}); err != nil {
		return fmt.Errorf("%d bytes of memory: %w", memory, err)
	}
	e.later(e.buf.Unmap)
	if e.mr, err = pd.RegMR(t, e.buf.Addr(), memory, verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite); err != nil {
		return fmt.Errorf("ibv_reg_mr: %w", err)
	}
	e.later(e.mr.Dereg)
	if e.qp, err = e.id.CreateQP(t, pd, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: e.cq, RecvCQ: e.cq, Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 2, MaxSendSGE: 1, MaxRecvSGE: 1}}); err != nil {
		return fmt.Errorf("rdma_create_qp: %w", err)
	}
	e.later(e.id.DestroyQP)
	return e.postReceive(t)
}

func (e *End) sge(at, n int) []verbs.SGE {
	return []verbs.SGE{{Addr: e.buf.Addr() + uint64(at), Length: uint32(n), LKey: e.mr.LKey()}}
}

func (e *End) postReceive(t verbs.Thread) error {
	if _, err := e.qp.PostRecv(t, []verbs.RecvWR{{ID: receive, SGEs: e.sge(receiveAt, exchange.AdvertSize)}}); err != nil {
		return fmt.Errorf("ibv_post_recv: %w", err)
	}
	return nil
}

// post posts a request and waits for its completion.
func (e *End) post(t verbs.Thread, wr verbs.SendWR) error {
	wr.Flags = verbs.SendSignaled
	if _, err := e.qp.PostSend(t, []verbs.SendWR{wr}); err != nil {
		return fmt.Errorf("ibv_post_send: %w", err)
	}
	return e.await(t, int(wr.ID))
}

// tell sends where memory is.
func (e *End) tell(t verbs.Thread, at int) error {
	a := exchange.Advert{Addr: e.buf.Addr() + uint64(at), RKey: e.mr.RKey(), Size: uint32(e.o.Size)}
	if _, err := e.buf.WriteAt(t, a.Encode(), sendAt); err != nil {
		return err
	}
	return e.post(t, verbs.SendWR{ID: send, Opcode: verbs.WRSend, SGEs: e.sge(sendAt, exchange.AdvertSize)})
}

// errGone is the end of the connection by the peer.
var errGone = errors.New("the peer has disconnected")

// await waits for a completion of a kind.
func (e *End) await(t verbs.Thread, kind int) error {
	for began := t.Now(); e.got[kind] == 0; {
		var wc [4]verbs.WC
		n, err := e.cq.PollWait(t, wc[:], look)
		if err != nil {
			return fmt.Errorf("ibv_poll_cq: %w", err)
		}
		for i := range wc[:n] {
			if err := e.completed(t, &wc[i]); err != nil {
				return err
			}
		}
		if n > 0 {
			continue
		}
		switch e.listenToManager(t); {
		case e.gone:
			return errGone
		case e.interrupted():
			return ErrInterrupted
		case t.Now()-began > patience:
			return errQuiet
		}
	}
	e.got[kind]--
	return nil
}

// listenToManager notes that the peer has disconnected.
func (e *End) listenToManager(t verbs.Thread) {
	for e.ch.Readable(t) {
		ev, err := e.ch.GetEvent(t, 0)
		if err != nil {
			return
		}
		e.gone = e.gone || ev.Type == verbs.CMDisconnected || ev.Type == verbs.CMDeviceRemoval
		_ = e.ch.AckEvent(t, ev) // there is nothing else to do about it
	}
}

func (e *End) completed(t verbs.Thread, w *verbs.WC) error {
	if w.Status == verbs.WCWRFlushErr {
		return errGone
	}
	if w.Status != verbs.WCSuccess {
		return fmt.Errorf("completion with status %v (%d), vendor error %#x", w.Status, w.Status, w.VendorErr)
	}
	e.got[w.ID]++
	if w.ID != receive {
		return nil
	}
	e.advert = make([]byte, w.ByteLen)
	if _, err := e.buf.ReadAt(t, e.advert, receiveAt); err != nil {
		return err
	}
	return e.postReceive(t)
}

// content is ping n: its number, and letters that begin at another one each time.
func content(n, size int) []byte {
	const first, last = 'A', 'z'
	b := fmt.Appendf(nil, "rdma-ping-%d: ", n)
	for c := first + n%(last-first+1); len(b) < size-1; c++ {
		if c > last {
			c = first
		}
		b = append(b, byte(c))
	}
	return append(b[:size-1], 0)
}

// client connects, pings and disconnects.
func (e *End) client(t verbs.Thread) (err error) {
	if e.id, err = e.ch.CreateID(t, verbs.PortSpaceTCP, 0, nil); err != nil {
		return fmt.Errorf("rdma_create_id: %w", err)
	}
	e.later(e.id.Destroy)
	step := func(what string, do func() error, want verbs.CMEventType) {
		if err != nil {
			return
		}
		if err = do(); err == nil {
			err = e.event(t, want, patience, nil)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
	}
	step(fmt.Sprintf("rdma_resolve_addr to %v", e.o.Server), func() error { return e.id.ResolveAddr(t, netip.AddrPort{}, e.o.Server, resolveTime) }, verbs.CMAddrResolved)
	step("rdma_resolve_route", func() error { return e.id.ResolveRoute(t, resolveTime) }, verbs.CMRouteResolved)
	if err != nil {
		return err
	}
	if err := e.build(t); err != nil {
		return err
	}
	step("rdma_connect", func() error {
		return e.id.Connect(t, &verbs.ConnParam{ResponderResources: 1, InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7})
	}, verbs.CMEstablished)
	if err != nil {
		return err
	}
	e.later(e.id.Disconnect)
	for e.o.Count == 0 || e.pings < e.o.Count {
		if err := e.ping(t); err != nil {
			return fmt.Errorf("after %d pings: %w", e.pings, err)
		}
	}
	return nil
}

// ping has the server read this end's bytes and write them back.
func (e *End) ping(t verbs.Thread) error {
	want := content(e.pings, e.o.Size)
	_, err := e.buf.WriteAt(t, want, startAt)
	for _, at := range []int{startAt, pingAt} {
		if err == nil {
			err = e.tell(t, at)
		}
		if err == nil {
			err = e.await(t, receive)
		}
	}
	got := make([]byte, e.o.Size)
	if err == nil {
		_, err = e.buf.ReadAt(t, got, pingAt)
	}
	switch {
	case err != nil:
		return err
	case !bytes.Equal(got, want):
		return fmt.Errorf("other bytes came back: %q was sent, %q came", want, got)
	}
	e.print("ping data", got)
	e.pings++
	return nil
}

func (e *End) print(what string, b []byte) {
	if e.o.Verbose {
		text, _, _ := bytes.Cut(b, []byte{0})
		fmt.Fprintf(e.out, "%s: %s\n", what, text)
	}
}

// server takes one client, and answers until that disconnects.
func (e *End) server(t verbs.Thread) error {
	l, err := e.ch.CreateID(t, verbs.PortSpaceTCP, 0, nil)
	if err != nil {
		return fmt.Errorf("rdma_create_id: %w", err)
	}
	e.later(l.Destroy)
	if err := l.BindAddr(t, e.o.Server); err != nil {
		return fmt.Errorf("rdma_bind_addr to %v: %w", e.o.Server, err)
	}
	if err := l.Listen(t, 3); err != nil {
		return fmt.Errorf("rdma_listen: %w", err)
	}
	if err := e.event(t, verbs.CMConnectRequest, 0, func(ev *verbs.CMEvent) { e.id = ev.ID }); err != nil {
		return err
	}
	e.later(e.id.Destroy)
	if err := e.build(t); err != nil {
		return err
	}
	if err := e.id.Accept(t, &verbs.ConnParam{ResponderResources: 1, InitiatorDepth: 1, RNRRetryCount: 7}); err != nil {
		return fmt.Errorf("rdma_accept: %w", err)
	}
	if err := e.event(t, verbs.CMEstablished, patience, nil); err != nil {
		return fmt.Errorf("rdma_accept: %w", err)
	}
	e.later(e.id.Disconnect)
	for {
		err := e.answer(t)
		switch {
		case errors.Is(err, errGone) && (e.o.Count == 0 && e.pings > 0 || e.o.Count > 0 && e.pings >= e.o.Count):
			return nil
		case err != nil:
			return fmt.Errorf("after %d pings: %w", e.pings, err)
		}
	}
}

// answer reads what the client offers and writes it back.
func (e *End) answer(t verbs.Thread) error {
	if err := e.await(t, receive); err != nil {
		return err
	}
	a, err := exchange.DecodeAdvert(e.advert, MostSize)
	if err != nil {
		return err
	}
	n := int(a.Size)
	if err := e.post(t, verbs.SendWR{ID: read, Opcode: verbs.WRRDMARead, SGEs: e.sge(pingAt, n), RemoteAddr: a.Addr, RKey: a.RKey}); err != nil {
		return fmt.Errorf("RDMA READ of %d bytes: %w", n, err)
	}
	b := make([]byte, n)
	if _, err := e.buf.ReadAt(t, b, pingAt); err != nil {
		return err
	}
	e.print("server ping data", b)
	if err := e.tell(t, startAt); err != nil { // what it says does not matter
		return err
	}
	if err := e.await(t, receive); err != nil {
		return err
	}
	if a, err = exchange.DecodeAdvert(e.advert, MostSize); err != nil {
		return err
	}
	if end := bytes.IndexByte(b, 0); end >= 0 {
		n = end + 1
	}
	n = min(n, int(a.Size))
	if err := e.post(t, verbs.SendWR{ID: write, Opcode: verbs.WRRDMAWrite, SGEs: e.sge(pingAt, n), RemoteAddr: a.Addr, RKey: a.RKey}); err != nil {
		return fmt.Errorf("RDMA WRITE of %d bytes: %w", n, err)
	}
	e.pings++ // the client may have it, and be gone, before this end hears that it has got the next message
	return e.tell(t, startAt)
}
