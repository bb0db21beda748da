package hca

// AtomicIndex is what the slot of an atomic's address is taken from. Kalia et al. (ATC 2016, 5.4)
// write of 4096 slots by the 12 low bits of the address, and not whether these count bytes or the
// words of 8 bytes that atomics have.
type AtomicIndex uint8

// Indexes.
const (
	IndexBytes AtomicIndex = iota // addresses that are equal in these bits share a slot
	IndexWords                    // the bits above the three that are 0 in an atomic's address
)
