//go:build linux && amd64

package exec

import (
	"fmt"
	"path/filepath"

	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// portFiles are the files of ports that change when a tester takes a link down or has the subnet
// manager give something else. They lie in the work folder, and links lead there from what programs
// see. The engine's thread owns it.
type portFiles struct {
	m       *machine
	ports   [][]tree.Port // as the files say, by device
	watched []*kernel.Ucontext
	stale   bool
}

// planPorts names the folders of the ports that devices will have in dir.
func planPorts(devices []tree.Device, dir string) {
	for _, d := range devices {
		for n := range d.Ports {
			d.Ports[n].Live = filepath.Join(dir, "live", d.Name, fmt.Sprint(n+1))
		}
	}
}

// newPortFiles writes the files for the first time.
func newPortFiles(m *machine, devices []tree.Device) (*portFiles, error) {
	f := &portFiles{m: m}
	for _, d := range devices {
		for n := range d.Ports {
			if err := d.Ports[n].WriteLive(nil); err != nil {
				return nil, fmt.Errorf("files of %s: %w", d.Name, err)
			}
		}
		f.ports = append(f.ports, d.Ports)
	}
	return f, nil
}

// watch listens to the events of ports from now on. Before there is a tester nothing changes them.
func (f *portFiles) watch() error {
	if f.watched != nil {
		return nil
	}
	for _, d := range f.m.devs {
		u, err := f.m.open(d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		u.OnAsync(func() { f.stale = true })
		f.watched = append(f.watched, u)
	}
	return nil
}

// show brings the files up to date.
func (f *portFiles) show() {
	if !f.stale {
		return
	}
	f.stale = false
	for k, u := range f.watched {
		for err := error(nil); err == nil; { // until there is no event left
			_, err = u.WaitAsync(kernel.Caller{}, 0)
		}
		for n := range f.ports[k] {
			was := &f.ports[k][n]
			now, err := f.m.devs[k].describePort(u, n+1)
			if err == nil {
				now.Live = was.Live
				err = now.WriteLive(was)
			}
			if err != nil {
				say("the files of port %d of %s are not up to date: %s", n+1, f.m.devs[k].name, plain.Line(err.Error()))
				continue
			}
			*was = now
		}
	}
}

// close gives back what watch took.
func (f *portFiles) close() {
	for _, u := range f.watched {
		u.Close(kernel.Caller{})
	}
	f.watched = nil
}

// sessionWire is the network in the hands of a program of the session. What a change of link or
// subnet gives to ports at once, their files say before any program hears of it.
type sessionWire struct {
	*network.Remote
	s         *session
	addresses map[benchAddress]bool // that were added
}

// change changes ports on the engine's thread.
func (w *sessionWire) change(do func(*network.Tester) error) (err error) {
	e, ports := w.s.eng, w.s.ports
	e.do(func() {
		e.settle()
		if err = ports.watch(); err != nil {
			return
		}
		err = do(w.Tester)
		ports.stale = true
		ports.show()
		ports.stale = true // what the driver reads later is shown when the devices are idle again
	})
	return err
}

// Reset implements remotewire.Wire.
func (w *sessionWire) Reset() (guids []uint64, subnet bool) {
	w.resetBench()
	if w.s.ports.watched == nil { // nothing was changed
		return w.Remote.Reset()
	}
	_ = w.change(func(t *network.Tester) error {
		guids, subnet = t.Reset()
		return nil
	})
	return guids, subnet
}

// SetLink implements remotewire.Wire.
func (w *sessionWire) SetLink(guid uint64, up bool) error {
	return w.change(func(t *network.Tester) error { return t.SetLink(guid, up) })
}

// ConfigureSubnet implements remotewire.Wire.
func (w *sessionWire) ConfigureSubnet(c verbs.SubnetConfig) error {
	return w.change(func(t *network.Tester) error { return t.ConfigureSubnet(c) })
}
