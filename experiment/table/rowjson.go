package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// Exact is the row as JSON that DecodeRow reads back as it was: numbers have all their digits, and
// those that are not whole by their type have a point or an exponent.
func (r *Row) Exact() ([]byte, error) { return r.encode(exactNumber) }

func exactNumber(f float64) json.RawMessage {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return json.RawMessage("null")
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return json.RawMessage(s)
}

var errRow = errors.New("a row is an object of texts, numbers and truth values")

// DecodeRow reads what Exact wrote.
func DecodeRow(text []byte) (Row, error) {
	var r Row
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return r, errors.Join(errRow, err)
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return r, err
		}
		v, err := d.Token()
		if err != nil {
			return r, err
		}
		key, ok := k.(string)
		if _, nested := v.(json.Delim); !ok || nested {
			return r, errRow
		}
		if n, ok := v.(json.Number); ok {
			if v, err = numberOf(n.String()); err != nil {
				return r, err
			}
		}
		r.Set(key, v)
	}
	_, err := d.Token()
	return r, err
}

func numberOf(s string) (any, error) {
	if strings.ContainsAny(s, ".eE") {
		return strconv.ParseFloat(s, 64)
	}
	if n, err := strconv.Atoi(s); err == nil {
		return n, nil
	}
	return strconv.ParseUint(s, 10, 64)
}
