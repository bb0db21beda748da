package link

import "github.com/rdmasim/rdmasim/sim"

// Cable joins two ports.
type Cable struct {
	p     Params
	ends  [2]*Port
	up    bool
	epoch uint32 // counts the times that the link went down
}

// NewCable makes a cable that is up. The names are those of its ports. Params must
// pass Check.
func NewCable(e *sim.Engine, p Params, a, b string) *Cable {
	if p.InfiniBand {
		return newIBCable(e, p, a, b)
	}
	if err := p.Check(); err != nil {
		panic(err.Error())
	}
	c := &Cable{p: p, up: true}
	c.ends[0], c.ends[1] = newPort(e, a, &c.p, c), newPort(e, b, &c.p, c)
	c.ends[0].peer, c.ends[1].peer = c.ends[1], c.ends[0]
	return c
}

func newIBCable(e *sim.Engine, p Params, a, b string) *Cable {
	if err := p.IB.Check(); err != nil {
		panic(err.Error())
	}
	c := &Cable{p: p.IB.framing(p.Propagation), up: true}
	c.ends[0], c.ends[1] = newPort(e, a, &c.p, c), newPort(e, b, &c.p, c)
	for i, q := range c.ends {
		q.peer = c.ends[1-i]
		q.lanes = newLanes(q, &p.IB)
	}
	return c
}

// End is port 0 or 1 of the cable.
func (c *Cable) End(i int) *Port { return c.ends[i] }

// Up says whether the link is up.
func (c *Cable) Up() bool { return c.up }

// SetLink pulls the cable or puts it back. What is on the way is lost; receivers
// that are LinkWatchers are notified of a change.
func (c *Cable) SetLink(up bool) {
	if up == c.up {
		return
	}
	if !up {
		for _, p := range c.ends {
			p.unplan()
		}
		c.epoch++
	}
	c.up = up
	for _, p := range c.ends {
		if !up {
			p.C.LinkDownEvents++
			p.free = min(p.free, p.e.Now())
			if p.lanes != nil {
				p.lanes.reset()
			}
		}
		if w, ok := p.rx.(LinkWatcher); ok {
			w.LinkChanged(up)
		}
	}
	for _, p := range c.ends {
		if p.sm != nil {
			p.sm.linkChanged()
			return
		}
	}
}
