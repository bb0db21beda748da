package ci

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/rdmasim/rdmasim/roce/pcap"
)

// execAction is the folder of what runs users' commands below rdmasim exec.
const execAction = ".github/actions/exec"

// service runs a job of a user who asks for rdmasim exec, as a CI service does.
type service struct {
	name string
	// run runs the job in a folder, with inputs by the names that they have on GitHub. kept is what
	// the service keeps of the folder.
	run func(t *testing.T, dir string, inputs map[string]string, env []string) (out string, status int, kept string)
}

var services = []service{{"GitHub", runAction}, {"GitLab", runIncluded}}

// action is action.yml.
type action struct {
	Inputs map[string]struct {
		Required bool   `yaml:"required"`
		Default  string `yaml:"default"`
	} `yaml:"inputs"`
	Runs struct {
		Using string `yaml:"using"`
		Steps []struct {
			Uses  string            `yaml:"uses"`
			If    string            `yaml:"if"`
			Shell string            `yaml:"shell"`
			Run   string            `yaml:"run"`
			Env   map[string]string `yaml:"env"`
			With  map[string]string `yaml:"with"`
		} `yaml:"steps"`
	} `yaml:"runs"`
}

// included is gitlab.yml, or a job that extends it.
type included struct {
	Variables map[string]string `yaml:"variables"`
	Script    []string          `yaml:"script"`
	Artifacts struct {
		When  string   `yaml:"when"`
		Paths []string `yaml:"paths"`
	} `yaml:"artifacts"`
}

func parse(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, root, filepath.Join(execAction, name))), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// expression is a value of GitHub in the text of a step.
var expression = regexp.MustCompile(`\$\{\{ *([\w.]+) *\}\}`)

func runAction(t *testing.T, dir string, inputs map[string]string, env []string) (out string, status int, kept string) {
	t.Helper()
	var a action
	parse(t, "action.yml", &a)
	if a.Runs.Using != "composite" {
		t.Fatalf("the action is %q", a.Runs.Using)
	}
	for name := range inputs {
		if _, ok := a.Inputs[name]; !ok {
			t.Fatalf("the action has no input %s", name)
		}
	}
	value := func(text string) string {
		return expression.ReplaceAllStringFunc(text, func(e string) string {
			e = expression.FindStringSubmatch(e)[1]
			if e == "github.action_path" {
				return filepath.Join(absolute(t), execAction)
			}
			name, ok := strings.CutPrefix(e, "inputs.")
			in, known := a.Inputs[name]
			if !ok || !known {
				t.Fatalf("a step asks for %s", e)
			}
			if v, given := inputs[name]; given {
				return v
			}
			return in.Default
		})
	}
	for _, s := range a.Runs.Steps {
		if status != 0 && s.If != "always()" {
			continue
		}
		if s.Uses != "" {
			if !strings.HasPrefix(s.Uses, "actions/upload-artifact@") || s.With["name"] == "" {
				t.Fatalf("step %+v", s)
			}
			kept = value(s.With["path"])
			continue
		}
		if strings.Contains(s.Run, "${{") || s.Shell != "sh" {
			t.Fatalf("step %+v: inputs go by variables, which no shell takes for code", s)
		}
		of := slices.Clone(env)
		for name, v := range s.Env {
			of = append(of, name+"="+value(v))
		}
		out, status = finish(t, dir, of, "sh", "-e", "-c", s.Run)
	}
	return out, status, kept
}

func runIncluded(t *testing.T, dir string, inputs map[string]string, env []string) (out string, status int, kept string) {
	t.Helper()
	needCurl(t)
	var doc map[string]included
	parse(t, "gitlab.yml", &doc)
	j, ok := doc[".rdmasim-exec"]
	if !ok || len(doc) != 1 {
		t.Fatalf("gitlab.yml has %+v", doc)
	}
	j.Variables["RDMASIM_SCRIPT"] = fileURL(filepath.Join(absolute(t), execAction, "exec.sh"))
	for name, v := range inputs {
		j.Variables["RDMASIM_"+strings.ToUpper(name)] = v
	}
	for name, v := range j.Variables {
		env = append([]string{name + "=" + v}, env...)
	}
	// The runner writes the lines into one script.
	out, status = finish(t, dir, env, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", strings.Join(j.Script, "\n"))
	if len(j.Artifacts.Paths) == 1 && (status == 0 || j.Artifacts.When == "always") {
		kept = j.Artifacts.Paths[0]
	}
	return out, status, kept
}

// needCurl skips a test of GitLab's steps where there is no curl, but for make test, which installs
// it.
func needCurl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("RDMASIM_NEED_RDMA") != "" {
			t.Fatal("curl is not installed")
		}
		t.Skip("needs curl")
	}
}

// finish runs a program to its end.
func finish(t *testing.T, dir string, env []string, program string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// released is the version that the sources are of.
func released(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`const release = "(.*)"`).FindStringSubmatch(read(t, root, "experiment/version.go"))
	if m == nil {
		t.Fatal("experiment/version.go names no release")
	}
	return m[1]
}

// release makes a folder with an archive and its checksum as scripts/dist does, of one program.
func release(t *testing.T, program []byte) string {
	t.Helper()
	dir, name := t.TempDir(), "rdmasim-"+released(t)+"-linux-amd64"
	f, err := os.Create(filepath.Join(dir, name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	z, _ := gzip.NewWriterLevel(f, gzip.NoCompression)
	w := tar.NewWriter(z)
	err = errors.Join(w.WriteHeader(&tar.Header{Name: name + "/rdmasim", Mode: 0o755, Size: int64(len(program))}), func() error { _, err := w.Write(program); return err }(), w.Close(), z.Close(), f.Close())
	if err != nil {
		t.Fatal(err)
	}
	sum.Write([]byte(read(t, dir, name+".tar.gz")))
	write(t, dir, "SHA256SUMS", fmt.Sprintf("%064x  rdmasim-0.0.1-linux-amd64.tar.gz\n%x  %s.tar.gz\n", 1, sum.Sum(nil), name))
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// execProgram is rdmasim, on a machine that lets it run programs.
func execProgram(t *testing.T) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the programs")
	}
	build := exec.Command("go", "build", "-trimpath", "-o", programs+"/", "./cmd/rdmasim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(filepath.Join(programs, "rdmasim"), "exec", "--", "true").CombinedOutput(); err != nil && os.Getenv("RDMASIM_NEED_RDMA") == "" {
		t.Skipf("needs a machine that lets programs be supervised: %s", out)
	}
	return []byte(read(t, programs, "rdmasim"))
}

// The command has the devices and faults that the inputs say, its status is the job's, and what it
// did is kept whatever the status is.
func TestUsersCommandBelowExec(t *testing.T) {
	dist := release(t, execProgram(t))
	site := httptest.NewServer(http.FileServer(http.Dir(dist)))
	defer site.Close()
	ping, frames := "true", 0
	if _, err := exec.LookPath("ibv_rc_pingpong"); err == nil {
		l, err := net.Listen("tcp", ":0") // for a port that is free
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		frames = 100
		ping = fmt.Sprintf(`ibv_rc_pingpong -p %[1]d -d mlx5_0 -g 0 -n 100 & s=$!
i=0; until ibv_rc_pingpong -p %[1]d -d mlx5_1 -g 0 -n 100 localhost; do i=$((i+1)); [ $i -lt 600 ]; sleep 0.1; done
wait $s`, l.Addr().(*net.TCPAddr).Port)
	} else if os.Getenv("RDMASIM_NEED_RDMA") != "" {
		t.Fatal("ibv_rc_pingpong is not installed")
	}
	for i, s := range services {
		t.Run(s.name, func(t *testing.T) {
			dir, from := t.TempDir(), []string{site.URL + "/", dist}[i]
			out, status, kept := s.run(t, dir, map[string]string{"command": "printenv RDMASIM_EXEC\n" + ping + "\nrdmasim --version", "devices": "2", "from": from, "flags": "--seed 7 --odp=false"}, nil)
			if status != 0 || kept == "" {
				t.Fatalf("status %d, kept %q:\n%s", status, kept, out)
			}
			log := read(t, dir, kept+"log.txt")
			if !strings.Contains(out, log) || !regexp.MustCompile(`rdmasim exec --counters-file \S+ --devices 2 --pcap \S+ --seed 7 --odp=false --\n`).MatchString(log) || !strings.Contains(log, "\nrdmasim version "+released(t)) {
				t.Errorf("the log:\n%s", log)
			}
			if _, packets, err := pcap.Read(strings.NewReader(read(t, dir, kept+"capture.pcapng"))); err != nil || len(packets) < frames {
				t.Errorf("a capture of %d frames, %v", len(packets), err)
			}
			if !regexp.MustCompile(fmt.Sprintf(`(?m)^infiniband/mlx5_1/ports/1/counters/port_xmit_packets %s$`, map[bool]string{true: `\d{3,}`, false: "0"}[frames > 0])).MatchString(read(t, dir, kept+"counters.txt")) {
				t.Errorf("the counters:\n%s", read(t, dir, kept+"counters.txt"))
			}

			// A second step in the same folder keeps nothing of the first.
			write(t, dir, "f.yaml", "links: [{port: mlx5_0, at: 0s, to: down}]\n")
			out, status, kept = s.run(t, dir, map[string]string{"command": "printenv RDMASIM_EXEC\nfalse || exit 3", "profile": "connectx-5-ib", "loss": "0.1%", "fault": "f.yaml", "pcap": "false", "from": from}, nil)
			if status != 3 || kept == "" {
				t.Fatalf("status %d, kept %q:\n%s", status, kept, out)
			}
			log = read(t, dir, kept+"log.txt")
			if !regexp.MustCompile(`--devices 1 --profile connectx-5-ib --loss 0.1% --fault f.yaml --\n`).MatchString(log) || !strings.Contains(log, "the link of mlx5_0 was taken down at 0") {
				t.Errorf("the log:\n%s", log)
			}
			if n := strings.Count(read(t, dir, kept+"counters.txt"), "\n"); n < 10 {
				t.Errorf("%d counters", n)
			}
			if _, err := os.Stat(filepath.Join(dir, kept, "capture.pcapng")); err == nil {
				t.Error("there is a capture, which nobody asked for")
			}
		})
	}
}

// What cannot run says so, with what to do, and nothing of the archive has run.
func TestUsersCommandIsRefused(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	program := []byte("#!/bin/sh\necho >>'" + ran + "'\n")
	dist := release(t, program)
	archive := "rdmasim-" + released(t) + "-linux-amd64.tar.gz"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, dist, archive))))
	damaged, other, unsigned := release(t, append(program, "#\n"...)), t.TempDir(), t.TempDir()
	write(t, damaged, "SHA256SUMS", read(t, dist, "SHA256SUMS"))
	write(t, unsigned, archive, read(t, dist, archive))
	write(t, other, archive, read(t, dist, archive))
	write(t, other, "SHA256SUMS", sum+"  rdmasim-9.9.9-linux-amd64.tar.gz\n")
	site := httptest.NewServer(http.FileServer(http.Dir(dist)))
	defer site.Close()
	machine := func(system, processor string) string {
		dir := t.TempDir()
		write(t, dir, "uname", "#!/bin/sh\n[ \"$1\" = -s ] && echo "+system+" || echo "+processor+"\n")
		return dir
	}
	for _, x := range []struct {
		what   string
		inputs map[string]string
		uname  string // the folder of another one
		want   string // "": the program runs
	}{
		{what: "as it should be"},
		{what: "version with v", inputs: map[string]string{"version": "v" + released(t)}},
		{what: "own checksum", inputs: map[string]string{"from": unsigned, "sha256": sum}},
		{what: "file URL", inputs: map[string]string{"from": fileURL(dist + "/")}},
		{"wrong checksum", map[string]string{"from": damaged}, "", "SHA-256 .*, where " + damaged + "/SHA256SUMS says " + sum + ": it is damaged"},
		{"wrong own checksum", map[string]string{"sha256": strings.Repeat("0", 64)}, "", "SHA-256 " + sum + ", where sha256 says 0{64}: it is damaged"},
		{"no checksum", map[string]string{"from": unsigned}, "", unsigned + "/SHA256SUMS cannot be read"},
		{"checksum of another", map[string]string{"from": other}, "", "has no line for " + archive},
		{"unknown version", map[string]string{"version": "9.9.9"}, "", `rdmasim-9\.9\.9-linux-amd64\.tar\.gz cannot be read\. https://github\.com/rdmasim/rdmasim/releases has the versions .*make dist`},
		{"unknown version of a site", map[string]string{"version": "9.9.9", "from": site.URL}, "", `rdmasim-9\.9\.9-linux-amd64\.tar\.gz cannot be read\. .*make dist`},
		{"no version", map[string]string{"version": ""}, "", "a release is needed, such as"},
		{"version that is a path", map[string]string{"version": "../0"}, "", "a release is needed, such as"},
		{"arm64", nil, machine("Linux", "aarch64"), "needs x86-64, and this machine is aarch64: choose another runner"},
		{"riscv64", nil, machine("Linux", "riscv64"), "needs Linux on x86-64, and this machine is Linux on riscv64: choose another runner"},
		{"macOS", nil, machine("Darwin", "x86_64"), "needs Linux on x86-64, and this machine is Darwin on x86_64: choose another runner"},
		{"no command", map[string]string{"command": ""}, "", "no command to run: give one"},
		{"neither", map[string]string{"pcap": "yes"}, "", "pcap is 'yes': true or false is needed"},
	} {
		inputs := map[string]string{"command": "true", "from": dist}
		for name, v := range x.inputs {
			inputs[name] = v
		}
		var env []string
		if x.uname == "" && runtime.GOARCH != "amd64" {
			x.uname = machine("Linux", "x86_64")
		}
		if x.uname != "" {
			env = []string{"PATH=" + x.uname + ":" + os.Getenv("PATH")}
		}
		for _, s := range services {
			t.Run(s.name+", "+x.what, func(t *testing.T) {
				_ = os.Remove(ran)
				out, status, _ := s.run(t, t.TempDir(), inputs, env)
				_, err := os.Stat(ran)
				switch {
				case x.want == "" && (status != 0 || err != nil):
					t.Errorf("status %d, %v:\n%s", status, err, out)
				case x.want != "" && (status != 2 || err == nil || !regexp.MustCompile(`(?m)^rdmasim: .*`+x.want).MatchString(out)):
					t.Errorf("status %d, ran: %v; want 2 and %q:\n%s", status, err == nil, x.want, out)
				}
			})
		}
	}
}

// The files of both services name the release that the sources are of, and GitLab's takes no other
// script than the one beside it.
func TestExecActionIsOfThisRelease(t *testing.T) {
	version := released(t)
	var a action
	parse(t, "action.yml", &a)
	var doc map[string]included
	parse(t, "gitlab.yml", &doc)
	j := doc[".rdmasim-exec"]
	for where, got := range map[string]string{"version of action.yml": a.Inputs["version"].Default, "RDMASIM_VERSION of gitlab.yml": j.Variables["RDMASIM_VERSION"]} {
		if got != version {
			t.Errorf("%s is %q, and the release %s", where, got, version)
		}
	}
	if want := "https://raw.githubusercontent.com/rdmasim/rdmasim/v" + version + "/" + execAction + "/exec.sh"; j.Variables["RDMASIM_SCRIPT"] != want {
		t.Errorf("RDMASIM_SCRIPT of gitlab.yml is %q, want %s", j.Variables["RDMASIM_SCRIPT"], want)
	}
	script := read(t, root, execAction+"/exec.sh")
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(script))); !strings.Contains(strings.Join(j.Script, "\n"), sum) {
		t.Errorf("exec.sh has the SHA-256 %s, and gitlab.yml another", sum)
	}
	dist := read(t, root, "scripts/dist")
	for _, line := range []string{"name=rdmasim-$version-linux-$arch", `"$out.new/$name.tar.gz"`, ">SHA256SUMS"} {
		if !strings.Contains(dist, line) {
			t.Errorf("scripts/dist has no %s: exec.sh and these tests expect its names", line)
		}
	}
}

// A script that is not the one of the release does not run.
func TestExecScriptIsChecked(t *testing.T) {
	needCurl(t)
	var doc map[string]included
	parse(t, "gitlab.yml", &doc)
	dir := t.TempDir()
	write(t, dir, "other.sh", "echo other\n")
	out, status := finish(t, dir, []string{"RDMASIM_SCRIPT=" + fileURL(dir+"/other.sh")}, "bash", "-eo", "pipefail", "-c", strings.Join(doc[".rdmasim-exec"].Script, "\n"))
	if status == 0 || strings.Contains(out, "other\n") || !strings.Contains(out, ".rdmasim-exec.sh: FAILED") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// What docs/ci.md has users write asks for this release, by names that the files have.
func TestExecActionIsDocumented(t *testing.T) {
	_, section, ok := strings.Cut(read(t, root, "docs/ci.md"), "\n## Your tests below exec\n")
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(section, -1)
	if !ok || len(blocks) != 2 {
		t.Fatalf("the section has %d jobs", len(blocks))
	}
	var a action
	parse(t, "action.yml", &a)
	var steps []struct {
		Uses string            `yaml:"uses"`
		With map[string]string `yaml:"with"`
	}
	if err := yaml.Unmarshal([]byte(blocks[0][1]), &steps); err != nil || len(steps) != 1 {
		t.Fatalf("%v, %+v", err, steps)
	}
	if want := "rdmasim/rdmasim/" + execAction + "@v" + released(t); steps[0].Uses != want {
		t.Errorf("uses %s, want %s", steps[0].Uses, want)
	}
	for name := range steps[0].With {
		if _, ok := a.Inputs[name]; !ok {
			t.Errorf("the action has no input %s", name)
		}
	}
	for name, in := range a.Inputs {
		if _, given := steps[0].With[name]; in.Required && !given {
			t.Errorf("the action needs input %s", name)
		}
	}
	var doc struct {
		Include []struct {
			Remote string `yaml:"remote"`
		} `yaml:"include"`
		Ring struct {
			Extends   string            `yaml:"extends"`
			Variables map[string]string `yaml:"variables"`
		} `yaml:"ring"`
	}
	if err := yaml.Unmarshal([]byte(blocks[1][1]), &doc); err != nil || len(doc.Include) != 1 {
		t.Fatalf("%v, %+v", err, doc)
	}
	if want := "https://raw.githubusercontent.com/rdmasim/rdmasim/v" + released(t) + "/" + execAction + "/gitlab.yml"; doc.Include[0].Remote != want || doc.Ring.Extends != ".rdmasim-exec" {
		t.Errorf("includes %s and extends %s, want %s and .rdmasim-exec", doc.Include[0].Remote, doc.Ring.Extends, want)
	}
	for name := range doc.Ring.Variables {
		if !strings.Contains(read(t, root, execAction+"/exec.sh"), "${"+name+":-}") {
			t.Errorf("exec.sh has no %s", name)
		}
	}
}

// fileURL is the URL of a path, which may have spaces.
func fileURL(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }
