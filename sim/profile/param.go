package profile

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/gpu"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// Kind says how a value is written.
type Kind uint8

// Kinds.
const (
	Time  Kind = iota // 120ns
	Size              // 4KiB
	Rate              // 100Gbps
	Freq              // 156.25MHz
	Count             // 16
	Hex               // 0x1019
	Bool              // true
	Word              // one of a list of words
)

var kindNames = [...]string{"time", "size", "rate", "frequency", "count", "number", "switch", "word"}

// String returns the text form.
func (k Kind) String() string { return kindNames[k] }

// kinds of the integer parameters that are not plain counts.
var kinds = map[string]Kind{
	"pcie.bandwidth": Rate, "hca.wire_rate": Rate, "link.bandwidth": Rate, "hca.core_clock": Freq,
	"cpu.cache_line": Size, "kernel.cache_line": Size, "kernel.page_size": Size, "kernel.net_mtu": Size,
	"pcie.mps": Size, "pcie.mrrs": Size, "pcie.rcb": Size,
	"pcie.write_header": Size, "pcie.read_header": Size, "pcie.cpl_header": Size,
	"hca.max_wqe_size_sq": Size, "hca.max_wqe_size_rq": Size, "hca.bf_reg_size": Size, "hca.bar_size": Size, "hca.memic_size": Size,
	"hca.tx_buffer": Size, "hca.wire_overhead": Size,
	"link.preamble": Size, "link.fcs": Size, "link.gap": Size, "link.min_frame": Size,
	"congestion.rpg_max_rate": Rate, "congestion.rpg_min_rate": Rate, "congestion.rpg_ai_rate": Rate, "congestion.rpg_hai_rate": Rate,
	"congestion.rate_to_set_on_first_cnp": Rate, "congestion.rpg_byte_reset": Size,
	"link.pfc_xoff": Size, "link.pfc_xon": Size, "link.pfc_classes": Hex,
	"switch.ecn_min": Size, "switch.ecn_max": Size, "switch.header_bytes": Size, "switch.buffer": Size, "ib.delimiters": Size,
	"gpu.memory": Size, "gpu.bar1": Size, "gpu.page": Size, "gpu.write_buffer": Size, "gpu.copy_rate": Rate, "gpu.switch_write": Rate, "gpu.switch_read": Rate,
	"gpu.root_write": Rate, "gpu.root_read": Rate, "gpu.socket_write": Rate, "gpu.socket_read": Rate,
	"kernel.pci_device": Hex, "kernel.pci_revision": Hex, "hca.vendor_part_id": Hex, "odp.rc": Hex, "odp.ud": Hex, "odp.xrc": Hex,
	"hca.port_cap_mask": Hex, "hca.port_cap_mask2": Hex,
}

// generations are the values of kernel.Generation.
var generations = []string{"dynamic", "static"}

// words are the parameters whose value is a word; the index in the list is the number that
// the unit has.
var words = map[string][]string{
	"uar.bf_conflict":   {"none", "serialize", "refetch"},
	"kernel.mkey_cache": {"lifo", "fifo", "none"},
	"kernel.paging":     {"6.2", "6.14", "5.16", "5.5", "5.0"},
	"kernel.max_qp_wr":  kernel.QPWRWords,
	"kernel.xrc":        {"6.1", "4.9", "3.2", "ofed-1.3", "proposal", "creator"},
	"kernel.generation": generations, "provider.generation": generations,
	"gpu.path":          gpu.PathWords,
	"hca.link_layer":    hca.LinkLayerWords,
	"hca.link_layers":   hca.LinkLayersWords,
	"hca.xrc_violation": hca.XRCViolationWords,
	"hca.atomic_index":  hca.AtomicIndexWords,
	"hca.pu_choice":     hca.PUChoiceWords,

	"hca.adaptive_schedule": hca.RetransScheduleWords,
	"hca.ib_ack_timer":      hca.IBAckTimerWords,
	"hca.cq_arm":            hca.CQArmWords,
	"ib.speed":              link.SpeedWords,
	"odp.srq_fault":         odp.SRQFaultWords,

	"congestion.cnp_scope": {"port", "destination", "qp"},
}

// names are the fields whose key does not follow from their name. A field of two
// has a key for each.
var names = map[string][]string{
	"MaxQPMCG": {"max_qp_mcg"}, "MaxQPWR": {"max_qp_wr"},
	"PUs": {"pus"}, "MKeyCache": {"mkey_cache"}, "BAR1": {"bar1"}, "ACS": {"acs"}, "IOMMU": {"iommu"}, "IOMMULatency": {"iommu_latency"}, "RoCEAdder": {"roce_adder"}, "RoCEAccl": {"roce_accl"}, "RoCEAdpRetransEn": {"roce_adp_retrans_en"}, "RoCESlowRestartEn": {"roce_slow_restart_en"},
	"IBAckTimer": {"ib_ack_timer"}, "VLs": {"vls"}, "CoreClockKHz": {"core_clock"},
	"MinTimeBetweenCNPs": {"min_time_between_cnps"}, "CNPDSCP": {"cnp_dscp"}, "ClampAfterTimeInc": {"clamp_tgt_rate_after_time_inc"},
	"RPGAIRate": {"rpg_ai_rate"}, "RPGHAIRate": {"rpg_hai_rate"}, "RateOnFirstCNP": {"rate_to_set_on_first_cnp"},
	"DCETCPG": {"dce_tcp_g"}, "DCETCPRTT": {"dce_tcp_rtt"}, "RateReducePeriod": {"rate_reduce_monitor_period"}, "InitialAlpha": {"initial_alpha_value"},
	"NackGenerate": {"nack_generate_write", "nack_generate_read"},
	"NackReact":    {"nack_react_write", "nack_react_read"},
}

// param is one value of a profile: where it lives and how it is written.
type param struct {
	key   string // section.name
	field string // its name in Go
	kind  Kind
	v     reflect.Value
}

// section is a part of a profile: the parameters of a unit.
type section struct {
	name string
	v    any // pointer to the unit's Params
}

func (p *Profile) sections() []section {
	return []section{
		{"cpu", &p.CPU}, {"pcie", &p.PCIe}, {"hca", &p.HCA}, {"uar", &p.HCA.UAR}, {"commands", &p.HCA.Commands}, {"congestion", &p.HCA.Congestion}, {"odp", &p.HCA.ODP},
		{"link", &p.Link}, {"ib", &p.Link.IB}, {"switch", &p.Switch}, {"kernel", &p.Kernel}, {"gpu", &p.GPU}, {"provider", &p.Provider},
	}
}

// params are all values, in the order of the sections and of their fields.
func (p *Profile) params() []param {
	sections := p.sections()
	ps := make([]param, 0, len(layout))
	for _, l := range layout {
		ps = append(ps, l.in(sections))
	}
	return ps
}

// param is the value of key.
func (p *Profile) param(key string) (param, bool) {
	for _, l := range layout {
		if l.key == key {
			return l.in(p.sections()), true
		}
	}
	return param{}, false
}

// place says which value of any profile a key means.
type place struct {
	key, name string // name is the field's
	kind      Kind
	section   int
	field     int
	element   int // of a field that is an array, else -1
}

// in is the value of the place in a profile of these sections.
func (l *place) in(sections []section) param {
	v := reflect.ValueOf(sections[l.section].v).Elem().Field(l.field)
	if l.element >= 0 {
		v = v.Index(l.element)
	}
	return param{key: l.key, field: l.name, kind: l.kind, v: v}
}

// layout lists the places of all values: it follows from the types of the units' parameters.
var layout = places()

func places() (all []*place) {
	for s, sec := range new(Profile).sections() {
		t := reflect.TypeOf(sec.v).Elem()
		for i := range t.NumField() {
			f := t.Field(i)
			add := func(name string, element int, t reflect.Type) {
				key := sec.name + "." + name
				all = append(all, &place{key, f.Name, kindOf(key, t), s, i, element})
			}
			switch {
			case f.Type.Kind() == reflect.Struct: // a section of its own
			case f.Tag.Get("profile") == "-": // another value decides
			case f.Type.Kind() == reflect.Array:
				if len(names[f.Name]) != f.Type.Len() {
					panic(fmt.Sprintf("profile: field %s of section %s needs %d keys in names, of sim/profile/param.go", f.Name, sec.name, f.Type.Len()))
				}
				for k := range f.Type.Len() {
					add(names[f.Name][k], k, f.Type.Elem())
				}
			case names[f.Name] != nil:
				add(names[f.Name][0], -1, f.Type)
			default:
				add(snake(f.Name), -1, f.Type)
			}
		}
	}
	return all
}

func kindOf(key string, t reflect.Type) Kind {
	k, given := kinds[key]
	switch {
	case given:
		return k
	case words[key] != nil:
		return Word
	case t == reflect.TypeFor[sim.Time]():
		return Time
	case t.Kind() == reflect.Bool:
		return Bool
	}
	return Count
}

// snake is the key of a field: LogMaxQPSize is log_max_qp_size.
func snake(name string) string {
	var b strings.Builder
	r := []rune(name)
	for i, c := range r {
		if i > 0 && unicode.IsUpper(c) && (!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// text is the value as it is written in a file.
func (q param) text() string {
	if q.kind == Bool {
		return strconv.FormatBool(q.v.Bool())
	}
	n := uint64(0)
	if q.v.CanInt() {
		n = uint64(q.v.Int())
	} else {
		n = q.v.Uint()
	}
	switch q.kind {
	case Time:
		return input.FormatTime(int64(n))
	case Size:
		return input.FormatSize(n)
	case Rate:
		return input.FormatRate(n)
	case Freq:
		return input.FormatFrequency(n)
	case Hex:
		return fmt.Sprintf("%#x", n)
	case Word:
		if w := words[q.key]; n < uint64(len(w)) {
			return w[n]
		}
	}
	return strconv.FormatUint(n, 10)
}

// set parses text into the value.
func (q param) set(text string) error {
	if q.kind == Bool {
		b := text == "true"
		if !b && text != "false" {
			return fmt.Errorf("%q is not true or false", text)
		}
		q.v.SetBool(b)
		return nil
	}
	n, err := q.parse(text)
	if err != nil {
		return err
	}
	if q.v.CanInt() {
		if n > math.MaxInt64 || q.v.OverflowInt(int64(n)) {
			return fmt.Errorf("%q is too large", text)
		}
		q.v.SetInt(int64(n))
		return nil
	}
	if q.v.OverflowUint(n) {
		return fmt.Errorf("%q is too large", text)
	}
	q.v.SetUint(n)
	return nil
}

func (q param) parse(text string) (uint64, error) {
	switch q.kind {
	case Time:
		t, err := input.ParseTime(text)
		return uint64(t), err
	case Size:
		return input.ParseSize(text)
	case Rate:
		return input.ParseRate(text)
	case Freq:
		return input.ParseFrequency(text)
	case Word:
		w := words[q.key]
		if i := slices.Index(w, text); i >= 0 {
			return uint64(i), nil
		}
		return 0, fmt.Errorf("%q is not one of %s%s", text, strings.Join(w, ", "), input.Suggest(text, w))
	}
	return input.Whole(text)
}

// Words are what the value of a key may be, if it is a word.
func Words(key string) []string { return slices.Clone(words[key]) }
