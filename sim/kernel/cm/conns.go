package cm

// peer is cm_timewait_info: by what the other side of a connection is known, as long as it is.
type peer struct {
	local, remote uint32 // communication IDs
	guid          uint64
	qpn           uint32
	byID, byQP    bool // in the tables
}

type idKey struct {
	id   uint32
	guid uint64
}

type qpKey struct {
	qpn  uint32
	guid uint64
}

type sidrKey struct {
	port *port
	id   uint32
	slid uint16
}

type serviceKey struct {
	port    *port
	service uint64
}

// conns is ib_cm of a machine.
type conns struct {
	m         *Manager
	next      uint32
	operand   uint32 // communication IDs cannot be guessed
	byLocal   map[uint32]*conn
	byID      map[idKey]*peer
	byQP      map[qpKey]*peer
	bySIDR    map[sidrKey]*conn
	listeners map[serviceKey]*conn
}

func (cs *conns) init(m *Manager) {
	*cs = conns{m: m, operand: uint32(m.rand.Uint64()), byLocal: map[uint32]*conn{}, byID: map[idKey]*peer{}, byQP: map[qpKey]*peer{},
		bySIDR: map[sidrKey]*conn{}, listeners: map[serviceKey]*conn{}}
}

// newConn is ib_create_cm_id, but that the id cannot be found yet.
func (cs *conns) newConn(p *port) *conn {
	cs.next++
	return &conn{cs: cs, port: p, local: cs.next ^ cs.operand}
}

func (c *conn) publish() { c.cs.byLocal[c.local] = c }

// acquire is cm_acquire_id.
func (cs *conns) acquire(local, remote uint32) *conn {
	if c := cs.byLocal[local]; c != nil && c.remote == remote {
		return c
	}
	return nil
}

// enterID is cm_insert_remote_id: it returns who is there already.
func (cs *conns) enterID(p *peer) *peer {
	k := idKey{p.remote, p.guid}
	if was := cs.byID[k]; was != nil {
		return was
	}
	cs.byID[k], p.byID = p, true
	return nil
}

// enterQP is cm_insert_remote_qpn.
func (cs *conns) enterQP(p *peer) *peer {
	k := qpKey{p.qpn, p.guid}
	if was := cs.byQP[k]; was != nil {
		return was
	}
	cs.byQP[k], p.byQP = p, true
	return nil
}

// forget is cm_cleanup_timewait.
func (cs *conns) forget(p *peer) {
	if p.byID {
		delete(cs.byID, idKey{p.remote, p.guid})
	}
	if p.byQP {
		delete(cs.byQP, qpKey{p.qpn, p.guid})
	}
	p.byID, p.byQP = false, false
}

// listen is ib_cm_insert_listen: ids of one device and service share a listener.
func (cs *conns) listen(p *port, service uint64, handler func(*conn, *connEvent) verdict) *conn {
	k := serviceKey{p, service}
	if c := cs.listeners[k]; c != nil {
		c.shares++
		return c
	}
	c := cs.newConn(p)
	c.state, c.service, c.handler, c.shares = connListen, service, handler, 1
	cs.listeners[k] = c
	return c
}
