package kernel

// pageList holds the pages of a region that the device has, by number: what has never been touched
// costs nothing but a pointer for each 128 MiB.
type pageList struct {
	blocks []*pageBlock
	// present is how many pages there are.
	present uint64
	// leaves is how many pieces of the list hold pages.
	leaves uint64
}

const (
	leafPages  = 64
	blockPages = leafPages * 512
)

// pageBlock holds pages that lie within 128 MiB.
type pageBlock struct {
	leaves [blockPages / leafPages]*pageLeaf
	used   int
}

// pageLeaf holds pages that lie within 256 KiB, as translations have them: address and rights. 0:
// the device has it not.
type pageLeaf struct {
	pages [leafPages]uint64
	used  int
}

// newPageList makes a list for n pages.
func newPageList(n uint64) pageList {
	return pageList{blocks: make([]*pageBlock, (n+blockPages-1)/blockPages)}
}

// at is page i, or 0.
func (l *pageList) at(i uint64) uint64 {
	b := l.blocks[i/blockPages]
	if b == nil {
		return 0
	}
	f := b.leaves[i%blockPages/leafPages]
	if f == nil {
		return 0
	}
	return f.pages[i%leafPages]
}

// set enters page i, which is not 0.
func (l *pageList) set(i, page uint64) {
	b := &l.blocks[i/blockPages]
	if *b == nil {
		*b = new(pageBlock)
	}
	f := &(*b).leaves[i%blockPages/leafPages]
	if *f == nil {
		*f = new(pageLeaf)
		l.leaves++
		(*b).used++
	}
	if (*f).pages[i%leafPages] == 0 {
		(*f).used++
		l.present++
	}
	(*f).pages[i%leafPages] = page
}

// clear takes page i out.
func (l *pageList) clear(i uint64) {
	if l.at(i) == 0 {
		return
	}
	b := l.blocks[i/blockPages]
	f := b.leaves[i%blockPages/leafPages]
	f.pages[i%leafPages] = 0
	l.present--
	if f.used--; f.used > 0 {
		return
	}
	b.leaves[i%blockPages/leafPages] = nil
	l.leaves--
	if b.used--; b.used == 0 {
		l.blocks[i/blockPages] = nil
	}
}

// next is the first page from i on and below end, and whether there is one.
func (l *pageList) next(i, end uint64) (uint64, bool) {
	for i < end {
		b := l.blocks[i/blockPages]
		if b == nil {
			i = (i/blockPages + 1) * blockPages
			continue
		}
		f := b.leaves[i%blockPages/leafPages]
		if f == nil {
			i = (i/leafPages + 1) * leafPages
			continue
		}
		for ; i < end; i++ {
			if f.pages[i%leafPages] != 0 {
				return i, true
			}
			if i%leafPages == leafPages-1 {
				i++
				break
			}
		}
	}
	return end, false
}
