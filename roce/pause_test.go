package roce_test

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
)

func TestPFC(t *testing.T) {
	var pool roce.Pool
	f := roce.NewPFC(&pool, roce.MAC{2, 3, 4, 5, 6, 7}, 3, 0x1234)
	want := append([]byte{1, 0x80, 0xc2, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0x88, 0x08, 1, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0x12, 0x34}, make([]byte, 34)...)
	if !bytes.Equal(f.B, want) {
		t.Errorf("% x", f.B)
	}
	p, ok := roce.ParsePFC(f.B)
	if !ok {
		t.Fatal("not recognised")
	}
	for class := range roce.Classes {
		if q, ok := p.Time(class); ok != (class == 3) || ok && q != 0x1234 {
			t.Errorf("class %d: %d, %t", class, q, ok)
		}
	}
	for _, b := range [][]byte{nil, f.B[:20], make([]byte, 60), append([]byte{}, f.B[:16]...)} {
		if _, ok := roce.ParsePFC(b); ok {
			t.Errorf("% x is taken for a pause", b)
		}
	}
	if _, err := roce.Parse(f.B); err != roce.DropNotRDMA {
		t.Errorf("as RDMA: %v", err)
	}
}

func TestClassOf(t *testing.T) {
	for _, c := range []struct {
		path roce.Path
		want uint8
	}{
		{roce.Path{Framing: roce.RoCEv2IPv4}, 0}, {roce.Path{Framing: roce.RoCEv2IPv4, TrafficClass: 26 << 2}, 3}, {roce.Path{Framing: roce.RoCEv2IPv6, TrafficClass: 48 << 2}, 6},
		{roce.Path{Framing: roce.RoCEv2IPv4, Tagged: true, VLANTCI: 5<<13 | 7, TrafficClass: 26 << 2}, 5}, {roce.Path{Framing: roce.RoCEv1, TrafficClass: 0xe0}, 7},
	} {
		c.path.HopLimit, c.path.SrcPort, c.path.DestQP = 1, 0xC000, 2
		c.path.SrcGID, c.path.DstGID = roce.GIDFromIPv4([4]byte{1, 2, 3, 4}), roce.GIDFromIPv4([4]byte{1, 2, 3, 5})
		tmpl, err := roce.NewTemplate(c.path)
		if err != nil {
			t.Fatal(err)
		}
		var pool roce.Pool
		if got := roce.ClassOf(tmpl.New(&pool, roce.RCAcknowledge, 0, 0, 0).B); got != c.want {
			t.Errorf("%+v: class %d, want %d", c.path, got, c.want)
		}
	}
}
