package provider

import "github.com/rdmasim/rdmasim/sim/mem"

// posting is the state of one call of post_send.
type posting struct {
	nreq   int
	inline bool // some request of the list was inline
	// ctrl is where the last control segment begins and ds its size so far. After an
	// error they may belong to the request that failed: the register is then written
	// from it, as the library does: a quirk of the legacy call (qp.c,
	// _mlx5_post_send).
	ctrl int
	ds   int
	// copied is how many bytes of inline data the last request has.
	copied int
	// block is the basic block of the last control segment; nil where the request is built
	// otherwise.
	block []byte
}

// inlinePageCache is the page of the process that inline data last came from.
type inlinePageCache struct {
	page    mem.VA
	changes uint64 // of the address space when it was looked up
	b       []byte // nil: not one readable page
}
