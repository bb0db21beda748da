package grid

// suffixes are the units of numbers in files, by kind of value.
var suffixes = map[string]string{"whole number": "", "size": "_bytes", "time": "_ns", "rate": "_bps", "frequency": "_khz"}

// Numbers says how files have the values of the k-th key of an axis: as numbers, whose unit is the
// ending of the column's name, if all of them are quantities of one kind; ok is false if they are
// words.
func (a *Axis) Numbers(k int) (suffix string, number func(text string) any, ok bool) {
	var q *quantity
	if a.Between != nil {
		q = a.Between.quantity()
	} else {
		texts := make([]string, len(a.Values))
		for i, v := range a.Values {
			texts[i] = v[k]
		}
		var err error
		if q, _, err = quantityOf(texts...); err != nil {
			return "", nil, false
		}
	}
	return suffixes[q.name], func(text string) any {
		n, err := q.parse(text)
		switch {
		case err != nil:
			return nil
		case q.name == "time": // picoseconds
			return float64(n) / 1000
		case n > 1<<62:
			return float64(n)
		}
		return int(n)
	}, true
}
