package input

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Schema is a JSON schema (draft 2020-12) for editors, made from the same tags as
// Decode reads; a tag help:"..." becomes the description.
func Schema(v any, title string) ([]byte, error) {
	s := schema(reflect.TypeOf(v).Elem(), field{}, 0)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	err := enc.Encode(s)
	return b.Bytes(), err
}

var unitPatterns = map[string]string{
	"time": `^[0-9]+(\.[0-9]+)?(ps|ns|us|ms|s)$`,
	"size": `^[0-9]+(\.[0-9]+)?(B|KiB|MiB|GiB|TiB|kB|MB|GB)?$`,
	"rate": `^[0-9]+(\.[0-9]+)?(k|M|G|T)?bps$`,
	"freq": `^[0-9]+(\.[0-9]+)?(k|M|G)Hz$`,
}

func schema(t reflect.Type, f field, depth int) map[string]any {
	if depth > maxDepth {
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schema(t.Elem(), f, depth+1)
	case reflect.Struct:
		props := map[string]any{}
		var required []string
		for _, sf := range fields(t) {
			p := schema(t.Field(sf.index).Type, sf, depth+1)
			if h := t.Field(sf.index).Tag.Get("help"); h != "" {
				p["description"] = h
			}
			props[sf.name] = p
			if sf.required {
				required = append(required, sf.name)
			}
		}
		s := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
		if required != nil {
			s["required"] = required
		}
		return s
	case reflect.Map:
		e := schema(t.Elem(), f, depth+1)
		if t.Elem().Kind() == reflect.String {
			e = map[string]any{"type": []string{"string", "number", "boolean"}}
		}
		return map[string]any{"type": "object", "additionalProperties": e}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schema(t.Elem(), f, depth+1)}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		if f.unit == "hosts" {
			return map[string]any{"type": []string{"string", "integer"}, "pattern": `^[0-9]+(\.\.[0-9]+)?$`, "minimum": 0}
		}
		s := map[string]any{"type": "string"}
		if f.oneof != "" {
			s["enum"] = strings.Split(f.oneof, ",")
		}
		return s
	}
	if p := unitPatterns[f.unit]; p != "" {
		if f.unit == "size" {
			return map[string]any{"type": []string{"string", "integer"}, "pattern": p}
		}
		return map[string]any{"type": "string", "pattern": p}
	}
	s := map[string]any{"type": "integer"}
	if f.min != "" {
		s["minimum"] = json.Number(f.min)
	}
	if f.max != "" {
		s["maximum"] = json.Number(f.max)
	}
	return s
}
