//go:build hw

package mlx5

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

// describe fills in the names and versions of the device and the stack below it.
func (p *probe) describe() error {
	s := p.s
	n := s.nodes[0]
	driver, exec := driverOf(n.Device)
	pci := !exec && simulated("/sys/class/infiniband/"+n.Device)
	kernel := release()
	switch {
	case exec:
		s.Profile = "hw-mlx5-exec"
	case pci:
		s.Profile = "hw-mlx5-pci"
	case p.ctx.mlx5:
		s.Profile = "hw-mlx5"
	default:
		s.Profile = "hw-" + driver
	}
	provider := driver
	if p.ctx.mlx5 {
		provider = "mlx5"
	}
	loaded := libraries(provider)
	// The keys of report.Platform, which the ledger of deviations asks for.
	d := map[string]string{
		"provider": provider, "part": fmt.Sprintf("%#x", p.attr.VendorPartID), "firmware": p.attr.FWVer, "kernel": kernel,
		"rdma_core": loaded.core, "libraries": strings.Join(loaded.libraries, ", "), "link_layer": linkName(n.link), "page_size": fmt.Sprint(os.Getpagesize()),
		"device": n.Device, "port": fmt.Sprint(n.Port), "gid": fmt.Sprintf("%d %v", n.GIDIndex, n.GID), "driver": driver,
		"vendor": fmt.Sprintf("%#x, hardware version %#x", p.attr.VendorID, p.attr.HWVer),
	}
	p.set("simulated", has(exec))
	p.set("invalidate.checked", has(driver != "rxe")) // it is not tried: the device might not check
	p.set("xrc.handles", has(!p.ctx.mlx5))            // nor this: libmlx5 does not
	if exec {
		d["below"] = "rdmasim exec"
		p.set("speed", verbs.Absent)
		p.set("in flight", verbs.Absent) // it finishes all work that it sees before another thread runs
		// Its interface is the machine's own, but a tester can give the device addresses.
		p.set("addr", has(s.bench && n.link == verbs.LinkEthernet))
		for _, token := range []string{"ecn", "sqd", "card faults"} {
			p.set(token, has(slices.Contains(s.has, token)))
		}
		for _, token := range []string{"mmio log", "fault", "counters", "hw counters", "device time"} {
			p.set(token, has(s.bench))
		}
	}
	if pci || s.port != "" && !exec { // the wire of rdmasim pci: this is a guest, though the device may be software on a network interface
		s.emulated = true
		d["below"] = "rdmasim pci"
		p.set("speed", verbs.Absent)
		p.set("device time", verbs.Absent)
	}
	if f := pciFunction("/sys/class/infiniband/" + n.Device); f != "" {
		d["pci"] = f
	}
	if guest() {
		d["machine"] = "virtual"
	}
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim) == nil && lim.Cur != unix.RLIM_INFINITY {
		d["memlock"] = fmt.Sprintf("%d bytes", lim.Cur)
	}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(k, "MLX5_") || strings.HasPrefix(k, "MLX_") || strings.HasPrefix(k, "IBV_") || strings.HasPrefix(k, "RDMAV_") {
			d["env."+k] = v
		}
	}
	if path := os.Getenv("LD_LIBRARY_PATH"); path != "" {
		d["library_path"] = path
	}
	s.Details = d
	s.describeSecond()
	return unusedProvider(cmp.Or(os.Getenv("RDMAV_DRIVERS"), os.Getenv("IBV_DRIVERS")), provider, loaded.libraries)
}

// describeSecond describes the second node, if there is one.
func (s *Setup) describeSecond() {
	if len(s.nodes) < 2 {
		return
	}
	o := s.nodes[1]
	if o.Provider != "" {
		s.Details["peer"] = o.Provider
	}
	s.Details["second node"] = fmt.Sprintf("%s port %d gid %d %v", o.Device, o.Port, o.GIDIndex, o.GID)
}

// driverOf is the kernel's driver of a device, and whether it is our own below
// rdmasim exec, which says so in its node description. The software devices have no
// driver of a bus, but a network device as parent.
func driverOf(device string) (driver string, exec bool) {
	dir := "/sys/class/infiniband/" + device
	desc, _ := os.ReadFile(dir + "/node_desc")
	exec = strings.HasPrefix(string(desc), "rdmasim")
	if link, err := os.Readlink(dir + "/device/driver"); err == nil {
		return filepath.Base(link), exec
	}
	if _, err := os.Stat("/sys/module/rdma_rxe"); err == nil && software(dir) {
		return "rxe", exec
	}
	if _, err := os.Stat("/sys/module/siw"); err == nil && software(dir) {
		return "siw", exec
	}
	if exec {
		return "mlx5_core", exec
	}
	return "unknown", exec
}

// providerOf is the user-space driver of a device whose driver in the kernel is known: mlx5 of
// mlx5_core.
func providerOf(device string) string {
	driver, _ := driverOf(device)
	provider, _, _ := strings.Cut(driver, "_core")
	return provider
}

// Emulated reports whether programs run on the emulated processor of a guest, where nothing takes
// the time that it takes elsewhere.
func (s *Setup) Emulated() bool { return s.emulated }

// simulatedBoard begins the PSID of a simulated adapter; no vendor of cards has such.
const simulatedBoard = "SIM"

// simulated reports whether the adapter below a real driver is that of rdmasim pci: its firmware
// says so, as the driver tells by the board's identity.
func simulated(dir string) bool {
	board, err := os.ReadFile(dir + "/board_id")
	return err == nil && strings.HasPrefix(string(board), simulatedBoard)
}

// address is that of a PCI function, as the kernel names it.
var address = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// pciFunction is the address of the PCI function that a device of /sys/class/infiniband is, or is a
// part of (a subfunction on the auxiliary bus); empty for devices of software, some of which take
// the function of their network device as theirs.
func pciFunction(dir string) string {
	if software(dir) {
		return ""
	}
	path, err := filepath.EvalSymlinks(dir + "/device")
	if err != nil {
		return ""
	}
	for ; path != "/" && path != "."; path = filepath.Dir(path) {
		if address.MatchString(filepath.Base(path)) {
			return filepath.Base(path)
		}
	}
	return ""
}

// guest reports whether this is a virtual machine: the processor then has the flag
// hypervisor (bit 31 of ECX of CPUID leaf 1), which emulators and hypervisors set.
func guest() bool {
	text, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && hypervisor(string(text))
}

func hypervisor(cpuinfo string) bool {
	for line := range strings.Lines(cpuinfo) {
		if key, flags, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "flags" {
			return slices.Contains(strings.Fields(flags), "hypervisor")
		}
	}
	return false
}

func linkName(l verbs.LinkLayer) string {
	if l == verbs.LinkEthernet {
		return "Ethernet"
	}
	return "InfiniBand"
}

func software(dir string) bool {
	_, err := os.Stat(dir + "/parent")
	return err == nil
}

func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// mapped is what this process has mapped of rdma-core.
type mapped struct {
	// core is the version of rdma-core: the provider's where its file should have one (libmlx5),
	// for it is the provider that drives the device; otherwise libibverbs'. It begins with
	// "unknown" where two versions of the provider are mapped, or the name of its file has none.
	core      string
	libraries []string // paths of libibverbs and of the providers, sorted
}

// libraries reads /proc/self/maps.
func libraries(provider string) mapped {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return mapped{core: "unknown"}
	}
	return mappedIn(string(maps), provider)
}

// mappedIn finds the libraries in the text of /proc/self/maps, which names files and not links to
// them.
func mappedIn(maps, provider string) mapped {
	var m mapped
	const nameless = "one without a version in its name"
	var verbs, providers []string // versions
	loaded := false               // a provider that libibverbs has loaded by its own name
	var bare string
	for line := range strings.Lines(maps) {
		i := strings.Index(line, "/")
		if i < 0 {
			continue
		}
		path := strings.TrimSpace(line[i:])
		base := filepath.Base(path)
		isVerbs := strings.HasPrefix(base, "libibverbs.so")
		isProvider := strings.HasPrefix(base, "lib"+provider+".so") || strings.HasPrefix(base, "lib"+provider+"-rdmav")
		if !isVerbs && !isProvider || slices.Contains(m.libraries, path) {
			continue
		}
		m.libraries = append(m.libraries, path)
		if v, ok := rdmaCore(base, "libibverbs.so"); ok {
			verbs = append(verbs, v)
		} else if v, ok := rdmaCore(base, "lib"+provider+".so"); ok {
			providers = append(providers, v)
		} else if strings.HasPrefix(base, "lib"+provider+".so") { // a copy, perhaps of another build than libibverbs
			providers, bare = append(providers, nameless), base
		} else if isProvider {
			loaded = true
		}
	}
	if loaded && len(providers) > 0 {
		providers = append(providers, nameless)
	}
	slices.Sort(m.libraries)
	slices.Sort(providers)
	providers = slices.Compact(providers)
	switch {
	case len(providers) > 1:
		m.core = fmt.Sprintf("unknown (lib%s %s are mapped)", provider, strings.Join(providers, " and "))
	case bare != "":
		m.core = fmt.Sprintf("unknown (%s has no version in its name)", bare)
	case len(providers) == 1:
		m.core = providers[0]
	case len(verbs) > 0:
		m.core = verbs[0]
	default:
		m.core = "unknown"
	}
	return m
}

// unusedProvider refuses a run that would test another provider than the one that RDMAV_DRIVERS (or
// IBV_DRIVERS) names by its path. libibverbs loads what they name only if no provider that is there
// already takes the device (rdma-core, libibverbs/init.c, ibverbs_get_device_list), and libmlx5 is,
// for this program is linked with it. Of a path that is not absolute it loads nothing, and says
// nothing.
func unusedProvider(drivers, provider string, mapped []string) error {
	for name := range strings.FieldsFuncSeq(drivers, func(r rune) bool { return r == ':' || r == ';' }) {
		if !strings.Contains(name, "/") || !strings.HasPrefix(filepath.Base(name), "lib"+provider) {
			continue
		}
		files, _ := filepath.Glob(name + "-rdmav*.so")
		if !slices.ContainsFunc(files, func(f string) bool {
			real, err := filepath.EvalSymlinks(f)
			return err == nil && slices.Contains(mapped, real)
		}) {
			return fmt.Errorf("RDMAV_DRIVERS or IBV_DRIVERS names %s-rdmav*.so, which is not what serves the device: mapped are %s; name the folder of your libibverbs.so.1 and lib%s.so.1 in LD_LIBRARY_PATH, or unset the variable",
				name, strings.Join(mapped, " and "), provider)
		}
	}
	return nil
}

// rdmaCore reads the version out of libibverbs.so.1.14.44.0.
func rdmaCore(file, name string) (string, bool) {
	rest, ok := strings.CutPrefix(file, name+".")
	if !ok {
		return "", false
	}
	parts := strings.Split(rest, ".")
	if len(parts) < 3 {
		return "", false
	}
	return strings.Join(parts[len(parts)-2:], "."), true
}
