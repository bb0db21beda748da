//go:build linux && amd64

package exec

import (
	"flag"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updatePrograms = flag.Bool("update-programs", false, "write the table of docs/programs.md")

// program is a row of docs/programs.md: a program of Debian that the session runs.
type program struct {
	name, pkg string
	runs      string // the command as the page shows it, below rdmasim exec
	script    string // the command as the test runs it; empty: as the page shows it
	flags     []string
	out       string // regular expressions of the output, one a line
	works     string
	needs     string // beside the package
	// everybody: an ordinary user runs it too; once: only that one, if root is the other.
	everybody, once bool
}

// mpi is what both MPIs need to run in a test: the rank chooses the device, and root may be the
// user.
const mpi = `export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HOME=/tmp UCX_TLS=%s,self; exec mpirun.%s -np 2 %s sh -c 'UCX_NET_DEVICES=mlx5_$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK})):1 exec "$0"' RING`

var foreignPrograms = []program{
	{name: "ucx_info", pkg: "ucx-utils", runs: "ucx_info -d", out: "Transport: rc_mlx5\nTransport: ud_mlx5\nTransport: dc_mlx5\nTransport: rc_verbs\nTransport: ud_verbs",
		works: "lists `rc_mlx5`, `ud_mlx5`, `dc_mlx5`, `rc_verbs` and `ud_verbs`", everybody: true},
	{name: "ucx_perftest", pkg: "ucx-utils", runs: "ucx_perftest -t tag_lat", flags: []string{"-devices", "2"}, script: perftestUCX,
		out: "rc_v 0 0\nud_v 0 0", works: "tags over `rc_verbs` and `ud_verbs`", needs: "`UCX_TLS=rc_v`, RC with the UD that sets it up; `rc_verbs` alone does not connect"},
	{name: "io_demo", pkg: "ucx-utils", runs: "io_demo -q", flags: []string{"-devices", "2"}, script: ioDemo,
		out: "client 0\nexit with status 'OK'", works: "reads and writes of up to 64 KiB over `ud_mlx5`, contents checked", needs: "`UCX_TLS=ud_x,tcp`: TCP connects"},
	{name: "Open MPI", pkg: "openmpi-bin", runs: "mpirun --mca pml ucx --mca osc ucx ring", flags: []string{"-devices", "2"},
		script: fmt.Sprintf(mpi, "dc_x", "openmpi", "--oversubscribe --mca pml ucx --mca osc ucx"), out: "ranks 2 wrong bytes 0",
		works: "ring, all-to-all and puts of 1 B to 256 KiB over `dc_mlx5`, contents checked", needs: "`--mca pml ucx`"},
	{name: "MPICH", pkg: "mpich", runs: "mpirun ring", flags: []string{"-devices", "2"}, script: fmt.Sprintf(mpi, "rc_x", "mpich", ""), out: "ranks 2 wrong bytes 0",
		works: "the same over `rc_mlx5`", needs: "Debian's is built on UCX", everybody: true, once: true},
	{name: "lspci", pkg: "pciutils", runs: "lspci -D", out: `0001:01:00.0 Ethernet controller: Mellanox Technologies MT27800`, works: "lists the adapters"},
	{name: "lstopo", pkg: "hwloc-nox", runs: "lstopo-no-graphics --of console", out: `PCI 0001:01:00.0 \(Ethernet\)` + "\n" + `OpenFabrics "mlx5_0"`,
		works: "shows each below a host bridge of its own", everybody: true},
	{name: "dpdk-devbind.py", pkg: "dpdk", runs: "dpdk-devbind.py --status-dev net", out: `0001:01:00.0 '.*' if=sim0 drv=mlx5_core`, works: "lists them; nothing can be bound"},
	{name: "ibstat", pkg: "infiniband-diags", runs: "ibstat", out: "CA 'mlx5_0'\nState: Active\nRate: 100", works: "shows devices and ports"},
	{name: "ibnetdiscover", pkg: "infiniband-diags", runs: "ibnetdiscover", flags: []string{"-profile", "connectx-5-ib", "-devices", "3"},
		out: `Switch\s+3 .*"rdmasim switch"`, works: "shows the fabric, as `iblinkinfo`, `smpquery`, `saquery`, `perfquery`, `ibping` and others do", needs: "an InfiniBand profile"},
	{name: "ibv_devinfo", pkg: "ibverbs-utils", runs: "ibv_devinfo -v", out: `hca_id:\s+mlx5_0` + "\n" + `state:\s+PORT_ACTIVE`, works: "shows all attributes"},
	{name: "rdma", pkg: "iproute2", runs: "rdma link", out: `link mlx5_0/1 state ACTIVE physical_state LINK_UP *\n`, works: "shows links; an interface only with `--own-network`"},
}

// perftestUCX runs ucx_perftest between two devices over one transport after the other.
const perftestUCX = `for tls in rc_v ud_v; do export UCX_TLS=$tls
	UCX_NET_DEVICES=mlx5_0:1 ucx_perftest -p PORT >/dev/null 2>&1 & s=$!; LISTENS
	UCX_NET_DEVICES=mlx5_1:1 ucx_perftest -p PORT -t tag_lat -n 20 -w 2 -s 1024 127.0.0.1 >/dev/null 2>&1; c=$?
	[ $c -eq 0 ] || kill $s; wait $s; echo $tls $? $c; done`

// ioDemo lets a client of io_demo read and write at a server, both of which check what they get.
const ioDemo = `export UCX_TLS=ud_x,tcp; io_demo -q -d 1:65536 -p PORT >/dev/null 2>&1 & s=$!; LISTENS
	io_demo -q -p PORT -i 10 -d 1:65536 -o read,write 127.0.0.1 2>&1; echo client $?; kill $s; wait $s; true`

// TestProgramsOfOthers runs the programs of the table, each if it is installed.
func TestProgramsOfOthers(t *testing.T) {
	canListen(t)
	each(t, func(t *testing.T, u user) {
		for i := range foreignPrograms {
			p := &foreignPrograms[i]
			if int(u.id) != os.Geteuid() && !p.everybody || p.once && u != slices.MaxFunc(users(), func(a, b user) int { return int(a.id) - int(b.id) }) {
				continue
			}
			t.Run(p.name, func(t *testing.T) { u.runProgram(t, p) })
		}
	})
}

func (u user) runProgram(t *testing.T, p *program) {
	script := p.script
	if script == "" {
		script = p.runs
	}
	for _, word := range regexp.MustCompile(`ucx_\w+|io_demo|mpirun\.\w+|lspci|lstopo\S*|dpdk\S+|ib\w+|rdma`).FindAllString(script, 1) {
		if _, err := osexec.LookPath(word); err != nil {
			t.Skipf("needs %s of Debian's package %s", word, p.pkg)
		}
	}
	if strings.HasSuffix(script, "RING") {
		script = strings.TrimSuffix(script, "RING") + quote(ring(t, strings.Fields(script[strings.Index(script, "mpirun."):])[0]))
	}
	n := port(t)
	script = strings.NewReplacer("PORT", fmt.Sprint(n), "LISTENS", listens(n)+" || exit 9").Replace(script)
	out, status := u.session(t, append(slices.Clone(p.flags), "--", "sh", "-c", script)...)
	for want := range strings.SplitSeq(p.out, "\n") {
		if status != 0 || !regexp.MustCompile(want).MatchString(out) {
			t.Fatalf("%s: status %d, want %q in\n%s", p.runs, status, want, out)
		}
	}
}

// TestMPICrossesTheCable: by the recipe of docs/exec.md two ranks send all bytes of the ring over
// the cable, and the end of -v says how many packets; through shared memory they send none.
func TestMPICrossesTheCable(t *testing.T) {
	canListen(t)
	needs(t, "mpirun.openmpi")
	const recipe = `mpirun -np 2 --mca pml ucx -x UCX_TLS=rc_x,self \
    sh -c 'UCX_NET_DEVICES=mlx5_$OMPI_COMM_WORLD_RANK:1 exec ./ring'`
	page, err := os.ReadFile("../../docs/exec.md")
	if err != nil || !strings.Contains(string(page), "rdmasim exec --devices 2 -v -- "+recipe) {
		t.Fatalf("docs/exec.md has another recipe (%v)", err)
	}
	program := ring(t, "mpirun.openmpi")
	u := users()[0]
	sent := func(command string) (packets [2]int) {
		t.Helper()
		script := "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HOME=/tmp; cd " + quote(filepath.Dir(program)) + "; exec " +
			strings.Replace(command, "mpirun -np 2", "mpirun.openmpi -np 2 --oversubscribe", 1)
		out, status := u.session(t, "-devices", "2", "-v", "--", "sh", "-c", script)
		if status != 0 || !strings.Contains(out, "ranks 2 wrong bytes 0") {
			t.Fatalf("status %d:\n%s", status, out)
		}
		for i := range packets {
			m := regexp.MustCompile(fmt.Sprintf(`(?m)^(?:rdmasim exec: )?mlx5_%d: (\d+) packets? sent over the cable or switch, (\d+) received$`, i)).FindStringSubmatch(out)
			if m == nil {
				t.Fatalf("nothing is said of mlx5_%d:\n%s", i, out)
			}
			packets[i], _ = strconv.Atoi(m[1])
		}
		return packets
	}
	if got := sent(recipe); got[0] < 300 || got[1] < 300 { // a ring, all-to-all and puts of up to 256 KiB, at 4096 bytes in a packet
		t.Errorf("over the cable: %v packets", got)
	}
	if got := sent(strings.Replace(recipe, "--mca pml ucx", "--mca pml ob1 --mca btl self,vader", 1)); got[0] > 0 || got[1] > 0 {
		t.Errorf("through shared memory: %v packets", got)
	}
}

// ring builds testdata/ring.c with the compiler of an MPI.
func ring(t *testing.T, mpirun string) string {
	t.Helper()
	cc := strings.Replace(mpirun, "mpirun", "mpicc", 1)
	if _, err := osexec.LookPath(cc); err != nil {
		t.Skipf("needs %s, of Debian's lib%s-dev, and gcc", cc, strings.TrimPrefix(mpirun, "mpirun."))
	}
	path := filepath.Join(shared(t), "ring")
	if out, err := osexec.Command(cc, "-O1", "-o", path, "testdata/ring.c").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, out)
	}
	return path
}

// TestTableOfPrograms: docs/programs.md has a row for each program, with the version that
// -update-programs found.
func TestTableOfPrograms(t *testing.T) {
	const file = "../../docs/programs.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(page), "\n| --- |")
	if !ok {
		t.Fatalf("%s has no table", file)
	}
	lines := []string{head + "\n| --- | --- | --- | --- |"}
	for _, p := range foreignPrograms {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(p.name) + ` \(` + p.pkg + ` (\S+)\) \|`).FindStringSubmatch(string(page))
		version := "?"
		if row != nil {
			version = row[1]
		}
		if *updatePrograms {
			b, err := osexec.Command("dpkg-query", "-W", "-f", "${Version}", p.pkg).Output()
			if err != nil {
				t.Fatalf("version of %s: %v", p.pkg, err)
			}
			version = string(b)
		}
		lines = append(lines, fmt.Sprintf("| %s (%s %s) | `%s` | %s | %s |", p.name, p.pkg, version, p.runs, p.works, p.needs))
	}
	want := strings.Join(lines, "\n") + "\n"
	if *updatePrograms {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
		return
	}
	if string(page) != want || strings.Contains(want, " ?) |") {
		t.Errorf("%s differs from the programs that the test runs; go test ./attach/exec -run TableOfPrograms -update-programs writes it", file)
	}
}
