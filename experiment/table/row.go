// Package table has the rows of results: their JSON form, and how tables for people write them.
package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Row is a flat object with its keys in the order in which they were set. Units
// are in the keys: rate_mps is million messages per second, _ns nanoseconds.
type Row struct {
	keys []string
	vals map[string]any
}

// Set puts a value: a string, a bool, an int, a uint64, a float64, or nil for none.
func (r *Row) Set(key string, v any) *Row {
	if r.vals == nil {
		r.vals = map[string]any{}
	}
	if _, ok := r.vals[key]; !ok {
		r.keys = append(r.keys, key)
	}
	r.vals[key] = v
	return r
}

// Get is the value of key, nil when the row has none.
func (r *Row) Get(key string) any { return r.vals[key] }

// Float is the value of key as a number.
func (r *Row) Float(key string) (float64, bool) {
	switch v := r.vals[key].(type) {
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Keys are the keys in order.
func (r *Row) Keys() []string { return r.keys }

// MarshalJSON keeps the order of the keys.
func (r Row) MarshalJSON() ([]byte, error) { return r.encode(rounded) }

// encode writes the row as JSON, its numbers with a point as number does.
func (r *Row) encode(number func(float64) json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range r.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		kb, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		v := r.vals[k]
		if f, ok := v.(float64); ok {
			v = number(f)
		}
		vb, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", k, err)
		}
		b.Write(kb)
		b.WriteByte(':')
		b.Write(vb)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// rounded keeps six significant digits; more would suggest a precision that no result has.
func rounded(f float64) json.RawMessage {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return json.RawMessage("null")
	}
	return json.RawMessage(strconv.FormatFloat(Rounded(f), 'f', -1, 64))
}

// Rounded is a number with the six significant digits that results have.
func Rounded(f float64) float64 {
	s := strconv.FormatFloat(f, 'g', 6, 64)
	v, _ := strconv.ParseFloat(s, 64)
	return v
}
