// Package profile composes the parameters of all units of a simulated machine from
// YAML: how fast a core stores to a register, how long a PCIe read takes, what the
// device can do and what the kernel costs. Each value names its source, and the
// units know nothing of profiles: they own plain Params.
//
// A file has a section for each unit (cpu, pcie, hca, uar, commands, congestion, odp, link, ib,
// switch, kernel, gpu, provider) and in it, by the name of the parameter, a value, a source, and a
// reason where the source is one of three words: "assumed" (no source is known), "fitted" (tuned
// until a figure of rdmasim validate came out, which check names) or "hypothesis" (a mechanism
// without a published explanation; every result lists those that are on; with check, the value was
// fitted too). A device of which only the control path is known says so by not_calibrated, with a
// reason; results then say it beside the hypotheses. A file may extend another and then gives only
// what differs. The result must have a value for every parameter: none has a default in code.
package profile

import (
	"maps"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/gpu"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/pcie"
	"github.com/rdmasim/rdmasim/sim/provider"
)

// Profile is a complete set of parameters.
type Profile struct {
	Name, Title string
	// Extends is the stored profile, or a part of it, that the file takes other values from; empty:
	// none.
	Extends string
	// NotCalibrated says why no rate or time of the profile is evidence; empty: its checks are in
	// rdmasim validate.
	NotCalibrated string

	CPU      cpu.Params
	PCIe     pcie.Params
	HCA      hca.Params // with its UAR pages and command times
	Link     link.Params
	Switch   link.SwitchParams
	Kernel   kernel.Params
	GPU      gpu.Params
	Provider provider.Params

	origins map[string]origin // by key
}

// origin is where a value comes from.
type origin struct {
	source, reason string
	check          string // figure that it was fitted to
	hypothesis     bool
	doc            *input.Doc // nil for an override
}

// Default is the profile of a run that names none.
const Default = "connectx-5"

// Clone is a copy that can be overridden apart.
func (p *Profile) Clone() *Profile {
	c := *p
	c.origins = maps.Clone(p.origins)
	return &c
}

// Sources that need a reason.
const (
	Assumed    = "assumed"
	Fitted     = "fitted"
	Hypothesis = "hypothesis"
	// Override is the source of a value that Set gave.
	Override = "override"
)
