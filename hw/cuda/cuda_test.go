//go:build hw

package cuda

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Where there is a GPU, memory of it can be allocated, copied to and from, exported and given back;
// elsewhere the error says what is missing.
func TestMemory(t *testing.T) {
	if err := Load(); err != nil {
		var e *Error
		if !errors.Is(err, ErrNoLibrary) && !errors.As(err, &e) {
			t.Errorf("%v: want that there is no library, or the driver's own error", err)
		}
		if os.Getenv("RDMASIM_TEST_GPU") != "" {
			t.Fatal(err)
		}
		t.Skipf("needs a GPU and the library of its driver: %v", err)
	}
	v, err := Version()
	all, lerr := List()
	if err != nil || lerr != nil || len(all) == 0 || v < 11000 {
		t.Fatalf("version %d (%v), GPUs %+v (%v)", v, err, all, lerr)
	}
	t.Logf("driver %d, %+v", v, all)
	for _, bus := range []string{"", all[0].BusID} {
		d, err := Open(0, bus)
		if err != nil {
			t.Fatal(err)
		}
		checkMemory(t, d)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	var e *Error
	if _, err := Open(len(all), ""); !errors.As(err, &e) || e.Code != BadDevice {
		t.Errorf("a GPU that is not there: %v", err)
	}
	if _, err := Open(0, "ffff:ff:1f.7"); !errors.As(err, &e) {
		t.Errorf("an address where none is: %v", err)
	}
}

func checkMemory(t *testing.T, d *Device) {
	const n = 1 << 20
	a, err := d.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	want, got := bytes.Repeat([]byte("rdma sim"), n/8), make([]byte, n)
	for _, err := range []error{d.CopyIn(a, want), d.Copy(b, a, n), d.CopyOut(got, b)} {
		if err != nil {
			t.Error(err)
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("other bytes than were copied")
	}
	fd, err := d.Export(a, 1<<16)
	var e *Error
	switch {
	case err == nil:
		info, rerr := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
		t.Logf("DMA-BUF %d: %q %v", fd, info, rerr)
		if !d.Dmabuf || !strings.Contains(string(info), "exp_name") {
			t.Errorf("the device says that it exports: %v; fdinfo: %q", d.Dmabuf, info)
		}
		if err := syscall.Close(fd); err != nil {
			t.Error(err)
		}
	case !errors.As(err, &e) || d.Dmabuf:
		t.Errorf("export: %v, though the device says that it exports: %v", err, d.Dmabuf)
	default:
		t.Logf("export: %v", err)
	}
	if _, err := d.Alloc(1 << 50); !errors.As(err, &e) || e.Code != OutOfMemory {
		t.Errorf("more than the GPU has: %v", err)
	}
	if err := errors.Join(d.Free(a), d.Free(b)); err != nil {
		t.Error(err)
	}
}
