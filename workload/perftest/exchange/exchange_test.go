package exchange

import (
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/verbs"
)

// recorded are the messages that the ends of a run sent: the client's, and the server's.
func recorded(t testing.TB, file string) (client, server [][]byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		end, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		if end == "client" {
			client = append(client, b)
		} else {
			server = append(server, b)
		}
	}
	return client, server
}

// What the real program sent is read, and what is written from it is the same bytes.
func TestRecordedMessages(t *testing.T) {
	client, server := recorded(t, "write-bw.txt")
	if len(client) != 17 || len(server) != 17 {
		t.Fatalf("%d and %d messages, 17 are recorded", len(client), len(server))
	}
	for _, m := range [][][]byte{client, server} {
		n, text, err := DecodeVersion(m[0])
		if err != nil || n != 6.29 || !bytes.Equal(EncodeVersion(text), m[0]) {
			t.Errorf("version %v %q: %v", n, text, err)
		}
		page, err := DecodeInt(m[1], "page size", MostPage)
		if err != nil || page != 4096 || !bytes.Equal(EncodeInt(page), m[1]) {
			t.Errorf("page size %d: %v", page, err)
		}
		line, err := DecodeInt(m[2], "cache line size", MostLine)
		if err != nil || line != 64 {
			t.Errorf("cache line size %d: %v", line, err)
		}
		mtu, err := DecodeMTU(m[3])
		if err != nil || mtu != verbs.MTU4096 || !bytes.Equal(EncodeMTU(mtu), m[3]) {
			t.Errorf("MTU %v: %v", mtu, err)
		}
		p, err := DecodeParameters(m[4])
		if err != nil {
			t.Fatal(err)
		}
		if p.Verb != 2 || p.Test != 1 || p.Size != 4096 || p.Iters != 10 || p.QPs != 2 || p.Duration != 5 || p.Format != 1 {
			t.Errorf("parameters %+v", p)
		}
		if d := p.Device; d.MaxQPRdAtom != 128 || d.MaxSGE != 32 || d.PhysPortCnt != 1 || d.MaxPKeys != 64 || d.LocalCAAckDelay != 15 {
			t.Errorf("device %+v", d)
		}
		if b := p.Encode(); !bytes.Equal(b[:deviceAt], m[4][:deviceAt]) || !bytes.Equal(b[lastAt:], m[4][lastAt:]) {
			t.Errorf("parameters are written as\n%x\nand were\n%x", b, m[4])
		}
		for _, b := range m[5:11:11] {
			k, err := DecodeKeys(b, true)
			if err != nil || !bytes.Equal(k.Encode(true), b) {
				t.Errorf("keys %+v: %v\n%s", k, err, b)
			}
		}
	}
	r, err := DecodeReport([Numbers][]byte(client[11:16]))
	if err != nil || r.Size != 4096 || r.Iters != 20 || r.Average < 30 || r.Peak < r.Average {
		t.Errorf("report %+v: %v", r, err)
	}
	if again := r.Encode(); !reflect.DeepEqual(again[:], client[11:16]) {
		t.Errorf("report is written as %x", again)
	}
}

// The first parameter that differs is named in perftest's words, as recorded runs have them.
func TestCompareNamesTheParameter(t *testing.T) {
	client, _ := recorded(t, "write-bw.txt")
	for _, c := range []struct {
		change func(*Parameters)
		want   string
	}{
		{func(p *Parameters) { p.Connection = 1 }, "connection_type mismatch: local=RC, remote=UC"},
		{func(p *Parameters) { p.Iters = 100 }, "iters mismatch: local=10, remote=100"},
		{func(p *Parameters) { p.QPs = 1 }, "num_of_qps mismatch: local=2, remote=1"},
		{func(p *Parameters) { p.Size = 8192 }, "size mismatch: local=4096, remote=8192"},
		{func(p *Parameters) { p.Verb = 4 }, "verb mismatch: local=WRITE, remote=READ"},
	} {
		a, err := DecodeParameters(client[4])
		if err != nil {
			t.Fatal(err)
		}
		b, _ := DecodeParameters(client[4])
		c.change(b)
		if got := a.Compare(b); len(got) != 1 || got[0].String() != c.want {
			t.Errorf("%v, want %s", got, c.want)
		}
	}
}

func TestKeysSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := Keys{LID: rapid.Uint16().Draw(t, "lid"), OutReads: rapid.IntRange(0, 0xffff).Draw(t, "reads"), QPN: rapid.Uint32Range(0, 0xffffff).Draw(t, "qpn"),
			PSN: rapid.Uint32Range(0, 0xffffff).Draw(t, "psn"), RKey: rapid.Uint32().Draw(t, "rkey"), Addr: rapid.Uint64().Draw(t, "addr"), SRQN: rapid.Uint32().Draw(t, "srqn")}
		gid := rapid.Bool().Draw(t, "gid")
		if gid {
			copy(k.GID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "raw"))
		}
		b := k.Encode(gid)
		if len(b) != Size(gid) {
			t.Fatalf("%d bytes, want %d", len(b), Size(gid))
		}
		got, err := DecodeKeys(b, gid)
		if err != nil || got != k {
			t.Fatalf("%+v became %+v: %v", k, got, err)
		}
		if _, err := DecodeKeys(b, !gid); err == nil {
			t.Fatal("the other form is read without an error")
		}
	})
}

// The keys by a queue pair have the places of struct pingpong_dest, in both lengths.
func TestBinaryKeys(t *testing.T) {
	k := Keys{LID: 0x1234, OutReads: 16, QPN: 0xabcdef, PSN: 0x123456, RKey: 0x89abcdef, Addr: 0x0102030405060708, SRQN: 0x0a0b0c0d}
	for i := range k.GID {
		k.GID[i] = byte(0xe0 + i)
	}
	for _, c := range []struct {
		peer float64
		want string
	}{
		{6.06, "000012340000001000abcdef0012345689abcdef000000000102030405060708e0e1e2e3e4e5e6e7e8e9eaebecedeeef0a0b0c0d00000003"},
		{6.29, "000012340000001000abcdef0012345689abcdef0000000001020304050607080000000000000000e0e1e2e3e4e5e6e7e8e9eaebecedeeef0a0b0c0d00000003"},
	} {
		b := k.EncodeBinary(c.peer, 3)
		if hex.EncodeToString(b) != c.want {
			t.Errorf("version %v: %x", c.peer, b)
		}
		if got, err := DecodeBinary(b); err != nil || got != k {
			t.Errorf("%+v: %v", got, err)
		}
		if _, err := DecodeBinary(b[1:]); err == nil {
			t.Error("a byte less is accepted")
		}
	}
	if _, err := DecodeBinary(bytes.Repeat([]byte{0xff}, BinarySize)); err == nil {
		t.Error("numbers of 32 bits are accepted where 24 can be")
	}
}

// The message of rping has its numbers in the order of the network, and one of another program is
// refused.
func TestAdvert(t *testing.T) {
	a := Advert{Addr: 0x0102030405060708, RKey: 0x090a0b0c, Size: 0x64}
	b := a.Encode()
	if hex.EncodeToString(b) != "0102030405060708090a0b0c00000064" {
		t.Errorf("%x", b)
	}
	if got, err := DecodeAdvert(b, 100); err != nil || got != a {
		t.Errorf("%+v: %v", got, err)
	}
	for _, bad := range [][]byte{b[1:], append(b, 0), (&Advert{Size: 101}).Encode(), (&Advert{}).Encode()} {
		if got, err := DecodeAdvert(bad, 100); err == nil {
			t.Errorf("%x is %+v", bad, got)
		}
	}
}

// FuzzDecode holds every decoder to not panicking, and to writing what it accepts such that it
// reads the same.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"write-bw.txt", "write-bw-both-ways.txt"} {
		client, server := recorded(f, name)
		for _, b := range append(client, server...) {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, text, err := DecodeVersion(b); err == nil && text == "" {
			t.Error("a version without text")
		}
		_, _ = DecodeInt(b, "page size", MostPage)
		_, _ = DecodeMTU(b)
		if a, err := DecodeAdvert(b, 1<<16); err == nil && !bytes.Equal(a.Encode(), b) {
			t.Errorf("%x became %+v", b, a)
		}
		for _, gid := range []bool{false, true} {
			if k, err := DecodeKeys(b, gid); err == nil {
				if again, err := DecodeKeys(k.Encode(gid), gid); err != nil || again != k {
					t.Errorf("%+v became %+v: %v", k, again, err)
				}
			}
		}
		if p, err := DecodeParameters(b); err == nil {
			if again, err := DecodeParameters(p.Encode()); err != nil || !reflect.DeepEqual(p, again) {
				t.Errorf("%+v became %+v: %v", p, again, err)
			}
		}
		var numbers [Numbers][]byte
		for i := range numbers {
			numbers[i] = b[min(len(b), i*NumberSize):min(len(b), (i+1)*NumberSize)]
		}
		_, _ = DecodeReport(numbers)
		if k, err := DecodeBinary(b); err == nil {
			if again, err := DecodeBinary(k.EncodeBinary(MarkersSince, 0)); err != nil || again != k {
				t.Errorf("%+v became %+v: %v", k, again, err)
			}
		}
	})
}
