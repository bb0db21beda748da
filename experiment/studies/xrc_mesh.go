package studies

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// mesh is a node on host 0, with all of its processes, and all the other nodes on host 1, in one
// process: the node's device cannot tell.
type mesh struct {
	x                       *xrcRun
	b                       *bed
	kind                    *meshKind
	nodes, processes, depth int

	node   []*meshEnd
	others *meshEnd
	shots  []shot

	qps, pinned uint64
}

// meshEnd is a process.
type meshEnd struct {
	*workload.Member
	cq     verbs.CQ
	buf    verbs.Buffer
	lkey   uint32
	rkey   uint32
	srq    verbs.SRQ
	domain verbs.XRCD
	srqn   uint32 // XRC
}

// shot is a message from one process to another, which both directions of a mesh have one of for
// each pair.
type shot struct {
	from *meshEnd
	qp   verbs.QP
	wr   verbs.SendWR
}

// build opens the processes, connects them, and counts what the node has.
func (m *mesh) build(t verbs.Thread) error {
	for range m.processes {
		e, err := m.open(t, 0)
		if err != nil {
			return err
		}
		m.node = append(m.node, e)
	}
	var err error
	if m.others, err = m.open(t, 1); err != nil {
		return err
	}
	before := m.b.objects(0)
	if err := m.kind.links(m, t); err != nil {
		return err
	}
	after := m.b.objects(0)
	m.qps, m.pinned = after["qp"], (after["pinned_pages"]-before["pinned_pages"])*odpPage
	return nil
}

// open starts a process with a CQ and memory for messages.
func (m *mesh) open(t verbs.Thread, host int) (*meshEnd, error) {
	p, err := workload.OpenMember(t, m.b.TB.Hosts()[host], workload.XRCShared)
	if err != nil {
		return nil, err
	}
	e := &meshEnd{Member: p}
	return e, e.Do(t, "open", func(t verbs.Thread) (err error) {
		if e.cq, err = e.Ctx.CreateCQ(t, verbs.CQAttr{CQE: 2 * srqFactor * m.depth}); err != nil {
			return err
		}
		if e.buf, err = e.Proc.Map(t, odpPage, verbs.MapOptions{}); err != nil {
			return err
		}
		mr, err := e.PD.RegMR(t, e.buf.Addr(), odpPage, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		if err == nil {
			e.lkey, e.rkey = mr.LKey(), mr.RKey()
		}
		return err
	})
}

// queue makes a queue pair of a process.
func (m *mesh) queue(t verbs.Thread, e *meshEnd, transport workload.Transport) (q *workload.Queue, err error) {
	a := verbs.QPInitAttr{SendCQ: e.cq, RecvCQ: e.cq, SRQ: e.srq, Cap: verbs.QPCap{MaxSendWR: uint32(m.depth), MaxSendSGE: 1}}
	if e.srq == nil {
		a.Cap.MaxRecvWR, a.Cap.MaxRecvSGE = uint32(m.depth), 1
	}
	return e.Queue(t, transport, a)
}

// write is a WRITE to the memory of a process.
func (e *meshEnd) write(to *meshEnd) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, RemoteAddr: to.buf.Addr(), RKey: to.rkey, SGEs: e.sges()}
}

func (e *meshEnd) sges() []verbs.SGE {
	return []verbs.SGE{{Addr: e.buf.Addr(), Length: meshMessage, LKey: e.lkey}}
}

// meshMessage is the size of a message, in bytes.
const meshMessage = 8

// linkRC connects each process with each one of the other nodes.
func (m *mesh) linkRC(t verbs.Thread) error {
	all := append([]*meshEnd{m.others}, m.node...)
	for _, e := range all {
		if m.kind.name == "RC" {
			break
		}
		err := e.Do(t, "SRQ", func(t verbs.Thread) (err error) {
			e.srq, err = e.PD.CreateSRQ(t, verbs.SRQInitAttr{MaxWR: uint32(srqFactor * m.depth), MaxSGE: 1})
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, e := range m.node {
		var near, far []*workload.Queue
		for _, s := range []struct {
			e    *meshEnd
			to   *meshEnd
			list *[]*workload.Queue
		}{{e, m.others, &near}, {m.others, e, &far}} {
			err := s.e.Do(t, "create", func(t verbs.Thread) error {
				for range (m.nodes - 1) * m.processes {
					q, err := m.queue(t, s.e, workload.RC)
					if err != nil {
						return err
					}
					*s.list = append(*s.list, q)
					m.shots = append(m.shots, shot{s.e, q.QP(), s.e.write(s.to)})
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		for _, s := range []struct {
			e        *meshEnd
			own, all []*workload.Queue
		}{{e, near, far}, {m.others, far, near}} {
			err := s.e.Do(t, "connect", func(t verbs.Thread) error {
				for i, q := range s.own {
					if err := q.Connect(t, s.all[i]); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// linkXRC gives each process an initiator for each other node, and the node a target QP for each
// process of the others.
func (m *mesh) linkXRC(t verbs.Thread) error {
	for _, e := range append([]*meshEnd{m.others}, m.node...) {
		err := e.Do(t, "SRQ", func(t verbs.Thread) (err error) {
			const create = 0o100 // O_CREAT
			if e.domain, err = e.OpenDomain(t, domainFile, create); err == nil {
				e.srq, e.srqn, err = e.XRCQueue(t, e.domain, e.cq, srqFactor*m.depth)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for i, e := range m.node {
		for range m.nodes - 1 {
			if err := m.initiator(t, e, m.others, m.node[i:i+1], m.processes); err != nil {
				return err
			}
		}
		for range m.nodes - 1 { // of every other node, the process with the same place has its target here
			if err := m.initiator(t, m.others, e, m.node, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// initiator connects a process with a target QP that another one makes. times messages go through
// it: from the node, to each process of the other node; to the node, to each of its processes.
func (m *mesh) initiator(t verbs.Thread, from, to *meshEnd, near []*meshEnd, times int) error {
	var i *workload.XRCInitiator
	err := from.Do(t, "initiator", func(t verbs.Thread) (err error) {
		i, err = from.Initiator(t, from.cq, m.depth)
		return err
	})
	if err != nil {
		return err
	}
	var g workload.XRCTarget
	err = to.Do(t, "target", func(t verbs.Thread) (err error) {
		g, err = to.Listen(t, to.domain, from.Member, i.QP.QPN())
		return err
	})
	if err != nil {
		return err
	}
	for range times {
		for _, e := range near {
			end := to
			if from == m.others {
				end = e
			}
			wr := from.write(end)
			wr.XRCRemoteSRQN = end.srqn
			m.shots = append(m.shots, shot{from, i.QP, wr})
		}
	}
	return from.Do(t, "connect", func(t verbs.Thread) error { return i.Connect(t, to.Member, g.QPN) })
}

// linkUD gives each process one queue pair.
func (m *mesh) linkUD(t verbs.Thread) error {
	for _, e := range m.node {
		var q [2]*workload.Queue
		ends := [2]*meshEnd{e, m.others}
		for i, e := range ends {
			err := e.Do(t, "create", func(t verbs.Thread) (err error) {
				q[i], err = m.queue(t, e, workload.UD)
				return err
			})
			if err != nil {
				return err
			}
		}
		for i, e := range ends {
			err := e.Do(t, "connect", func(t verbs.Thread) error { return q[i].Connect(t, q[1-i]) })
			if err != nil {
				return err
			}
			wr := verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, AH: q[i].AH(), RemoteQPN: q[1-i].QP().QPN(), RemoteQKey: workload.QKey, SGEs: e.sges()}
			for range (m.nodes - 1) * m.processes {
				m.shots = append(m.shots, shot{e, q[i].QP(), wr})
			}
		}
	}
	return nil
}

// For each queue pair of the node so many messages fill the caches, and so many are counted.
const fillEach, countEach = 3, 6

// measure sends messages that are drawn at random, one by one, and counts look-ups of QP contexts
// on the node's device.
func (m *mesh) measure(t verbs.Thread, row *table.Row) error {
	rng := sim.NewRand(m.x.Seed, "xrc footprint")
	fill, messages := int(m.qps)*fillEach, int(m.qps)*countEach
	for i := range fill + messages {
		if i == fill {
			m.b.before = m.b.TB.Counters()
		}
		s := &m.shots[rng.Intn(len(m.shots))]
		if err := s.from.Do(t, "send", s.fire); err != nil {
			return err
		}
	}
	all := m.b.grown(0)
	row.Set("messages", messages).Set("lookups", all["qpc_lookups"]).Set("misses", all["qpc_misses"])
	row.Set("miss_percent", 100*float64(all["qpc_misses"])/float64(messages))
	return nil
}

// fire sends the message, and waits until it has completed.
func (s *shot) fire(t verbs.Thread) error {
	if _, err := s.qp.PostSend(t, []verbs.SendWR{s.wr}); err != nil {
		return err
	}
	var wc [1]verbs.WC
	n, err := s.from.cq.PollWait(t, wc[:], time.Second)
	switch {
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("no completion")
	case wc[0].Status != verbs.WCSuccess:
		return &badCompletion{wc[0].Status, wc[0].VendorErr}
	}
	return nil
}
