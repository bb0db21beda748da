package kernel

import (
	"fmt"
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
// that the order of the table is that of creation.
type objects struct {
	tab  []object // index handle-1; nil when destroyed
	live int
	// deviceGone: the device was removed, and with it what the objects stood for. Their handles stay
	// until the program destroys them.
	deviceGone bool
}

func (o *objects) add(x object) Handle {
	o.tab = append(o.tab, x)
	o.live++
	return Handle(len(o.tab))
}

func (o *objects) remove(h Handle) {
	o.tab[h-1] = nil
	o.live--
}

// lookup finds an object of kind T: ENOENT when there is none of that handle,
// EINVAL for no handle or an object of another kind (rdma_core.c,
// rdma_lookup_get_uobject).
func lookup[T object](o *objects, h Handle, what string) (T, error) {
	var none T
	if h == 0 {
		return none, fmt.Errorf("no %s given: %w", what, syscall.EINVAL)
	}
	if int(h) > len(o.tab) || o.tab[h-1] == nil {
		return none, fmt.Errorf("%s: no handle %d: %w", what, h, syscall.ENOENT)
	}
	x, ok := o.tab[h-1].(T)
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

// cleanup destroys everything, newest first, and again while a pass gets anywhere,
// since an object that others refer to is busy until they are gone
// (__uverbs_cleanup_ufile).
func (o *objects) cleanup(k *call) error {
	for o.live > 0 {
		before := o.live
		var last error
		for h := len(o.tab); h > 0; h-- {
			if o.tab[h-1] == nil {
				continue
			}
			if err := o.tab[h-1].destroy(k); err != nil {
				last = err
				continue
			}
			o.remove(Handle(h))
		}
		if o.live == before {
			return last
		}
	}
	o.tab = nil
	return nil
}

// empty is cleanup that leaves the handles behind.
func (o *objects) empty(k *call) error {
	all := objects{tab: slices.Clone(o.tab), live: o.live}
	o.deviceGone = true
	return all.cleanup(k)
}
