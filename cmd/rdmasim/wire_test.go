package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/attach/exec"

	"github.com/rdmasim/rdmasim/experiment/sweep"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/tshark"
)

// exec starts this binary again in roles of its own.
// mainArg has the test program be this program, with the arguments behind it.
const mainArg = "main"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == sweep.WorkerCommand || os.Args[1] == shardCommand) {
		main() // the test program is a worker of a sweep, too
	}
	if len(os.Args) > 1 && os.Args[1] == mainArg {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		main()
	}
	if len(os.Args) > 2 && os.Args[1] == networkArg {
		os.Exit(inNetwork(os.Args[2]))
	}
	if err := os.Setenv(storeVariable, noStore); err != nil { // tests keep no results
		panic(err)
	}
	exec.Child()
	os.Exit(m.Run())
}

// rdmasim runs the program and returns its status and output.
func rdmasim(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, stderr strings.Builder
	code := program.Execute(context.Background(), args, &out, &stderr)
	return code, out.String() + stderr.String()
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"rn"}, `unknown command "rn" (did you mean "run"?)`},
		{[]string{"profile", "shw"}, `unknown command "shw" (did you mean "show"?)`},
		{[]string{"version"}, `did you mean rdmasim --version?`},
		{[]string{"--seed", "1"}, `unknown flag: --seed (it is a flag of rdmasim `},
		{[]string{"benchmark"}, `unknown command "benchmark"; see rdmasim --help`},
		{[]string{"uar-sharing"}, `unknown command "uar-sharing" (did you mean rdmasim run uar-sharing?)`},
		{[]string{"my.yaml"}, `unknown command "my.yaml" (did you mean rdmasim run my.yaml?)`},
		{[]string{"list", "FOO"}, `rdmasim list takes no "FOO": rdmasim list`},
		{[]string{"profile", "list", "FOO"}, `rdmasim profile list takes no "FOO": rdmasim profile list`},
		{[]string{"run"}, "a scenario file is needed"},
		{[]string{"run", "uar-sharing", "--sed", "2"}, `did you mean "--seed"?`},
		{[]string{"run", "strem.yaml"}, `did you mean "stream.yaml"?`},
		{[]string{"run", "stream.yaml", "--seed", "-1"}, "the flag takes a whole number from 0"},
		{[]string{"validate", "--seed", "x"}, "the flag takes a whole number from 0"},
		{[]string{"run", "stream.yaml", "--profile", "connectx-77"}, "connectx-7"},
		{[]string{"run", "stream.yaml", "--sweep", "traffic.0.payload=1KiB,2KiB", "--sweep", "traffic.0.payload=4KiB"}, "traffic.0.payload is swept twice"},
		{[]string{"run", "stream.yaml", "--sweep", "traffic.0.payload=1KiB,2KiB", "--set", "traffic.0.payload=4KiB"}, "leave out --set traffic.0.payload=4KiB"},
		{[]string{"run", "uar-sharing", "--sweep", "threads=1,2", "--set", "threads=4"}, "leave out --set threads=4"},
		{[]string{"run", "stream.yaml", "--sweep", "traffic.0.payload=1KiB,2KiB,1KiB"}, "1KiB is given twice"},
		{[]string{"run", "stream.yaml", "--sweep", "uar.bf_busy=1ns,2ns", "--sweep", "set.uar.bf_busy=3ns,4ns"}, "uar.bf_busy is swept twice"},
		{[]string{"run", "stream.yaml", "--sweep", "set.uar.bf_busy=1ns,2ns", "--set", "uar.bf_busy=3ns"}, "leave out --set uar.bf_busy=3ns"},
		{[]string{"run", "stream.yaml", "--sweep", "traffic.0.window=16,32", "--sweep", "traffic.00.window=64,128"}, `traffic has items 0 to 0, not "00"`},
		{[]string{"run", "stream.yaml", "--sweep", "profile=connectx-4,connectx-5", "--profile", "connectx-6dx"}, "leave out --profile connectx-6dx"},
		{[]string{"run", "stream.yaml", "--set", "profile=connectx-4", "--profile", "connectx-5"}, "leave out --profile connectx-5"},
		{[]string{"exec", "--pcap-limit", "10M", "--", "true"}, `--pcap-limit "10M": the flag takes bytes, or a number with a unit (KiB, MiB,`},
		{[]string{"profile", "connectx-5"}, `did you mean rdmasim profile show connectx-5?`},
		{[]string{"run", "stream"}, `did you mean stream.yaml?`},
		{[]string{"help", "foo"}, `unknown command "foo"`},
		{[]string{"help", "run", "foo"}, `unknown command "foo"`},
		{[]string{"help", "exce"}, `(did you mean "exec"?)`},
		{[]string{"completion", "foo"}, `completion foo: shells are bash, fish, powershell, zsh; see rdmasim completion --help`},
		{[]string{"vm", "--blueflame", "1h", "--", "true"}, "--blueflame=1h"},
		{[]string{"pci", "--socket", "s", "--wire", "/tmp/watch"}, `pci: --wire "/tmp/watch": dgram:LOCAL-REMOTE, such as dgram:127.0.0.1:5001-127.0.0.1:5002, or tap:NAME is needed; a socket by which a guest watches the wire is --tester PATH`},
		{[]string{"pci", "--socket", "s", "--wire", "udp:192.0.2.1"}, "a guest's frames need Ethernet"},
		{[]string{"vm", "--wire", "tap:tap0@192.0.2.1", "--", "true"}, "leave @ and what follows out"},
		{[]string{"pci", "--socket", "s", "--wire", "tap:absent0"}, "this machine has no interface absent0"},
		{[]string{"exec", "--wire", "tap:tap0", "--", "true"}, "the adapter needs an IP address on this Ethernet, behind an @, such as tap:tap0@192.0.2.2"},
		{[]string{"exec", "--mtu", "4200", "--", "true"}, "--mtu is about --wire, which is not given"},
		{[]string{"exec", "--mtu", "4200", "--wire", "udp:127.0.0.1", "--", "true"}, "--mtu is that of an Ethernet"},
		{[]string{"exec", "--mtu", "300", "--wire", "dgram:5001-5002@192.0.2.1", "--", "true"}, "--mtu 300: from 352 (for a path MTU of 256) to 9216 bytes are possible"},
		{[]string{"wire", "--serve", "dgram:5001@192.0.2.1"}, "both ends of the UDP datagrams are needed"},
		{[]string{"wire", "--serve", "udp:127.0.0.1", "--mtu", "4200"}, "--mtu is that of an Ethernet"},
		{[]string{"exec", "--socket", "/nonexistent/s", "--", "true"}, "--guests"},
		{[]string{"vm", "--functions", "0", "--", "true"}, "rdmasim: vm: --functions 0"},
		{[]string{"run", "stream.yaml", "--set", "hca.tx_buffer=1B"}, "hca.tx_buffer: 1, not in 4096"},
		{[]string{"run", "stream.yaml", "--seed", "010"}, "without zeros before it"},
		{[]string{"exec", "--loss", "0.1", "--", "true"}, `--loss "0.1": a share from 0.0001% to 100% is needed, such as 0.1%`},
		{[]string{"exec", "--loss", "NaN%", "--", "true"}, `--loss "NaN%": a share`},
		{[]string{"exec", "--fault", "/absent", "--", "true"}, "--fault: "},
		{[]string{"exec", "--grace", "5", "--", "true"}, `--grace "5": the flag takes a number with a unit`},
		{[]string{"run", "stream.yaml", "--lockstep=maybe"}, `--lockstep "maybe": the flag takes true or false`},
		{[]string{"run", "stream.yaml", "-o", ""}, "--output is empty: name the file or folder, or leave the flag out"},
		{[]string{"run", "stream.yaml", "--pcap="}, "--pcap is empty"},
		{[]string{"run", "uar-sharing", "--counters"}, "--counters prints the counters of a scenario"},
		{[]string{"exec", "--refused", "--", "true"}, "--refused prints a list and runs no program"},
		{[]string{"exec", "--refused", "--pcap", "x"}, "--refused does not use --pcap"},
		{[]string{"exec", "--pcap-limit", "1MiB", "--", "true"}, "--pcap-limit is about --pcap, which is not given"},
		{[]string{"validate", "--format", "jsn"}, `did you mean "json"?`},
	} {
		if code, out := rdmasim(t, c.args...); code != exitUsage || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit %d\n%s\nwant exit 2 with %s", c.args, code, out, c.want)
		}
	}
}

// The file of rdmasim run --pcap can be decoded, for a scenario, for a sweep of one, and for
// an experiment of several runs, each of which has its own interfaces.
func TestCapture(t *testing.T) {
	tshark.Find(t)
	const scenario = "../../fixtures/scenarios/request-response.yaml"
	short := []string{"--set", "traffic.0.duration=10us", "--set", "traffic.1.duration=10us", "--set", "traffic.0.warmup=5us", "--set", "traffic.1.warmup=5us"}
	for name, c := range map[string]struct {
		args   []string
		runs   []string
		frames int
	}{
		"scenario": {append([]string{scenario}, short...), []string{""}, 500},
		"sweep": {append([]string{scenario, "--sweep", "traffic.0.payload=64B,128B"}, short...),
			[]string{"traffic.0.payload=64B", "traffic.0.payload=128B"}, 1000},
		"InfiniBand": {append([]string{scenario, "--profile", "connectx-5-ib"}, short...), []string{""}, 500},
		"experiment": {[]string{"uar-sharing", "--set", "graph=1", "--set", "threads=2", "--set", "ablate=false", "--set", "duration_us=10"},
			[]string{"graph 1, BlueFlame, 1-way", "graph 1, postlist 2, 2-way"}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "sweep" {
				t.Skip("short tests judge the capture of a sweep only")
			}
			file := filepath.Join(t.TempDir(), "run.pcapng")
			code, out := rdmasim(t, append(append([]string{"run"}, c.args...), "--pcap", file)...)
			if code != 0 {
				t.Fatalf("exit %d\n%s", code, out)
			}
			s := tshark.Check(t, file)
			if s.Frames < c.frames {
				t.Errorf("%d frames", s.Frames)
			}
			for _, want := range c.runs {
				if s.Runs[want] == 0 {
					t.Errorf("no run %q: %v", want, s.Runs)
				}
			}
		})
	}
}

// A run without frames writes a capture that can be opened; a path that cannot be written is
// reported before the run; a run that fails leaves no file.
func TestCaptureFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "map.pcapng")
	if code, out := rdmasim(t, "run", "bfreg-map", "--set", "qps=2", "--pcap", file); code != 0 {
		t.Fatalf("exit %d\n%s", code, out)
	}
	if s, err := os.Stat(file); err != nil || s.Size() == 0 {
		t.Errorf("%v %v", s, err)
	}
	for _, args := range [][]string{
		{"run", "bfreg-map", "--pcap", filepath.Join(dir, "no", "such", "x.pcapng")},
		{"run", "uar-sharing", "--trace", filepath.Join(dir, "x.json")},
	} {
		if code, out := rdmasim(t, args...); code != exitUsage {
			t.Errorf("%v: exit %d\n%s", args, code, out)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestHelpIsUniform: place-holders are words in capitals, one for one thing, and each default is
// printed once.
func TestHelpIsUniform(t *testing.T) {
	for _, fault := range commands.FaultsOfHelp(newRoot(io.Discard, io.Discard)) {
		t.Error(fault)
	}
}

// The help of each command that runs on a profile says that it takes a name or a file.
func TestHelpOfProfiles(t *testing.T) {
	for _, args := range [][]string{{"run"}, {"exec"}, {"pci"}, {"vm"}, {"wire"}} {
		var out, errs strings.Builder
		status := program.Execute(t.Context(), append(args, "--help"), &out, &errs)
		text := strings.Join(strings.Fields(out.String()), " ")
		if want := "a name from rdmasim profile list, or the path of your own file, which ends in .yaml"; status != 0 || !strings.Contains(text, want) {
			t.Errorf("rdmasim %s --help, status %d, does not say %q:\n%s%s", args[0], status, want, &out, &errs)
		}
	}
}
