package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
)

func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = program.Execute(context.Background(), args, &out, &err)
	return code, out.String(), err.String()
}

func TestBadInput(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CONFORM_HW", "")
	missing := filepath.Join(t.TempDir(), "no", "such", "dir")
	tests := map[string]struct {
		args []string
		want string
	}{
		"GID index with the simulator":   {[]string{"--target=sim", "--gid-index", "-7"}, "--gid-index and --peer choose hardware"},
		"GID index below 0":              {[]string{"--target=hw", "--gid-index", "-7"}, "--gid-index -7 is not the index of a GID: indices count from 0"},
		"GID index of random":            {[]string{"random", "--target=sim", "--gid-index", "-7"}, "--gid-index choose hardware"},
		"GID index of an agent":          {[]string{"agent", "--listen", "unix:x", "--gid-index", "-7"}, "--gid-index -7 is not the index of a GID"},
		"letter that is no flag":         {[]string{"-x"}, "unknown shorthand flag: 'x' in -x; see conform --help"},
		"a dash too few":                 {[]string{"-report", "x"}, "(did you mean --report?); see conform --help"},
		"shell that is none":             {[]string{"completion", "bsh"}, `shells are bash, fish, powershell, zsh (did you mean "bash"?)`},
		"filter that ends early":         {[]string{"--label-filter", "RC &&"}, "a label is missing at its end; a filter is labels joined by && and ||, with ! and parentheses, such as 'RC && !tap'"},
		"unknown command":                {[]string{"lst"}, `unknown command "lst" (did you mean "list"?)`},
		"unknown flag":                   {[]string{"--taget=sim"}, `did you mean "--target"?`},
		"no command":                     {[]string{"foo"}, `unknown command "foo"; see conform --help`},
		"case, no hyphen":                {[]string{"RC012"}, "conform --label-filter RC-012 runs that one"},
		"case, short":                    {[]string{"run", "rc-12"}, "conform --label-filter RC-012 runs that one"},
		"version":                        {[]string{"version"}, "did you mean conform --version?"},
		"far flag":                       {[]string{"--workers", "2"}, "unknown flag --workers; see conform --help"},
		"unknown target":                 {[]string{"--target=sin"}, `did you mean "sim"?`},
		"unknown profile":                {[]string{"--profile", "connectx5"}, `did you mean "connectx-5"?`},
		"profiles":                       {[]string{"--profile", "nfp-6000"}, "profiles are connect-ib, "},
		"of mutants":                     {[]string{"mutants", "--profile", "nfp-6000"}, "profiles are connect-ib, "},
		"unknown label":                  {[]string{"--label-filter", "DEV && !tab"}, `did you mean "tap"?); labels are areas (conform list)`},
		"filter syntax":                  {[]string{"--label-filter", "DEV &&"}, `--label-filter "DEV &&": a label is missing at its end`},
		"filter for none":                {[]string{"--label-filter", "DEV && CQ"}, "matches no case"},
		"unknown case":                   {[]string{"show", "CQ-0001"}, `unknown case "CQ-0001" (did you mean "CQ-001"?)`},
		"unknown area":                   {[]string{"list", "CO"}, `did you mean "CQ"?`},
		"show what":                      {[]string{"show"}, "needs the ID"},
		"no hardware side":               {[]string{"--target=hw"}, "apt-get install"},
		"no side of two":                 {[]string{"--target=sim,hw"}, "apt-get install"},
		"capture of hw":                  {[]string{"--target=hw", "--pcap", "x"}, "--pcap and --trace record the simulator"},
		"seed":                           {[]string{"--seed", "-1"}, `--seed "-1": the flag takes a whole number from 0`},
		"parallel":                       {[]string{"--parallel", "0"}, "--parallel 0: at least 1"},
		"repeat":                         {[]string{"--repeat", "-3"}, "--repeat -3: at least 1"},
		"count":                          {[]string{"--repeat", "1e3"}, `--repeat "1e3": the flag takes a whole number`},
		"time":                           {[]string{"--wall-limit", "5"}, `--wall-limit "5": the flag takes a number with a unit`},
		"no report":                      {[]string{"--label-filter", "PD-001", "--report", ""}, "--report is empty"},
		"no merged report":               {[]string{"merge", "x.json", "--report", ""}, "--report is empty"},
		"mutants untold":                 {[]string{"mutants", "--filter", "long-send-cut", "--near", "--report", ""}, "--report is empty"},
		"no matrix":                      {[]string{"mutants", "--filter", "long-send-cut", "--matrix", "--update", ""}, "--update is empty"},
		"no case":                        {[]string{"random", "--target=sim", "--mutant", "long-send-cut", "--case", ""}, "--case is empty"},
		"no program":                     {[]string{"random", "--target=sim", "--mutant", "long-send-cut", "--program", ""}, "--program is empty"},
		"wire of sim":                    {[]string{"--label-filter", "PD-001", "--wire", "w0,w1"}, "add --target=hw"},
		"report path":                    {[]string{"--report", missing}, "cannot be written"},
		"report directory":               {[]string{"--junit", os.TempDir()}, "is a directory"},
		"diff":                           {[]string{"diff", "a.json", "b.json"}, "no such file"},
		"baseline":                       {[]string{"--baseline", "none.json"}, "no such file"},
		"accept":                         {[]string{"accept", "none.json"}, "no such file"},
		"wire":                           {[]string{"wire", "x.pcap"}, "no such file"},
		"mutants":                        {[]string{"mutants", "--filter", "cq-destroy-in-us"}, `did you mean "cq-destroy-in-use"?`},
		"agent":                          {[]string{"agent", "--listen=tcp:127.0.0.1:0"}, "apt-get install"},
		"agent where":                    {[]string{"agent"}, "--listen unix:PATH"},
		"case as command":                {[]string{"rc-012"}, "conform --label-filter RC-012 runs it, conform show RC-012"},
		"area as command":                {[]string{"RC"}, "conform --label-filter RC runs its cases"},
		"case for run":                   {[]string{"run", "rc-012"}, "conform --label-filter RC-012 runs it"},
		"word for run":                   {[]string{"run", "fast"}, `run takes no "fast": flags choose the cases (conform run --help)`},
		"word for mutants":               {[]string{"mutants", "write-overruns"}, `mutants takes no "write-overruns": conform mutants --filter write-overruns`},
		"area to show":                   {[]string{"show", "RC"}, "conform list RC lists them"},
		"order of targets":               {[]string{"--target=hw,sim"}, `did you mean "sim,hw"?`},
		"formats there are":              {[]string{"list", "--format", "csv"}, "formats are table and json"},
		"done and missing":               {[]string{"list", "--done", "--missing"}, "--done and --missing exclude each other"},
		"small number":                   {[]string{"wire", "--timeout", "300", "x.pcap"}, `--timeout "300": the flag takes a whole number from 0 to 255`},
		"number of 16 bits":              {[]string{"wire", "--pkey", "0x10000", "x.pcap"}, `--pkey "0x10000": the flag takes a whole number from 0 to 65535`},
		"flag of none":                   {[]string{"show", "--format", "json", "RC-012"}, "unknown flag --format; see conform show --help"},
		"areas there are":                {[]string{"list", "FOO"}, "areas are DEV, "},
		"case in list":                   {[]string{"list", "RC-012"}, "conform show RC-012"},
		"verbose JSON":                   {[]string{"diff", "-v", "--format", "json", "a.json", "b.json"}, "--format json has explained differences as well: leave out -v"},
		"diff of what":                   {[]string{"diff"}, "diff needs two records, which conform --report writes: conform diff A.json B.json"},
		"accept of what":                 {[]string{"accept"}, "conform accept REPORT.json"},
		"wire of what":                   {[]string{"wire"}, "conform wire FILE.pcap"},
		"agent's address":                {[]string{"agent", "--listen", "0.0.0.0:1"}, "did you mean --listen tcp:0.0.0.0:1?"},
		"agent's socket":                 {[]string{"agent", "--listen", "/run/x"}, "did you mean --listen unix:/run/x?"},
		"agent's host":                   {[]string{"agent", "--listen", "127.0.0.1"}, "did you mean --listen tcp:127.0.0.1:7471?"},
		"agent's port":                   {[]string{"agent", "--listen", "7471"}, "did you mean --listen tcp:0.0.0.0:7471?"},
		"word to show":                   {[]string{"show", "FOO"}, `unknown case "FOO"; conform list shows the areas, and conform list RC the cases of one`},
		"word for agent":                 {[]string{"agent", "unix:x"}, `conform agent takes no "unix:x": conform agent [flags]`},
		"endless faults":                 {[]string{"--fault", "/dev/zero"}, "/dev/zero is longer than 1048576 bytes"},
		"report of a list":               {[]string{"mutants", "--list", "--report", "x.json"}, "--list does not use --report: leave one of them out"},
		"matrix of a list":               {[]string{"mutants", "--list", "--matrix", "--filter", "RC"}, "--list does not use --matrix"},
		"all, and near":                  {[]string{"mutants", "--matrix", "--near"}, "--matrix tries every case"},
		"written needs":                  {[]string{"list", "--capabilities", "--missing"}, "--capabilities does not use --missing"},
		"needs of an area":               {[]string{"list", "--capabilities", "RC"}, "capabilities of all areas: leave out RC"},
		"lockstep of hw":                 {[]string{"--target=hw", "--lockstep"}, "--lockstep is for simulated programs"},
		"profile of hw":                  {[]string{"--target=hw", "--profile", "connectx-4"}, "--profile chooses a simulated device"},
		"key of nobody":                  {[]string{"--target=hw", "--peer-key", "k"}, "give its address with --peer"},
		"mutant":                         {[]string{"--mutant", "rang-unchecked"}, `no mutant "rang-unchecked" (did you mean "range-unchecked"?)`},
		"mutant of hw":                   {[]string{"--target=hw", "--mutant", "range-unchecked"}, "breaks a rule of the simulator: use --target=sim"},
		"captures":                       {[]string{"--label-filter", "PD-001", "--captures", "/dev/null/x"}, "--captures /dev/null/x cannot be made"},
		"simulated peer, and key":        {[]string{"--target=hw", "--peer", "sim:udp:127.0.0.3", "--peer-key", "k"}, "--peer-key k is for an agent"},
		"simulated peer, and interfaces": {[]string{"--target=hw", "--peer", "sim:udp:127.0.0.3", "--wire", "a,b"}, "--wire a,b is the link between two devices"},
		"simulated peer of both":         {[]string{"--target=sim,hw", "--peer", "sim:udp:127.0.0.3"}, "use --target=hw alone"},
		"workers of a simulated peer":    {[]string{"--target=hw", "--peer", "sim:udp:127.0.0.3", "--parallel", "2"}, "one worker has the address"},
		"role without a peer":            {[]string{"--target=hw", "--role", "responder"}, "give --peer sim:ADDRESS"},
		"role":                           {[]string{"--target=hw", "--role", "respnder", "--peer", "sim:udp:127.0.0.3"}, "did you mean"},
		"peer":                           {[]string{"--target=sim", "--peer", "unix:x"}, "add --target=hw"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := command(t, tt.args...)
			if code != exitUsage || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit %d, want %d; stderr: %s; want %q in it", code, exitUsage, stderr, tt.want)
			}
		})
	}
}

func TestList(t *testing.T) {
	code, out, _ := command(t, "list", "--format", "json")
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	var rows []listed
	if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil || len(rows) != len(cat.Cases) {
		t.Fatalf("exit %d, %d rows for %d cases, %v", code, len(rows), len(cat.Cases), err)
	}
	done := 0
	for _, r := range rows {
		if r.Done {
			done++
		}
	}
	if _, out, _ := command(t, "list"); !strings.Contains(out, "all ") || done == 0 {
		t.Errorf("%d done; table:\n%s", done, out)
	}
	_, out, _ = command(t, "list", "mr", "--missing")
	for _, r := range rows {
		if want := r.Area == "MR" && !r.Done; strings.Contains(out, r.ID+" ") != want {
			t.Errorf("%s among the missing cases of MR: want %t in\n%s", r.ID, want, out)
		}
	}
}

func TestListCapabilities(t *testing.T) {
	code, out, _ := command(t, "list", "--capabilities", "--format", "json")
	var rows []listedCapability
	if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil {
		t.Fatalf("exit %d, %v", code, err)
	}
	needed := map[string]int{}
	for _, r := range rows {
		needed[r.Capability] = r.Cases
	}
	if needed["tap"] == 0 || needed["td"] == 0 {
		t.Errorf("capabilities %v", needed)
	}
	if code, out, _ := command(t, "list", "--capabilities"); code != 0 || !strings.Contains(out, "frames on the link can be seen") {
		t.Errorf("exit %d, table:\n%s", code, out)
	}
}

func TestShowPrintsWholeRow(t *testing.T) {
	code, out, _ := command(t, "show", "mr-016")
	for _, want := range []string{"Bad lkey in a send", "wc LOC_PROT_ERR", "E: exactly", "t:test_atomic.py", "runs      simulator; Soft-RoCE", "; mlx5\n", "mr/mr.go:"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d; no %q in:\n%s", code, want, out)
		}
	}
}

func TestVersionHasTheCommit(t *testing.T) {
	got := versionOf([]debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef"}})
	if want := conformance.Version + "+0123456789ab"; got != want || versionOf(nil) != conformance.Version {
		t.Errorf("version %s, want %s", got, want)
	}
}

// full is a disk without room behind its first bytes.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), f.room)
	if f.room -= n; n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// Whatever write of a command fails, its exit status and standard error say so.
func TestOutputThatCannotBeWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, args := range [][]string{{"list"}, {"list", "--capabilities"}, {"list", "RC", "--format", "json"}, {"show", "RC-012"}, {"wire", "--rules"},
		{"mutants", "--list"}, {"--version"}, {"--help"}, {"--label-filter", "CQ-001"}, {"-v", "--label-filter", "CQ-001"}} {
		code, out, _ := command(t, args...)
		if code != exitOK {
			t.Fatalf("%v: exit %d", args, code)
		}
		last := 1
		if slices.Contains(args, "--label-filter") { // the time that a run says it took has another length each time
			last = len(" (59m59.999s)\n")
		}
		for _, room := range []int{0, 1, len(out) / 2, len(out) - last} {
			var stderr bytes.Buffer
			code := program.Execute(context.Background(), args, &full{room}, &stderr)
			if code != exitFailed || !strings.Contains(stderr.String(), "the output is not complete: no space left") {
				t.Errorf("%v, room for %d of %d bytes: exit %d, %q", args, room, len(out), code, stderr.String())
			}
		}
	}
}

// TestHelpIsUniform: place-holders are words in capitals, one for one thing, and each default is
// printed once.
func TestHelpIsUniform(t *testing.T) {
	for _, fault := range commands.FaultsOfHelp(newRoot(io.Discard, io.Discard)) {
		t.Error(fault)
	}
}
