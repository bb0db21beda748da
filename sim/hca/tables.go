package hca

import (
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/uar"
)

// tables are the device's objects by their numbers, and who hands out the numbers.
type tables struct {
	uars     []*uar.Page // nil: not allocated
	uarUsers []int32
	uarNums  numbers
	pds      []int32 // users, -1: not allocated
	pdNums   numbers
	xrcds    []int32 // SRQs that are in it, -1: not allocated
	xrcdNums numbers
	tds      []int32 // TISs and TIRs, -1: not allocated
	tdNums   numbers
	keys     *mkey.Table
	keyNums  numbers
	qsets    []*qset
	qsetNums numbers
	umems    []*umem
	umemNums numbers
}

// First numbers: the pages of the init segment, and numbers with a meaning of
// their own, are never handed out.
const (
	firstUAR  = 4
	firstMkey = 8
	firstQPN  = 0x40
)

// newTables makes empty tables. UAR pages end where memory on the device begins.
func newTables(p *Params, memory uint64) tables {
	pages := uint32(p.BARSize / pageBytes)
	return tables{
		uars: make([]*uar.Page, pages), uarUsers: make([]int32, pages),
		keys:     mkey.NewTable(1 << min(p.LogMaxMkey, 12)),
		uarNums:  numbers{next: firstUAR, limit: uint32(memory / pageBytes)},
		pdNums:   numbers{next: 1, limit: 1 << p.LogMaxPD},
		xrcdNums: numbers{next: 1, limit: 1 << p.LogMaxXRCD},
		tdNums:   numbers{next: 1, limit: 1 << p.LogMaxPD},
		keyNums:  numbers{next: firstMkey, limit: 1 << p.LogMaxMkey},
		qsetNums: numbers{next: 1, limit: uint32(p.MaxQCounters) + 1},
		umemNums: numbers{next: 1, limit: 1 << p.LogMaxMkey},
	}
}

// Fixed keys of QUERY_SPECIAL_CONTEXTS, below the first that is handed out. An
// access with one of the others than the first finds no key.
const (
	dumpFillKey = 2 << 8
	reservedKey = 3 << 8
	nullKey     = 4 << 8
)
