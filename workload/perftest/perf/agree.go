package perf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload/perftest/exchange"
)

// messages is implemented by channels that keep the ends of messages.
type messages interface {
	ReceiveMessage(t verbs.Thread) ([]byte, error)
}

// swap is ctx_xchg_data: the client sends first, the server receives first.
func (e *End) swap(t verbs.Thread, mine []byte) ([]byte, error) {
	var theirs []byte
	send := func() error {
		err := e.ch.Send(t, mine)
		if errors.Is(err, io.EOF) {
			return e.peerClosed(err)
		}
		if err != nil {
			return fmt.Errorf("send %d bytes to the peer: %w", len(mine), err)
		}
		return nil
	}
	receive := func() (err error) {
		if m, ok := e.ch.(messages); ok {
			theirs, err = m.ReceiveMessage(t)
		} else {
			theirs = make([]byte, len(mine))
			err = e.ch.Receive(t, theirs)
		}
		if errors.Is(err, io.EOF) {
			return e.peerClosed(err)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return &StepError{Err: fmt.Errorf("the peer has not sent %d bytes in %v: %w", len(theirs), patience, err), Hint: "another program may hold the connection: start both ends again", Words: "Couldn't read remote address\n"}
		}
		if err != nil {
			return fmt.Errorf("receive %d bytes from the peer: %w", len(mine), err)
		}
		return nil
	}
	first, then := send, receive
	if e.o.Host == "" {
		first, then = receive, send
	}
	if err := first(); err != nil {
		return nil, err
	}
	return theirs, then()
}

// peerClosed is the error of a message that does not come any more.
func (e *End) peerClosed(err error) error {
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("receive from the peer: %w", err)
	}
	return &StepError{Err: fmt.Errorf("the peer has closed the connection: %w", io.EOF), Hint: "see the peer's own output for the reason", Words: "Couldn't read remote address\n"}
}

// versions exchanges versions, page sizes and cache line sizes (exchange_versions,
// check_version_compatibility, check_sys_data).
func (e *End) versions(t verbs.Thread) error {
	b, err := e.swap(t, exchange.EncodeVersion(exchange.Version))
	if err != nil {
		return err
	}
	if e.peer, _, err = exchange.DecodeVersion(b); err != nil {
		return err
	}
	e.page, e.line = t.Process().Host().PageSize(), cacheLine
	for _, x := range []struct {
		size *int
		what string
		most uint32
	}{{&e.page, "page size", exchange.MostPage}, {&e.line, "cache line size", exchange.MostLine}} {
		if b, err = e.swap(t, exchange.EncodeInt(*x.size)); err != nil {
			return err
		}
		theirs, err := exchange.DecodeInt(b, x.what, x.most)
		if err != nil {
			return err
		}
		*x.size = max(*x.size, theirs)
	}
	return nil
}

// cacheLine is the size of a cache line of the processors that are modelled, and of amd64.
const cacheLine = 64

// wantedMTU is set_mtu: what this end asks for.
func (e *End) wantedMTU() verbs.MTU {
	active := e.port.ActiveMTU
	if e.o.MTU == 0 {
		return active
	}
	for m := verbs.MTU256; m <= verbs.MTU4096; m++ {
		if m.Bytes() != e.o.MTU {
			continue
		}
		if m > active {
			fmt.Fprintf(e.env.Out, "Requested mtu is higher than active mtu \nChanging to active mtu - %d\n", active)
			m = active
		}
		return m
	}
	fmt.Fprintf(e.env.Err, " Invalid MTU - %d \n Please choose mtu from {256,512,1024,2048,4096}\n Will run with the port active mtu - %d\n", e.o.MTU, active)
	return active
}

// agreeMTU takes the smaller MTU of both (check_mtu).
func (e *End) agreeMTU(t verbs.Thread) error {
	e.mtu = e.wantedMTU()
	b, err := e.swap(t, exchange.EncodeMTU(e.mtu))
	if err != nil {
		return err
	}
	theirs, err := exchange.DecodeMTU(b)
	if err != nil {
		return err
	}
	e.mtu = min(e.mtu, theirs)
	if most := uint64(e.mtu.Bytes()); e.o.Connection == UD && e.o.Size > most {
		if e.o.sizeGiven && e.o.Method != AllSizes {
			return &StepError{Step: stepMTU, Err: fmt.Errorf("a datagram of %d bytes does not fit in the MTU of %d", e.o.Size, most), Hint: "give a smaller -s", Words: " Max message size in UD cannot be greater than MTU \n"}
		}
		fmt.Fprintf(e.env.Err, " Max msg size in UD is MTU %d\n Changing to this MTU\n", most)
		e.o.Size = most
	}
	e.size = e.o.Size
	return nil
}

// parameters are those that the ends compare.
func (e *End) parameters() *exchange.Parameters {
	o := e.o
	p := &exchange.Parameters{Method: int(o.Method), Connection: o.Connection, Verb: int(o.Test.Verb), Size: o.Size, Iters: o.Iters, QPs: o.QPs, Duration: o.Duration, Device: e.attr}
	if !o.Test.Latency {
		p.Test = 1
	}
	if o.Test.Verb == Atomic && !o.CmpSwap {
		p.Atomic = 1
	}
	if o.Timed {
		p.Type = 1
	}
	if !o.Gbits {
		p.Format = 1
	}
	if o.Test.Verb == WriteImm {
		p.WriteImm = 1
	}
	if o.SideCM {
		p.CM = 1
	}
	return p
}

// compare ends the test if the ends were started with different parameters (negotiate_params);
// versions before 6.28 do not compare.
func (e *End) compare(t verbs.Thread) error {
	if e.peer < exchange.NegotiatedSince {
		return nil
	}
	mine := e.parameters()
	b, err := e.swapParameters(t, mine.Encode())
	if err != nil {
		return err
	}
	theirs, err := exchange.DecodeParameters(b)
	if err != nil {
		return err
	}
	if all := mine.Compare(theirs); len(all) > 0 {
		err := &StepError{Step: stepCompare, Err: fmt.Errorf("the ends differ: %v", all[0]), Hint: "give the same flags to both", Words: fmt.Sprintf(" %v\n Failed to negotiate parameters\n", all[0])}
		for _, m := range all[1:] {
			err.Err = fmt.Errorf("%w, and %v", err.Err, m)
		}
		return err
	}
	if n := theirs.Device.MaxQPRdAtom; reads(e.o.Test) && n > 0 {
		e.reads = min(e.reads, n)
	}
	return nil
}

// swapParameters swaps a message whose length depends on how a peer was built. Over TCP a server
// sees from the client's which it is; a client must send first, and 8 bytes too many upset all that
// follows.
func (e *End) swapParameters(t verbs.Thread, mine []byte) ([]byte, error) {
	short, ok := e.ch.(shortReceiver)
	if !ok {
		return e.swap(t, mine)
	}
	if e.o.Host == "" {
		b, err := short.receiveShort(t, exchange.PlainParametersSize, exchange.ParametersSize)
		if err != nil {
			return nil, e.peerClosed(err)
		}
		return b, e.ch.Send(t, mine[:len(b)])
	}
	if err := e.ch.Send(t, mine); err != nil {
		return nil, fmt.Errorf("send %d bytes to the peer: %w", len(mine), err)
	}
	b, err := short.receiveShort(t, exchange.PlainParametersSize, exchange.ParametersSize)
	switch {
	case err != nil:
		return nil, e.peerClosed(err)
	case len(b) == exchange.PlainParametersSize:
		return nil, &StepError{Err: fmt.Errorf("the server's perftest was built without mlx5dv, and takes %d bytes of parameters instead of %d", len(b), len(mine)),
			Hint: "make it the client and this end the server, or give -z to both ends", Words: " Failed to negotiate parameters\n"}
	}
	return b, nil
}

// closeChannel ends the channel as both ends agree that they have finished (ctx_close_connection).
func (e *End) closeChannel(t verbs.Thread) error {
	return e.step(t, stepClose, func() error { return e.handshake(t) })
}

// handshake exchanges the keys of the first queue pair once more: both are at the same place.
func (e *End) handshake(t verbs.Thread) error {
	if len(e.conns) == 0 { // before there are any
		_, err := e.swapAddress(t, exchange.Keys{})
		return err
	}
	_, err := e.swapKeys(t, e.conns[0])
	return err
}

func (e *End) swapKeys(t verbs.Thread, c *conn) (exchange.Keys, error) {
	return e.swapAddress(t, e.keys(c))
}

func (e *End) swapAddress(t verbs.Thread, k exchange.Keys) (exchange.Keys, error) {
	if e.o.SideCM {
		b, err := e.swap(t, k.EncodeBinary(e.peer, e.gidIndex))
		if err != nil {
			return exchange.Keys{}, err
		}
		return exchange.DecodeBinary(b)
	}
	b, err := e.swap(t, k.Encode(e.useGID))
	if err != nil {
		return exchange.Keys{}, err
	}
	return exchange.DecodeKeys(b, e.useGID)
}

// keys are those of a queue pair, as the peer needs them.
func (e *End) keys(c *conn) exchange.Keys {
	k := exchange.Keys{LID: e.port.LID, OutReads: e.reads, QPN: c.qp.QPN(), PSN: c.psn, GID: e.gid}
	k.RKey, k.Addr = c.mr.RKey(), c.buf.Addr()+c.in
	return k
}

// exchangeKeys prints the header and learns the peer's addresses.
func (e *End) exchangeKeys(t verbs.Thread) error {
	e.header()
	if e.o.Test.Latency && e.o.Test.Verb != Send && e.o.Test.Verb != SendImm { // their programs do it once more
		if err := e.handshake(t); err != nil {
			return err
		}
	}
	e.remote = make([]exchange.Keys, len(e.conns))
	for i, c := range e.conns {
		var err error
		if e.remote[i], err = e.swapKeys(t, c); err != nil {
			return err
		}
	}
	if r := e.remote[0].GID; !e.o.CM && e.useGID && e.ethernet() && mappedIPv4(r) != mappedIPv4(e.gid) {
		return &StepError{Step: stepKeys, Err: fmt.Errorf("the GIDs belong to different families: here %v, at the peer %v", e.gid, r), Hint: "choose one of the same family with -x, or --ipv6 at both ends",
			Words: "\n Found Incompatibility issue with GID types.\n Please Try to use a different IP version.\n\n"}
	}
	for i, c := range e.conns {
		c.remote, c.rkey = e.remote[i].Addr, e.remote[i].RKey
		if !e.o.CM {
			c.remoteQPN, c.remoteQKey = e.remote[i].QPN, qKey
		}
	}
	return nil
}

// ready exchanges addresses again, now that the queue pairs are connected, and prints them.
func (e *End) ready(t verbs.Thread) error {
	if e.o.Test.Verb.sends() { // send programs have it before the addresses, the others behind them
		if err := e.handshake(t); err != nil {
			return err
		}
	}
	for _, c := range e.conns {
		e.printAddress("local", e.keys(c))
	}
	for _, c := range e.conns {
		k, err := e.swapKeys(t, c)
		if err != nil {
			return err
		}
		e.printAddress("remote", k)
	}
	if e.o.Events {
		for _, q := range []verbs.CQ{e.sendCQ, e.rcq} {
			if q == nil {
				continue
			}
			if err := q.ReqNotify(t, false); err != nil {
				return fmt.Errorf("request of completion events: %w", err)
			}
		}
	}
	if !e.o.Test.Verb.sends() {
		return e.handshake(t)
	}
	return nil
}

// learnReport exchanges reports where the peer has measured something.
func (e *End) learnReport(t verbs.Thread) (theirs exchange.Report, err error) {
	if theirs, err = e.swapReports(t); err == nil {
		err = theirs.Check()
	}
	return theirs, err
}

// swapReports is xchg_bw_reports.
func (e *End) swapReports(t verbs.Thread) (theirs exchange.Report, err error) {
	var b [exchange.Numbers][]byte
	for i, m := range e.mine.Encode() {
		if b[i], err = e.swap(t, m); err != nil {
			return theirs, err
		}
	}
	return exchange.DecodeReport(b)
}

// chooseGID takes the index that the user gives, or the entry with the highest score
// (set_up_connection).
func (e *End) chooseGID(t verbs.Thread) error {
	entries := make([]verbs.GIDEntry, max(e.port.GIDTblLen, 1)*max(int(e.attr.PhysPortCnt), 1))
	n, err := e.ctx.QueryGIDTable(t, entries, 0)
	if err != nil {
		return fmt.Errorf("query of the GID table: %w", err)
	}
	best := -1
	for _, g := range entries[:n] {
		if int(g.Port) != e.o.IBPort || g.GID == (verbs.GID{}) {
			continue
		}
		score := score(&g, !e.o.IPv6GID)
		if e.o.GIDIndex == int(g.Index) || e.o.GIDIndex == unset && score > best {
			best, e.gid = score, g.GID
			if e.o.GIDIndex == unset {
				e.gidIndex = int(g.Index)
			}
		}
	}
	e.useGID = true
	if e.o.GIDIndex != unset {
		e.gidIndex = e.o.GIDIndex
	}
	if best < 0 {
		hint := "give its network interface an address"
		if e.o.GIDIndex != unset {
			hint = "leave -x out, or look at the table (rdma resource, or show_gids)"
		}
		return &StepError{Step: stepLink, Err: fmt.Errorf("port %d of %s has no GID with index %d", e.o.IBPort, e.dev.Name(), e.gidIndex), Hint: hint, Words: " Unable to set up socket connection\n"}
	}
	return nil
}

func score(g *verbs.GIDEntry, v4 bool) int {
	s := 0
	if mappedIPv4(g.GID) == v4 {
		s += 100
	}
	if !linkLocal(g.GID) {
		s += 10
	}
	switch g.Type {
	case verbs.GIDTypeRoCEv2:
		s += 2
	case verbs.GIDTypeRoCEv1:
		s++
	}
	return s
}

func mappedIPv4(g verbs.GID) bool {
	return [10]byte(g[:10]) == [10]byte{} && g[10] == 0xff && g[11] == 0xff
}

func linkLocal(g verbs.GID) bool {
	if mappedIPv4(g) {
		return g[12] == 169 && g[13] == 254
	}
	return g[0] == 0xfe && g[1]&0xc0 == 0x80
}

// wait sleeps as a test does at its end.
func (e *End) wait(t verbs.Thread, d time.Duration) {
	if d > 0 {
		t.Sleep(d)
	}
}
