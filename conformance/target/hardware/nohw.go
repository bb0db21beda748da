//go:build !hw

package hardware

import (
	"errors"

	"github.com/rdmasim/rdmasim/conformance/spec"
)

// New refuses: this program was built without the tag hw.
func New(Config) (spec.Target, error) {
	return nil, errors.New("the target of hardware needs a program built with cgo and the tag hw (CGO_ENABLED=1 go build -tags hw) and libibverbs-dev")
}

// Player does nothing: this program was built without the tag hw.
func Player() {}
