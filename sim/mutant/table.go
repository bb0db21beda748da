package mutant

import (
	"fmt"
	"math/bits"
	"strings"

	ibcore "github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// tablePrefix begins the name of each mutant of the table of QP transitions.
const tablePrefix = "table-"

// tableEvery is how many of these mutants there are for one that is listed with the others:
// TableBits has all, and Find knows them.
const tableEvery = 149

// tableTypes are the types of QP that the suite brings from state to state.
var tableTypes = []verbs.QPType{verbs.QPTRC, verbs.QPTUC, verbs.QPTUD, verbs.QPTXRCSend, verbs.QPTXRCRecv}

// table are the mutants of the table that are listed: a fixed part of all.
var table = partOf(TableBits())

func partOf(all []Mutant) (some []Mutant) {
	for i := tableEvery / 2; i < len(all); i += tableEvery {
		some = append(some, all[i])
	}
	return some
}

// TableBits are the mutants of which each has one thing wrong in the table of QP transitions: a
// transition is missing or there is one too many, or an attribute of one is refused, optional or
// needed where it should not be. Those that nobody could notice are left out.
func TableBits() []Mutant {
	var all []Mutant
	for _, t := range tableTypes {
		for from := verbs.QPSReset; from <= verbs.QPSErr; from++ {
			for to := verbs.QPSReset; to <= verbs.QPSErr; to++ {
				if from != verbs.QPSSQE && to != verbs.QPSSQE { // no request leads there, and a QP of mlx5 is not found in it
					all = append(all, cellBits(t, from, to)...)
				}
			}
		}
	}
	return all
}

// cellBits are those of one cell.
func cellBits(t verbs.QPType, from, to verbs.QPState) (all []Mutant) {
	needed, optional, ok := ibcore.Transition(t, from, to)
	drained := from == verbs.QPSSQD || to == verbs.QPSSQD
	if drained && (t == verbs.QPTXRCSend || t == verbs.QPTXRCRecv) { // QPS-034 records what devices do
		return nil
	}
	add := func(attribute verbs.QPAttrMask, as rule.TableClass) {
		b := rule.TableBit{From: uint8(from), To: uint8(to), Type: uint8(t), Attribute: uint32(attribute), As: as}
		m := Mutant{Name: tableName(t, b), Area: "QPS", Rule: tableRule(t, b), Killers: []string{"QPS-002", "QPS-003", "QPS-042"}, bit: b}
		switch {
		case drained:
			m.Profile, m.Killers = "generic-roce", []string{"QPS-043"}
		case attribute == 0:
			m.Killers = []string{"QPS-001", "QPS-004", "QPS-005", "QPS-006", "QPS-042"}
		}
		all = append(all, m)
	}
	if !ok { // a way that is missing has no command of mlx5, or the device refuses it
		return nil
	}
	add(0, rule.Refused)
	if t == verbs.QPTUC && from == verbs.QPSSQD && to == verbs.QPSSQD { // the kernel adds attributes there by itself
		return all
	}
	for n := range bits.Len32(uint32(attributesOf(t, from))) {
		bit := verbs.QPAttrMask(1) << n
		switch {
		case attributesOf(t, from)&bit == 0:
		case needed&bit != 0:
			if bit != verbs.QPMaskPathMTU { // the device has no MTU of 0 bytes
				add(bit, rule.Optional)
			}
		case optional&bit != 0:
			add(bit, rule.Needed)
			if bit != verbs.QPMaskAltPath {
				add(bit, rule.Refused)
			}
		case bit == verbs.QPMaskAltPath: // RoCE refuses it in any case
		case from == verbs.QPSSQD && to == verbs.QPSSQD: // the device checks what may change by itself
		case bit == verbs.QPMaskAV && to != verbs.QPSRTR && (needed|optional)&verbs.QPMaskPort == 0: // the kernel adds the port, which is refused
		default:
			add(bit, rule.Optional)
		}
	}
	return all
}

// attributesOf are the attributes of a type that the table decides on: the kernel takes those of
// the other direction of XRC out before, and refuses CUR_STATE by itself in some states.
func attributesOf(t verbs.QPType, from verbs.QPState) verbs.QPAttrMask {
	mask := verbs.QPAttrMask(1<<21-1)&^verbs.QPMaskState | verbs.QPMaskRateLimit
	switch t {
	case verbs.QPTXRCSend:
		mask &^= verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	case verbs.QPTXRCRecv:
		mask &^= verbs.QPMaskMaxQPRdAtomic | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry
	}
	if from == verbs.QPSReset || from == verbs.QPSInit || from == verbs.QPSErr {
		mask &^= verbs.QPMaskCurState
	}
	return mask
}

func tableName(t verbs.QPType, b rule.TableBit) string {
	name := fmt.Sprintf("%s%s-%v-%v", tablePrefix, typeName(t), verbs.QPState(b.From), verbs.QPState(b.To))
	if b.Attribute != 0 {
		name += fmt.Sprintf("-bit-%d", bits.TrailingZeros32(b.Attribute))
	}
	return strings.ToLower(name + "-" + b.As.String())
}

// typeName is the name of a type as a word.
func typeName(t verbs.QPType) string {
	switch t {
	case verbs.QPTRC:
		return "rc"
	case verbs.QPTUC:
		return "uc"
	case verbs.QPTUD:
		return "ud"
	case verbs.QPTXRCSend:
		return "xrcsend"
	}
	return "xrcrecv"
}

// tableRule is the rule that the mutant breaks.
func tableRule(t verbs.QPType, b rule.TableBit) string {
	way := fmt.Sprintf("%s from %v to %v", strings.ToUpper(typeName(t)), verbs.QPState(b.From), verbs.QPState(b.To))
	if b.Attribute == 0 {
		if b.As == rule.Refused {
			return "There is a way of " + way
		}
		return "There is no way of " + way
	}
	return fmt.Sprintf("Bit %d of the attributes is not %v of %s", bits.TrailingZeros32(b.Attribute), b.As, way)
}
