package sim

import (
	"errors"
	"math"
	"testing"
)

type bounded struct {
	Count  int    `bounds:"1..2^4"`
	Rate   uint64 `bounds:"1e6..1e13"`
	Pause  Time   `bounds:"1000.."`
	Choice uint8  `words:"none some"`
	Free   int
	Over   float64 // has no tag and is no integer
}

// Both bounds are allowed. What is beyond is an error for each field, with its name, its value and
// the bounds.
func TestOutOfBounds(t *testing.T) {
	for _, c := range []struct {
		p    bounded
		want string
	}{
		{bounded{1, 1e6, Nanosecond, 0, math.MinInt, 0}, ""},
		{bounded{16, 1e13, Second, 1, math.MaxInt, 0}, ""},
		{bounded{0, 1e6, Nanosecond, 0, 0, 0}, "u: Count is 0, not in 1..16"},
		{bounded{17, 1e6, Nanosecond, 0, 0, 0}, "u: Count is 17, not in 1..16"},
		{bounded{1, math.MaxUint64, Nanosecond, 0, 0, 0}, "u: Rate is 18446744073709551615, not in 1000000..10000000000000"},
		{bounded{1, 1e6, Second + 1, 0, 0, 0}, "u: Pause is 1.000000000001s, not in 1ns..1s"},
		{bounded{1, 1e6, -1, 2, 0, 0}, "u: Pause is -1ps, not in 1ns..1s\nu: Choice is 2, not in 0..1"},
	} {
		got := ""
		if err := errors.Join(OutOfBounds("u", &c.p)...); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.p, got, c.want)
		}
	}
}
