package report

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// A baseline is the record of a run on hardware that was reviewed and accepted. Later runs on
// that kind of device must see the same in the cases that nothing public fixes (strength H).

// Measured returns the reason why a record shows nothing of a real device, or nil.
func (r *Run) Measured() error {
	const only = "only what hardware showed is a reference"
	switch {
	case r.Target.Kind != "hw":
		return fmt.Errorf("the record has target %q; %s", r.Target.Kind, only)
	case r.Environment[KeyBelow] != "" || r.Environment[KeySession] != "":
		return fmt.Errorf("the run was made below %s, where the device is simulated; %s: run conform --target=hw on the card", cmp.Or(r.Environment[KeyBelow], r.Environment[KeySession]), only)
	case r.Target.Profile == ExecProfile || r.Target.Profile == PCIProfile:
		return fmt.Errorf("the record has profile %s, a simulated device; %s: run conform --target=hw on the card", r.Target.Profile, only)
	}
	return nil
}

// Acceptable returns the reason why a record cannot be a baseline, or nil.
func (r *Run) Acceptable() error {
	p := r.Platform()
	if err := r.Measured(); err != nil {
		return err
	}
	switch {
	case r.Environment[KeyMachine] == VirtualMachine && r.Environment[KeyPassedThrough] == "":
		if err := r.passable(); err != nil {
			return err
		}
		return fmt.Errorf("the run was made in a virtual machine, which may emulate its devices: if the host has passed a real card through to it, as PCI function %s, say so with conform accept --passed-through",
			r.Environment[KeyPCI])
	case r.older && r.Environment[KeyMachine] == "":
		return errors.New("an older conform wrote the record, and it does not say whether the machine was a virtual one or the device simulated: run conform --target=hw --report FILE anew")
	case r.Incomplete:
		return errors.New("the run was interrupted")
	case p[KeyPeer] == SimulatedPeer || strings.HasSuffix(r.Target.Profile, ResponderSuffix):
		return errors.New("one end of the run was a simulated peer (--peer sim:...), and a baseline is of two real ones")
	case p[KeyProvider] == "" || p[KeyPart] == "":
		return errors.New("the record does not name its device")
	}
	ran := false
	for _, c := range r.Cases {
		if c.Outcome.Bad() {
			return fmt.Errorf("%s is %s: explain it in the ledger of deviations or mend it first", c.ID, c.Outcome)
		}
		ran = ran || c.Outcome != NotRun
	}
	if !ran {
		return errors.New("no case of it has run")
	}
	return nil
}

// Supersedes returns the reason why a record takes from later runs what a baseline holds them to,
// or nil.
func (r *Run) Supersedes(baseline *Run) error {
	if r.Seed != baseline.Seed {
		return fmt.Errorf("it has seed %d, and this record seed %d", baseline.Seed, r.Seed)
	}
	now := map[string]bool{}
	for i := range r.Cases {
		now[r.Cases[i].ID] = r.Cases[i].holds()
	}
	for i := range baseline.Cases {
		if c := &baseline.Cases[i]; c.Strength == "H" && c.holds() && !now[c.ID] {
			return fmt.Errorf("it fixes %s, which this record does not", c.ID)
		}
	}
	return nil
}

// holds reports whether later runs are held to what the case of a baseline saw.
func (c *Case) holds() bool { return c.Outcome == Unrecorded || c.Outcome == Pass }

// emulated are drivers of devices that only hypervisors have.
var emulated = map[string]string{
	"vmw_pvrdma": "VMware's paravirtual device (drivers/infiniband/hw/vmw_pvrdma/Kconfig of Linux 6.12)",
}

// passable returns the reason why the device of a run in a virtual machine cannot be a card that
// the host passed through, or nil.
func (r *Run) passable() error {
	const instead = "run conform --target=hw on the machine that has the card"
	if r.Environment[KeyPCI] == "" {
		return errors.New("the run was made in a virtual machine, and its device is no PCI function, which a host could have passed through; " + instead)
	}
	if what := emulated[r.Environment[KeyDriver]]; what != "" {
		return fmt.Errorf("the run was made in a virtual machine, on %s, and no host passes such a device through; %s", what, instead)
	}
	return nil
}

// PassThrough records that the card of a run in a virtual machine is a real one. Nothing in the
// record can show it: a hypervisor may emulate the PCI function of any card.
func (r *Run) PassThrough() error {
	if r.Environment[KeyMachine] != VirtualMachine {
		return errors.New("the run was not made in a virtual machine: leave out --passed-through")
	}
	if err := r.passable(); err != nil {
		return err
	}
	r.Environment[KeyPassedThrough] = "as conform accept --passed-through says"
	return nil
}

// BaselineName is a file name for the record of a kind of device.
func (r *Run) BaselineName() string {
	p := r.Platform()
	name := p[KeyProvider] + "-" + p[KeyPart]
	if fw := p[KeyFirmware]; fw != "" {
		name += "-fw" + fw
	}
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._", c) {
			return c
		}
		return '_'
	}, name) + ".json"
}

// Freeze lists the cases whose observations a baseline fixes.
func (r *Run) Freeze() []string {
	var ids []string
	for _, c := range r.Cases {
		if c.Outcome == Unrecorded {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Hold judges the cases of strength H by a baseline of the same provider and part; it reports
// whether the baseline is of this kind of device. Both are as read from files.
func (r *Run) Hold(baseline *Run, rules *Rules) bool {
	p, q := r.Platform(), baseline.Platform()
	if r.Target.Kind != "hw" || p[KeyProvider] != q[KeyProvider] || p[KeyPart] != q[KeyPart] || r.Seed != baseline.Seed {
		return false
	}
	was := map[string]*Case{}
	for i := range baseline.Cases {
		was[baseline.Cases[i].ID] = &baseline.Cases[i]
	}
	d := &differ{kind: samePlatform, rules: rules, explained: map[*Prediction]int{}}
	for i := range r.Cases {
		c := &r.Cases[i]
		b := was[c.ID]
		if c.Outcome != Unrecorded || b == nil || !b.holds() {
			continue
		}
		c.Outcome, c.Reason = Pass, ""
		for _, x := range d.observations(b, c) {
			if x.Class.Bad() {
				c.Outcome = Fail
				c.Reason = fmt.Sprintf("%s: the recording shows %s, this run %s", x.Step, text(x.A), text(x.B))
				break
			}
		}
	}
	r.Count()
	return true
}
