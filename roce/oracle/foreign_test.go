package oracle_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/internal/tshark"
	"github.com/rdmasim/rdmasim/roce"
)

func file(t *testing.T, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.pcap")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// tshark takes what the tests convert for the same packets of RoCE: the files are as the formats
// have them.
func TestTsharkReadsTheFormats(t *testing.T) {
	path := tshark.Find(t)
	recorded := recordings(t)
	shots := slices.Concat(recorded["7.2/atomic"], recorded["7.2/send_multi"])
	var mixed, frames []shot // in a link layer, and without
	for _, l := range links {
		if l.name != "raw IP (14)" { // a number of OpenBSD's, which tshark takes for another
			mixed, frames = append(mixed, show(shots, l)...), append(frames, shots...)
		}
	}
	check := func(c container, show, frames []shot) {
		rows := tshark.Fields(t, path, file(t, c.of(show)), "infiniband.bth.opcode", "infiniband.bth.psn", "frame.len")
		rows = slices.DeleteFunc(rows, func(r []string) bool { return r[0] == "" }) // custom blocks, which it shows as packets
		if len(rows) != len(frames) {
			t.Fatalf("%s: tshark shows %d packets of %d", c.name, len(rows), len(frames))
		}
		for k, row := range rows {
			p, err := roce.Parse(frames[k].data)
			if want := []string{fmt.Sprint(uint8(p.Op)), fmt.Sprint(p.BTH().PSN()), fmt.Sprint(show[k].length)}; err != nil || !slices.Equal(row, want) {
				t.Errorf("%s, link type %d, packet %d: %q, want %q, %v", c.name, show[k].link, k+1, row, want, err)
			}
		}
	}
	check(containers[6], mixed, frames)
	check(containers[1], show(shots, linkKind{of: sll}), shots)
	check(containers[2], show(shots, linkKind{of: sll2}), shots)
	check(containers[4], show(shots, linkKind{of: bare(101)}), shots)
}

// tool runs a program of Wireshark's that makes a file of a file, and returns the new one.
func tool(t *testing.T, in []byte, name string, args ...string) []byte {
	t.Helper()
	path := tshark.Tool(t, name)
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(path, append(args, file(t, in), out)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, text)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What editcap makes of a capture has the same verdicts, and reordercap mends what is too far out
// of order.
func TestFilesOfEditcapAndReordercap(t *testing.T) {
	recorded := recordings(t)
	for i, name := range []string{"7.2/send_multi", "7.2/drop_read_resp", "6.1/atomic"} {
		shots := recorded[name]
		nano := containers[2].of(shots)
		want := said(judged(t, nano), itself)
		for _, args := range [][]string{{"-F", "pcap"}, {"-F", "nsecpcap"}, {"-F", "modpcap"}, {"-F", "pcapng"}} {
			if got := said(judged(t, tool(t, nano, "editcap", args...)), itself); !slices.Equal(got, want) {
				t.Errorf("%s, editcap %q: %q\nwant %q", name, args, got, want)
			}
		}
		for _, l := range links[i*5 : i*5+5] {
			in := pcapng(be)(show(shots, l))
			if got := said(judged(t, tool(t, in, "editcap", "-F", "pcapng")), itself); l.name != "raw IP (14)" && !slices.Equal(got, want) {
				t.Errorf("%s, editcap of %s: %q\nwant %q", name, l.name, got, want)
			}
		}
		want = said(judged(t, nano), itself, left...)
		if got := said(judged(t, tool(t, nano, "editcap", "-s", "96")), itself, left...); !slices.Equal(got, want) {
			t.Errorf("%s, cut: %q\nwant %q", name, got, want)
		}
		late := slices.Clone(shots)
		for i := range late {
			late[i].time = int64(i) * 100_000_000
		}
		want = said(judged(t, containers[2].of(late)), itself)
		late[1], late[2] = late[2], late[1]
		file := containers[2].of(late)
		if res := judged(t, file); res.Whole || !strings.Contains(strings.Join(res.Broken, ""), "reordercap") {
			t.Errorf("%s, out of order by 100 ms: %q", name, res.Broken)
		}
		if got := said(judged(t, tool(t, file, "reordercap")), itself); !slices.Equal(got, want) {
			t.Errorf("%s, reordercap: %q\nwant %q", name, got, want)
		}
	}
}
