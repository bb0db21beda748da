package kernel

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// Removed reports whether Remove was called.
func (d *Device) Removed() bool { return d.removed }

// Remove removes the device while it is used, as the unbinding of its driver or a hot unplug does
// (ib_uverbs_remove_one, then the unload of mlx5_core). Each open context loses its objects, newest
// first; its mappings of the device become a page of zeros; and it gets DEVICE_FATAL as its last
// event. From then on its calls return EIO, except those that destroy an object or close the
// context. The caller takes the port's link down.
func (d *Device) Remove() {
	if d.removed {
		return
	}
	k := &call{d: d}
	for len(d.files) > 0 {
		d.files[0].disassociate()
	}
	// The firmware forgets what was the driver's own.
	for _, op := range []prm.Opcode{prm.OpTeardownHCA, prm.OpDisableHCA} {
		k.mustDestroy(prm.NewIn(op, 0))
	}
	d.removed = true
	if d.umr != nil {
		d.umr.finish(d, d.umr.posted)
	}
	d.gids = nil
}

// disassociate is uverbs_destroy_ufile_hw for the reason RDMA_REMOVE_DRIVER_REMOVE.
func (u *Ucontext) disassociate() {
	u.removed = true
	u.release(&call{d: u.dev}, u.objs.empty)
	for _, m := range u.maps {
		m.Revoke()
	}
	u.maps = nil
	u.async.put(fileEvent{typ: verbs.EventDeviceFatal})
	u.dev.count.AsyncEvents++
}
