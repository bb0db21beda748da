//go:build linux

// Package ucm is an open channel file of rdma_cm (/dev/infiniband/rdma_cm): it carries out the
// commands that a program writes to it by calls of the connection manager's model (sim/kernel/cm).
// The order of its checks is that of ucma_write and of the commands in core/ucma.c of Linux 6.12.
//
// Everything here runs on the thread of the engine. A GET_EVENT for which there is no event ends
// with ErrWait: whoever serves the file repeats it when there is one.
package ucm

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/uapi"
)

// ErrWait is the end of a GET_EVENT that finds no event.
var ErrWait = errors.New("no event yet")

// Caller is the process that writes a command, for the time of the call.
type Caller interface {
	uapi.Mem
	// Channel is the channel file behind a descriptor of the process: nil when it is another file,
	// EBADF when there is none.
	Channel(fd int) (*File, error)
}

// File is an open channel file.
type File struct {
	// Logf, when not nil, receives the reason for every command that fails, but for the one by
	// which librdmacm finds out whether there is AF_IB.
	Logf func(format string, args ...any)
	// Objects bounds the ids and memberships of the file's process.
	Objects *uverbs.Quota

	cm      *cm.File
	index   func(*kernel.Device) int
	counted map[object]bool // what is counted of Objects
}

// object is an id, or a membership of a multicast group, which has a number of its own.
type object struct {
	number uint32
	group  bool
}

// Open makes a file over that of the model. index is the number of a device, by which libraries
// know it (`rdma dev`).
func Open(f *cm.File, index func(*kernel.Device) int) *File {
	return &File{cm: f, index: index, counted: map[object]bool{}}
}

// noCaller is the zero Caller, with which the model's commands are called: a program outside waits
// in real time.
var noCaller = kernel.Caller{}

// MaxWrite is how many bytes of a write are looked at: more than the longest command has.
const MaxWrite = uapi.CMHeaderSize + uapi.CMEventSize

// Readable says whether an event waits.
func (f *File) Readable() bool { return f.cm.Readable() }

// OnReadable sets the function that is called, in the engine's thread, whenever an event is queued.
// It must not call back.
func (f *File) OnReadable(fn func()) { f.cm.OnReadable(fn) }

// Close is the last close of the file.
func (f *File) Close() {
	f.cm.Close(noCaller)
	f.Objects.Give(len(f.counted))
	clear(f.counted)
}

// Write carries out the command that a program writes: length bytes at addr. It returns the errno
// that the program gets, or 0, or ErrWait with errno 0. Where it succeeds the program is answered
// with the whole length.
func (f *File) Write(c Caller, addr, length uint64) (syscall.Errno, error) {
	err := f.write(c, addr, length)
	if err == nil || errors.Is(err, ErrWait) {
		return 0, err
	}
	if f.Logf != nil && !errors.Is(err, errProbe) {
		f.Logf("rdma_cm: %v", err)
	}
	var e syscall.Errno
	if errors.As(err, &e) && e != 0 {
		return e, nil
	}
	return syscall.EIO, nil
}

// command is one write, with the header taken off.
type command struct {
	Caller
	f    *File
	name string
	addr uint64 // of the structure
	in   int    // bytes of the structure that the program has
	out  int    // room for the answer
}

// errorf is an error of the command.
func (k *command) errorf(e syscall.Errno, format string, a ...any) error {
	return fmt.Errorf("%s: %s: %w", k.name, fmt.Sprintf(format, a...), e)
}

func (f *File) write(c Caller, addr, length uint64) error {
	if length < uapi.CMHeaderSize {
		return fmt.Errorf("%d bytes are not a command: %w", length, syscall.EINVAL)
	}
	h := uapi.CMHeader(make([]byte, uapi.CMHeaderSize))
	if c.Read(addr, h) != nil {
		return fmt.Errorf("header at %#x: %w", addr, syscall.EFAULT)
	}
	n := h.Command()
	if int64(n) >= int64(len(commands)) {
		return fmt.Errorf("command %d: %w", n, syscall.EINVAL)
	}
	if uint64(h.In())+uapi.CMHeaderSize > length {
		return fmt.Errorf("command %d of %d bytes in a write of %d: %w", n, h.In(), length, syscall.EINVAL)
	}
	run := commands[n].run
	if run == nil {
		return fmt.Errorf("command %d: %w", n, syscall.ENOSYS)
	}
	return run(&command{Caller: c, f: f, name: commands[n].name, addr: addr + uapi.CMHeaderSize, in: int(h.In()), out: int(h.Out())})
}

// read is the structure of the command: as the kernel does, all of it is read, whatever length the
// header says.
func (k *command) read(size int) ([]byte, error) {
	b := make([]byte, size)
	if k.Read(k.addr, b) != nil {
		return nil, k.errorf(syscall.EFAULT, "%d bytes at %#x", size, k.addr)
	}
	return b, nil
}

// readUpTo is the structure as far as the header says that it goes, and zeros.
func (k *command) readUpTo(size int) ([]byte, error) {
	b := make([]byte, size)
	if n := min(size, k.in); n > 0 && k.Read(k.addr, b[:n]) != nil {
		return nil, k.errorf(syscall.EFAULT, "%d bytes at %#x", n, k.addr)
	}
	return b, nil
}

// room checks that the answer has its least room.
func (k *command) room(least int) error {
	if k.out < least {
		return k.errorf(syscall.ENOSPC, "room for %d bytes, %d are needed", k.out, least)
	}
	return nil
}

// answer writes an answer, as far as there is room for it.
func (k *command) answer(addr uint64, b []byte) error {
	if k.Write(addr, b[:min(len(b), k.out)]) != nil {
		return k.errorf(syscall.EFAULT, "answer at %#x", addr)
	}
	return nil
}

// take counts an object before it is made.
func (f *File) take() error {
	if err := f.Objects.Take(1); err != nil {
		return fmt.Errorf("rdma_cm: %w", err)
	}
	return nil
}

// keep counts an object that take has made room for, or one that came by itself.
func (f *File) keep(o object, taken bool) {
	if !taken && f.Objects.Take(1) != nil {
		return // its like are bounded by the backlog of a listener
	}
	f.counted[o] = true
}

// drop ends the count of an object.
func (f *File) drop(o object) {
	if f.counted[o] {
		delete(f.counted, o)
		f.Objects.Give(1)
	}
}
