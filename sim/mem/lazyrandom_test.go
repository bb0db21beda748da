package mem

import (
	"errors"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// lazyRun is a random program of several processes, and the model of it.
type lazyRun struct {
	*rapid.T
	m      *Memory
	model  lazyModel
	areas  int
	noRoom int // calls that found no memory
	top    VA  // of the addresses that were used
}

// TestLazyAtRandom: whatever processes do to their memory, each reads the bytes that a simple model
// says; devices read and write them by translations that they keep until they are told; and nothing
// is left in the end.
func TestLazyAtRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &lazyRun{T: rt, m: New(firstPA + 96*PageSize), top: firstLazyVA}
		r.m.SetPaging(uint64(rapid.IntRange(8, 40).Draw(rt, "limit"))*PageSize, uint64(rapid.IntRange(20, 400).Draw(rt, "swap"))*PageSize)
		for i, file := range []bool{true, false} {
			o, err := r.m.newObject(uint64(3+i)*PageSize+100, file)
			r.want("object", err, 0)
			r.model.objects = append(r.model.objects, &modelObject{o: o, size: o.size, cells: map[uint64]*cell{}})
		}
		r.model.procs = append(r.model.procs, newModelProc(NewSpace(r.m)))
		r.mapping(r.model.procs[0])
		ops := []func(p *modelProc){
			r.mapping, r.write, r.write, r.read, r.write, r.translate, r.translate, r.deviceWrite, r.deviceWrite, r.protect, r.discard, r.pageOut,
			r.move, r.fork, r.truncate, r.unmap, r.pin, r.pinnedWrite, r.unpin, r.exit, r.snapshot, r.populate, r.pwrite,
		}
		for range rapid.IntRange(1, 120).Draw(rt, "steps") {
			p := rapid.SampledFrom(r.model.procs).Draw(rt, "process")
			rapid.SampledFrom(ops).Draw(rt, "op")(p)
			r.entriesAgree()
		}
		for _, p := range r.model.procs {
			for va := firstLazyVA; va < r.top; va += PageSize {
				r.readPage(p, va)
			}
		}
		r.end()
	})
}

// want checks an errno. It reports whether the call succeeded; for want of memory any call may
// fail.
func (r *lazyRun) want(what string, err error, want syscall.Errno) bool {
	if want != syscall.ENOMEM && errors.Is(err, syscall.ENOMEM) {
		r.noRoom++
		return false
	}
	if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
		r.Fatalf("%s: %v, want %v", what, err, want)
	}
	return err == nil
}

// place is some pages around what was ever mapped.
func (r *lazyRun) place() (VA, int) {
	pages := int((r.top-firstLazyVA)/PageSize) + 1
	return firstLazyVA + VA(rapid.IntRange(0, pages).Draw(r.T, "page"))*PageSize, rapid.IntRange(1, 6).Draw(r.T, "pages")
}

func (r *lazyRun) mapping(p *modelProc) {
	n := rapid.IntRange(1, 6).Draw(r.T, "n")
	o := MapOptions{Lazy: true, Prot: rapid.SampledFrom([]Prot{Read | Write, Read | Write, Read | Write, Read, 0}).Draw(r.T, "prot")}
	x := lazyPage{prot: o.Prot, area: r.areas, private: true}
	r.areas++
	if k := rapid.IntRange(0, 4).Draw(r.T, "object"); k < 2 {
		x.o, x.private, x.index = r.model.objects[k], rapid.Bool().Draw(r.T, "private"), uint64(rapid.IntRange(0, 3).Draw(r.T, "offset"))
		o.Object, o.Private, o.Offset = x.o.o, x.private, x.index*PageSize
	}
	if rapid.Bool().Draw(r.T, "at") && r.top > firstLazyVA {
		o.At, _ = r.place()
	}
	va, err := p.s.MapWith(uint64(n)*PageSize, o)
	r.want("map", err, 0)
	for i := range n {
		y := x
		y.index += uint64(i)
		p.pages[va+VA(i)*PageSize] = &y
	}
	r.top = max(r.top, va+VA(n)*PageSize)
}

// offsets are those of a cell's bytes.
var offsets = [2]VA{0, PageSize - 1}

func (r *lazyRun) write(p *modelProc) {
	va, _ := r.place()
	i, b := rapid.IntRange(0, 1).Draw(r.T, "end"), rapid.Byte().Draw(r.T, "byte")
	want := p.access(va, Write)
	if r.want("write", p.s.WriteAt([]byte{b}, va+offsets[i]), want) {
		p.pages[va].mine().b[i] = b
	}
}

func (r *lazyRun) read(p *modelProc) {
	va, _ := r.place()
	r.readPage(p, va)
}

func (r *lazyRun) readPage(p *modelProc, va VA) {
	for i, off := range offsets {
		var b [1]byte
		if r.want("read", p.s.ReadAt(b[:], va+off), p.access(va, Read)) && b[0] != p.pages[va].see().b[i] {
			r.Fatalf("byte %d of page %#x is %d, want %d", i, uint64(va), b[0], p.pages[va].see().b[i])
		}
	}
}

// translate has the device find pages.
func (r *lazyRun) translate(p *modelProc) {
	va, n := r.place()
	how := rapid.SampledFrom([]RangeFlags{0, RangeWrite}).Draw(r.T, "how")
	want := syscall.Errno(0)
	for i := 0; i < n && want == 0; i++ {
		at := va + VA(i)*PageSize
		if want = p.access(at, Read); how&RangeWrite != 0 && p.pages[at] != nil && p.pages[at].prot == Read {
			want = syscall.EPERM
		}
	}
	out := make([]Frame, n)
	ok := r.want("range", p.s.Range(va, uint64(n)*PageSize, how, out), want)
	if !ok {
		p.learn(va, n)
		return
	}
	for i := range n {
		at := va + VA(i)*PageSize
		if !out[i].Present || how&RangeWrite != 0 && !out[i].Writable {
			r.Fatalf("page %#x: %+v", uint64(at), out[i])
		}
		if how&RangeWrite != 0 {
			p.pages[at].mine()
		}
		p.entries[at] = out[i]
	}
}

func (r *lazyRun) snapshot(p *modelProc) {
	va, n := r.place()
	before, out := p.s.Faults(), make([]Frame, n)
	r.want("snapshot", p.s.Range(va, uint64(n)*PageSize, RangeSnapshot, out), 0)
	if p.s.Faults() != before {
		r.Fatal("a snapshot touches pages")
	}
	for i, f := range out {
		if at := va + VA(i)*PageSize; f.Present {
			p.entries[at] = f
		}
	}
}

// entriesAgree: what a device sees by its translations is what the process sees.
func (r *lazyRun) entriesAgree() {
	for _, p := range r.model.procs {
		for va, f := range p.entries {
			x := p.pages[va]
			if x == nil || x.prot&Read == 0 || x.behind() || f.Writable && x.prot&Write == 0 {
				r.Fatalf("the device has %+v of page %#x, whose rights are gone", f, uint64(va))
			}
			for i, off := range offsets {
				var b [1]byte
				if !r.m.Read(f.PA+PA(off), b[:]) || b[0] != x.see().b[i] {
					r.Fatalf("the device reads %d at byte %d of page %#x, want %d", b[0], i, uint64(va), x.see().b[i])
				}
			}
		}
		for _, pin := range p.pins {
			for k, pa := range pin.pa {
				for i, off := range offsets {
					var b [1]byte
					if !r.m.Read(pa+PA(off), b[:]) || b[0] != pin.c[k].b[i] {
						r.Fatalf("a pinned page has %d at byte %d, want %d", b[0], i, pin.c[k].b[i])
					}
				}
			}
		}
	}
}

func (r *lazyRun) deviceWrite(p *modelProc) {
	va, _ := r.place()
	if f := p.entries[va]; f.Writable {
		b := rapid.Byte().Draw(r.T, "byte")
		r.m.DMAStore(f.PA+PA(offsets[1]), []byte{b})
		p.pages[va].mine().b[1] = b
	}
}
