package plain

import (
	"fmt"
	"strings"
)

// Count is a number with what it counts: "1 case", "2 cases", "0 misses". The noun is an English
// one in the singular, with a regular plural.
func Count[T ~int | ~int64 | ~uint64](n T, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprint(n, " ", noun, "es")
	}
	return fmt.Sprint(n, " ", noun, "s")
}
