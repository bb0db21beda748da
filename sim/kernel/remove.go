package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

var (
	errClosed  = fmt.Errorf("context is closed: %w", syscall.EBADF)
	errRemoved = fmt.Errorf("the device was removed: %w", syscall.EIO)
)

// usable says whether a context still has a device below it.
func (u *Ucontext) usable() error {
	switch {
	case u.closed:
		return errClosed
	case u.removed:
		return errRemoved
	}
	return nil
}

// Removed says whether Remove was called.
func (d *Device) Removed() bool { return d.removed }

// Remove takes the device away under its users, as the unbinding of its driver or a hot
// unplug does (ib_uverbs_remove_one, then the unload of mlx5_core). Each open context loses
// its objects, newest first, has its mappings of the device replaced by a page of zeros, and
// hears of DEVICE_FATAL, the last event that it gets. From then on its calls are EIO, but those
// that destroy an object and that close. The port's link is the caller's.
func (d *Device) Remove() {
	if d.removed {
		return
	}
	k := &call{d: d}
	for len(d.ctxs) > 0 {
		d.ctxs[0].disassociate(k)
	}
	// The firmware forgets what was the driver's own.
	for _, op := range []prm.Opcode{prm.OpTeardownHCA, prm.OpDisableHCA} {
		k.mustDestroy(prm.NewIn(op, 0))
	}
	d.removed = true
	d.gids = nil
}

// disassociate is uverbs_destroy_ufile_hw for the reason RDMA_REMOVE_DRIVER_REMOVE.
func (u *Ucontext) disassociate(k *call) {
	u.removed = true
	u.release(k, u.objs.empty)
	for _, m := range u.maps {
		m.Revoke()
	}
	u.maps = nil
	u.async.put(fileEvent{typ: verbs.EventDeviceFatal})
	u.dev.count.AsyncEvents++
}
