package provider

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/sim/kernel"
)

// A number that was given back is the next that is given, and the files of a process that ends go
// from the highest number down, whenever each was opened.
func TestDescriptorsGoFromTheHighestDown(t *testing.T) {
	p := &Process{K: &kernel.Process{}}
	var ended []string
	open := func(name string) (*descriptor, int) {
		d := &descriptor{release: func(kernel.Caller) { ended = append(ended, name) }}
		return d, p.openFD(d)
	}
	_, first := open("first")
	second, two := open("second")
	_, three := open("third")
	if want := []int{3, 4, 5}; !slices.Equal([]int{first, two, three}, want) {
		t.Fatalf("numbers %v, want %v", []int{first, two, three}, want)
	}
	p.forgetFD(second)
	p.forgetFD(second) // it has no number any more
	if d := p.takeFD(first); d == nil {
		t.Fatal("no first file")
	}
	p.openFD(&descriptor{})
	if _, n := open("late"); n != two {
		t.Errorf("number %d, want %d, the lowest that is free", n, two)
	}
	if _, n := open("last"); n != three+1 {
		t.Errorf("number %d, want %d", n, three+1)
	}
	p.Exit(kernel.Caller{})
	if want := []string{"last", "third", "late"}; !slices.Equal(ended, want) {
		t.Errorf("they end as %v, want %v", ended, want)
	}
}
