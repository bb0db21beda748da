package mkey

// sparse are the entries of a key of many pages of which few are present: those of an absent page
// take no memory. nil has none.
type sparse map[uint64]*[sparseBlock]uint64

const (
	sparseBlock = 512
	// sparseFrom is how many entries a key has room for at least that is kept so: a GiB of pages of
	// 4 KiB.
	sparseFrom = 1 << 18
)

// at is entry i, 0 if it is absent.
func (s sparse) at(i uint64) uint64 {
	if b := s[i/sparseBlock]; b != nil {
		return b[i%sparseBlock]
	}
	return 0
}

// set changes entry i. A block without entries is given back.
func (s sparse) set(i, e uint64) {
	b := s[i/sparseBlock]
	if b == nil {
		if e == 0 {
			return
		}
		b = new([sparseBlock]uint64)
		s[i/sparseBlock] = b
	}
	b[i%sparseBlock] = e
	if e == 0 && *b == ([sparseBlock]uint64{}) {
		delete(s, i/sparseBlock)
	}
}
