//go:build linux && amd64

package exec

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var allCM = flag.Bool("cm.all", false, "all programs of the connection manager, with more connections and longer transfers")

// cmProgram is a server and its client, which find each other by rdma_cm.
type cmProgram struct {
	name           string
	server, client string
	ends           bool   // the server ends by itself
	flags          string // of the session
	needs          string
	want           string // in the output, a regular expression
	all            bool   // only with -cm.all
	// tries, if the end of the programs is a race of theirs: who closes first flushes the receives
	// of the other, which is an error there, and rping's main thread closes the channel on which
	// its other thread waits.
	tries int
}

// cmPrograms are those of rdma-core, perftest, qperf, fio and libfabric. FILE and COPY are files;
// what is said of their contents is the programs' own check, or that of cmp.
var cmPrograms = []cmProgram{
	{name: "rping", server: "rping -s -a 10.1.0.1 -v -V -C 20", client: "rping -c -a 10.1.0.1 -v -V -C 20", ends: true, want: `(?m)^server ping data: rdma-ping-19: `, tries: 5},
	{name: "ucmatose", server: "ucmatose -c 4", client: "ucmatose -s 10.1.0.1 -c 4", ends: true, want: `(?s)receiving data transfers.*return status 0.*return status 0`},
	{name: "udaddy", server: "udaddy", client: "udaddy -s 10.1.0.1", ends: true, want: `(?s)receiving data transfers.*return status 0.*return status 0`},
	{name: "rcopy", server: "rcopy", client: "rcopy FILE 10.1.0.1:COPY && cmp FILE COPY", want: `[0-9]+ bytes in`},
	{name: "ib_write_bw", server: "ib_write_bw -F -R -n 100 -q 2", client: "ib_write_bw -F -R -n 100 -q 2 10.1.0.1", ends: true, want: `(?m)^ 65536 +200 `},

	{name: "rping on InfiniBand", flags: "-profile connectx-5-ib -devices 2", server: "rping -s -a 10.1.0.2 -V -C 10", client: "rping -c -a 10.1.0.2 -I 10.1.0.1 -V -C 10", ends: true, want: `client DISCONNECT EVENT`, tries: 5},
	{name: "ucmatose on InfiniBand", flags: "-profile connectx-5-ib", server: "ucmatose -c 4", client: "ucmatose -s 10.1.0.1 -c 4", ends: true, want: `return status 0`, all: true},
	{name: "udaddy on InfiniBand", flags: "-profile connectx-5-ib", server: "udaddy", client: "udaddy -s 10.1.0.1", ends: true, want: `(?s)return status 0.*return status 0`, all: true},
	{name: "mckey on InfiniBand", flags: "-profile connectx-5-ib -devices 2", server: "mckey -m 239.1.1.1 -b 10.1.0.2", client: "mckey -m 239.1.1.1 -b 10.1.0.1 -s", ends: true, want: `(?s)dgid: ff12:4001:ffff::f01:101.*return status 0.*return status 0`, all: true},
	{name: "two devices", flags: "-devices 2", server: "rping -s -a 10.1.0.2 -V -C 50", client: "rping -c -a 10.1.0.2 -I 10.1.0.1 -V -C 50", ends: true, want: `client DISCONNECT EVENT`, all: true},
	{name: "many connections", server: "ucmatose -c 64 -C 20 -S 5000", client: "ucmatose -s 10.1.0.1 -c 64 -C 20 -S 5000", ends: true, want: `return status 0`, all: true},
	{name: "mckey", server: "mckey -m 239.1.1.1 -b 10.1.0.1", client: "mckey -m 239.1.1.1 -b 10.1.0.1 -s", ends: true, want: `(?s)return status 0.*return status 0`, all: true},
	{name: "cmtime", server: "cmtime", client: "cmtime -s 10.1.0.1 -c 100", want: `disconnect +:`, all: true},
	{name: "rstream", server: "rstream -T v -S 4096 -C 100 -I 20", client: "rstream -T v -s 10.1.0.1 -S 4096 -C 100 -I 20", ends: true, want: `(?m)^custom +4k +100 +20 `, all: true},
	{name: "riostream", server: "riostream -T v -S 4096 -C 100 -I 20", client: "riostream -T v -s 10.1.0.1 -S 4096 -C 100 -I 20", ends: true, want: `(?m)^custom +4k +100 +20 `, all: true},
	{name: "ib_send_lat", server: "ib_send_lat -F -R -n 500", client: "ib_send_lat -F -R -n 500 10.1.0.1", ends: true, want: `(?m)^ 2 +500 `, all: true},
	{name: "ib_read_bw", server: "ib_read_bw -F -R -a -n 50", client: "ib_read_bw -F -R -a -n 50 10.1.0.1", ends: true, want: `(?m)^ 8388608 +50 `, all: true},
	{name: "ib_send_bw of UD", server: "ib_send_bw -F -R -c UD -n 500", client: "ib_send_bw -F -R -c UD -n 500 10.1.0.1", ends: true, want: `(?m)^ 4096 +500 `, all: true},
	{name: "fio", needs: "fio", server: "fio --name=server --ioengine=rdma --port=7480 --rw=read --size=4M --bs=64k --iodepth=4",
		client: "fio --name=client --ioengine=rdma --hostname=10.1.0.1 --port=7480 --verb=write --rw=write --size=4M --bs=64k --iodepth=4", ends: true, want: `WRITE: bw=.*io=4096KiB`, all: true},
	{name: "qperf", needs: "qperf", flags: "-own-network", server: "qperf", client: "qperf 10.1.0.1 -t 1 -cm 1 rc_bw rc_lat rc_rdma_write_bw rc_rdma_read_bw", want: `(?s)rc_bw:.*rc_lat:.*rc_rdma_write_bw:.*rc_rdma_read_bw:\s+bw`, all: true},
	{name: "fi_pingpong of messages", needs: "fi_pingpong", flags: "-own-network", server: "fi_pingpong -p verbs -e msg -c", client: "fi_pingpong -p verbs -e msg -c 10.1.0.1", ends: true, want: `(?m)^1m `, all: true},
	{name: "fi_pingpong of datagrams that arrive", needs: "fi_pingpong", flags: "-own-network", server: "fi_pingpong -p 'verbs;ofi_rxm' -e rdm -c", client: "fi_pingpong -p 'verbs;ofi_rxm' -e rdm -c 10.1.0.1", ends: true, want: `(?m)^1m `, all: true, tries: 3},
}

// script runs the server, the client when it listens, and says how each ended. mckey's server joins
// a group in place of listening, and qperf and fi_pingpong listen on TCP first, so a program counts
// as ready when it has an id or a TCP socket of its own.
func (p *cmProgram) script(file, copied string) string {
	end := "wait $s; s=$?"
	if !p.ends {
		end = "kill $s; wait $s; s=0"
	}
	return strings.NewReplacer("FILE", file, "COPY", copied).Replace(fmt.Sprintf(`rm -f COPY; %s & s=$!
i=0
until rdma res show cm_id | grep -q . || ss -Hltnp | grep -q "pid=$s,"; do
  i=$((i+1)); [ $i -gt 15000 ] && echo no server && exit 9
  kill -0 $s || exit 8
  sleep 0.02
done
%s; c=$?
[ $c -eq 0 ] || kill $s
%s
rm -f COPY
echo "status $s $c"
exit $((s+c))`, p.server, p.client, end))
}

// TestConnectionManager runs programs that use librdmacm. `make soak` gives them more to do, and
// runs some that listen elsewhere too.
func TestConnectionManager(t *testing.T) {
	needs(t, "rping", "ucmatose", "udaddy", "rcopy", "ib_write_bw", "rdma", "ss")
	dir := shared(t)
	file := filepath.Join(dir, "file")
	b := make([]byte, 300_000)
	for i := range b {
		b[i] = byte(i * i >> 7)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, u user) {
		for _, p := range cmPrograms {
			if p.all && !*allCM {
				continue
			}
			if p.needs != "" {
				needs(t, p.needs)
			}
			flags := append(append([]string{"-v"}, strings.Fields(p.flags)...), "--", "sh", "-c", p.script(quote(file), quote(filepath.Join(dir, "copy"))))
			out, status := u.session(t, flags...)
			good := func() bool {
				return status == 0 && strings.Contains(out, "status 0 0") && regexp.MustCompile(p.want).MatchString(out)
			}
			for try := 1; try < p.tries && !good(); try++ {
				out, status = u.session(t, flags...)
			}
			if !good() {
				t.Errorf("%s: status %d, want %s:\n%s", p.name, status, p.want, out)
			}
			if strings.Contains(out, "not given back") {
				t.Errorf("%s:\n%s", p.name, out[strings.Index(out, "not given back"):])
			}
		}
	})
}

// TestChannelFile uses channel files as event-driven programs do, and as hostile ones. Nothing is
// left of them.
func TestChannelFile(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "channel")
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions([]string{"-v"}, []string{"-v", "-path-calls"}) {
			out, status := u.session(t, append(flags, "--", bin)...)
			if status != 0 || !strings.Contains(out, "\n0 failures\n") || strings.Contains(out, "not given back") {
				t.Errorf("%v: status %d:\n%.3000s", flags, status, out)
			}
		}
	})
}

// TestNumbersOfChannels opens more channels than there are numbers for below the limit of
// descriptors, and more than the supervisor opens for one process. TestThreadsThatWaitForEvents:
// however many they are, other processes go on.
func TestThreadsThatWaitForEvents(t *testing.T) {
	needs(t, "ibv_devices")
	out, status := users()[0].session(t, "--", compile(t, "waiters"), strconv.Itoa(defaultWaiting))
	if status != 0 || !strings.Contains(out, "status 0, 1 refused") || !strings.Contains(out, "wait for events of rdma_cm") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestNumbersOfChannels(t *testing.T) {
	needs(t, "gcc")
	bin := compile(t, "channel")
	u := users()[0]
	few := channelRanges[0].end - channelRanges[0].first
	for _, c := range []struct {
		script, want string
	}{
		{"ulimit -n 1024; exec " + quote(bin) + " 400", fmt.Sprintf("%d channels, then Too many open files\n", few)},
		{"ulimit -Sn 1024; exec " + quote(bin) + " 400", "400 channels, then enough\n"},
		{"ulimit -Sn 1024; exec " + quote(bin) + " 900", "600 channels, then Too many open files\n"},
	} {
		out, status := u.session(t, "-limit-files", "600", "--", "sh", "-c", c.script)
		if status != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: status %d, no %q:\n%.2000s", c.script, status, c.want, out)
		}
	}
}

// TestOwnNetwork looks at the interfaces of a network of the session's own, and reaches a TCP
// server at a device's address.
func TestOwnNetwork(t *testing.T) {
	needs(t, "ip", "rdma")
	each(t, func(t *testing.T, u user) {
		out, status := u.session(t, "-own-network", "-devices", "2", "--", "sh", "-c", "ip -br addr; rdma link; grep CapAmb /proc/self/status")
		for _, want := range []string{`(?m)^sim0 .* 10\.1\.0\.1/24`, `(?m)^sim1 .* 10\.1\.0\.2/24`, `link mlx5_0/1 .* netdev sim0`, `CapAmb:\s*0+\n`} {
			if !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("no %s", want)
			}
		}
		if status != 0 || t.Failed() {
			t.Errorf("status %d:\n%s", status, out)
		}
	})
	out, status := users()[0].session(t, "-own-network", "-profile", "connectx-5-ib", "--", "sh", "-c", "ip -br addr; ls /sys/class/infiniband/mlx5_0/device/net")
	if status != 0 || !regexp.MustCompile(`(?m)^ib0 .* 10\.1\.0\.1/24`).MatchString(out) || !regexp.MustCompile(`(?m)^ib0$`).MatchString(out) {
		t.Errorf("on InfiniBand: status %d:\n%s", status, out)
	}
}

// TestOneSignalForManyWaiters: a thread that waits beside the one that a signal is for sees no
// number of the kernel's own.
func TestOneSignalForManyWaiters(t *testing.T) {
	canListen(t)
	for _, name := range []string{"onesignal", "whosesignal", "vforksignal"} {
		bin := compile(t, name)
		each(t, func(t *testing.T, u user) {
			if out, status := u.session(t, "--", bin); status != 0 || !strings.Contains(out, "errno 0\n") {
				t.Errorf("%s: status %d:\n%s", name, status, out)
			}
		})
	}
}
