//go:build linux

// Package umad is an open umad file (/dev/infiniband/umadN): it carries out the calls, writes and
// reads of a program by those of the model (sim/kernel/umad). The order of its checks is that of
// core/user_mad.c of Linux 6.12.
//
// Everything here runs on the thread of the engine. A read for which there is no message ends with
// ErrWait: whoever serves the file repeats it when there is one.
package umad

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel/umad"
	"github.com/rdmasim/rdmasim/uapi"
)

// ErrWait is the end of a read that finds no message.
var ErrWait = errors.New("no message yet")

// File is an open umad file.
type File struct {
	*umad.File
	// Logf, when not nil, receives the reason for every call that fails.
	Logf func(format string, args ...any)
}

// header is the length of a header.
func (f *File) header() int {
	if f.PKeyIndex {
		return uapi.UMADHeaderSize
	}
	return uapi.UMADHeaderOldSize
}

// failed is the errno of an error, which it logs.
func (f *File) failed(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if f.Logf != nil {
		f.Logf("umad: %v", err)
	}
	var e syscall.Errno
	if errors.As(err, &e) && e != 0 {
		return e
	}
	return syscall.EIO
}

// Ioctl carries out a call. It returns the errno that the program gets, or 0.
func (f *File) Ioctl(c uapi.Mem, call uint32, arg uint64) syscall.Errno {
	return f.failed(f.ioctl(c, call, arg))
}

func (f *File) ioctl(c uapi.Mem, call uint32, arg uint64) error {
	switch call {
	case uapi.UMADRegisterAgent:
		return f.register(c, arg)
	case uapi.UMADRegisterAgent2:
		return f.register2(c, arg)
	case uapi.UMADUnregisterAgent:
		id := make(uapi.UMADAgent, 4)
		if c.Read(arg, id) != nil {
			return fmt.Errorf("number of an agent at %#x: %w", arg, syscall.EFAULT)
		}
		return f.Unregister(id.ID())
	case uapi.UMADEnablePKey:
		return f.EnablePKeys()
	}
	return fmt.Errorf("call %#x: %w", call, syscall.ENOTTY)
}

func (f *File) register(c uapi.Mem, arg uint64) error {
	r := uapi.UMADRegister(make([]byte, uapi.UMADRegisterSize))
	if c.Read(arg, r) != nil {
		return fmt.Errorf("agent at %#x: %w", arg, syscall.EFAULT)
	}
	oui := r.OUI()
	id, err := f.Register(&umad.Request{
		QPN: uint32(r.QPN()), Class: r.Class(), Version: r.Version(), Methods: uapi.UMADMethods(r.Methods()), RMPP: r.RMPP(),
		OUI: uint32(oui[0])<<16 | uint32(oui[1])<<8 | uint32(oui[2]),
	})
	if err != nil {
		return err
	}
	return f.tell(c, arg, id)
}

func (f *File) register2(c uapi.Mem, arg uint64) error {
	r := uapi.UMADRegister2(make([]byte, uapi.UMADRegister2Size))
	if c.Read(arg, r) != nil {
		return fmt.Errorf("agent at %#x: %w", arg, syscall.EFAULT)
	}
	if r.Flags()&^uapi.UMADUserRMPP != 0 {
		const flags = 12
		if c.Write(arg+flags, []byte{uapi.UMADUserRMPP, 0, 0, 0}) != nil {
			return fmt.Errorf("agent at %#x: %w", arg, syscall.EFAULT)
		}
		return fmt.Errorf("flags %#x of an agent: %w", r.Flags(), syscall.EINVAL)
	}
	if r.Class() != 0 && r.OUI()>>24 != 0 {
		return fmt.Errorf("OUI %#x: %w", r.OUI(), syscall.EINVAL)
	}
	pkeys := f.PKeyIndex || f.Fresh()
	id, err := f.Register(&umad.Request{
		QPN: r.QPN(), Class: r.Class(), Version: r.Version(), Methods: uapi.UMADMethods(r.Methods()), RMPP: r.RMPP(), OUI: r.OUI(),
		UserRMPP: r.Flags()&uapi.UMADUserRMPP != 0,
	})
	if err != nil {
		return err
	}
	f.PKeyIndex = pkeys
	return f.tell(c, arg, id)
}

// tell writes the number of a new agent, which is first in both structures.
func (f *File) tell(c uapi.Mem, arg uint64, id uint32) error {
	b := make(uapi.UMADAgent, 4)
	b.SetID(id)
	if c.Write(arg, b) != nil {
		_ = f.Unregister(id)
		return fmt.Errorf("agent at %#x: %w", arg, syscall.EFAULT)
	}
	return nil
}

// maxWrite is more than the longest message that a file takes.
const maxWrite = 2 << 20

// Write sends a message of length bytes at addr. Where it succeeds the program is answered with the
// whole length.
func (f *File) Write(c uapi.Mem, addr, length uint64) syscall.Errno {
	return f.failed(f.write(c, addr, length))
}

func (f *File) write(c uapi.Mem, addr, length uint64) error {
	n := f.header()
	if length < uint64(n) || length > maxWrite {
		return fmt.Errorf("a write of %d bytes: %w", length, syscall.EINVAL)
	}
	b := make([]byte, length)
	if c.Read(addr, b) != nil {
		return fmt.Errorf("message at %#x: %w", addr, syscall.EFAULT)
	}
	h := uapi.UMADHeader(make([]byte, uapi.UMADHeaderSize))
	copy(h, b[:n])
	return f.File.Write(umad.Header{
		Agent: h.ID(), Timeout: h.Timeout(), Retries: h.Retries(), QPN: h.DestQPN(), LID: h.DestLID(), SL: h.SL() & 15,
		PathBits: h.PathBits() & 0x7f, GRH: h.GRHPresent() != 0, GIDIndex: h.GIDIndex(), HopLimit: h.HopLimit(), TrafficClass: h.TrafficClass(),
		GID: [16]byte(h.GID()), FlowLabel: h.Label(), PKeyIndex: h.PKeyIndex(),
	}, b[n:])
}

// Read gives a message to a program that has room for length bytes at addr, and returns how many it
// gets.
func (f *File) Read(c uapi.Mem, addr, length uint64) (n int, e syscall.Errno, err error) {
	n, err = f.read(c, addr, length)
	if errors.Is(err, ErrWait) {
		return 0, 0, err
	}
	return n, f.failed(err), nil
}

func (f *File) read(c uapi.Mem, addr, length uint64) (int, error) {
	size := f.header()
	if length < uint64(size) {
		return 0, fmt.Errorf("a read of %d bytes: %w", length, syscall.EINVAL)
	}
	if err := f.Err(); err != nil {
		return 0, err
	}
	if !f.Readable() {
		return 0, ErrWait
	}
	const segment = 256
	p := f.Front()
	first := min(len(p.Data), segment)
	if length < uint64(size+first) {
		return 0, fmt.Errorf("a read of %d bytes, where %d are: %w", length, size+len(p.Data), syscall.EINVAL)
	}
	h := uapi.UMADHeader(make([]byte, uapi.UMADHeaderSize))
	h.SetID(p.Agent)
	h.SetStatus(p.Status)
	h.SetTimeout(p.Timeout)
	h.SetRetries(p.Retries)
	h.SetLength(uint32(size + len(p.Data)))
	h.SetDestQPN(p.QPN)
	h.SetDestLID(p.LID)
	h.SetSL(p.SL)
	h.SetPathBits(p.PathBits)
	if p.GRH {
		h.SetGRHPresent(1)
	}
	h.SetGIDIndex(p.GIDIndex)
	h.SetHopLimit(p.HopLimit)
	h.SetTrafficClass(p.TrafficClass)
	copy(h.GID(), p.GID[:])
	h.SetLabel(p.FlowLabel)
	h.SetPKeyIndex(p.PKeyIndex)
	b := append([]byte(h[:size:size]), p.Data...)
	if uint64(len(b)) > length {
		// The program learns the length, and reads again.
		if c.Write(addr, b[:size+first]) != nil {
			return 0, fmt.Errorf("message at %#x: %w", addr, syscall.EFAULT)
		}
		return 0, fmt.Errorf("a read of %d bytes, where %d are: %w", length, len(b), syscall.ENOSPC)
	}
	if c.Write(addr, b) != nil {
		return 0, fmt.Errorf("message at %#x: %w", addr, syscall.EFAULT)
	}
	f.Next()
	return len(b), nil
}
