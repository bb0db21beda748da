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
