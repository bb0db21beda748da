package rping

import (
	"bytes"
	"strings"
	"testing"
)

// A ping has its number, letters that go round, and a zero at the end, as rping's own.
func TestContent(t *testing.T) {
	for n, want := range map[int]string{0: "rdma-ping-0: ABCDEFGHIJKL", 57: "rdma-ping-57: zABCDEFGHIJ", 58: "rdma-ping-58: ABCDEFGHIJK"} {
		if got := content(n, LeastSize); string(got) != want+"\x00" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if b := content(1, MostSize); len(b) != MostSize || bytes.IndexByte(b, 0) != MostSize-1 {
		t.Errorf("%d bytes, a zero at %d", len(b), bytes.IndexByte(b, 0))
	}
	if b := content(1<<62, LeastSize); len(b) != LeastSize || b[LeastSize-1] != 0 {
		t.Errorf("%q", b)
	}
}

func TestValidate(t *testing.T) {
	o := Default()
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	for want, o := range map[string]Options{"-S 25": {Size: 25}, "-S 65536": {Size: 65536}, "-C -1": {Size: 64, Count: -1}} {
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
