package perf

import (
	"math"
	"strconv"
	"strings"
)

// strtol reads as much of a text as is a number, as strtol with base 0 does: 0x and a leading 0
// have their meaning in C. It returns what follows.
func strtol(s string) (int64, string) {
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	sign := ""
	if t != "" && (t[0] == '-' || t[0] == '+') {
		sign, t = strings.TrimPrefix(t[:1], "+"), t[1:]
	}
	base := 10
	switch {
	case len(t) > 2 && (t[:2] == "0x" || t[:2] == "0X") && digitBelow(t[2], 16):
		base, t = 16, t[2:]
	case t != "" && t[0] == '0':
		base = 8
	}
	n := 0
	for n < len(t) && digitBelow(t[n], base) {
		n++
	}
	if n == 0 {
		return 0, s
	}
	v, err := strconv.ParseInt(sign+t[:n], base, 64)
	if err != nil { // out of range: ParseInt gives the nearest, as strtol does
		if sign == "" {
			v = math.MaxInt64
		} else {
			v = math.MinInt64
		}
	}
	return v, t[n:]
}

func digitBelow(c byte, base int) bool {
	d := 99
	switch {
	case c >= '0' && c <= '9':
		d = int(c - '0')
	case c >= 'a' && c <= 'f':
		d = int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		d = int(c-'A') + 10
	}
	return d < base
}

// whole is a whole number, of what, and of a C type, which cuts off what it cannot hold.
func whole(value, what, typ string) (int64, error) {
	v, rest := strtol(value)
	if rest != "" || value == "" {
		return 0, refuse(" %s argument %s should be %s", what, value, typ)
	}
	switch typ {
	case "int":
		return int64(int32(v)), nil
	case "uint8_t":
		return int64(uint8(v)), nil
	case "uint16_t":
		return int64(uint16(v)), nil
	case "uint32_t":
		return int64(uint32(v)), nil
	}
	return v, nil
}

// within is a number between two.
func within(value, what, typ string, least, most int64) (int64, error) {
	v, err := whole(value, what, typ)
	if err != nil {
		return 0, err
	}
	if v < least || v > most {
		return 0, refuse(" %s should be between %d and %d", what, least, most)
	}
	return v, nil
}

func notNegative(value, what string) (int, error) {
	v, err := whole(value, what, "int")
	if err == nil && v < 0 {
		err = refuse(" %s must be non-negative int", what)
	}
	return int(v), err
}

// strtod reads as much of a text as is a number, as strtod does, and gives 0 where it is none.
func strtod(s string) float64 {
	s = strings.TrimSpace(s)
	for n := len(s); n > 0; n-- {
		if v, err := strconv.ParseFloat(s[:n], 64); err == nil && !strings.Contains(s[:n], "_") {
			return v
		}
	}
	return 0
}
