package sim

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// OutOfBounds returns an error for each field of a unit's Params, a pointer to a struct, that is
// outside the bounds of its tag: bounds:"3..18" for a number (1e9 and 2^16 too), in picoseconds for
// a Time; an absent upper bound is a Second. A field with the tag words is the index of one of
// these.
func OutOfBounds(unit string, params any) (errs []error) {
	v := reflect.ValueOf(params).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		lo, hi, ok := Bounds(v.Type().Field(i).Tag)
		if !ok {
			continue
		}
		n := int64(math.MaxInt64)
		if f.CanInt() {
			n = f.Int()
		} else if f.Uint() < math.MaxInt64 {
			n = int64(f.Uint())
		}
		switch name := v.Type().Field(i).Name; {
		case lo <= n && n <= hi:
		case f.Type() == reflect.TypeFor[Time]():
			errs = append(errs, fmt.Errorf("%s: %s is %v, not in %v..%v", unit, name, Time(n), Time(lo), Time(hi)))
		default:
			errs = append(errs, fmt.Errorf("%s: %s is %d, not in %d..%d", unit, name, f.Interface(), lo, hi))
		}
	}
	return errs
}

// Bounds are the least and the largest value that the tags of a field allow, ok if they say so;
// those of a Time are in picoseconds.
func Bounds(tag reflect.StructTag) (least, largest int64, ok bool) {
	low, high, ok := strings.Cut(tag.Get("bounds"), "..")
	if words := strings.Fields(tag.Get("words")); len(words) > 0 {
		low, high, ok = "0", strconv.Itoa(len(words)-1), true
	}
	if !ok {
		return 0, 0, false
	}
	return bound(low, 0), bound(high, int64(Second)), true
}

// bound parses a bound of a tag; an absent one is otherwise.
func bound(text string, otherwise int64) int64 {
	if text == "" {
		return otherwise
	}
	base, exponent, power := strings.Cut(text, "^")
	x, err := strconv.ParseFloat(base, 64)
	e, err2 := strconv.ParseFloat("0"+exponent, 64)
	if err != nil || err2 != nil {
		panic(fmt.Sprintf("sim: %q is no bound of a parameter", text)) // a tag of this program
	}
	if power {
		x = math.Pow(x, e)
	}
	return int64(x)
}
