package perf

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Failure is a test that has failed at one end or at both.
type Failure struct{ Client, Server error }

// Error returns the message.
func (f *Failure) Error() string {
	switch {
	case f.Client == nil:
		return "server: " + f.Server.Error()
	case f.Server == nil:
		return "client: " + f.Client.Error()
	case errors.Is(f.Client, io.EOF): // it has only seen that the server ended
		return "server: " + f.Server.Error()
	case errors.Is(f.Server, io.EOF):
		return "client: " + f.Client.Error()
	}
	return fmt.Sprintf("client: %v\nserver: %v", f.Client, f.Server)
}

// Unwrap gives the errors of both ends.
func (f *Failure) Unwrap() []error {
	var all []error
	for _, err := range []error{f.Client, f.Server} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// channelDelay is how long a message of the exchange takes between two simulated hosts: as between
// a player and who moves it, a socket of the management network (sim/testbed).
const channelDelay = 20 * time.Microsecond

// Both runs both ends of a test on the first two hosts of a testbed, each in a process of its own,
// the client on the first. The error is a *Failure, or one of the testbed.
func Both(t verbs.Thread, tb verbs.Testbed, client *Options, c, s *Env) error {
	hosts := tb.Hosts()
	if len(hosts) < 2 {
		return errors.New("a test needs two hosts")
	}
	a, b := Pipe(channelDelay)
	var meet meeting
	f := &Failure{}
	ths := make([]verbs.Thread, 2)
	c.Server, s.Listening = meet.server, meet.listening
	for i, x := range []struct {
		name string
		o    *Options
		env  *Env
		ch   Channel
		err  *error
	}{{"client", client, c, a, &f.Client}, {"server", client.Server(), s, b, &f.Server}} {
		other := &meet.ended[1-i]
		x.env.PeerGone = other.Load
		proc, err := hosts[i].NewProcess(t, x.o.Environment())
		if err != nil {
			return fmt.Errorf("new process on %s: %w", hosts[i].Name(), err)
		}
		x.env.Connect = func() (Channel, error) { return x.ch, nil }
		ths[i] = proc.Start(t, x.name, -1, func(t verbs.Thread) {
			*x.err = New(x.o, x.env).Run(t)
			_ = x.ch.Close()
			meet.ended[i].Store(true)
		})
	}
	for _, th := range ths {
		t.Join(th)
	}
	if f.Client != nil || f.Server != nil {
		return f
	}
	return nil
}

// meeting is how the two ends of one process find each other where the connection manager connects
// them.
type meeting struct {
	address atomic.Pointer[netip.Addr] // of the server, once it listens
	ended   [2]atomic.Bool             // client, server
}

func (m *meeting) listening(a netip.Addr) { m.address.Store(&a) }

// server waits until the server listens. So long as it does not, a client of another machine would
// be told that nobody does.
func (m *meeting) server(t verbs.Thread) (netip.Addr, error) {
	for look := firstLook; ; look = min(look+look/8, lastLook) {
		t.Sleep(look)
		if a := m.address.Load(); a != nil {
			return *a, nil
		}
		if m.ended[1].Load() {
			return netip.Addr{}, fmt.Errorf("the server has ended: %w", io.EOF)
		}
	}
}
