package report

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Keys of a run's environment that behaviour may depend on. A target fills those that it
// knows; the ledger of deviations may ask for them.
const (
	KeyProvider  = "provider"        // user-space driver: mlx5, rxe, siw
	KeyPeer      = "peer"            // that of the second node's device; the first's where a record does not say
	KeyPart      = "part"            // vendor_part_id of the device, hexadecimal
	KeyFirmware  = "firmware"        // fw_ver of the device
	KeyKernel    = "kernel"          // release of the kernel
	KeyRDMACore  = "rdma_core"       // version of libibverbs' package
	KeyLinkLayer = "link_layer"      // Ethernet or InfiniBand
	KeyPageSize  = "page_size"       // bytes
	KeyProfile   = "profile"         // of a simulated device
	KeyExtends   = "profile_extends" // the stored profile that a user's own extends
	KeyEnv       = "env."            // prefix of environment variables that the driver reads
)

// Keys of a run's environment that say what stands between the suite and real hardware. A record
// that has KeyBelow is no reference for a card, and one of a virtual machine only if a real card
// was passed through to it.
const (
	KeyBelow   = "below"   // the program that simulates the device: rdmasim exec, rdmasim pci
	KeyMachine = "machine" // VirtualMachine, or missing
	// KeySession is the command of a run below rdmasim exec up to the program, as a shell reads it:
	// rdmasim exec --devices 2 --
	KeySession = "session"

	// KeyLibraryPath is LD_LIBRARY_PATH, where it is set. KeyProvider and KeyRDMACore say what came
	// of it.
	KeyLibraryPath = "library_path"

	// KeyPCI is the address of the device's PCI function; a device of software has none.
	KeyPCI    = "pci"
	KeyDriver = "driver" // the kernel's driver of the device
	// KeyPassedThrough says in a baseline from a virtual machine that its card is a real one, and
	// who says so.
	KeyPassedThrough = "passed_through"

	VirtualMachine = "virtual" // value of KeyMachine: the processor has the flag hypervisor

	SimulatedPeer   = "sim"        // value of KeyPeer where the second node is simulated
	ResponderSuffix = "-responder" // of the profile of a device whose first node is simulated

	ExecProfile = "hw-mlx5-exec" // profile of the target below rdmasim exec
	PCIProfile  = "hw-mlx5-pci"  // and of a guest whose adapter is of rdmasim pci
)

// Platform is what a run was made on, by the keys above.
type Platform map[string]string

// PlatformOf is the platform of a target with the given details.
func PlatformOf(profile string, details map[string]string) Platform {
	p := Platform{}
	for k, v := range details {
		switch k {
		case KeyProvider, KeyPeer, KeyPart, KeyFirmware, KeyKernel, KeyRDMACore, KeyLinkLayer, KeyPageSize, KeyExtends:
			p[k] = v
		default:
			if strings.HasPrefix(k, KeyEnv) {
				p[k] = v
			}
		}
	}
	if profile != "" {
		p[KeyProfile] = profile
		p[KeyProvider] = cmp.Or(p[KeyProvider], "mlx5")
	}
	if p[KeyPeer] == "" && p[KeyProvider] != "" {
		p[KeyPeer] = p[KeyProvider]
	}
	return p
}

// Platform of the run.
func (r *Run) Platform() Platform { return PlatformOf(r.Target.Profile, r.Environment) }

// constraint is one condition of a ledger entry on a platform.
type constraint struct {
	key   string
	holds func(string) bool
}

// versioned keys are compared by ranges such as ">=6.1 <6.13".
var versioned = map[string]bool{KeyFirmware: true, KeyKernel: true, KeyRDMACore: true}

// parseConstraint reads the condition on a key: a range of versions, or a regular expression
// that matches the whole value.
func parseConstraint(key, text string) (constraint, error) {
	if versioned[key] {
		f, err := parseRange(text)
		return constraint{key, f}, err
	}
	re, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return constraint{}, err
	}
	return constraint{key, re.MatchString}, nil
}

// parseRange reads conditions joined by spaces, each an operator and a version.
func parseRange(text string) (func(string) bool, error) {
	type bound struct {
		op string
		v  []int
	}
	var bounds []bound
	for word := range strings.FieldsSeq(text) {
		op := word[:len(word)-len(strings.TrimLeft(word, "<>="))]
		v := version(word[len(op):])
		switch op {
		case "<", "<=", ">", ">=", "=":
		default:
			return nil, fmt.Errorf("%q is not a bound such as >=6.1 or <6.13", word)
		}
		if len(v) == 0 {
			return nil, fmt.Errorf("%q has no version", word)
		}
		bounds = append(bounds, bound{op, v})
	}
	if len(bounds) == 0 {
		return nil, fmt.Errorf("a range needs a bound such as >=6.1")
	}
	return func(s string) bool {
		v := version(s)
		if len(v) == 0 {
			return false
		}
		for _, b := range bounds {
			c := compareVersions(v, b.v)
			ok := map[string]bool{"<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0, "=": c == 0}[b.op]
			if !ok {
				return false
			}
		}
		return true
	}, nil
}

// version is the numbers that a version begins with: of "6.1.0-56-amd64" they are 6, 1, 0.
func version(s string) []int {
	var out []int
	for part := range strings.SplitSeq(s, ".") {
		end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		digits := part
		if end >= 0 {
			digits = part[:end]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		out = append(out, n)
		if end >= 0 {
			break
		}
	}
	return out
}

// compareVersions compares as far as the bound b goes: 6.1.5 is equal to 6.1.
func compareVersions(v, b []int) int {
	for i := range b {
		n := 0
		if i < len(v) {
			n = v[i]
		}
		if n != b[i] {
			if n < b[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}
