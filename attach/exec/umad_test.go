//go:build linux && amd64

package exec

import (
	"fmt"
	osexec "os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/attach/network"
)

// diags are a session of programs of infiniband-diags on a fabric of so many devices, and what each
// wrote.
func (u user) diags(t *testing.T, devices int, commands ...string) (out []string) {
	t.Helper()
	const mark = "== status"
	var script strings.Builder
	for _, c := range commands {
		// Their own patience is a second, which a busy machine may need.
		if name, rest, _ := strings.Cut(c, " "); strings.HasPrefix(name, "ib") && !strings.Contains(c, ";") || slices.Contains([]string{"smpquery", "saquery", "sminfo", "perfquery"}, name) {
			c = name + " -t 60000 " + rest
		}
		fmt.Fprintf(&script, "(%s) 2>&1; echo %s $?\n", c, mark)
	}
	all, status := u.session(t, "-profile", "connectx-5-ib", "-devices", fmt.Sprint(devices), "--", "sh", "-c", script.String())
	parts := strings.Split(all, mark)
	if status != 0 || len(parts) != len(commands)+1 {
		t.Fatalf("status %d, %d parts:\n%s", status, len(parts), all)
	}
	for i, c := range commands {
		_, text, _ := strings.Cut(parts[i], "\n")
		if i == 0 {
			text = parts[i]
		}
		if !strings.HasPrefix(parts[i+1], " 0\n") {
			t.Errorf("%s: status%.3s\n%s", c, parts[i+1], text)
		}
		out = append(out, text)
	}
	return out
}

func needsDiags(t *testing.T) {
	t.Helper()
	canListen(t)
	if _, err := osexec.LookPath("ibnetdiscover"); err != nil {
		t.Skip("needs Debian's package infiniband-diags")
	}
}

// wants checks what a program wrote against expressions, one a line.
func wants(t *testing.T, what, out, expressions string) {
	t.Helper()
	for want := range strings.SplitSeq(expressions, "\n") {
		if !regexp.MustCompile(`(?m)` + want).MatchString(out) {
			t.Errorf("%s: no %q in\n%s", what, want, out)
		}
	}
}

func deviceGUID(k int) string { return fmt.Sprintf("0x%016x", network.Identity(k).GUID) }

// fabricLinks are the lines by which ibnetdiscover -p shows the links of a fabric, from both ends:
// of a cable, or of a switch.
func fabricLinks(devices int) (lines []string) {
	end := func(kind string, lid, port int, guid string) string {
		return fmt.Sprintf("%s %d %d %s", kind, lid, port, guid)
	}
	add := func(a, b, x, y string) {
		lines = append(lines, fmt.Sprintf("%s 4x EDR - %s ( 'rdmasim %s' - 'rdmasim %s' )", a, b, x, y), fmt.Sprintf("%s 4x EDR - %s ( 'rdmasim %s' - 'rdmasim %s' )", b, a, y, x))
	}
	name := func(k int) string { return fmt.Sprintf("mlx5_%d", k) }
	if devices == 2 {
		add(end("CA", 1, 1, deviceGUID(0)), end("CA", 2, 1, deviceGUID(1)), name(0), name(1))
	}
	for k := 0; devices > 2 && k < devices; k++ {
		add(end("CA", k+1, 1, deviceGUID(k)), end("SW", devices+1, k+1, fmt.Sprintf("0x%016x", network.SwitchGUID)), name(k), "switch")
	}
	slices.Sort(lines)
	return lines
}

// TestFabricAsToolsSeeIt: the programs of infiniband-diags find the fabric that is simulated, by
// directed routes, by LIDs and by the subnet administrator.
func TestFabricAsToolsSeeIt(t *testing.T) {
	needsDiags(t)
	each(t, func(t *testing.T, u user) {
		for _, devices := range []int{2, 3} {
			out := u.diags(t, devices, "ibnetdiscover -p", "ibhosts", "sminfo", "smpquery nodeinfo 2", "smpquery -D portinfo 0,1 1", "smpquery pkeys 1",
				"smpquery guidinfo 1", "smpquery nodedesc 2", "smpquery sl2vl 1", "saquery", "saquery LR", "saquery -p --src-to-dst 1:2", "saquery SMIR", "ibqueryerrors")
			var got []string
			for line := range strings.Lines(out[0]) {
				if line = strings.Join(strings.Fields(line), " "); line != "" {
					got = append(got, line)
				}
			}
			if slices.Sort(got); !slices.Equal(got, fabricLinks(devices)) {
				t.Errorf("%d devices: ibnetdiscover says\n%s\nwant\n%s", devices, strings.Join(got, "\n"), strings.Join(fabricLinks(devices), "\n"))
			}
			if n := strings.Count(out[1], "Ca\t:"); n != devices {
				t.Errorf("%d hosts of %d:\n%s", n, devices, out[1])
			}
			wants(t, "sminfo", out[2], fmt.Sprintf("sm lid 1 sm guid 0x%x,.* state 3 SMINFO_MASTER", network.Identity(0).GUID))
			wants(t, "smpquery nodeinfo", out[3], "^NodeType:\\.*Channel Adapter\n^NumPorts:\\.*1\n^Guid:\\.*"+deviceGUID(1)+"\n^DevId:\\.*0x1017")
			peer := "Lid:\\.*1$\n^LinkState:\\.*Active\n^LinkWidthActive:\\.*4X\n^LinkSpeedExtActive:\\.*25.78125 Gbps\n^OperVLs:\\.*VL0-3"
			if devices > 2 {
				peer = "^LinkState:\\.*Active\n^LinkWidthActive:\\.*4X"
			}
			wants(t, "smpquery portinfo", out[4], peer)
			wants(t, "smpquery pkeys", out[5], "^ +0: 0xffff 0x0000\n^128 pkeys")
			wants(t, "smpquery guidinfo", out[6], "^ +0: "+deviceGUID(0))
			wants(t, "smpquery nodedesc", out[7], "rdmasim mlx5_1")
			wants(t, "smpquery sl2vl", out[8], `\| 0\| 1\| 2\| 3\| 0\|`)
			nodes := devices
			if devices > 2 {
				nodes++
			}
			if n := strings.Count(out[9], "NodeRecord dump"); n != nodes {
				t.Errorf("%d NodeRecords, want %d:\n%s", n, nodes, out[9])
			}
			if n := strings.Count(out[10], "LinkRecord dump"); n != len(fabricLinks(devices)) {
				t.Errorf("%d LinkRecords:\n%s", n, out[10])
			}
			wants(t, "saquery -p", out[11], "dlid\\.*2\nslid\\.*1\npkey\\.*0xFFFF")
			wants(t, "saquery SMIR", out[12], "LID\\.*1\nGUID\\.*"+deviceGUID(0))
			wants(t, "ibqueryerrors", out[13], "0 bad nodes found")
		}
	})
}

// TestSwitchAsToolsSeeIt asks the simulated switch.
func TestSwitchAsToolsSeeIt(t *testing.T) {
	needsDiags(t)
	u := users()[0]
	out := u.diags(t, 3, "smpquery switchinfo 4", "ibroute 4", "ibroute -M 4", "ibtracert 1 3", "ibportstate 4 2", "smpquery -c nodeinfo 4 0,3", "saquery SWIR", "ibswitches",
		"iblinkinfo -l")
	wants(t, "switchinfo", out[0], "^LinearFdbTop:\\.*4\n^MulticastFDBTop:\\.*0xc000")
	wants(t, "ibroute", out[1], "^0x0001 001 : .*mlx5_0\n^0x0003 003 : .*mlx5_2\n^0x0004 000 : .*switch\n^4 valid lids")
	wants(t, "ibroute -M", out[2], "^0xc000 +x x x")
	wants(t, "ibtracert", out[3], `^From ca .*mlx5_0`+"\n"+`^\[1\] -> switch port .*\[1\] lid 4-4`+"\n"+`^\[3\] -> ca port .*lid 3-3 "rdmasim mlx5_2"`)
	wants(t, "ibportstate", out[4], "^Peer PortInfo\n^Lid:\\.*2$") // by a route that begins with a LID
	wants(t, "smpquery -c", out[5], "^Guid:\\.*"+deviceGUID(2))
	wants(t, "saquery SWIR", out[6], "LID\\.*4$\nLinearFDBTop\\.*0x4")
	wants(t, "ibswitches", out[7], `ports 3 "rdmasim switch" base port 0 lid 4`)
	if n := strings.Count(out[8], "25.78125 Gbps Active/  LinkUp"); n != 6 {
		t.Errorf("%d ends of links are up:\n%s", n, out[8])
	}
}

// TestPortCountersByTools: perfquery counts the packets of a program, at both ends and at the
// switch, and sets counters to 0.
func TestPortCountersByTools(t *testing.T) {
	needsDiags(t)
	needs(t, "ibv_rc_pingpong")
	const messages = 200
	p := port(t)
	pingpong := fmt.Sprintf("ibv_rc_pingpong -d mlx5_0 -p %d -n %d >/dev/null & s=$!; %s && ibv_rc_pingpong -d mlx5_1 -p %d -n %d localhost >/dev/null && wait $s", p, messages, listens(p), p, messages)
	out := users()[0].diags(t, 3, pingpong, "perfquery -x 1 1", "perfquery 2 1", "perfquery 4 1", "perfquery -R 1 1", "perfquery -x 1 1", "perfquery 2 1")
	counter := func(i int, name string) int {
		m := regexp.MustCompile(name + `:\.+(\d+)`).FindStringSubmatch(out[i])
		if m == nil {
			t.Fatalf("no %s in\n%s", name, out[i])
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	for i := 1; i <= 3; i++ {
		if n := counter(i, "PortXmitPkts"); n < messages || counter(i, "PortXmitData") < messages*4096/4 {
			t.Errorf("only %d packets:\n%s", n, out[i])
		}
	}
	// Only perfquery's own packets came since.
	if n := counter(5, "PortXmitPkts"); n == 0 || n > 20 {
		t.Errorf("%d packets after the reset", n)
	}
	if n := counter(6, "PortXmitPkts"); n < messages {
		t.Errorf("%d packets at the port that was not reset", n)
	}
}

// TestPingByAgents: ibping's server answers by a class of vendors.
func TestPingByAgents(t *testing.T) {
	needsDiags(t)
	each(t, func(t *testing.T, u user) {
		out := u.diags(t, 2, "ibping -C mlx5_0 -S & s=$!; i=0; until ibping -C mlx5_1 -c 1 1 | grep Pong; do i=$((i+1)); [ $i -lt 300 ] || exit 1; done; ibping -C mlx5_1 -t 60000 -c 2 -f 1; kill $s; wait $s; true")
		wants(t, "ibping", out[0], `Pong from .* \(Lid 1\)`+"\n2 packets transmitted, 2 received, 0% packet loss")
	})
}
