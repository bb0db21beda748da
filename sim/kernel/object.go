package kernel

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
)

// Handle is an object handle of one context. 0 is never one.
type Handle uint32

// object is a uobject: what a context owns and destroys one by one.
type object interface {
	// destroy gives the object back. EBUSY while something refers to it.
	destroy(k *call) error
}

// objects is the table of a context, by handle. Handles rise and are not reused, so
// that their order is that of creation.
type objects struct {
	tab  map[Handle]object
	last Handle // of the newest
	ids  trackedIDs
	// deviceGone: the device was removed, and with it what the objects stood for. Their handles
	// stay until the program destroys them.
	deviceGone bool
}

func (o *objects) add(x object) Handle {
	if o.tab == nil {
		o.tab = map[Handle]object{}
	}
	o.last++
	o.tab[o.last] = x
	o.ids.add(o.last, x)
	return o.last
}

func (o *objects) remove(h Handle) {
	delete(o.tab, h)
	o.ids.remove(h)
}

// lookup finds an object of kind T: ENOENT when there is none of that handle,
// EINVAL for no handle or an object of another kind (rdma_core.c,
// rdma_lookup_get_uobject).
func lookup[T object](o *objects, h Handle, what string) (T, error) {
	var none T
	if h == 0 {
		return none, fmt.Errorf("no %s given: %w", what, syscall.EINVAL)
	}
	found := o.tab[h]
	if found == nil {
		return none, fmt.Errorf("%s: no handle %d: %w", what, h, syscall.ENOENT)
	}
	x, ok := found.(T)
	if !ok {
		return none, fmt.Errorf("handle %d is no %s: %w", h, what, syscall.EINVAL)
	}
	return x, nil
}

// destroyObject is the destroy method of an object.
func destroyObject[T object](o *objects, k *call, h Handle, what string) (T, error) {
	x, err := lookup[T](o, h, what)
	if err != nil {
		return x, err
	}
	if !o.deviceGone {
		if err := x.destroy(k); err != nil {
			return x, fmt.Errorf("%s %d: %w", what, h, err)
		}
	}
	o.remove(h)
	return x, nil
}

// destroyByHandle is destroyObject as a command of its own.
func destroyByHandle[T object](u *Ucontext, c Caller, h Handle, what string) error {
	return u.doDestroy(c, func(k *call) error {
		_, err := destroyObject[T](&u.objs, k, h, what)
		return err
	})
}

// cleanup destroys everything, newest first, each object in its own time, and again while a pass
// gets anywhere, since an object that others refer to is busy until they are gone
// (__uverbs_cleanup_ufile). A device that goes meanwhile takes the rest with it.
func (o *objects) cleanup(k *call) error {
	for len(o.tab) > 0 {
		before := len(o.tab)
		var last error
		newest := slices.Sorted(maps.Keys(o.tab))
		slices.Reverse(newest)
		for _, h := range newest {
			if err := o.tab[h].destroy(k); err != nil {
				last = err
				continue
			}
			o.remove(h)
			k.step()
			if o.deviceGone {
				return nil
			}
		}
		if len(o.tab) == before {
			return last
		}
	}
	return nil
}

// empty is cleanup that leaves the handles behind.
func (o *objects) empty(k *call) error {
	all := objects{tab: maps.Clone(o.tab)}
	o.deviceGone = true
	return all.cleanup(k)
}

// any says whether there is an object of which f says yes.
func (o *objects) any(f func(object) bool) bool {
	for _, x := range o.tab {
		if f(x) {
			return true
		}
	}
	return false
}
