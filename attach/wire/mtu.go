package wire

import (
	"fmt"

	"github.com/rdmasim/rdmasim/roce"
)

// fitting says which path MTU an interface's MTU carries.
func fitting(mtu int) string {
	for m := roce.MTU4096; m >= roce.MTU256; m-- {
		if m.Bytes()+Headers <= mtu {
			return fmt.Sprintf("a path MTU of %d fits (perftest: -m %d)", m.Bytes(), m.Bytes())
		}
	}
	return fmt.Sprintf("no path MTU fits, for the smallest needs %d", roce.MTU256.Bytes()+Headers)
}
