package uapi

// Handles reads n handles that follow one another.
func Handles(b []byte, n int) []uint32 {
	l := make([]uint32, n)
	for i := range l {
		l[i] = le.Uint32(b[4*i:])
	}
	return l
}
