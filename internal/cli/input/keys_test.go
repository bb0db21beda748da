package input

import (
	"reflect"
	"testing"
)

// Keys lists the keys of maps and lists below the others, with groups, bounds, words and defaults.
func TestKeys(t *testing.T) {
	type item struct {
		Size uint64 `yaml:"size" unit:"size" max:"1GiB" help:"bytes (default 4KiB (a page))"`
		Word string `yaml:"word" oneof:"a,b" required:"true" help:"which (default a) of two"`
	}
	type file struct {
		Name  string            `yaml:"name" group:"first" help:"a name"`
		Items []item            `yaml:"items" group:"second" help:"things"`
		One   *item             `yaml:"one" help:"a thing"`
		Set   map[string]string `yaml:"set" help:"values"`
		Cores []int             `yaml:"cores" min:"0" help:"places (default: all)"`
		On    bool              `yaml:"on"`
		Not   int
	}
	got := Keys(&file{})
	size := Key{Group: "second", Allowed: "0B to 1GiB", Default: "4KiB (a page)", Help: "bytes"}
	word := Key{Group: "second", Allowed: "a, b", Words: []string{"a", "b"}, Help: "which (default a) of two", Required: true}
	at := func(k Key, path string) Key { k.Path = path; return k }
	want := []Key{
		{Path: "name", Group: "first", Allowed: "a word", Help: "a name"},
		{Path: "items", Group: "second", Allowed: "list of maps", Help: "things", Map: true},
		at(size, "items.N.size"), at(word, "items.N.word"),
		{Path: "one", Group: "second", Allowed: "a map", Help: "a thing", Map: true},
		at(size, "one.size"), at(word, "one.word"),
		{Path: "set.NAME", Group: "second", Allowed: "a word", Help: "values"},
		{Path: "cores", Group: "second", Allowed: "list, each 0 or more", Default: "all", Help: "places"},
		{Path: "on", Group: "second", Allowed: "true or false", Words: []string{"true", "false"}, Default: "false"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}
