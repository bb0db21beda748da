package profile

import (
	"strconv"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// Amount is a value of this kind as a number: ps, bytes, bits per second, Hz or a count; false for
// a word or a switch.
func (k Kind) Amount(text string) (n uint64, ok bool) {
	var err error
	switch k {
	case Time:
		var t int64
		t, err = input.ParseTime(text)
		n = uint64(t)
	case Size:
		n, err = input.ParseSize(text)
	case Rate:
		n, err = input.ParseRate(text)
	case Freq:
		n, err = input.ParseFrequency(text)
	case Count:
		n, err = input.Whole(text)
	default:
		return 0, false
	}
	return n, err == nil
}

// Format is an amount as files have it.
func (k Kind) Format(n uint64) string {
	switch k {
	case Time:
		return input.FormatTime(int64(n))
	case Size:
		return input.FormatSize(n)
	case Rate:
		return input.FormatRate(n)
	case Freq:
		return input.FormatFrequency(n)
	}
	return strconv.FormatUint(n, 10)
}
