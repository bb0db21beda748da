package conformance

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rdmasim/rdmasim/conformance/async"
	"github.com/rdmasim/rdmasim/conformance/atom"
	"github.com/rdmasim/rdmasim/conformance/bf"
	"github.com/rdmasim/rdmasim/conformance/cm"
	"github.com/rdmasim/rdmasim/conformance/comp"
	"github.com/rdmasim/rdmasim/conformance/cq"
	"github.com/rdmasim/rdmasim/conformance/dev"
	"github.com/rdmasim/rdmasim/conformance/dmabuf"
	"github.com/rdmasim/rdmasim/conformance/dv"
	"github.com/rdmasim/rdmasim/conformance/errs"
	"github.com/rdmasim/rdmasim/conformance/ib"
	"github.com/rdmasim/rdmasim/conformance/mr"
	"github.com/rdmasim/rdmasim/conformance/mw"
	"github.com/rdmasim/rdmasim/conformance/odp"
	"github.com/rdmasim/rdmasim/conformance/pd"
	"github.com/rdmasim/rdmasim/conformance/perf"
	"github.com/rdmasim/rdmasim/conformance/post"
	"github.com/rdmasim/rdmasim/conformance/qps"
	"github.com/rdmasim/rdmasim/conformance/random"
	"github.com/rdmasim/rdmasim/conformance/raw"
	"github.com/rdmasim/rdmasim/conformance/rc"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/conformance/srq"
	"github.com/rdmasim/rdmasim/conformance/td"
	"github.com/rdmasim/rdmasim/conformance/uar"
	"github.com/rdmasim/rdmasim/conformance/uc"
	"github.com/rdmasim/rdmasim/conformance/ud"
	"github.com/rdmasim/rdmasim/conformance/wire"
	"github.com/rdmasim/rdmasim/conformance/xrc"
)

// registrars register the cases of the areas that have code.
var registrars = []func(*spec.Suite){
	dev.Register, pd.Register, cq.Register, mr.Register,
	td.Register, uar.Register, bf.Register, qps.Register, post.Register, rc.Register, atom.Register, errs.Register,
	uc.Register, ud.Register,
	comp.Register, async.Register,
	srq.Register, mw.Register, wire.Register, perf.Register, ib.Register, odp.Register, xrc.Register, cm.Register, dmabuf.Register, dv.Register, raw.Register, random.Register,
}

// Suite returns every case that has code.
func Suite() *spec.Suite {
	s := &spec.Suite{}
	for _, r := range registrars {
		r(s)
	}
	return s
}

// Item is a catalogue entry with its code.
type Item struct {
	Entry Entry
	Case  spec.Case
}

// Items joins the suite with the catalogue, in the catalogue's order. It is an error if an ID is
// unknown or registered twice.
func Items(s *spec.Suite) ([]Item, error) {
	cat, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	errs := s.Errs()
	var out []Item
	for _, c := range s.Cases() {
		e, ok := cat.Find(c.ID)
		if !ok {
			errs = append(errs, fmt.Errorf("%s: case %s is not in the catalogue; a new one gets a row at the end of its area in conformance/catalogue.yaml", c.Where, c.ID))
			continue
		}
		out = append(out, Item{e, c})
	}
	slices.SortFunc(out, func(a, b Item) int { return cat.position(a.Entry.ID) - cat.position(b.Entry.ID) })
	return out, errors.Join(errs...)
}
