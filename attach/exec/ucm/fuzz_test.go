//go:build linux

package ucm

import (
	"testing"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/uapi"
)

// fuzzSteps is how many commands a run writes at most.
const fuzzSteps = 200

// FuzzWrite writes hostile commands to two channels, in any order, on a machine that is never
// replaced. Nothing panics, and the last closes leave nothing behind.
func FuzzWrite(f *testing.F) {
	f.Add([]byte{})
	for n := range commands {
		f.Add(append([]byte{0, byte(n), 0, 1, 6, 1}, make([]byte, 30)...))
		f.Add([]byte{0, createID, 6, 1, byte(n), 1, 1, 0, 0, byte(n), 0, 0, 0, 0, 0, getEvent, 0, 0})
	}
	m := newMachine(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		r := newRig(t, m)
		files := []*File{r.open(3), r.open(4)}
		for range fuzzSteps {
			if len(in) < 4 {
				break
			}
			k := min(int(in[3])%32, len(in)-4)
			r.hostile(files[in[0]%2], uint32(in[1])%(joinMcast+2), int(in[2]), in[4:4+k])
			in = in[4+k:]
		}
		r.closeAll()
		if err := m.eng.Run(sim.Never - 1); err != nil {
			t.Fatal(err)
		}
		if err := r.quota.Take(r.quota.Most); err != nil {
			t.Errorf("left behind: %v", err)
		}
	})
}

// hostile writes a command of zeros with some bytes from the input, whose answer goes to memory or
// to nowhere.
func (r *rig) hostile(f *File, number uint32, where int, in []byte) {
	at, _ := r.Alloc(uapi.CMEventSize)
	body := make([]byte, uapi.CMEventSize)
	copy(body[where%64:], in)
	switch number {
	case createID, joinIPMcast, joinMcast:
		uapi.CMCreateID(body).SetResponse(at)
		if where%8 != 7 {
			uapi.CMCreateID(body).SetPortSpace([]uint16{spaceTCP, spaceUDP}[where%2])
		}
	case destroyID, leaveMcast, migrateID, query, queryRoute, initQPAttr, getEvent:
		if where%8 != 7 {
			uapi.CMGetEvent(body).SetResponse(at)
		}
	case bindIP:
		put(uapi.CMBindIP(body).Addr(), r.m.ip, uint16(where))
	case resolveIP:
		put(uapi.CMResolveIP(body).Dst(), r.m.ip, uint16(where))
		uapi.CMResolveIP(body).SetTimeout(1)
	case resolveRoute:
		uapi.CMResolveRoute(body).SetTimeout(1)
	case connect:
		uapi.CMConnParam(uapi.CMConnect(body).Param()).SetValid(1)
	case accept:
		uapi.CMConnParam(uapi.CMAccept(body).Param()).SetValid(uint8(where % 2))
	}
	r.write(f, number, body, uapi.CMEventSize)
	_ = r.m.eng.Run(r.m.eng.Now() + sim.Time(where)*millisecond/8)
}
