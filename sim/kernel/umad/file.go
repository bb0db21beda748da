package umad

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// Header is where a message goes or came from (struct ib_user_mad_hdr).
type Header struct {
	Agent, Status, Timeout, Retries  uint32 // Timeout in milliseconds
	QPN                              uint32
	LID                              uint16
	SL, PathBits                     uint8
	GRH                              bool
	GIDIndex, HopLimit, TrafficClass uint8
	GID                              verbs.GID
	FlowLabel                        uint32
	PKeyIndex                        uint16
}

// Packet is a message for a program: Data are a datagram, one that was put together of segments, or
// the header of one without an answer.
type Packet struct {
	Header
	Data []byte
}

// maxQueue is how many messages wait for a program; more are dropped (MAX_UMAD_RECV_LIST_SIZE is
// 200000, of the kernel's memory).
const maxQueue = 4096

// File is an open umad file (struct ib_umad_file).
type File struct {
	p        *port
	agents   [maxAgents]*agent
	packets  []Packet
	readable func()
	used     bool // an agent was registered
	// PKeyIndex says that headers have one (IB_USER_MAD_ENABLE_PKEY).
	PKeyIndex bool
}

// Open opens the file of a device's port. ENXIO: there is none.
func (m *Manager) Open(d *kernel.Device) (*File, error) {
	for _, p := range m.ports {
		if p.d == d && !d.Removed() {
			return &File{p: p, readable: func() {}}, nil
		}
	}
	return nil, fmt.Errorf("no port for management: %w", syscall.ENXIO)
}

func (f *File) dead() bool { return f.p.d.Removed() }

// EnablePKeys has headers with the index of a P_Key. EINVAL: an agent was registered before.
func (f *File) EnablePKeys() error {
	if f.used {
		return fmt.Errorf("the form of headers is chosen: %w", syscall.EINVAL)
	}
	f.PKeyIndex = true
	return nil
}

// Fresh says that no agent was registered yet.
func (f *File) Fresh() bool { return !f.used }

// OnReadable sets the function that is called, in the engine's thread, whenever a message is
// queued. It must not call back.
func (f *File) OnReadable(fn func()) { f.readable = fn }

// Readable says whether a message waits.
func (f *File) Readable() bool { return len(f.packets) > 0 }

func (f *File) queue(p Packet) {
	if len(f.packets) < maxQueue {
		f.packets = append(f.packets, p)
		f.readable()
	}
}

// Front is the message that Next takes; there is one.
func (f *File) Front() *Packet { return &f.packets[0] }

// Next takes the first message.
func (f *File) Next() { f.packets = f.packets[1:] }

// Err is EIO after the device was removed, or nil.
func (f *File) Err() error {
	if f.dead() {
		return fmt.Errorf("the device was removed: %w", syscall.EIO)
	}
	return nil
}

// Close is the last close of the file.
func (f *File) Close() {
	for id := range f.agents {
		_ = f.Unregister(uint32(id))
	}
	f.packets = nil
}
