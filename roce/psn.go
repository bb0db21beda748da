package roce

// PSNMask keeps a PSN, MSN or SSN in its 24 bits.
const PSNMask = 1<<24 - 1

// CmpPSN is a-b in serial arithmetic of 24 bits: negative if a is before b. It
// compares PSNs, MSNs and SSNs; the half window is 2^23.
func CmpPSN(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

// AddPSN is a PSN n packets later (or earlier for a negative n).
func AddPSN(a uint32, n int32) uint32 { return (a + uint32(n)) & PSNMask }

// MaxOutstandingPSN is the largest number of unacknowledged PSNs.
const MaxOutstandingPSN = 1<<23 - 1
