package kernel

import (
	"math/bits"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// The rules of core/verbs.c, written down a second time and in another form: a line for
// each cell that exists, "FROM TO: TYPES must REQUIRED may OPTIONAL; ...", types not
// named have neither. The test below reads it; the table of the package is not consulted.
const coreRules = `
RESET RESET:
RESET INIT: RC UC XI XT must PKEY PORT ACCESS; UD must PKEY PORT QKEY; RAW must PORT
INIT RESET:
INIT ERR:
INIT INIT: RC UC XI XT may PKEY PORT ACCESS; UD may PKEY PORT QKEY
INIT RTR: RC XT must AV MTU DQPN RQPSN DRD RNRT may ALT ACCESS PKEY; UC XI must AV MTU DQPN RQPSN may ALT ACCESS PKEY; UD may PKEY QKEY
RTR RESET:
RTR ERR:
RTR RTS: RC must TMO RETRY RNRR SQPSN RD may CUR ALT ACCESS RNRT MIG; XI must TMO RETRY RNRR SQPSN RD may CUR ALT ACCESS MIG; XT must TMO SQPSN may CUR ALT ACCESS RNRT MIG; UC must SQPSN may CUR ALT ACCESS MIG; UD must SQPSN may CUR QKEY; RAW may RATE
RTS RESET:
RTS ERR:
RTS RTS: RC XT may CUR ALT ACCESS RNRT MIG; XI UC may CUR ALT ACCESS MIG; UD may CUR QKEY; RAW may RATE
RTS SQD: RC UC UD XI XT may SQDN
SQD RESET:
SQD ERR:
SQD RTS: RC XT may CUR ALT ACCESS RNRT MIG; XI UC may CUR ALT ACCESS MIG; UD may CUR QKEY
SQD SQD: RC may PORT AV TMO RETRY RNRR RD DRD ALT ACCESS PKEY RNRT MIG; XI may PORT AV TMO RETRY RNRR RD ALT ACCESS PKEY MIG; XT may PORT AV TMO DRD ALT ACCESS PKEY RNRT MIG; UC may AV ALT ACCESS PKEY MIG; UD may PKEY QKEY
SQE RESET:
SQE ERR:
SQE RTS: UC may CUR ACCESS; UD may CUR QKEY
ERR RESET:
ERR ERR:
`

var ruleBits = map[string]verbs.QPAttrMask{
	"CUR": 1 << 1, "SQDN": 1 << 2, "ACCESS": 1 << 3, "PKEY": 1 << 4, "PORT": 1 << 5, "QKEY": 1 << 6, "AV": 1 << 7,
	"MTU": 1 << 8, "TMO": 1 << 9, "RETRY": 1 << 10, "RNRR": 1 << 11, "RQPSN": 1 << 12, "RD": 1 << 13, "ALT": 1 << 14,
	"RNRT": 1 << 15, "SQPSN": 1 << 16, "DRD": 1 << 17, "MIG": 1 << 18, "DQPN": 1 << 20, "RATE": 1 << 25,
}

var ruleTypes = map[string]service{"RC": svcRC, "UC": svcUC, "UD": svcUD, "XI": svcXRCSend, "XT": svcXRCRecv, "RAW": svcRaw}

var ruleStates = map[string]verbs.QPState{
	"RESET": 0, "INIT": 1, "RTR": 2, "RTS": 3, "SQD": 4, "SQE": 5, "ERR": 6,
}

type ruleCell struct{ must, may verbs.QPAttrMask }

func parseRules(t *testing.T) map[[2]verbs.QPState]*[services]ruleCell {
	t.Helper()
	rules := map[[2]verbs.QPState]*[services]ruleCell{}
	for line := range strings.Lines(strings.TrimSpace(coreRules)) {
		head, body, _ := strings.Cut(strings.TrimSpace(line), ":")
		ft := strings.Fields(head)
		cells := &[services]ruleCell{}
		rules[[2]verbs.QPState{ruleStates[ft[0]], ruleStates[ft[1]]}] = cells
		for part := range strings.SplitSeq(body, ";") {
			var types []service
			var cell ruleCell
			into := (*verbs.QPAttrMask)(nil)
			for _, w := range strings.Fields(part) {
				switch s, isType := ruleTypes[w]; {
				case isType:
					types = append(types, s)
				case w == "must":
					into = &cell.must
				case w == "may":
					into = &cell.may
				case ruleBits[w] != 0:
					*into |= ruleBits[w]
				default:
					t.Fatalf("rules: %q in %q", w, line)
				}
			}
			for _, s := range types {
				cells[s] = cell
			}
		}
	}
	return rules
}

// Every pair of states, every type: the empty mask, the least legal mask, that mask
// less each bit, that mask with each other bit, and every set of optional bits at once.
func TestModifyTable(t *testing.T) {
	rules := parseRules(t)
	checks := 0
	for from := verbs.QPSReset; from <= verbs.QPSErr; from++ {
		for to := verbs.QPSReset; to <= verbs.QPSErr; to++ {
			for s := svcRC; s < services; s++ {
				cell, valid := ruleCell{}, false
				if c := rules[[2]verbs.QPState{from, to}]; c != nil {
					cell, valid = c[s], true
				}
				check := func(mask verbs.QPAttrMask) {
					curOK := mask&(1<<1) == 0 || from == verbs.QPSRTR || from == verbs.QPSRTS || from == verbs.QPSSQD || from == verbs.QPSSQE
					want := valid && curOK && bits.OnesCount32(uint32(cell.must&^mask)) == 0 && mask&^(1|cell.must|cell.may) == 0
					if got := modifyIsOK(from, to, s, mask); got != want {
						t.Errorf("%v to %v, service %d, mask %#x: %v, want %v", from, to, s, uint32(mask), got, want)
					}
					checks++
				}
				for _, base := range []verbs.QPAttrMask{0, 1, 1 | cell.must, 1 | cell.must | cell.may, cell.must} {
					check(base)
					for b := range 32 {
						check(base ^ 1<<b)
					}
				}
			}
		}
	}
	if checks != 7*7*6*5*33 {
		t.Errorf("%d checks", checks)
	}
}
