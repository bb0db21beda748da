package mkey

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
)

// Access is a set of rights that an access needs.
type Access uint8

// Rights, as the mkey context has them.
const (
	LocalRead Access = 1 << iota
	LocalWrite
	RemoteRead
	RemoteWrite
	RemoteAtomic
)

// Result of a check or a translation.
type Result uint8

// Results.
const (
	OK          Result = iota
	NoKey              // index unknown, or the variant byte differs
	Free               // the key exists and is not usable
	OtherPD            // of another protection domain
	OtherQP            // bound to another QP
	OutOfRange         // outside [start, start+len)
	NoRight            // a right is missing
	Absent             // an entry is not present
	Fault              // an entry is not present, or lacks a right, of a key whose pages come on demand
	NotModelled        // a kind of key that is not modelled
	NotFree            // the key is in use, and must not be
	NoMemory           // the entries of all keys would take more than MaxWords
	results
)

var resultNames = [results]string{"ok", "no such key", "free key", "key of another PD", "key of another QP", "outside the key's range", "right missing", "page not present", "page to be paged in", "kind of key not modelled", "key in use", "no memory for entries"}

// String returns the text form.
func (r Result) String() string {
	if r < results {
		return resultNames[r]
	}
	return fmt.Sprintf("Result(%d)", uint8(r))
}

// User is the queue that makes an access.
type User struct{ PD, QPN uint32 }

func rightsOf(c prm.MKC) Access {
	var a Access
	for _, r := range []struct {
		on bool
		a  Access
	}{{c.LR(), LocalRead}, {c.LW(), LocalWrite}, {c.RR(), RemoteRead}, {c.RW(), RemoteWrite}, {c.A(), RemoteAtomic}} {
		if r.on {
			a |= r.a
		}
	}
	return a
}
