package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/record.schema.json")

// aboutFields are descriptions of the schema's properties that their names do not say.
var aboutFields = map[string]string{
	"schema":       "version of this format; a program reads its own and older ones",
	"environment":  "what the run was made on, by the keys that the ledger of deviations uses, and how",
	"seed":         "of all random choices: runs of two seeds cannot be compared",
	"incomplete":   "the run was interrupted: cases that it did not reach are not-run",
	"findings":     "what is wrong with the run as a whole",
	"summary":      "how many cases have each outcome",
	"strength":     "E: exactly one behaviour is right; S: one of a set; H: to be recorded on hardware first",
	"outcome":      "conform help outcomes explains them",
	"step":         "name of the check",
	"where":        "line of the check that ended the case",
	"testbed":      "what the needs of the case changed of the testbed",
	"stale":        "entries of the ledger that predict what the case no longer shows",
	"virtual_ns":   "how long the case took in the simulator's time",
	"real_ns":      "how long the case took on hardware",
	"failed_ns":    "when the check failed, on the clock of frames",
	"frames":       "the frames around the failure of a case",
	"fate":         "what was done to the frame on its way",
	"kind":         "of an observation: errno, wc (completion), value, check, platform (what the machine has); of a target: sim or hw",
	"got":          "what was seen; bytes are their number and the beginning of their SHA-256",
	"want":         "what was expected; a list beside a got that is none is a set of allowed values",
	"deviation":    "entry of the ledger that predicted got where want is not met",
	"differs":      "the repeat that differs, of a case that is flaky",
	"observations": "what the case saw, in order",
}

// schemaOf is the JSON schema of a type by its tags.
func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[Outcome]():
		return map[string]any{"type": "string", "enum": outcomes[:]}
	case t == reflect.TypeFor[Case]() || t.Kind() == reflect.Pointer && t.Elem() == reflect.TypeFor[Case]():
		return map[string]any{"$ref": "#/$defs/case"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		return objectOf(t)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return map[string]any{"type": "integer"}
	}
	return map[string]any{}
}

func objectOf(t reflect.Type) map[string]any {
	props, required := map[string]any{}, []string{}
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			continue
		}
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		p := schemaOf(t.Field(i).Type)
		if d := aboutFields[name]; d != "" && p["$ref"] == nil {
			p["description"] = d
		}
		props[name] = p
		if options != "omitempty" {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

// recordSchema is what docs/record.schema.json says.
func recordSchema() map[string]any {
	s := objectOf(reflect.TypeFor[Run]())
	s["properties"].(map[string]any)["schema"] = map[string]any{"enum": append([]string{Schema}, olderSchemas...), "description": aboutFields["schema"]}
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", "record of a run of conform, "+Schema
	s["$defs"] = map[string]any{"case": objectOf(reflect.TypeFor[Case]())}
	return s
}

const schemaPath = "../../docs/record.schema.json"

func TestGoldenRecordSchema(t *testing.T) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(recordSchema()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaPath, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(schemaPath); err != nil || !bytes.Equal(was, b.Bytes()) {
		t.Errorf("docs/record.schema.json is not what records have; if a field means something else now, or Diff needs it, raise Schema; then make golden (%v)", err)
	}
}

// Every committed record is as the schema says, those of the older version too, and still opens.
func TestRecordsMeetTheSchema(t *testing.T) {
	text, err := os.ReadFile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("../../fixtures/recordings/*.json*")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%v, %v", paths, err)
	}
	versions := map[string]bool{}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		in, err := unpacked(f)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(in)
		_ = f.Close()
		var doc map[string]any
		if err == nil {
			err = json.Unmarshal(raw, &doc)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := meets(schema, schema, doc, ""); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		versions[doc["schema"].(string)] = true
		doc["later"] = 1
		if meets(schema, schema, doc, "") == nil {
			t.Errorf("%s: an unknown field meets the schema", path)
		}
		if r, err := ReadFile(t.Context(), path); err != nil || r.Schema != Schema || len(r.Cases) < 400 {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, v := range append([]string{Schema}, olderSchemas...) {
		if !versions[v] {
			t.Errorf("no committed record is of %s", v)
		}
	}
}

// meets checks a value by as much of JSON schema as recordSchema uses.
func meets(root, s map[string]any, v any, at string) error {
	if ref, ok := s["$ref"].(string); ok {
		return meets(root, root["$defs"].(map[string]any)[filepath.Base(ref)].(map[string]any), v, at)
	}
	if set, ok := s["enum"].([]any); ok && !slices.Contains(set, v) {
		return fmt.Errorf("%s: %v is none of %v", at, v, set)
	}
	switch x := v.(type) {
	case map[string]any:
		props, _ := s["properties"].(map[string]any)
		for _, name := range asList(s["required"]) {
			if _, ok := x[name.(string)]; !ok {
				return fmt.Errorf("%s has no %s", at, name)
			}
		}
		for name, y := range x {
			p, ok := props[name].(map[string]any)
			if !ok {
				p, ok = s["additionalProperties"].(map[string]any)
			}
			if !ok && s["type"] == "object" {
				return fmt.Errorf("%s.%s is not in the schema", at, name)
			}
			if err := meets(root, p, y, at+"."+name); err != nil {
				return err
			}
		}
	case []any:
		items, _ := s["items"].(map[string]any)
		for i, y := range x {
			if err := meets(root, items, y, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	}
	if want, ok := s["type"].(string); ok && want != typeOf(v) {
		return fmt.Errorf("%s is of type %s, and not %s", at, typeOf(v), want)
	}
	return nil
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func typeOf(v any) string {
	switch x := v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if x == float64(int64(x)) || x > 1<<62 {
			return "integer"
		}
		return "number"
	}
	return "null"
}

// A record of a newer program is refused with a sentence that says so, and so is another file.
func TestVersionsOfRecords(t *testing.T) {
	for version, want := range map[string]string{Schema: "", olderSchemas[0]: "", "rdmasim/conform/99": "a newer conform wrote it", "x": `has the schema "x"`} {
		path := filepath.Join(t.TempDir(), "run.json")
		if err := os.WriteFile(path, []byte(`{"schema":"`+version+`","cases":[]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ReadFile(t.Context(), path)
		if want == "" && (err != nil || r.Schema != Schema) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", version, err)
		}
	}
}
