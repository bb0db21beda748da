package rule

// Rules of regions of DMA-BUFs, in the kernel.
const (
	DmabufOffsetMatchesIova Rule = iota + 336
	DmabufEndsWhereItEnds
	DmabufAccessIsLimited
	DmabufBeginsAtItsOffset
	DmabufIsGivenBack
	MovedDmabufIsForgotten
)

func init() {
	sentences[DmabufOffsetMatchesIova] = "The offset into a DMA-BUF and the first address of its region have the same place in a page"
	sentences[DmabufEndsWhereItEnds] = "A region reaches no further than its DMA-BUF"
	sentences[DmabufAccessIsLimited] = "A region of a DMA-BUF takes only the rights that such a region can have"
	sentences[DmabufBeginsAtItsOffset] = "A region of a DMA-BUF begins at its offset"
	sentences[DmabufIsGivenBack] = "A region gives its reference to a DMA-BUF back when it is deregistered"
	sentences[MovedDmabufIsForgotten] = "The device forgets pages of a DMA-BUF before they move"
}
