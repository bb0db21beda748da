//go:build hw

package mlx5

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/fault"
	"github.com/rdmasim/rdmasim/hw/wire"
	"github.com/rdmasim/rdmasim/verbs"
)

// wireNeeds are the tokens of cases for which this program forwards the frames between the nodes.
// For others the kernel forwards them, which is faster.
var wireNeeds = []string{"tap", "inj", "linkctl"}

// wired reports whether the link can be taken over.
func (s *Setup) wired() bool { return s.link[0] != "" && len(s.nodes) > 1 }

// TakeWire takes the link over for a case with such needs, or for a plan that asks for it.
func (tb *Testbed) TakeWire(needs []string, seed uint64, p *fault.Plan) error {
	planned := p != nil && onWire(p)
	if !tb.setup.wired() || !planned && !slices.ContainsFunc(needs, func(n string) bool { return slices.Contains(wireNeeds, n) }) {
		return nil
	}
	w, err := wire.Open(tb.setup.link[0], tb.setup.link[1], tb.began, seed)
	if err != nil {
		return err
	}
	tb.wire = w
	return nil
}

// Wire is the link between the nodes, where a case asked for it.
func (tb *Testbed) Wire() verbs.Wire {
	if tb.wire == nil {
		return nil
	}
	return tb.wire
}

// parseLink reads "A,B": the interfaces behind the first and the second node.
func parseLink(s string) (link [2]string, err error) {
	if s == "" {
		return link, nil
	}
	a, b, ok := strings.Cut(s, ",")
	if !ok || a == "" || b == "" {
		return link, fmt.Errorf("wire %q: two interfaces are meant, such as w0,w1: those behind the first and the second device", s)
	}
	return [2]string{a, b}, nil
}
