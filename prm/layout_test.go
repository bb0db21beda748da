package prm

import (
	mathbits "math/bits"
	"math/rand"
	"reflect"
	"testing"

	"github.com/rdmasim/rdmasim/internal/layout"
)

// field is a getter with its setter.
type field struct {
	name     string
	get, set reflect.Value
}

func fields(v reflect.Value) []field {
	var fs []field
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		get, set := v.Method(i), v.MethodByName("Set"+name)
		if get.Type().NumIn() == 0 && get.Type().NumOut() == 1 && set.IsValid() &&
			set.Type().NumIn() == 1 && set.Type().In(0) == get.Type().Out(0) {
			fs = append(fs, field{name, get, set})
		}
	}
	return fs
}

// all is the value of type t with every bit set, and zero the one with none.
func all(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(0x3fffffff)
	default:
		v.SetUint(^uint64(0) >> (64 - t.Bits()))
	}
	return v
}

func asUint(v reflect.Value) uint64 {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return 1
		}
		return 0
	case reflect.Int:
		return uint64(v.Int())
	}
	return v.Uint()
}

// Every setter writes the bits that its getter reads and no other, keeps what does
// not fit out, and fields of one view do not overlap.
func TestGetSet(t *testing.T) {
	wholeWord := map[string]bool{}
	for _, v := range tables(t).Views() {
		for _, f := range v.Fields {
			wholeWord[v.Name+"."+f.Name] = f.Place.Kind == layout.Low
		}
	}
	for _, view := range views {
		typ := reflect.TypeOf(view.v)
		b := make([]byte, view.size)
		fs := fields(reflect.ValueOf(b).Convert(typ))
		owner := make([]string, 8*view.size)
		for _, f := range fs {
			rand.New(rand.NewSource(1)).Read(b)
			before := string(b)
			f.set.Call([]reflect.Value{f.get.Call(nil)[0]})
			if string(b) != before && !wholeWord[typ.Name()+"."+f.name] {
				t.Errorf("%v.%s: writing back what was read changes bytes", typ, f.name)
			}
			one, mask := mask(f, b)
			if !contiguous(one) {
				t.Errorf("%v.%s: value %#x of all ones is not", typ, f.name, one)
			}
			n := 0
			for i, m := range mask {
				n += mathbits.OnesCount8(m)
				for k := range 8 {
					if m&(0x80>>k) == 0 {
						continue
					}
					if o := owner[8*i+k]; o != "" && !view.union {
						t.Errorf("%v: %s and %s share a bit of byte %#x", typ, o, f.name, i)
					}
					owner[8*i+k] = f.name
				}
			}
			if n != mathbits.OnesCount64(one) {
				t.Errorf("%v.%s: value of %d bits in %d bits of the view", typ, f.name, mathbits.OnesCount64(one), n)
			}
		}
	}
}

func contiguous(v uint64) bool { return v != 0 && v&(v+1) == 0 }

// mask is the largest value of the field and the bits that it occupies in b.
func mask(f field, b []byte) (uint64, []byte) {
	clear(b)
	f.set.Call([]reflect.Value{all(f.get.Type().Out(0))})
	one := asUint(f.get.Call(nil)[0])
	m := append([]byte(nil), b...)
	clear(b)
	return one, m
}

// The files that are generated are what the tables give.
func TestGenerated(t *testing.T) {
	stale, err := layout.Stale(".")
	if err != nil || len(stale) != 0 {
		t.Errorf("run go generate ./prm: %v differ from the tables, %v", stale, err)
	}
}

func tables(t *testing.T) *layout.Package {
	t.Helper()
	p, err := layout.Read("layouts")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Every accessor of a field reads and writes the bits that the table names.
func TestAccessorsAgainstTables(t *testing.T) {
	all := tables(t).Views()
	if len(all) != len(views) {
		t.Fatalf("%d views in the tables, %d in the list", len(all), len(views))
	}
	for i, v := range all {
		typ := reflect.TypeOf(views[i].v)
		size := views[i].size
		if v.List() {
			size += 32
		}
		bytes := reflect.ValueOf(make([]byte, size)).Convert(typ)
		for _, f := range v.Fields {
			width := f.Width()
			if f.Place.Kind == layout.Rest {
				width = 8 * (size - f.Offset)
			}
			checkField(t, bytes, v.Name, f.Name, f.BitOffset(), width)
		}
	}
}

func checkField(t *testing.T, v reflect.Value, view, name string, off, width int) {
	get := v.MethodByName(name)
	if !get.IsValid() {
		t.Errorf("%s has no field %s", view, name)
		return
	}
	if out := get.Type().Out(0); out.Kind() == reflect.Slice { // a part of the view
		part := get.Call(nil)[0]
		at := int(part.Pointer() - v.Pointer())
		if at != off/8 || part.Len() != width/8 {
			t.Errorf("%s.%s: bytes %#x+%#x, want %#x+%#x", view, name, at, part.Len(), off/8, width/8)
		}
		return
	}
	f := field{name, get, v.MethodByName("Set" + name)}
	_, m := mask(f, v.Bytes())
	for i := range 8 * len(m) {
		want := i >= off && i < off+width
		if got := m[i/8]&(0x80>>(i%8)) != 0; got != want {
			t.Errorf("%s.%s: bit %d is %v, want bits %d+%d", view, name, i, got, off, width)
			return
		}
	}
}

// Contexts whose fields lie apart, and lists.
func TestOddLayouts(t *testing.T) {
	mkc := MKC(make([]byte, MKCSize))
	mkc.SetAccessMode(0x15)
	if mkc.AccessMode() != 0x15 || be32(mkc, 0) != 5<<26|1<<8 {
		t.Errorf("access mode %#x, word %#08x", mkc.AccessMode(), be32(mkc, 0))
	}
	in := CreateEQIn(NewIn(OpCreateEQ, 16))
	in.SetEventBitmask(0, 1<<9)
	in.PAS().Set(1, 0x1234000)
	if be64(in, 0x58) != 1<<9 || in.EventBitmask(0) != 1<<9 || be64(in, 0x118) != 0x1234000 || in.PAS().Count() != 2 {
		t.Errorf("CREATE_EQ: % x", []byte(in))
	}
	if in := CmdIn(in); in.Opcode() != OpCreateEQ || be16(in, 0) != 0x301 {
		t.Errorf("opcode %v", in.Opcode())
	}
	mtt := MTT(make([]byte, 16))
	mtt.Set(1, 0xabcde000, MTTRead|MTTWrite)
	if mtt.Addr(1) != 0xabcde000 || mtt.Rights(1) != 3 || mtt.Addr(0) != 0 || be64(mtt, 8) != 0xabcde003 {
		t.Errorf("MTT % x", []byte(mtt))
	}
	umr := UMRCtrlSegment(make([]byte, UMRCtrlSegmentSize))
	umr.SetXLTOffset(0x123456789abc)
	if be16(umr, 6) != 0x9abc || be32(umr, 16) != 0x12345678 {
		t.Errorf("UMR offset % x", []byte(umr))
	}
	out := QueryVportCounterOut(make([]byte, QueryVportCounterOutSize))
	out.Set(VCTxIBUnicast, 7, 900)
	if be64(out, 0x40) != 7 || be64(out, 0x48) != 900 || out.Packets(VCTxIBUnicast) != 7 || out.Octets(VCTxIBUnicast) != 900 {
		t.Error("vport counters")
	}
	q := QueryQCounterOut(make([]byte, QueryQCounterOutSize))
	q.Set(QCOutOfBuffer, 5)
	if q.Get(QCOutOfBuffer) != 5 || be32(q, 0x30) != 5 {
		t.Error("Q counters")
	}
	addr := RoCEAddr(make([]byte, RoCEAddrSize))
	copy(addr.MAC(), "\x02\x00\x00\x00\x00\x01")
	if addr[0x12] != 2 || addr[0x17] != 1 {
		t.Error("MAC of a RoCE address")
	}
	ads := ADS(make([]byte, ADSSize))
	copy(ads.RMAC(), "\x02\x00\x00\x00\x00\x01")
	if hi := be16(ads, 0x26); hi != 0x0200 || be32(ads, 0x28) != 1 {
		t.Error("MAC of an address path")
	}
}
