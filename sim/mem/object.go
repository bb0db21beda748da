package mem

import (
	"io"
	"slices"
	"syscall"
)

// Object is what several mappings can show: a file, or shared memory. Its pages are cached in the
// host's memory.
type Object struct {
	m     *Memory
	file  bool
	open  bool
	size  uint64
	pages table             // by number; what is in swap too
	disk  map[uint64][]byte // a file's pages that are not cached and not zero
	users []objectUser      // areas that show it, in the order of their making
}

type objectUser struct {
	s *Space
	a *area
}

// maxObject is the largest size of an object.
const maxObject = 1 << 47

// NewFile makes a file of size bytes, all zero. Pages that are reclaimed are written to it, and
// read from it by a major fault.
func (m *Memory) NewFile(size uint64) (*Object, error) { return m.newObject(size, true) }

// NewShared makes shared memory (memfd_create, shmem), whose pages go to swap when they are
// reclaimed.
func (m *Memory) NewShared(size uint64) (*Object, error) { return m.newObject(size, false) }

func (m *Memory) newObject(size uint64, file bool) (*Object, error) {
	if size > maxObject {
		return nil, errorf(syscall.EFBIG, "an object of %d B", size)
	}
	m.needPaging()
	return &Object{m: m, file: file, open: true, size: size, disk: map[uint64][]byte{}}, nil
}

// Size is the object's length in bytes.
func (o *Object) Size() uint64 { return o.size }

// Close gives the object up. Mappings keep it.
func (o *Object) Close() {
	o.open = false
	o.collect()
}

func (o *Object) closed() bool { return !o.open }

func (o *Object) use(s *Space, a *area) { o.users = append(o.users, objectUser{s, a}) }

func (o *Object) unuse(a *area) {
	o.users = slices.DeleteFunc(o.users, func(u objectUser) bool { return u.a == a })
	o.collect()
}

// collect frees what nobody can reach any more.
func (o *Object) collect() {
	if !o.open && len(o.users) == 0 {
		o.dropPages(0)
	}
}

// dropPages forgets the pages from number first on, which no entry names.
func (o *Object) dropPages(first uint64) {
	for {
		i, e, ok := o.pages.next(first, maxIndex)
		if !ok {
			break
		}
		o.pages.set(i, 0)
		if e.swapped() {
			o.m.lazy.swap.drop(e.page())
			continue
		}
		f := o.m.frameOf(e)
		f.obj = nil
		o.m.dropFrame(f)
	}
	for i := range o.disk {
		if i >= first {
			delete(o.disk, i)
		}
	}
}

// save keeps the content of a file's page that is reclaimed.
func (o *Object) save(i uint64, b []byte) {
	if b == nil {
		delete(o.disk, i)
		return
	}
	o.disk[i] = b
}

// load brings page i into memory, and says whether it had to be read from where it was kept.
func (o *Object) load(i uint64) (f *frame, major bool, err error) {
	e := o.pages.get(i)
	switch {
	case e.present():
		f = o.m.frameOf(e)
	case e.swapped():
		f, err = o.m.swapIn(e.page())
		major = true
	default:
		if f, err = o.m.newFrame(1); err == nil {
			o.m.fillFrame(f, o.disk[i])
			delete(o.disk, i)
		}
		major = o.file
	}
	if err != nil {
		return nil, false, err
	}
	if !e.present() {
		f.obj, f.index = o, i
		o.pages.set(i, pte(f.pg<<pteShift)|ptePresent)
	}
	o.m.lazy.use(f)
	return f, major, nil
}

// cached reports whether page i is in memory.
func (o *Object) cached(i uint64) bool { return o.pages.get(i).present() }

// Truncate changes the size (ftruncate). Pages behind the new end are taken from everybody who maps
// them, copies included, after the notifiers were called; what is added is zero.
func (o *Object) Truncate(size uint64) error {
	if size > maxObject {
		return errorf(syscall.EFBIG, "truncate to %d B", size)
	}
	old := o.size
	o.size = size
	if size >= old {
		return nil
	}
	first := o.m.pages(size)
	for _, u := range slices.Clone(o.users) {
		a := u.a
		from := a.start
		if cut := first << o.m.shift; cut > a.off {
			from += VA(min(cut-a.off, uint64(a.end-a.start)))
		}
		if from < a.end {
			u.s.zap(a, from, a.end)
		}
	}
	o.dropPages(first)
	o.clearTail(size)
	return nil
}

// clearTail makes the rest of the last page zero, so that growing again shows zeroes.
func (o *Object) clearTail(size uint64) {
	i, off := size>>o.m.shift, size&(1<<o.m.shift-1)
	if off == 0 {
		return
	}
	switch e := o.pages.get(i); {
	case e.present():
		o.m.Write(PA(e.page()<<o.m.shift+off), make([]byte, 1<<o.m.shift-off))
	case e.swapped():
		clearFrom(o.m.lazy.swap.slots[e.page()].b, off)
	default:
		clearFrom(o.disk[i], off)
	}
}

// clearFrom makes zero what b has from off on.
func clearFrom(b []byte, off uint64) { clear(b[min(off, uint64(len(b))):]) }

// ReadAt is pread: io.EOF at the end.
func (o *Object) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errorf(syscall.EINVAL, "read at %d", off)
	}
	if uint64(off) >= o.size {
		return 0, io.EOF
	}
	k := min(uint64(len(p)), o.size-uint64(off))
	n, err = o.move(p[:k], uint64(off), false)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// WriteAt is pwrite: what it writes behind the end makes the object longer.
func (o *Object) WriteAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errorf(syscall.EINVAL, "write at %d", off)
	}
	if uint64(off) > maxObject-uint64(len(p)) {
		return 0, errorf(syscall.EFBIG, "write %d B at %d", len(p), off)
	}
	o.size = max(o.size, uint64(off)+uint64(len(p)))
	return o.move(p, uint64(off), true)
}

func (o *Object) move(p []byte, off uint64, write bool) (n int, err error) {
	ps := o.m.PageSize()
	for n < len(p) {
		f, _, err := o.load(off >> o.m.shift)
		if err != nil {
			return n, err
		}
		pa := PA(f.pg<<o.m.shift + off&(ps-1))
		k := min(len(p)-n, o.m.left(pa))
		if write {
			o.m.Write(pa, p[n:n+k])
		} else {
			o.m.Read(pa, p[n:n+k])
		}
		n, off = n+k, off+uint64(k)
	}
	return n, nil
}
