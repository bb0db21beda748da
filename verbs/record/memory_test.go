package record_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/record"
)

// pagedProcess is a process whose buffers and objects can do all that there is.
type pagedProcess struct{ process }

type pagedBuffer struct {
	buffer
	moved uint64
}

type memObject struct{}

func (p *pagedProcess) Map(t verbs.Thread, _ uint64, o verbs.MapOptions) (verbs.Buffer, error) {
	bareOnly(t)
	if o.Object != nil {
		_ = o.Object.(*memObject) // the recorder passes its own on when this panics
	}
	return &pagedBuffer{buffer: buffer{b: p.b}}, nil
}

func (p *pagedProcess) NewShared(t verbs.Thread, _ uint64) (verbs.MemObject, error) {
	bareOnly(t)
	return new(memObject), nil
}

func (p *pagedProcess) NewFile(t verbs.Thread, _ uint64) (verbs.MemObject, error) {
	bareOnly(t)
	return nil, syscall.ENOSPC
}

func (p *pagedProcess) PageFaults(t verbs.Thread) (verbs.PageFaults, error) {
	bareOnly(t)
	return verbs.PageFaults{Minor: 3}, nil
}

func (p *pagedProcess) MemoryUse(t verbs.Thread) (verbs.MemoryUse, error) {
	bareOnly(t)
	return verbs.MemoryUse{Pinned: 5}, nil
}

func (b *pagedBuffer) Addr() uint64               { return b.buffer.Addr() + b.moved }
func (b *pagedBuffer) Remap(t verbs.Thread) error { bareOnly(t); return nil }
func (b *pagedBuffer) Unmap(t verbs.Thread) error { bareOnly(t); return nil }
func (o *memObject) Close(t verbs.Thread) error   { bareOnly(t); return nil }
func (b *pagedBuffer) Move(t verbs.Thread, to uint64) error {
	bareOnly(t)
	b.moved = 1 << 30
	return nil
}

func (b *pagedBuffer) Protect(t verbs.Thread, _, _ uint64, _ verbs.Prot) error {
	bareOnly(t)
	return syscall.ENOMEM
}

func (b *pagedBuffer) Advise(t verbs.Thread, _, _ uint64, _ verbs.Advice) error {
	bareOnly(t)
	return nil
}

func (b *pagedBuffer) Resident(t verbs.Thread, _, n uint64) ([]bool, error) {
	bareOnly(t)
	return make([]bool, n/4096), nil
}

func (b *pagedBuffer) UnmapPart(t verbs.Thread, _, _ uint64) error { bareOnly(t); return nil }

func (o *memObject) ReadAt(t verbs.Thread, p []byte, _ int64) (int, error) {
	bareOnly(t)
	return len(p), nil
}

func (o *memObject) WriteAt(t verbs.Thread, p []byte, _ int64) (int, error) {
	bareOnly(t)
	return len(p), nil
}

func (o *memObject) Truncate(t verbs.Thread, _ uint64) error { bareOnly(t); return syscall.EINVAL }

// What is done to memory is recorded; what it holds, and where the kernel has it, is not.
func TestMemoryIsRecorded(t *testing.T) {
	r := record.New(&bed{base: 7})
	proc := &pagedProcess{process{b: &bed{base: 7}}}
	th := r.Thread(&memThread{thread{p: &proc.process}, proc})
	p := th.Process()
	o, err := p.(verbs.MemObjects).NewShared(th, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.(verbs.MemObjects).NewFile(th, 1); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	m, err := p.Map(th, 8192, verbs.MapOptions{Object: o})
	if err != nil {
		t.Fatal(err)
	}
	b := m.(verbs.PagedBuffer)
	_ = b.Protect(th, 4096, 10, verbs.ProtRead)
	_ = b.Advise(th, 0, 4096, verbs.AdviceDontNeed)
	if pages, err := b.Resident(th, 0, 8192); len(pages) != 2 || err != nil {
		t.Error(pages, err)
	}
	_ = b.UnmapPart(th, 4096, 4096)
	_ = b.Move(th, 0)
	_ = b.Move(th, b.Addr())
	_ = m.(verbs.Remapper).Remap(th)
	_, _ = o.ReadAt(th, make([]byte, 1), 0)
	_, _ = o.WriteAt(th, make([]byte, 1), 0)
	_ = o.Truncate(th, 0)
	_ = o.Close(th)
	if n, err := p.(verbs.PageFaultCounter).PageFaults(th); n.Minor != 3 || err != nil {
		t.Error(n, err)
	}
	if n, err := p.(verbs.MemoryUser).MemoryUse(th); n.Pinned != 5 || err != nil {
		t.Error(n, err)
	}
	want := `main: new_shared(4096)
main: new_file(1) = ENOSPC
main: map(8192) = addr1
main: protect(addr1+0x1000, 10, 0x1) = ENOMEM
main: advise(addr1, 4096, 4)
main: resident(addr1, 8192)
main: unmap(addr1+0x1000, 4096)
main: move(addr1, anywhere)
main: move(addr2, addr2)
main: remap(addr2)
main: truncate(0) = EINVAL
main: close()
`
	if got := r.Text(); got != want {
		t.Errorf("recorded\n%s\nwant\n%s", got, want)
	}
}

// Where the target below cannot do it, EOPNOTSUPP says so.
func TestMemoryOfOtherTargets(t *testing.T) {
	r := record.New(&bed{base: 7})
	th := r.Thread(&thread{p: &process{b: &bed{base: 7}}})
	m, err := th.Process().Map(th, 4096, verbs.MapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := m.(verbs.PagedBuffer)
	_, resident := b.Resident(th, 0, 1)
	_, shared := th.Process().(verbs.MemObjects).NewShared(th, 1)
	_, file := th.Process().(verbs.MemObjects).NewFile(th, 1)
	_, faults := th.Process().(verbs.PageFaultCounter).PageFaults(th)
	_, use := th.Process().(verbs.MemoryUser).MemoryUse(th)
	for i, err := range []error{
		b.Protect(th, 0, 1, 0), b.Advise(th, 0, 1, 0), resident, b.UnmapPart(th, 0, 1), b.Move(th, 0), m.(verbs.Remapper).Remap(th), shared, file, faults, use,
	} {
		if !errors.Is(err, syscall.EOPNOTSUPP) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// memThread is a thread of a pagedProcess.
type memThread struct {
	thread
	proc *pagedProcess
}

func (t *memThread) Process() verbs.Process { return t.proc }
