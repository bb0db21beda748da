package prm

import (
	"bufio"
	"fmt"
	mathbits "math/bits"
	"math/rand"
	"os"
	"reflect"
	"strings"
	"testing"
)

// views are all byte views with a length long enough for every field, and whether
// fields may share bits (unions by type of entry).
var views = []struct {
	v     any
	size  int
	union bool
}{
	{QPC(nil), QPCSize, false}, {ADS(nil), ADSSize, false}, {CQC(nil), CQCSize, false}, {EQC(nil), EQCSize, false},
	{MKC(nil), MKCSize, false}, {HCACap(nil), HCACapSize, false}, {AtomicCap(nil), 0x100, false}, {RoCECap(nil), 0x100, false},
	{NICVportContext(nil), NICVportContextSize, false}, {RoCEAddr(nil), RoCEAddrSize, false},
	{CmdIn(nil), CmdInSize, false}, {CmdOut(nil), CmdOutSize, false},
	{CtrlSegment(nil), CtrlSegmentSize, false}, {RaddrSegment(nil), RaddrSegmentSize, false}, {AtomicSegment(nil), AtomicSegmentSize, false},
	{XRCSegment(nil), XRCSegmentSize, false}, {DataSegment(nil), DataSegmentSize, false}, {SRQNextSegment(nil), SRQNextSegmentSize, false},
	{AVSegment(nil), AVSegmentSize, false}, {UMRCtrlSegment(nil), UMRCtrlSegmentSize, false}, {KLM(nil), KLMSize, false},
	{CQE64(nil), CQE64Size, true}, {EQE(nil), EQESize, true},
	{QPDBRec(nil), DBRecSize, false}, {SRQDBRec(nil), DBRecSize, false}, {CQDBRec(nil), DBRecSize, false},
	{CreateQPIn(nil), CreateQPInSize, true}, {CreateQPOut(nil), CreateQPOutSize, false}, {DestroyQPIn(nil), DestroyQPInSize, false},
	{ModifyQPIn(nil), ModifyQPInSize, false}, {ModifyQPOut(nil), ModifyQPOutSize, false}, {Cmd2ErrQPIn(nil), Cmd2ErrQPInSize, false},
	{Cmd2RstQPIn(nil), Cmd2RstQPInSize, false}, {QueryQPIn(nil), QueryQPInSize, false}, {QueryQPOut(nil), QueryQPOutSize, false},
	{QueryHCACapIn(nil), QueryHCACapInSize, false}, {QueryHCACapOut(nil), QueryHCACapOutSize, false}, {SetHCACapIn(nil), SetHCACapInSize, false},
	{InitHCAIn(nil), InitHCAInSize, false}, {TeardownHCAIn(nil), TeardownHCAInSize, false}, {TeardownHCAOut(nil), TeardownHCAOutSize, false},
	{EnableHCAIn(nil), EnableHCAInSize, false}, {DisableHCAIn(nil), DisableHCAInSize, false},
	{QueryPagesIn(nil), QueryPagesInSize, false}, {QueryPagesOut(nil), QueryPagesOutSize, false},
	{ManagePagesIn(nil), ManagePagesInSize, false}, {ManagePagesOut(nil), ManagePagesOutSize, false},
	{QueryISSIOut(nil), QueryISSIOutSize, false}, {SetISSIIn(nil), SetISSIInSize, false}, {QueryAdapterOut(nil), QueryAdapterOutSize, false},
	{CreateMKeyIn(nil), CreateMKeyInSize, true}, {CreateMKeyOut(nil), CreateMKeyOutSize, false}, {QueryMKeyIn(nil), QueryMKeyInSize, false},
	{QueryMKeyOut(nil), QueryMKeyOutSize, false}, {DestroyMKeyIn(nil), DestroyMKeyInSize, false},
	{QuerySpecialContextsOut(nil), QuerySpecialContextsOutSize, false}, {ChangeMKeyIn(nil), ChangeMKeyInSize, false},
	{DeviceMemCap(nil), 0x100, false}, {AllocMemicIn(nil), AllocMemicInSize, false}, {AllocMemicOut(nil), AllocMemicOutSize, false},
	{DeallocMemicIn(nil), DeallocMemicInSize, false},
	{CreateEQIn(nil), CreateEQInSize, true}, {CreateEQOut(nil), CreateEQOutSize, false}, {DestroyEQIn(nil), DestroyEQInSize, false},
	{QueryEQIn(nil), QueryEQInSize, false}, {QueryEQOut(nil), QueryEQOutSize, true},
	{CreateCQIn(nil), CreateCQInSize, true}, {CreateCQOut(nil), CreateCQOutSize, false}, {DestroyCQIn(nil), DestroyCQInSize, false},
	{QueryCQIn(nil), QueryCQInSize, false}, {QueryCQOut(nil), QueryCQOutSize, false}, {ModifyCQIn(nil), ModifyCQInSize, true},
	{QueryVportStateIn(nil), QueryVportStateInSize, false}, {QueryVportStateOut(nil), QueryVportStateOutSize, false},
	{QueryNICVportContextIn(nil), QueryNICVportContextInSize, false}, {QueryNICVportContextOut(nil), QueryNICVportContextOutSize, false},
	{ModifyNICVportContextIn(nil), ModifyNICVportContextInSize, false},
	{QueryRoCEAddressIn(nil), QueryRoCEAddressInSize, false}, {QueryRoCEAddressOut(nil), QueryRoCEAddressOutSize, false},
	{SetRoCEAddressIn(nil), SetRoCEAddressInSize, false},
	{QueryVportCounterIn(nil), QueryVportCounterInSize, false},
	{HCAVportContext(nil), HCAVportContextSize, false}, {QueryHCAVportContextIn(nil), QueryHCAVportContextInSize, false},
	{QueryHCAVportContextOut(nil), QueryHCAVportContextOutSize, false}, {QueryHCAVportGIDIn(nil), QueryHCAVportGIDInSize, false},
	{QueryHCAVportGIDOut(nil), QueryHCAVportGIDOutSize + 32, false}, {QueryHCAVportPKeyIn(nil), QueryHCAVportPKeyInSize, false},
	{AllocQCounterOut(nil), AllocQCounterOutSize, false}, {DeallocQCounterIn(nil), DeallocQCounterInSize, false},
	{QueryQCounterIn(nil), QueryQCounterInSize, false},
	{AttachToMCGIn(nil), AttachToMCGInSize, false}, {DetachFromMCGIn(nil), DetachFromMCGInSize, false},
	{AllocPDOut(nil), AllocPDOutSize, false}, {DeallocPDIn(nil), DeallocPDInSize, false},
	{AllocUAROut(nil), AllocUAROutSize, false}, {DeallocUARIn(nil), DeallocUARInSize, false},
	{WQ(nil), WQSize, false}, {RMPC(nil), RMPCSize, false}, {CreateRMPIn(nil), CreateRMPInSize, false}, {CreateRMPOut(nil), CreateRMPOutSize, false},
	{ModifyRMPIn(nil), ModifyRMPInSize, false}, {DestroyRMPIn(nil), DestroyRMPInSize, false},
	{QueryRMPIn(nil), QueryRMPInSize, false}, {QueryRMPOut(nil), QueryRMPOutSize, false},
	{AllocXRCDOut(nil), AllocXRCDOutSize, false}, {DeallocXRCDIn(nil), DeallocXRCDInSize, false},
	{AllocTransportDomainOut(nil), AllocTransportDomainOutSize, false}, {DeallocTransportDomainIn(nil), DeallocTransportDomainInSize, false},
}

// wholeWord are the setters that write the reserved bits of their word as zero, as
// the writer of the word does.
var wholeWord = map[string]bool{
	"XRCSegment.SRQN": true, "CQE64.SRQNUIdx": true, "CQDBRec.CI": true,
	"QPDBRec.Recv": true, "QPDBRec.Send": true, "SRQDBRec.Count": true,
}

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

// Offsets and widths are those of the kernel's structures (testdata/ifc.txt).
func TestLayoutAgainstKernelHeader(t *testing.T) {
	file, err := os.Open("testdata/ifc.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	byName := map[string]reflect.Value{}
	for _, v := range views {
		typ := reflect.TypeOf(v.v)
		byName[typ.Name()] = reflect.ValueOf(make([]byte, v.size)).Convert(typ)
	}
	counters := map[string]QCounter{}
	for _, c := range QCounterNames {
		counters[c.Name] = c.Counter
	}
	n := 0
	for sc := bufio.NewScanner(file); sc.Scan(); {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		var view, name string
		var off, width int
		if _, err := fmt.Sscan(sc.Text(), &view, &name, &off, &width); err != nil {
			t.Fatal(sc.Text(), err)
		}
		n++
		if view == "QCounter" {
			if int(counters[name]) != off/8 || width != 32 {
				t.Errorf("counter %s at %#x, want %#x", name, int(counters[name]), off/8)
			}
			continue
		}
		v, ok := byName[view]
		if !ok {
			t.Errorf("no view %s", view)
			continue
		}
		checkField(t, v, view, name, off, width)
	}
	if n < 500 {
		t.Errorf("only %d fields compared", n)
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
