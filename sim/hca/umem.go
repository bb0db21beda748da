package hca

import "github.com/rdmasim/rdmasim/sim/mem"

// umem is memory of a program that its driver has shown to the device, for the queues and records
// that the program's own commands name by its number (CREATE_UMEM).
type umem struct {
	pages []mem.PA
	shift uint   // a page is 1<<shift bytes
	off   uint64 // of the first byte in the first page
	users int    // queues and records
}

// umemUse is the memory that a queue is made of: its ring and its record; nil: the driver's.
type umemUse [2]*umem

// use counts a queue, by 1 or -1, among the users of its memory.
func (u *umemUse) use(by int) {
	for _, m := range u {
		if m != nil {
			m.users += by
		}
	}
}

func (u *umem) len() uint64 { return uint64(len(u.pages))<<u.shift - u.off }
