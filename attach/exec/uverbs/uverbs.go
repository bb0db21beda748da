//go:build linux

// Package uverbs is an open uverbs device file: it carries out the calls that a
// program makes with the RDMA ioctl (package uapi) by those of the kernel model
// (sim/kernel), keeps the files through which events are read, and tells the session
// which pages of the device file are registers and which queues ring them.
//
// What the model does not have is refused as an old kernel would refuse it; Refused lists it.
// Libraries before rdma-core 17, which write commands to the file instead of making
// ioctls, are not served: writes to the file are not intercepted.
//
// Everything here runs on the thread of the engine. Calls are made by the kernel's
// zero Caller: a program outside waits in real time, not in the engine's.
package uverbs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
)

// File is an open device file. Its context is made by the program's GET_CONTEXT.
type File struct {
	// DynamicUARs offers UAR objects to a library that knows them. Otherwise, and with a
	// kernel model of the static generation, it gets a table of static bfregs, as from a
	// kernel before 5.8.
	DynamicUARs bool
	// Logf, when not nil, receives the reason for every call that fails, but for those by which
	// libraries find out what there is.
	Logf func(format string, args ...any)
	// OnNoPaging, when not nil, is called when a registration on demand is refused.
	OnNoPaging func()
	// Objects bounds the objects of the file's process, Descriptors what we keep open for it: a
	// pipe for each file of events.
	Objects, Descriptors *Quota

	dev   *kernel.Device
	proc  *kernel.Process
	pages Pages

	u          *kernel.Ucontext
	static     []*cpu.Mapping          // UAR pages of the static table
	dyn        map[uint32]*cpu.Mapping // and of its dynamic part, by index
	objects    map[uint32]*uarObject   // UAR objects by handle
	memory     map[uint32]*deviceMemory
	others     map[uint32]uint64 // where in BAR 0 queues of commands ring, by handle
	commandQPs map[uint32]*QP    // that programs have made by commands of their own
	qps        map[uint32]*qp    // by handle
	cqs        map[uint32]*cq
	srqs       map[uint32]*srq
	xrcds      map[uint32]bool   // open handles of XRC domains
	owners     map[uint64]*owner // the queues that events are about, by the kernel's cookie
	cookies    uint64
	channels   map[Inode]*channel
	resp       kernel.UcontextResp // of GET_CONTEXT
	async      *eventPipe
	// more are the files for asynchronous events of contexts that were imported from this file's.
	// Each has the events of ports, and those of the queues that were made with it.
	more    []*eventPipe
	clocks  map[uint64]bool // pages about the clock that are mapped
	closed  bool
	counted int // of Objects
}

// Open makes an open device file of dev for process p.
func Open(dev *kernel.Device, p *kernel.Process, pages Pages) *File {
	return &File{
		dev: dev, proc: p, pages: pages, dyn: map[uint32]*cpu.Mapping{}, objects: map[uint32]*uarObject{}, memory: map[uint32]*deviceMemory{}, others: map[uint32]uint64{}, commandQPs: map[uint32]*QP{}, qps: map[uint32]*qp{},
		cqs: map[uint32]*cq{}, srqs: map[uint32]*srq{}, xrcds: map[uint32]bool{}, clocks: map[uint64]bool{}, owners: map[uint64]*owner{}, channels: map[Inode]*channel{},
	}
}

// noCaller is the zero Caller, with which the kernel model's functions are called.
var noCaller = kernel.Caller{}

// Ioctl carries out the RDMA_VERBS_IOCTL whose argument is at arg, and returns 0 or
// the errno that the program gets.
func (f *File) Ioctl(c Caller, arg uint64) syscall.Errno {
	if f.closed {
		return syscall.EBADF
	}
	k, err := uapi.Decode(c, arg)
	if err == nil {
		f.flush()
		err = f.method(c, k)
		f.recount()
	}
	if err == nil {
		return 0
	}
	if f.Logf != nil && (k == nil || !probes(k, err)) {
		f.Logf("uverbs: %v", err)
	}
	return errnoOf(err)
}

// probes reports whether a call that has failed is one by which a library finds out what there is,
// and goes on without it: libibverbs reads the table of GIDs and tries whether commands can be
// ioctls, with a command that is none; libmlx5 asks the firmware for its capabilities.
func probes(k *uapi.Call, err error) bool {
	switch [2]uint16{k.Method.Object, k.Method.ID} {
	case [2]uint16{uapi.ObjectDevice, uapi.DeviceQueryGIDEntry}:
		return errors.Is(err, syscall.ENODATA)
	case [2]uint16{uapi.ObjectDevice, uapi.DeviceInvokeWrite}:
		return errors.Is(err, syscall.ENOSPC) && k.Len(uapi.InvokeWriteCoreIn) == 0
	case [2]uint16{uapi.ObjectDEVX, uapi.DEVXOther}:
		cmd, _ := k.In(uapi.DEVXOtherIn, prm.QueryHCACapInSize)
		return errors.Is(err, syscall.EPROTONOSUPPORT) && cmd != nil && prm.CmdIn(cmd).Opcode() == prm.OpQueryHCACap
	}
	return false
}

// errnoOf is the errno inside an error, 0 for nil, and EIO for an error without one.
func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	var e syscall.Errno
	if errors.As(err, &e) && e != 0 {
		return e
	}
	return syscall.EIO
}

func (f *File) needContext(what string) error {
	if f.u == nil {
		return fmt.Errorf("%s before GET_CONTEXT: %w", what, syscall.EINVAL)
	}
	return nil
}

// checkOpener refuses the memory of another process than the one that opened the file.
func (f *File) checkOpener(c Caller) error {
	if i, ok := c.(Identified); ok && i.Process() != f.proc {
		return fmt.Errorf("memory of a process that inherited the file: %w: %w", errNotModelled, syscall.EOPNOTSUPP)
	}
	return nil
}

// kernelHandle turns a handle of the program into the kernel model's, where 0 means that none
// is given: the program's 0 becomes one that does not exist.
func kernelHandle(h uint32) kernel.Handle {
	if h == 0 {
		return kernel.Handle(^uint32(0) >> 1)
	}
	return kernel.Handle(h)
}

func (f *File) allocPD(k *uapi.Call, w *uapi.Write) error {
	h, pdn, err := f.u.AllocPD(noCaller)
	if err != nil {
		return err
	}
	core := uapi.AllocPDResp(make([]byte, uapi.AllocPDRespSize))
	core.SetPDHandle(uint32(h))
	drv := uapi.MLX5AllocPDResp(make([]byte, uapi.MLX5AllocPDRespSize))
	drv.SetPDN(pdn)
	return undo(errors.Join(k.Out(uapi.AttrUHWOut, drv), w.Respond(core)), func() error { return f.u.DeallocPD(noCaller, h) })
}

// undo calls back, which destroys a new object, when its answer could not be delivered.
func undo(err error, back func() error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, back())
}

// Close releases the file: the last descriptor and the last mapping are gone. What the
// context still has is destroyed. Later calls fail with EBADF.
func (f *File) Close() {
	if f.closed {
		return
	}
	for _, h := range newestFirst(f.qps) {
		f.withdrawQP(f.qps[h])
	}
	for _, h := range newestFirst(f.cqs) {
		f.pages.RemoveCQ(&f.cqs[h].CQ)
	}
	for _, h := range newestFirst(f.srqs) {
		f.pages.RemoveSRQ(&f.srqs[h].SRQ)
	}
	for _, h := range newestFirst(f.commandQPs) {
		f.withdraw(h)
	}
	for _, h := range newestFirst(f.others) {
		f.withdraw(h)
	}
	if f.u != nil {
		f.u.Close(noCaller)
		f.unmapAll()
	}
	for _, p := range f.asyncFiles() {
		p.close()
	}
	for _, ch := range f.channels {
		ch.pipe.close()
	}
	f.u = nil
	f.recount()
	f.async, f.more, f.channels, f.qps, f.cqs, f.srqs, f.xrcds, f.owners = nil, nil, nil, nil, nil, nil, nil, nil
	f.closed = true
}

// newestFirst are the handles of objects, from the newest on.
func newestFirst[T any](objects map[uint32]T) []uint32 {
	handles := slices.Sorted(maps.Keys(objects))
	slices.Reverse(handles)
	return handles
}
