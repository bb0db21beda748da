package pingpong

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/verbs"
)

// The message has the form that rc_pingpong.c of rdma-core gives it.
func TestFormOfAnAddress(t *testing.T) {
	const text = "0000:0041c1:66c182:00000000000000000000ffff7f000002\x00"
	want := Address{QPN: 0x41c1, PSN: 0x66c182, GID: verbs.GID{10: 0xff, 11: 0xff, 12: 127, 15: 2}}
	if a, err := Decode([]byte(text)); err != nil || a != want || string(a.Encode()) != text || len(text) != AddressSize {
		t.Errorf("%+v: %v", a, err)
	}
}

func TestAddressesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Address{LID: rapid.Uint16().Draw(t, "lid"), QPN: rapid.Uint32Range(0, 0xffffff).Draw(t, "qpn"), PSN: rapid.Uint32Range(0, 0xffffff).Draw(t, "psn")}
		copy(a.GID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "gid"))
		b := a.Encode()
		if got, err := Decode(b); err != nil || got != a || len(b) != AddressSize {
			t.Fatalf("%+v became %+v: %v", a, got, err)
		}
	})
}

// What is no address is refused with the reason.
func TestNoAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "not LID:QPN:PSN:GID",
		strings.Repeat("x", 52): "not LID:QPN:PSN:GID",
		"0000:0041c1:66c182:00000000000000000000ffff7f000002":     "not LID:QPN:PSN:GID",
		"0000:0041c1:66c182:00000000000000000000ffff7f00000x\x00": "32 hexadecimal digits",
		"0000:z041c1:66c182:00000000000000000000ffff7f000002\x00": `"z041c1" is no hexadecimal number of 24 bits`,
	} {
		if _, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzDecode holds the decoder to not panicking, and to writing what it accepts such that it reads
// the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("0000:0041c1:66c182:00000000000000000000ffff7f000002\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Decode(b)
		if err != nil {
			return
		}
		if again, err := Decode(a.Encode()); err != nil || again != a {
			t.Errorf("%+v became %+v: %v", a, again, err)
		}
	})
}

func TestValidate(t *testing.T) {
	for _, name := range Programs() {
		o, ok := Default(name)
		if err := o.Validate(); err != nil || !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, ok := Default("ibv_srq_pingpong"); ok {
		t.Error("a program that is not there has defaults")
	}
	for want, change := range map[string]func(*Options){
		"-s 0": func(o *Options) { o.Size = 0 }, "-m 1000": func(o *Options) { o.MTU = 1000 }, "-r 0": func(o *Options) { o.RxDepth = 0 },
		"-n 0": func(o *Options) { o.Iters = 0 }, "-l 16": func(o *Options) { o.SL = 16 }, "-s 2147483648": func(o *Options) { o.Size = 1 << 31 },
	} {
		o, _ := Default("ibv_rc_pingpong")
		change(&o)
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What a client sends differs from place to place, but for zeros where a peer with -c looks for
// them.
func TestContent(t *testing.T) {
	e := &End{o: Options{Size: 3*pageSize + 1, Check: true}}
	b := e.content()
	same := 0
	for i := range b {
		if i%pageSize == 0 && b[i] != 0 {
			t.Errorf("byte %d is %d", i, b[i])
		}
		if i >= pageSize && b[i] == b[i-pageSize] {
			same++
		}
	}
	if same > len(b)/100 {
		t.Errorf("%d bytes are as a page before", same)
	}
}
