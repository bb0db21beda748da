//go:build hw

// Package cuda is what RDMA programs need of the CUDA driver: memory of a GPU, copies, and its
// export as a DMA-BUF. The driver's library is loaded when it is first asked for; a build needs
// nothing of it.
package cuda

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "driver.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// Results of the driver by which its calls fail.
const (
	OutOfMemory  = 2
	NoDevice     = 100
	BadDevice    = 101
	NotSupported = 801
)

// ErrNoLibrary is the reason of Load where there is no driver.
var ErrNoLibrary = errors.New("no CUDA driver: libcuda.so.1, which comes with NVIDIA's kernel modules, cannot be used")

// Error is a call that failed.
type Error struct {
	Call string
	Code int
}

// Error returns the message.
func (e *Error) Error() string { return fmt.Sprintf("%s: error %d", e.Call, e.Code) }

func result(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	return &Error{call, int(code)}
}

var load = sync.OnceValue(func() error {
	var why [256]C.char
	if C.cuda_load(&why[0], C.int(len(why))) != 0 {
		return fmt.Errorf("%w: %s", ErrNoLibrary, C.GoString(&why[0]))
	}
	return result("cuInit", C.cuda_init())
})

// Load loads the driver. The error is ErrNoLibrary, or the driver's own, such as that there is no
// device.
func Load() error { return load() }

// Version is the driver's: 12080 is 12.8.
func Version() (int, error) {
	var v C.int
	err := result("cuDriverGetVersion", C.cuda_version(&v))
	return int(v), err
}

// attributes of a device (CUdevice_attribute).
const (
	attrIntegrated = 18
	attrBus        = 33
	attrDevice     = 34
	attrDomain     = 50
	attrDmabuf     = 124
)

// Info describes a GPU.
type Info struct {
	Name, BusID        string
	Integrated, Dmabuf bool
}

// List describes all GPUs, by number.
func List() ([]Info, error) {
	var n C.int
	if err := result("cuDeviceGetCount", C.cuda_count(&n)); err != nil {
		return nil, err
	}
	var all []Info
	for i := range n {
		var dev C.int
		if err := result("cuDeviceGet", C.cuda_device(i, &dev)); err != nil {
			return nil, err
		}
		x, err := describe(dev)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

func describe(dev C.int) (x Info, err error) {
	var name [256]C.char
	if err := result("cuDeviceGetName", C.cuda_name(dev, &name[0], C.int(len(name)))); err != nil {
		return x, err
	}
	v := map[C.int]C.int{}
	for _, a := range []C.int{attrIntegrated, attrBus, attrDevice, attrDomain, attrDmabuf} {
		var got C.int
		// A driver that is too old to know an attribute does not have what it stands for.
		if C.cuda_attribute(dev, a, &got) == 0 {
			v[a] = got
		}
	}
	return Info{
		Name: C.GoString(&name[0]), BusID: fmt.Sprintf("%04x:%02x:%02x.0", int(v[attrDomain]), int(v[attrBus]), int(v[attrDevice])),
		Integrated: v[attrIntegrated] != 0, Dmabuf: v[attrDmabuf] != 0,
	}, nil
}

// Device is an opened GPU, with its primary context.
type Device struct {
	Info
	dev C.int
	ctx unsafe.Pointer
}

// Open opens a GPU by its number or, where bus is not empty, by its PCI address.
func Open(number int, bus string) (*Device, error) {
	d := &Device{}
	if bus != "" {
		name := C.CString(bus)
		defer C.free(unsafe.Pointer(name))
		if err := result("cuDeviceGetByPCIBusId", C.cuda_device_at(name, &d.dev)); err != nil {
			return nil, err
		}
	} else if err := result("cuDeviceGet", C.cuda_device(C.int(number), &d.dev)); err != nil {
		return nil, err
	}
	var err error
	if d.Info, err = describe(d.dev); err != nil {
		return nil, err
	}
	return d, result("cuDevicePrimaryCtxRetain", C.cuda_retain(d.dev, &d.ctx))
}

// Close gives the context up.
func (d *Device) Close() error { return result("cuDevicePrimaryCtxRelease", C.cuda_release(d.dev)) }

// Alloc takes n bytes of the GPU or, on an integrated part, of the host's memory that it shares.
func (d *Device) Alloc(n uint64) (at uint64, err error) {
	host, call := C.int(0), "cuMemAlloc"
	if d.Integrated {
		host, call = 1, "cuMemAllocHost"
	}
	var p C.uint64_t
	err = result(call, C.cuda_alloc(d.ctx, host, C.size_t(n), &p))
	return uint64(p), err
}

// Free gives memory back.
func (d *Device) Free(at uint64) error {
	if d.Integrated {
		return result("cuMemFreeHost", C.cuda_free(d.ctx, 1, C.uint64_t(at)))
	}
	return result("cuMemFree", C.cuda_free(d.ctx, 0, C.uint64_t(at)))
}

// CopyIn copies to the GPU.
func (d *Device) CopyIn(dst uint64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	return result("cuMemcpyHtoD", C.cuda_copy_bytes(d.ctx, C.uint64_t(dst), unsafe.Pointer(&p[0]), nil, 0, C.size_t(len(p))))
}

// CopyOut copies from the GPU.
func (d *Device) CopyOut(p []byte, src uint64) error {
	if len(p) == 0 {
		return nil
	}
	return result("cuMemcpyDtoH", C.cuda_copy_bytes(d.ctx, 0, nil, unsafe.Pointer(&p[0]), C.uint64_t(src), C.size_t(len(p))))
}

// Copy copies between two addresses, of the GPU or of the host, which the driver tells apart.
func (d *Device) Copy(dst, src, n uint64) error {
	return result("cuMemcpy", C.cuda_copy(d.ctx, C.uint64_t(dst), C.uint64_t(src), C.size_t(n)))
}

// Export makes a DMA-BUF of n bytes, whole pages of the host.
func (d *Device) Export(at, n uint64) (fd int, err error) {
	x := C.int(-1)
	err = result("cuMemGetHandleForAddressRange", C.cuda_export(d.ctx, C.uint64_t(at), C.size_t(n), &x))
	return int(x), err
}
