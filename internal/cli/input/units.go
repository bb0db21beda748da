// Package input reads the files that users write: strict YAML, in which an unknown
// field, a wrong unit or an impossible value is an error with file, line, column,
// what is allowed, and the nearest match. Quantities carry units and are exact
// integers: no floating point is involved.
package input

import (
	"errors"
	"fmt"
	"math"
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

var (
	errZeros = errors.New("begins with 0, which some read as a number in base 8")
	// errNotation is of numbers that readers of YAML 1.1, of 1.2 and of Go do not all read as the
	// same.
	errNotation = errors.New("is written in a way that not all read as the same number")
)

// plain refuses what some readers take for another number, or for none: zeros before it (010 is 8
// in YAML 1.1), underscores (1_6 is 16 there and in Go, and a word in YAML 1.2), 0o and 0b, a sign
// +, sexagesimals (1:30 is 90 in YAML 1.1), and a point without digits on both sides. An exponent
// is refused too where exponent is false.
func plain(s string, exponent bool) error {
	digits := strings.TrimPrefix(s, "-")
	hex := strings.HasPrefix(digits, "0x")
	whole, frac, point := strings.Cut(digits, ".")
	switch {
	case len(digits) > 1 && digits[0] == '0' && strings.ContainsRune("0123456789_", rune(digits[1])):
		rest := strings.TrimLeft(strings.ReplaceAll(digits, "_", ""), "0")
		if rest == "" || rest[0] == '.' {
			rest = "0" + rest
		}
		return fmt.Errorf("%q %w: write %s", s, errZeros, rest)
	case strings.Contains(digits, "_"):
		return fmt.Errorf("%q %w: write %s", s, errNotation, strings.ReplaceAll(s, "_", ""))
	case strings.HasPrefix(digits, "+"):
		return fmt.Errorf("%q %w: write %s", s, errNotation, digits[1:])
	case len(digits) > 1 && digits[0] == '0' && strings.ContainsRune("oObBX", rune(digits[1])):
		return fmt.Errorf("%q %w: write it as 16 or 0x10", s, errNotation)
	case !hex && strings.Contains(digits, ":"):
		return fmt.Errorf("%q %w: write it as 90, not as 1:30", s, errNotation)
	case !hex && point && (whole == "" || frac == "" || frac[0] < '0' || frac[0] > '9'):
		return fmt.Errorf("%q %w: write digits on both sides of the point", s, errNotation)
	case !hex && !exponent && strings.ContainsAny(digits, "eE") && strings.Trim(digits, "0123456789.eE+-") == "":
		return fmt.Errorf("%q %w: write its digits", s, errNotation)
	}
	return nil
}

// Whole reads a whole number from 0 up, such as 16 or 0x10. What some read as another number is
// refused, such as 010, 1_6 or 0o20.
func Whole(s string) (uint64, error) {
	if err := plain(s, false); err != nil {
		return 0, err
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

// Number reads a number such as -1.5 or 2e6, in the notations that all read as the same.
func Number(s string) (float64, error) {
	if err := plain(s, true); err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) || strings.HasPrefix(strings.TrimPrefix(s, "-"), "0x") {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return x, nil
}

// ParseTime reads a time such as "120ns" or "1.5us" as picoseconds.
func ParseTime(s string) (int64, error) {
	v, err := quantity(s, "time", timeUnits)
	if err == nil && v > 1<<63-1 {
		return 0, fmt.Errorf("time %q is beyond 106 days, where simulated time ends", s)
	}
	return int64(v), err
}

// ParseSize reads a size such as "64B" or "4KiB" as bytes; a bare number is bytes.
func ParseSize(s string) (uint64, error) {
	if s != "" && strings.Trim(s, "0123456789_+") == "" {
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

// tooLarge is the error for a quantity beyond what its type holds.
func tooLarge(what, s string) error {
	if what == "time" {
		return fmt.Errorf("time %q is beyond 106 days, where simulated time ends", s)
	}
	return fmt.Errorf("%s %q is too large", what, s)
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
	if err := plain(num, false); err != nil {
		return 0, fmt.Errorf("%s %w", what, err)
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
			return 0, tooLarge(what, s)
		}
		v = lo
	}
	hi, v := bits.Mul64(v, u.mul)
	if hi != 0 {
		return 0, tooLarge(what, s)
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
		return 0, tooLarge(what, s)
	}
	return sum, nil
}
