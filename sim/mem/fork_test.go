package mem

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
)

// A child's memory is a copy: neither sees what the other writes later, and pins are the
// parent's alone.
func TestFork(t *testing.T) {
	m := New(64 << 20)
	s := NewSpace(m)
	a, err := s.Map(3*PageSize, Read|Write)
	if err != nil {
		t.Fatal(err)
	}
	ro, err := s.Map(PageSize, Read)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Unmap(a+PageSize, PageSize); err != nil {
		t.Fatal(err)
	}
	pinned, err := s.Pin(a, PageSize, Read|Write)
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.Repeat([]byte{1}, PageSize)
	if err := s.WriteAt(old, a); err != nil {
		t.Fatal(err)
	}
	before := m.Used()
	child, err := s.Fork()
	if err != nil {
		t.Fatal(err)
	}
	if child.Pinned != 0 || m.Used() != before+3*PageSize {
		t.Errorf("the child has pinned %d pages and has %d bytes", child.Pinned, m.Used()-before)
	}
	if err := child.WriteAt(bytes.Repeat([]byte{2}, PageSize), a); err != nil {
		t.Error(err)
	}
	got := make([]byte, PageSize)
	if m.Read(pinned[0], got); !bytes.Equal(got, old) {
		t.Error("a child's write reaches a page that its parent has pinned")
	}
	if err := s.WriteAt(bytes.Repeat([]byte{3}, PageSize), a+2*PageSize); err != nil {
		t.Error(err)
	}
	if err := child.ReadAt(got, a+2*PageSize); err != nil || got[0] != 0 {
		t.Errorf("a child sees what its parent writes later: %d, %v", got[0], err)
	}
	for va, want := range map[VA]error{a + PageSize: syscall.EFAULT, ro: syscall.EFAULT} {
		if err := child.WriteAt(old[:1], va); !errors.Is(err, want) {
			t.Errorf("a write of the child to %#x: %v", uint64(va), err)
		}
	}
	child.Release()
	if m.Used() != before {
		t.Errorf("%d bytes are left of the child", int64(m.Used()-before))
	}
}

// MapAt fills holes, whoever made them, and nothing else.
func TestMapAt(t *testing.T) {
	m := New(64 << 20)
	s := NewSpace(m)
	a, err := s.Map(4*PageSize, Read|Write)
	if err != nil {
		t.Fatal(err)
	}
	before := m.Used()
	want := func(what string, err error, errno error) {
		t.Helper()
		if !errors.Is(err, errno) {
			t.Errorf("%s: %v, want %v", what, err, errno)
		}
	}
	want("over a page", s.MapAt(a, PageSize, Read), syscall.EEXIST)
	want("not a page", s.MapAt(a+1, PageSize, Read), syscall.EINVAL)
	want("nothing", s.MapAt(a, 0, Read), syscall.EINVAL)
	want("beyond", s.MapAt(a+1<<30, PageSize, Read), syscall.EINVAL)
	want("before", s.MapAt(0, PageSize, Read), syscall.EINVAL)
	for _, hole := range []VA{a + PageSize, a} {
		want("unmap", s.Unmap(hole, uint64(a+4*PageSize-hole)), nil)
		want("half over a page", s.MapAt(hole-PageSize, 2*PageSize, Read), map[bool]error{true: syscall.EEXIST, false: syscall.EINVAL}[hole > a])
		for va := a + 4*PageSize - PageSize; va >= hole; va -= PageSize { // one by one, from the end
			want("map", s.MapAt(va, PageSize, Read|Write), nil)
		}
		want("write", s.WriteAt(bytes.Repeat([]byte{9}, 4*PageSize), a), nil)
		if m.Used() != before {
			t.Errorf("%d bytes are used, and %d were", m.Used(), before)
		}
	}
	pages, err := s.Pin(a, 4*PageSize, Read|Write) // across what are now several mappings
	want("pin", err, nil)
	want("unmap all", s.Unmap(a, 4*PageSize), nil)
	s.Unpin(pages)
	if m.Used() != 0 || len(s.maps) != 0 {
		t.Errorf("%d bytes and %d mappings are left", m.Used(), len(s.maps))
	}
}
