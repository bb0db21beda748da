package report

import (
	"strings"
	"testing"
)

func TestBaseline(t *testing.T) {
	card := map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017", KeyFirmware: "16.35.4030"}
	saw := func(got string) Case {
		return Case{ID: "ODP-058", Strength: "H", Outcome: Unrecorded, Observations: []Observation{{Step: "syndrome", Kind: "value", Got: got}}}
	}
	base := recorded(t, Target{Kind: "hw"}, card, saw("0x88"))
	if err := base.Acceptable(); err != nil || base.BaselineName() != "mlx5-0x1017-fw16.35.4030.json" || len(base.Freeze()) != 1 {
		t.Fatalf("%v, %s, %v", err, base.BaselineName(), base.Freeze())
	}
	same := recorded(t, Target{Kind: "hw"}, card, saw("0x88"))
	if !same.Hold(base, nil) || same.Cases[0].Outcome != Pass || same.Summary[Pass] != 1 {
		t.Errorf("what was recorded: %+v", same.Cases[0])
	}
	other := recorded(t, Target{Kind: "hw"}, card, saw("0x89"))
	if !other.Hold(base, nil) || other.Cases[0].Outcome != Fail || !strings.Contains(other.Cases[0].Reason, "the recording shows 0x88, this run 0x89") {
		t.Errorf("something else: %+v", other.Cases[0])
	}
	part := recorded(t, Target{Kind: "hw"}, map[string]string{KeyProvider: "mlx5", KeyPart: "0x1013"}, saw("0x89"))
	if part.Hold(base, nil) || part.Cases[0].Outcome != Unrecorded {
		t.Errorf("another part: %+v", part.Cases[0])
	}
}

func TestWhatIsNoBaseline(t *testing.T) {
	card := map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017"}
	for want, r := range map[string]*Run{
		"only what hardware showed":         {Target: Target{Kind: "sim", Profile: "connectx-5"}},
		"was interrupted":                   {Target: Target{Kind: "hw"}, Incomplete: true, Environment: card},
		"name its device":                   {Target: Target{Kind: "hw"}},
		"an older conform wrote the record": {Target: Target{Kind: "hw"}, Environment: card, older: true},
		"below rdmasim exec, where the device is simulated": {Target: Target{Kind: "hw"},
			Environment: map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017", KeyBelow: "rdmasim exec"}},
		"has profile hw-mlx5-pci": {Target: Target{Kind: "hw", Profile: "hw-mlx5-pci"}, Environment: card},
		"below rdmasim pci, where the device is simulated": {Target: Target{Kind: "hw"},
			Environment: map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017", KeyMachine: VirtualMachine, KeyPCI: "0000:01:00.0", KeyBelow: "rdmasim pci"}},
		"below rdmasim exec -- , where the device is simulated": {Target: Target{Kind: "hw"}, // one that somebody has edited
			Environment: map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017", KeySession: "rdmasim exec -- "}},
		"has profile hw-mlx5-exec": {Target: Target{Kind: "hw", Profile: "hw-mlx5-exec"}, Environment: card},
		"in a virtual machine, and its device is no PCI function": {Target: Target{Kind: "hw"},
			Environment: map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017", KeyMachine: VirtualMachine}},
		"as PCI function 0000:07:00.0, say so with conform accept --passed-through": {Target: Target{Kind: "hw"},
			Environment: map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017", KeyMachine: VirtualMachine, KeyPCI: "0000:07:00.0"}},
		"one end of the run was a simulated peer": {Target: Target{Kind: "hw"}, Environment: map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017", KeyPeer: SimulatedPeer}},
		"and a baseline is of two real ones":      {Target: Target{Kind: "hw", Profile: "hw-mlx5" + ResponderSuffix}, Environment: card},
		"no case of it has run":                   {Target: Target{Kind: "hw"}, Environment: card, Cases: []Case{{ID: "RC-001", Outcome: NotRun}}},
		"RC-001 is fail":                          {Target: Target{Kind: "hw"}, Environment: card, Cases: []Case{{ID: "RC-001", Outcome: Fail}}},
	} {
		if err := r.Acceptable(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A card in a virtual machine is a reference if the user says that it is real, and if it can be.
// The baseline says so too.
func TestPassedThroughCard(t *testing.T) {
	in := func(more ...string) *Run {
		env := map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017", KeyMachine: VirtualMachine, KeyPCI: "0000:07:00.0"}
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		return &Run{Target: Target{Kind: "hw"}, Environment: env, Cases: []Case{{ID: "RC-001", Outcome: Pass}}}
	}
	r := in()
	if err := r.PassThrough(); err != nil || r.Acceptable() != nil || r.Environment[KeyPassedThrough] == "" {
		t.Errorf("%v, %v, %v", err, r.Acceptable(), r.Environment)
	}
	for want, r := range map[string]*Run{
		"leave out --passed-through":  in(KeyMachine, ""),
		"is no PCI function":          in(KeyPCI, "", KeyProvider, "rxe"),
		"VMware's paravirtual device": in(KeyDriver, "vmw_pvrdma"),
	} {
		if err := r.PassThrough(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	below := in(KeyBelow, "rdmasim exec")
	if err := below.PassThrough(); err != nil || below.Acceptable() == nil {
		t.Errorf("below exec in a virtual machine: %v, %v", err, below.Acceptable())
	}
}

// The recordings of Soft-RoCE are of guests, and the older ones do not say so.
func TestRecordsOfGuestsAreNoBaselines(t *testing.T) {
	for _, name := range []string{"rxe-6.1", "rxe-6.12", "rxe-newest"} {
		r, err := ReadFile(t.Context(), "../../fixtures/recordings/"+name+".json.gz")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Acceptable(); err == nil || !strings.Contains(err.Error(), "virtual") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
