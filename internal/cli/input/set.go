package input

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Set gives the value at a dotted path of v, a pointer to a struct as Decode takes,
// from its text: "traffic.0.window" "64". Unknown names are answered with the
// nearest; v is unchanged on an error.
func Set(v any, path, text string) error {
	return set(reflect.ValueOf(v).Elem(), strings.Split(path, "."), "", text, field{})
}

func set(v reflect.Value, path []string, done, text string, f field) error {
	if len(path) == 0 {
		switch v.Kind() {
		case reflect.Struct, reflect.Map, reflect.Slice:
			return fmt.Errorf("%s is a list or a map, which only a file can give", done)
		case reflect.Pointer:
			e := reflect.New(v.Type().Elem())
			if err := set(e.Elem(), nil, done, text, f); err != nil {
				return err
			}
			v.Set(e)
			return nil
		}
		return setScalar(v, text, f)
	}
	key := path[0]
	switch v.Kind() {
	case reflect.Pointer:
		e := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			e.Elem().Set(v.Elem())
		}
		if err := set(e.Elem(), path, done, text, f); err != nil {
			return err
		}
		v.Set(e)
		return nil
	case reflect.Struct:
		fs := fields(v.Type())
		i := indexOf(fs, key)
		if i < 0 {
			hint := Suggest(key, fieldNames(fs))
			if list := listWith(v.Type(), key); list != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", join(done, list)+".0."+key)
			}
			return fmt.Errorf("unknown key %q%s; allowed: %s", join(done, key), hint, strings.Join(fieldNames(fs), ", "))
		}
		return set(v.Field(fs[i].index), path[1:], join(done, key), text, fs[i])
	case reflect.Slice:
		n, err := strconv.Atoi(key)
		if v.Len() == 0 {
			return fmt.Errorf("%s has no items, and only a file can give it some", done)
		}
		// One spelling for each item: a value that is given twice is found by its path.
		if err != nil || n < 0 || n >= v.Len() || strconv.Itoa(n) != key {
			return fmt.Errorf("%s has items 0 to %d, not %q", done, v.Len()-1, key)
		}
		return set(v.Index(n), path[1:], join(done, key), text, f)
	case reflect.Map:
		// A key of a map may have dots of its own (a value of a profile): it takes the rest.
		if v.Type().Elem().Kind() == reflect.String {
			m := reflect.MakeMap(v.Type())
			for _, k := range v.MapKeys() {
				m.SetMapIndex(k, v.MapIndex(k))
			}
			m.SetMapIndex(reflect.ValueOf(strings.Join(path, ".")), reflect.ValueOf(text))
			v.Set(m)
			return nil
		}
		k := reflect.ValueOf(key)
		old := v.MapIndex(k)
		if !old.IsValid() {
			return fmt.Errorf("%s has no key %q", done, key)
		}
		e := reflect.New(v.Type().Elem()).Elem()
		e.Set(old)
		if err := set(e, path[1:], join(done, key), text, f); err != nil {
			return err
		}
		v.SetMapIndex(k, e)
		return nil
	}
	return fmt.Errorf("%s is a single value and has no %q", done, key)
}
