package rule

import "fmt"

// TableBit is one thing that is wrong in the table of QP transitions (ib_core's qp_state_table): of
// a type of QP, whether there is a way from a state to another, or what is said of one attribute on
// it. The zero value is nothing.
type TableBit struct {
	From, To  uint8  // verbs.QPState
	Type      uint8  // verbs.QPType
	Attribute uint32 // a bit of verbs.QPAttrMask; 0: the transition itself
	As        TableClass
}

// TableClass is what the table says of an attribute: a transition that is Refused is not there, and
// any other is.
type TableClass uint8

// The classes.
const (
	Refused TableClass = iota + 1
	Optional
	Needed
)

// String returns the text form.
func (c TableClass) String() string {
	switch c {
	case Refused:
		return "refused"
	case Optional:
		return "optional"
	case Needed:
		return "needed"
	}
	return fmt.Sprintf("TableClass(%d)", uint8(c))
}
