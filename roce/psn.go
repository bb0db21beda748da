package roce

// PSNMask selects the 24 bits of a PSN, MSN or SSN.
const PSNMask = 1<<24 - 1

// CmpPSN returns a-b in 24-bit serial arithmetic, negative if a is before b. It compares PSNs, MSNs
// and SSNs; the half window is 2^23.
func CmpPSN(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

// AddPSN returns the PSN n packets after a, or before it for a negative n.
func AddPSN(a uint32, n int32) uint32 { return (a + uint32(n)) & PSNMask }

// MaxOutstandingPSN is the largest number of unacknowledged PSNs.
const MaxOutstandingPSN = 1<<23 - 1
