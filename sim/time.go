// Package sim is the simulation engine: one clock, one event queue ordered by
// (time, sequence), programs that run as coroutines, seeded draws, servers that
// serve one at a time, counters and spans. It knows nothing of RDMA.
//
// A run and the same run in lockstep give the same bytes. So a unit that saves an event
// may put a step off until its effect is read, and never brings one forward over anything
// that may still change what it does. What is put off has a Place; an event that is scheduled
// earlier than in lockstep is in a Lane.
//
// Everything that happens in a run happens on one goroutine at a time; no state
// of a run is shared between OS threads, so nothing here takes a lock.
package sim

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strconv"
)

// Time is an instant since the start of a run, or the distance between two
// instants, in picoseconds. The range is about 106 days.
type Time int64

// Units of Time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond

	// Never is later than any event; a deadline of Never does not expire.
	Never Time = math.MaxInt64
)

// String prints the time in the largest unit that keeps it readable, exactly:
// "1.5us", "20ns", "7ps".
func (t Time) String() string {
	if t == Never {
		return "never"
	}
	neg := ""
	v := int64(t)
	if v < 0 {
		if v == math.MinInt64 {
			return fmt.Sprintf("%dps", v)
		}
		neg, v = "-", -v
	}
	for _, u := range []struct {
		d Time
		s string
	}{{Second, "s"}, {Millisecond, "ms"}, {Microsecond, "us"}, {Nanosecond, "ns"}} {
		if v >= int64(u.d) {
			return neg + fixed(v, int64(u.d)) + u.s
		}
	}
	return neg + strconv.FormatInt(v, 10) + "ps"
}

// fixed prints v/unit as a decimal without rounding and without trailing zeros.
func fixed(v, unit int64) string { return string(appendFixed(nil, v, unit)) }

// appendFixed appends what fixed prints.
func appendFixed(b []byte, v, unit int64) []byte {
	b = strconv.AppendInt(b, v/unit, 10)
	rest := v % unit
	if rest == 0 {
		return b
	}
	point := len(b)
	b = strconv.AppendInt(b, rest+unit, 10) // its first digit is 1, in whose place the point goes
	b[point] = '.'
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	return b
}

// TooLong is the first time among the fields of a unit's Params, a pointer to a struct, that is
// longer than most allows: longer than a Second unless most has the field's name. Times within
// these limits add up without a wrap. "" if there is none.
func TooLong(params any, most map[string]Time) string {
	v := reflect.ValueOf(params).Elem()
	check := func(name string, f reflect.Value) string {
		limit, ok := most[name]
		if !ok {
			limit = Second
		}
		if t, isTime := f.Interface().(Time); isTime && t > limit {
			return fmt.Sprintf("%s is %v: want at most %v", name, t, limit)
		}
		return ""
	}
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if f.Kind() == reflect.Array {
			for k := range f.Len() {
				if s := check(name, f.Index(k)); s != "" {
					return s
				}
			}
		} else if s := check(name, f); s != "" {
			return s
		}
	}
	return ""
}

// BytesTime is how long n bytes take at a rate, rounded down to a picosecond; at most Never.
func BytesTime(n, bitsPerSecond uint64) Time {
	hi, lo := bits.Mul64(n, 8*uint64(Second))
	return quotient(hi, lo, bitsPerSecond)
}

// BytesTimeUp is BytesTime rounded up.
func BytesTimeUp(n, bitsPerSecond uint64) Time {
	hi, lo := bits.Mul64(n, 8*uint64(Second))
	lo, carry := bits.Add64(lo, max(bitsPerSecond, 1)-1, 0)
	return quotient(hi+carry, lo, bitsPerSecond)
}

// quotient is a product of 128 bits over a rate.
func quotient(hi, lo, rate uint64) Time {
	if hi >= rate {
		return Never
	}
	t, _ := bits.Div64(hi, lo, rate)
	return Time(min(t, uint64(Never)))
}

// Nanoseconds is t as a floating-point number of nanoseconds, for reports only:
// simulated state never holds floating point.
func (t Time) Nanoseconds() float64 { return float64(t) / float64(Nanosecond) }

// Seconds is t as a floating-point number of seconds, for reports only.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }
