// Package input reads the files that users write: strict YAML, in which an unknown
// field, a wrong unit or an impossible value is an error with file, line, column,
// what is allowed, and the nearest match. Quantities carry units and are exact
// integers: no floating point is involved.
package input

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

type unit struct {
	name string
	mul  uint64
}

var (
	timeUnits = []unit{{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}}
	sizeUnits = []unit{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}}
	rateUnits = []unit{{"bps", 1}, {"kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9}, {"Tbps", 1e12}}
	freqUnits = []unit{{"kHz", 1}, {"MHz", 1e3}, {"GHz", 1e6}}
)

var errZeros = errors.New("begins with 0, which some read as a number in base 8")

// Whole reads a whole number from 0 up, such as 16, 0x10 or 1_000. Zeros before it are refused: some read 010 as 10,
// others as 8.
func Whole(s string) (uint64, error) {
	if rest := strings.TrimLeft(s, "0_"); s != "" && s[0] == '0' && rest != "" && rest[0] <= '9' {
		return 0, fmt.Errorf("%q %w: write %s", s, errZeros, rest)
	}
	x, err := strconv.ParseUint(s, 0, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is too large", s)
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return x, nil
}

// ParseTime reads a time such as "120ns" or "1.5us" as picoseconds.
func ParseTime(s string) (int64, error) {
	v, err := quantity(s, "time", timeUnits)
	if err == nil && v > 1<<63-1 {
		return 0, fmt.Errorf("time %q is beyond 106 days", s)
	}
	return int64(v), err
}

// ParseSize reads a size such as "64B" or "4KiB" as bytes; a bare number is bytes.
func ParseSize(s string) (uint64, error) {
	if s != "" && strings.Trim(s, "0123456789") == "" {
		s += "B"
	}
	return quantity(s, "size", sizeUnits)
}

// ParseRate reads a rate such as "100Gbps" as bits per second.
func ParseRate(s string) (uint64, error) { return quantity(s, "rate", rateUnits) }

// ParseFrequency reads a frequency such as "156.25MHz" as kilohertz.
func ParseFrequency(s string) (uint64, error) { return quantity(s, "frequency", freqUnits) }

// FormatTime prints picoseconds in the largest unit that keeps them exact and short.
func FormatTime(ps int64) string { return format(uint64(ps), timeUnits) }

// FormatSize prints bytes in binary units.
func FormatSize(n uint64) string { return format(n, sizeUnits[:5]) }

// FormatRate prints bits per second.
func FormatRate(n uint64) string { return format(n, rateUnits) }

// FormatFrequency prints kilohertz.
func FormatFrequency(n uint64) string { return format(n, freqUnits) }

func format(v uint64, units []unit) string {
	u := units[0]
	for _, c := range units {
		if v >= c.mul && v != 0 {
			u = c
		}
	}
	whole, rest := v/u.mul, v%u.mul
	if rest == 0 {
		return fmt.Sprintf("%d%s", whole, u.name)
	}
	var frac strings.Builder
	for i := 0; rest != 0 && i < 18; i++ {
		hi, lo := bits.Mul64(rest, 10)
		q, r := bits.Div64(hi, lo, u.mul)
		frac.WriteByte(byte('0' + q))
		rest = r
	}
	if rest != 0 { // binary units need not end: fall back to the base unit
		return fmt.Sprintf("%d%s", v, units[0].name)
	}
	return fmt.Sprintf("%d.%s%s", whole, frac.String(), u.name)
}

func names(units []unit) string {
	var n []string
	for _, u := range units {
		n = append(n, u.name)
	}
	return strings.Join(n, ", ")
}

// quantity reads digits[.digits]unit exactly: what is finer than the base unit is
// an error, not a rounding.
func quantity(s, what string, units []unit) (uint64, error) {
	num := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	suffix := s[len(num):]
	num = strings.TrimSpace(num)
	var u *unit
	for i := range units {
		if units[i].name == suffix {
			u = &units[i]
		}
	}
	if u == nil {
		var all []string
		for _, x := range units {
			all = append(all, x.name)
		}
		if suffix == "" {
			return 0, fmt.Errorf("%s %q has no unit: one of %s", what, s, names(units))
		}
		return 0, fmt.Errorf("%s %q: unit %q is not one of %s%s", what, s, suffix, names(units), Suggest(suffix, all))
	}
	whole, frac, dot := strings.Cut(num, ".")
	if whole == "" || dot && frac == "" || strings.Trim(whole+frac, "0123456789") != "" {
		return 0, fmt.Errorf("%s %q is not a number with a unit (%s)", what, s, names(units))
	}
	var v uint64
	for i := 0; i < len(whole); i++ {
		hi, lo := bits.Mul64(v, 10)
		lo, c := bits.Add64(lo, uint64(whole[i]-'0'), 0)
		if hi != 0 || c != 0 {
			return 0, fmt.Errorf("%s %q is too large", what, s)
		}
		v = lo
	}
	hi, v := bits.Mul64(v, u.mul)
	if hi != 0 {
		return 0, fmt.Errorf("%s %q is too large", what, s)
	}
	if frac = strings.TrimRight(frac, "0"); frac == "" {
		return v, nil
	}
	if len(frac) > 18 {
		return 0, fmt.Errorf("%s %q is finer than 1%s", what, s, units[0].name)
	}
	var num64, den uint64 = 0, 1
	for i := 0; i < len(frac); i++ {
		num64, den = num64*10+uint64(frac[i]-'0'), den*10
	}
	hi, lo := bits.Mul64(num64, u.mul)
	part, rest := bits.Div64(hi, lo, den)
	if rest != 0 {
		return 0, fmt.Errorf("%s %q is not a whole number of %s: finer than 1%s", what, s, units[0].name, units[0].name)
	}
	sum, carry := bits.Add64(v, part, 0)
	if carry != 0 {
		return 0, fmt.Errorf("%s %q is too large", what, s)
	}
	return sum, nil
}
