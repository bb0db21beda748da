package cm

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// saAgents is where the numbers of the agents of core/sa_query.c begin, apart from those of ib_cm.
const saAgents = 1 << 16

// saRetries is how often a query is sent again within its timeout (send_mad of core/sa_query.c).
const saRetries = 10

// SAPeer is where a request to a subnet administrator on this machine came from, and where its
// answer goes.
type SAPeer struct {
	LID    uint16
	SL     uint8
	Global bool
	GIDs   [2]roce.GID // own, the other's
	PKey   uint16
	QPN    uint32
}

// ServeSA has a function take the requests to a subnet administrator that come to QP1 of a device,
// once the machine is loaded (Load). What it returns sends an answer; who asked asks again when it
// is lost.
func (m *Manager) ServeSA(d *kernel.Device, requests func(from SAPeer, data []byte)) (send func(to *SAPeer, data []byte)) {
	for _, p := range m.ports {
		if p.d == d {
			p.serve = requests
			return p.sendAnswer
		}
	}
	return func(*SAPeer, []byte) {}
}

// receiveSA takes a datagram of subnet administration: an answer, or a request to who runs here.
func (p *port) receiveSA(g *kernel.Datagram, m mad.MAD) {
	switch {
	case m.Method()&mad.Response != 0:
		p.sa.answered(m)
	case p.serve != nil:
		from := SAPeer{LID: g.SLID, SL: g.SL, QPN: g.SrcQPN, PKey: p.interfacePKey()}
		if g.GRH != nil {
			h := roce.GRH(g.GRH)
			from.Global, from.GIDs = true, [2]roce.GID{h.Dst(), h.Src()}
		}
		p.serve(from, g.Data)
	}
}

func (p *port) sendAnswer(to *SAPeer, data []byte) {
	a := verbs.AHAttr{Port: 1, DLID: to.LID, SL: to.SL, IsGlobal: to.Global}
	if to.Global {
		a.GRH = verbs.GRH{DGID: verbs.GID(to.GIDs[1]), HopLimit: 0xff}
	}
	_ = p.send(&a, data)
}

// saClient asks the subnet administrator for a port (struct ib_sa_port).
type saClient struct {
	p       *port
	tid     uint32
	started bool
	waiting map[uint64]*saQuery
}

// saQuery is a request that waits for its answer (struct ib_sa_query). done gets 0 and the record,
// or a negative errno; it is not called after stop.
type saQuery struct {
	c    *saClient
	x    exchange
	done func(status int32, record []byte)
}

// saRequest is what is asked.
type saRequest struct {
	method     uint8
	attribute  uint16
	components uint64
	fill       func(record []byte)
}

// ask sends a request. EAGAIN: the port knows no subnet manager.
func (c *saClient) ask(r *saRequest, timeout sim.Time, done func(status int32, record []byte)) (*saQuery, error) {
	p := c.p
	lid, sl := p.d.SubnetManager()
	if lid == 0 {
		return nil, fmt.Errorf("%s knows no subnet manager: %w", p.d.Name(), syscall.EAGAIN)
	}
	if !c.started {
		c.started, c.tid, c.waiting = true, uint32(p.m.rand.Uint64()), map[uint64]*saQuery{}
	}
	c.tid++
	m := mad.MAD(make([]byte, mad.Size))
	m.SetBaseVersion(mad.BaseVersion)
	m.SetClass(mad.ClassSubnAdm)
	m.SetClassVersion(mad.SubnAdmVersion)
	m.SetMethod(r.method)
	m.SetAttribute(r.attribute)
	m.SetTID((saAgents+p.agent)<<32 | uint64(c.tid))
	m.SetComponents(r.components)
	r.fill(m.Data())
	q := &saQuery{c: c, done: done}
	q.x = exchange{p: p, to: verbs.AHAttr{Port: 1, DLID: lid, SL: sl}, m: m, failed: q.failed}
	q.x.timeout, q.x.left = saTimeout(timeout)
	if p.m.breaks(rule.QueriesAreSentAgain) {
		q.x.left = 0
	}
	if err := q.x.start(); err != nil {
		return nil, err
	}
	c.waiting[m.TID()] = q
	return q, nil
}

// saTimeout is how long each attempt of a query waits, and how many more there are.
func saTimeout(d sim.Time) (each sim.Time, retries int) {
	ms := int(d / sim.Millisecond)
	if ms < saRetries {
		return sim.Millisecond, ms
	}
	return sim.Time(ms/saRetries) * sim.Millisecond, saRetries
}

// failed is send_handler of a request that nobody answered.
func (q *saQuery) failed(*exchange) {
	delete(q.c.waiting, q.x.m.TID())
	q.done(-int32(syscall.ETIMEDOUT), nil)
}

// stop is ib_sa_cancel_query.
func (q *saQuery) stop() {
	if q != nil {
		q.x.stop()
		delete(q.c.waiting, q.x.m.TID())
	}
}

// answered is recv_handler: a status makes EINVAL, whatever it is.
func (c *saClient) answered(m mad.MAD) {
	q := c.waiting[m.TID()]
	if q == nil {
		return
	}
	q.stop()
	if m.Status() != mad.StatusOK {
		q.done(-int32(syscall.EINVAL), nil)
		return
	}
	q.done(0, m.Data())
}
